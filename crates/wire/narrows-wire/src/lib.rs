#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub use laws::catalog::LawKind as Law;
pub use proto::closed::{CloseCode, Closed};
pub use proto::identity::{Fingerprint, Identity, Trust};
pub use proto::service::{Service, ServiceError};
pub use proto::settings::{LawMaker, Settings};
pub use proto::streams::StreamId;
#[cfg(feature = "qlog")]
pub use qlog;
#[cfg(feature = "transfer")]
pub use transfer;
pub use transport::{BothStreams, Config, Connection, Endpoint, Error, Incoming, RecvStream, SendStream, wait};

/// Returns the configuration of an endpoint with a new identity: a service, and a law for each path with the defaults of its
/// parameters. [`Config::settings`] has all other settings.
///
/// # Errors
/// If this machine provides no random numbers.
pub fn config(service: Service, law: Law) -> std::io::Result<Config> {
    Config::new(Settings::new(service, proto::settings::defaults_of(law)))
}
