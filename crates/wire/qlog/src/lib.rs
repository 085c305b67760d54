//! Logs of the transport's connections, one file a connection and end, in the format of qlog 0.3 as JSON text sequences
//! (RFC 7464). `docs/src/qlog.md` lists the events.
//!
//! [`sequence`] has the format's records, for logs of other sources, too. The rest has the feature `connections`. A
//! [`Directory`] makes files and has one thread that writes them. Connections are logged to it by
//! [`proto::settings::Settings::observe`]:
//!
//! ```no_run
//! # use proto::{service::Service, settings::{Settings, defaults_of}};
//! # let mut settings = Settings::new(Service::named("example"), defaults_of(laws::catalog::LawKind::Bbr));
//! let directory = qlog::Directory::open("logs".as_ref(), |trouble| eprintln!("{trouble}"))?;
//! settings.observe = Some(directory.observer());
//! // When `directory` is dropped, all is written.
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Events are encoded in memory where they occur, and written by the other thread at most a tenth of a second later. A
//! process that is killed leaves files with complete records, except possibly the last one.

#![forbid(unsafe_code)]

#[cfg(feature = "connections")]
mod directory;
#[cfg(feature = "connections")]
mod frames;
#[cfg(feature = "connections")]
mod log;
#[cfg(feature = "connections")]
mod record;
pub mod sequence;
#[cfg(feature = "connections")]
mod wakeup;

#[cfg(feature = "connections")]
pub use self::directory::Directory;
