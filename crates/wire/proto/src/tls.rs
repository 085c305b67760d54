//! TLS 1.3 without the record layer, as in QUIC (RFC 9001 §4), by rustls.

use alloc::sync::Arc;
use alloc::vec::Vec;

use rustls::pki_types::{IpAddr, ServerName};
use rustls::quic::{ClientConnection, Connection, KeyChange, Keys, Secrets, ServerConnection, Suite, Version};
use rustls::{AlertDescription, CipherSuite, ClientConfig, ServerConfig, SupportedCipherSuite};

use crate::identity::{self, Fingerprint};
use crate::keys::{DataKeys, HandshakeKeys};
use crate::service::Service;
use crate::side::Side;

/// The QUIC version that defines the salt and labels.
const QUIC: Version = Version::V1;

/// Label of TLS's exporter (RFC 8446 §7.5).
const EXPORTER: &[u8] = b"narrows auth";

/// The TLS alert that ends the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Alert(pub(crate) u8);

/// Output of TLS after it has read handshake data.
pub(crate) enum TlsOutput {
    /// Bytes for the peer, at the level of the keys in the previous output.
    Bytes(Vec<u8>),
    /// Keys of Handshake packets.
    Handshake(HandshakeKeys),
    /// Keys of all other packets.
    Data(Keys, Secrets),
}

/// One end of a TLS connection.
pub(crate) struct Tls(Connection);

impl Tls {
    /// Creates a client's end, with these transport parameters.
    pub(crate) fn connect(config: Arc<ClientConfig>, parameters: Vec<u8>) -> Result<Self, rustls::Error> {
        // The ClientHello does not contain an address, so no name is sent.
        let server_name = ServerName::IpAddress(IpAddr::V4([0, 0, 0, 0].into()));
        ClientConnection::new(config, QUIC, server_name, parameters).map(|tls| Self(tls.into()))
    }

    /// Creates a listener's end, with these transport parameters.
    pub(crate) fn accept(config: Arc<ServerConfig>, parameters: Vec<u8>) -> Result<Self, rustls::Error> {
        ServerConnection::new(config, QUIC, parameters).map(|tls| Self(tls.into()))
    }

    /// Reads handshake bytes of the peer, in order.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Alert> {
        self.0.read_hs(bytes).map_err(|_| self.alert())
    }

    fn alert(&self) -> Alert {
        Alert(self.0.alert().unwrap_or(AlertDescription::InternalError).into())
    }

    /// Returns the next output of TLS; empty if it waits for the peer.
    pub(crate) fn next(&mut self) -> Vec<TlsOutput> {
        let mut outputs = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let change = self.0.write_hs(&mut bytes);
            let silent = bytes.is_empty() && change.is_none();
            if !bytes.is_empty() {
                outputs.push(TlsOutput::Bytes(bytes));
            }
            match change {
                Some(KeyChange::Handshake { keys }) => outputs.push(TlsOutput::Handshake(HandshakeKeys(keys))),
                Some(KeyChange::OneRtt { keys, next }) => outputs.push(TlsOutput::Data(keys, next)),
                None => {}
            }
            if silent {
                return outputs;
            }
        }
    }

    /// Returns whether the handshake is complete at this end.
    pub(crate) fn is_done(&self) -> bool {
        !self.0.is_handshaking()
    }

    /// Returns whether both ends have negotiated this service.
    pub(crate) fn is_of(&self, service: Service) -> bool {
        self.0.alpn_protocol() == Some(service.alpn())
    }

    /// Returns the peer's transport parameters, once received.
    pub(crate) fn parameters(&self) -> Option<&[u8]> {
        self.0.quic_transport_parameters()
    }

    /// Returns the authenticated fingerprint of the peer, if any.
    pub(crate) fn peer(&self) -> Option<Fingerprint> {
        identity::peer(self.0.peer_certificates())
    }

    /// Returns bytes known only to both ends of this connection; none before the handshake is complete.
    pub(crate) fn exporter(&self) -> Option<[u8; 32]> {
        self.0.export_keying_material([0; 32], EXPORTER, Some(&[])).ok()
    }
}

/// Derives the keys of Initial packets (RFC 9001 §5.2) from the destination ID of the client's first one. None if the
/// provider does not support AES-128-GCM.
pub(crate) fn initial_keys(suites: &[SupportedCipherSuite], first_id: &[u8], side: Side) -> Option<HandshakeKeys> {
    let mut suites = suites.iter().filter_map(SupportedCipherSuite::tls13);
    let suite = suites.find(|suite| suite.common.suite == CipherSuite::TLS13_AES_128_GCM_SHA256)?;
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Listener => rustls::Side::Server,
    };
    let keys = Suite { suite, quic: suite.quic? }.keys(first_id, side, QUIC);
    Some(HandshakeKeys(keys))
}

/// Creates the keys of data packets from TLS's output.
pub(crate) fn data_keys(keys: Keys, secrets: Secrets) -> DataKeys {
    DataKeys::new(keys, secrets)
}
