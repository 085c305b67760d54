//! Cryptography that is reproducible from a seed: random numbers and private keys follow from it, everything else is
//! real. For virtual time only.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup, aws_lc_rs as real,
};
use rustls::{CipherSuite, Error, NamedGroup, PeerMisbehaved, SupportedCipherSuite};
use units::mix64;

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Begins a run on this thread: all random numbers from now on follow from the seed.
pub fn begin(seed: u64) {
    RANDOM.set(mix64(seed));
}

/// Returns the next random number of this thread.
pub fn random() -> u64 {
    RANDOM.set(RANDOM.get().wrapping_add(1));
    mix64(RANDOM.get())
}

/// Protection of packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PacketProtection {
    /// AES-128-GCM.
    #[default]
    Real,
    /// None: payloads are sent in the clear with an empty tag of the usual length. It saves the time of AES.
    #[cfg(feature = "null-crypto")]
    Null,
}

/// Returns the provider of all endpoints of a run.
///
/// # Panics
/// If the library lacks AES-128-GCM.
pub fn provider(protection: PacketProtection) -> Arc<CryptoProvider> {
    static REAL: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| with_suite(aes()));
    match protection {
        PacketProtection::Real => REAL.clone(),
        #[cfg(feature = "null-crypto")]
        PacketProtection::Null => {
            static NULL: LazyLock<Arc<CryptoProvider>> =
                LazyLock::new(|| with_suite(SupportedCipherSuite::Tls13(crate::null_crypto::suite(aes()))));
            NULL.clone()
        }
    }
}

/// Returns a provider that has this suite only.
pub fn with_suite(suite: SupportedCipherSuite) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![suite],
        kx_groups: vec![&SeededX25519],
        secure_random: &SeededRandom,
        ..real::default_provider()
    })
}

/// Returns the suite with AES-128-GCM.
///
/// # Panics
/// If the library lacks it.
pub fn aes() -> SupportedCipherSuite {
    let suites = real::default_provider().cipher_suites;
    let found = suites.into_iter().find(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    found.expect("aws-lc has AES-128-GCM")
}

#[derive(Debug)]
struct SeededRandom;

impl SecureRandom for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&random().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// X25519 (RFC 7748) with private keys from the seed.
#[derive(Debug)]
struct SeededX25519;

impl SupportedKxGroup for SeededX25519 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut key = [0; 32];
        SeededRandom.fill(&mut key).map_err(|_| Error::FailedToGetRandomBytes)?;
        let unusable = |reason: String| Error::General(format!("a private key cannot be used: {reason}"));
        let key = PrivateKey::from_private_key(&X25519, &key).map_err(|rejected| unusable(rejected.to_string()))?;
        let public = key.compute_public_key().map_err(|error| unusable(error.to_string()))?.as_ref().to_vec();
        Ok(Box::new(SeededExchange { key, public }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct SeededExchange {
    key: PrivateKey,
    public: Vec<u8>,
}

impl ActiveKeyExchange for SeededExchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let invalid = Error::PeerMisbehaved(PeerMisbehaved::InvalidKeyShare);
        agree(&self.key, UnparsedPublicKey::new(&X25519, peer), invalid, |secret| Ok(SharedSecret::from(secret)))
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
