//! The Narrows transport over UDP sockets of this machine: executes the decisions of `proto`.
//!
//! An [`Endpoint`] is one UDP port, or several, and a thread; a listener may have several threads ([`Config::threads`]). A
//! [`Connection`] carries streams, messages and datagrams. All waiting functions are `async` and need no particular runtime; [`wait()`] runs one to its end on the calling thread, and
//! [`SendStream`] and [`RecvStream`] are [`std::io::Write`] and [`std::io::Read`], too, and with the feature `tokio` tokio's
//! `AsyncWrite` and `AsyncRead`.
//!
//! ```
//! use laws::catalog::LawKind;
//! use proto::identity::Trust;
//! use proto::service::Service;
//! use proto::settings::{Settings, defaults_of};
//! use transport::{Config, Endpoint, Error, wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::new(Settings::new(Service::named("example"), defaults_of(LawKind::Bbr)))?;
//! let listener = Endpoint::listen("127.0.0.1:0".parse()?, &config)?;
//! let address = listener.address();
//! let trust = Trust::Fingerprint(config.identity.fingerprint());
//!
//! let listening = std::thread::spawn(move || {
//!     wait(async {
//!         let connection = listener.accept().await.ok_or(Error::Endpoint)?.admit()?;
//!         let mut stream = connection.accept_stream().await?.receive;
//!         stream.read_to_end(1000).await
//!     })
//! });
//!
//! let client = Endpoint::client("127.0.0.1:0".parse()?, &config)?;
//! wait(async {
//!     let connection = client.connect(address, trust, None).await?;
//!     let mut stream = connection.open_message(5).await?;
//!     stream.write_all(b"hello").await?;
//!     stream.delivered().await
//! })?;
//! assert_eq!(listening.join().map_err(|_| "the listener panicked")??, b"hello");
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

mod accept_queue;
mod clock;
mod connection;
mod connection_guard;
mod driver;
mod endpoint;
mod endpoint_core;
mod error;
mod ports;
mod socket;
mod stream;
#[cfg(feature = "tokio")]
mod tokio_io;
mod wait;

pub use self::accept_queue::AlpnMismatch;
pub use self::connection::{BothStreams, Connection, Incoming};
pub use self::endpoint::{Config, Endpoint, ReservedPort, random};
pub use self::error::Error;
pub use self::stream::{RecvStream, SendStream};
pub use self::wait::wait;
