//! Identity of an endpoint in TLS: a key pair, sent as a raw public key (RFC 7250) and identified by its fingerprint,
//! like an SSH host key. `docs/src/transport.md`, "Opening a connection".

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use data_encoding::BASE64_NOPAD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, KeyLog, NoKeyLog, ServerConfig,
    SignatureScheme,
};
use thiserror::Error as ThisError;

use crate::secret::sha256;
use crate::service::Service;

/// Bytes from which a key pair is made.
pub const SEED_LEN: usize = 32;

/// SHA-256 of a public key, in the DER form of `SubjectPublicKeyInfo`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

/// Error for text that is not a fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ThisError)]
#[error("a fingerprint is `SHA256:` and 43 characters, as `narrows` prints it")]
pub struct FingerprintError;

impl Fingerprint {
    /// Creates a fingerprint from these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Computes the fingerprint of a key that a peer sent.
    fn of(key: &CertificateDer) -> Self {
        Self(sha256(&[key]))
    }
}

impl fmt::Display for Fingerprint {
    /// Writes the fingerprint in the form of `ssh-keygen -l`: `SHA256:` and base64 without padding.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SHA256:{}", BASE64_NOPAD.encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let digits = text.strip_prefix("SHA256:").ok_or(FingerprintError)?;
        let bytes = BASE64_NOPAD.decode(digits.as_bytes()).map_err(|_| FingerprintError)?;
        bytes.try_into().map(Self).map_err(|_| FingerprintError)
    }
}

/// A key pair (Ed25519, RFC 8032).
#[derive(Clone, Debug)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
}

/// PKCS #8 of an Ed25519 key up to its seed (RFC 8410 §7).
const PKCS8: &[u8] = &[0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

impl Identity {
    /// Derives the key pair of a seed of [`SEED_LEN`] bytes. The seed is secret and must be unpredictable.
    ///
    /// # Errors
    /// If the provider does not support Ed25519.
    pub fn from_seed(provider: &CryptoProvider, seed: &[u8; SEED_LEN]) -> Result<Self, Error> {
        let pkcs8 = [PKCS8, seed].concat();
        let key = provider.key_provider.load_private_key(PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pkcs8)))?;
        let public = key.public_key().ok_or(Error::General("the provider's keys have no public part".into()))?;
        let public = CertificateDer::from(public.to_vec());
        let fingerprint = Fingerprint::of(&public);
        Ok(Self { key: Arc::new(CertifiedKey::new(vec![public], key)), fingerprint })
    }

    /// Returns the fingerprint by which others identify it.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// Listener keys that a client accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// The key with this fingerprint.
    Fingerprint(Fingerprint),
    /// Any key. A man in the middle is not detected.
    Anyone,
}

/// Logger for TLS secrets, with which tools can decrypt captured packets; none if they are not logged.
pub type KeyLogger = Option<Arc<dyn KeyLog>>;

/// Creates the TLS configuration for clients of a service. With an identity, a client sends its key if the listener
/// requests it.
///
/// # Errors
/// If the provider has no TLS 1.3 cipher suite.
pub fn client_config(
    provider: &Arc<CryptoProvider>,
    trust: Trust,
    identity: Option<&Identity>,
    service: Service,
    key_log: KeyLogger,
) -> Result<Arc<ClientConfig>, Error> {
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_details(provider.clone(), Arc::new(NoTime))
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ListenerVerifier { trust, algorithms }));
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(identity.key.clone())))
        }
    };
    config.alpn_protocols = vec![service.alpn().to_vec()];
    config.key_log = key_log.unwrap_or_else(|| Arc::new(NoKeyLog));
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Creates the TLS configuration for listeners with a service. Clients that have a key send it; the `AUTH` frame
/// decides about admission.
///
/// # Errors
/// If the provider has no TLS 1.3 cipher suite.
pub fn listener_config(
    provider: &Arc<CryptoProvider>,
    identity: &Identity,
    service: Service,
    key_log: KeyLogger,
) -> Result<Arc<ServerConfig>, Error> {
    let algorithms = provider.signature_verification_algorithms;
    let mut config = ServerConfig::builder_with_details(provider.clone(), Arc::new(NoTime))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(ClientVerifier { algorithms }))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(identity.key.clone())));
    config.alpn_protocols = vec![service.alpn().to_vec()];
    config.key_log = key_log.unwrap_or_else(|| Arc::new(NoKeyLog));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Returns the fingerprint of the key that a peer has sent and proved to hold.
pub(crate) fn peer(certificates: Option<&[CertificateDer]>) -> Option<Fingerprint> {
    certificates?.first().map(Fingerprint::of)
}

/// Time provider for raw public keys: they do not expire, so the time is never used.
#[derive(Debug)]
struct NoTime;

impl TimeProvider for NoTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(core::time::Duration::ZERO))
    }
}

/// Trait methods that both kinds of verifiers share. The verifier has a field `algorithms`.
macro_rules! takes_raw_keys {
    () => {
        /// Fails: TLS 1.2 is not supported.
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.2 is not supported".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let key = SubjectPublicKeyInfoDer::from(&**key);
            verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

#[derive(Debug)]
struct ListenerVerifier {
    trust: Trust,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for ListenerVerifier {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.trust {
            Trust::Fingerprint(expected) if expected != Fingerprint::of(key) => {
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    takes_raw_keys!();
}

#[derive(Debug)]
struct ClientVerifier {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    takes_raw_keys!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn fingerprints_are_as_ssh_shows_them() {
        let fingerprint = Fingerprint::new([0xab; 32]);
        let text = fingerprint.to_string();
        assert_eq!(text, "SHA256:q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s");
        assert_eq!(text.parse(), Ok(fingerprint));
        for wrong in ["", "SHA256:", "MD5:ab", &text[7..], &text[..text.len() - 1], "SHA256:q6ur=q6u"] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(FingerprintError), "{wrong}");
        }
    }

    /// RFC 8410 §10.1: the public key of its example's private one.
    #[test]
    fn a_seed_is_an_identity() {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let seed = [
            0xd4, 0xee, 0x72, 0xdb, 0xf9, 0x13, 0x58, 0x4a, 0xd5, 0xb6, 0xd8, 0xf1, 0xf7, 0x69, 0xf8, 0xad, 0x3a, 0xfe,
            0x7c, 0x28, 0xcb, 0xf1, 0xd4, 0xfb, 0xe0, 0x97, 0xa8, 0x8f, 0x44, 0x75, 0x58, 0x42,
        ];
        let identity = Identity::from_seed(&provider, &seed).unwrap();
        let public = [0x19, 0xbf, 0x44, 0x09, 0x69, 0x84, 0xcd, 0xfe];
        assert_eq!(identity.key.cert[0][12..20], public);
        assert_eq!(identity.fingerprint(), Fingerprint::new(sha256(&[&identity.key.cert[0]])));
    }
}
