//! The Narrows transport over UDP sockets of this machine: what `proto` decides, carried out.
//!
//! An [`Endpoint`] is one UDP port, or several, and a thread; a listener may have several threads ([`Config::threads`]). A [`Connection`] carries streams, messages and datagrams. All
//! waiting functions are `async` and need no particular runtime; [`wait`] runs one to its end on the calling thread, and
//! [`SendStream`] and [`RecvStream`] are [`std::io::Write`] and [`std::io::Read`], too.
//!
//! ```
//! use std::sync::Arc;
//!
//! use proto::identity::Trust;
//! use transport::{Config, Endpoint, wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let law = |path: &laws::Path| laws::Law::NewReno(laws::NewReno::new(path, laws::newreno::Params::for_path(path)));
//! let service = proto::service::Service::named("example");
//! let config = Config::new(proto::settings::Settings::new(service, Arc::new(law)))?;
//! let listener = Endpoint::listen("127.0.0.1:0".parse()?, &config)?;
//! let address = listener.address();
//! let trust = Trust::Fingerprint(config.identity.fingerprint());
//!
//! let listening = std::thread::spawn(move || {
//!     wait(async {
//!         let connection = listener.accept().await.unwrap().admit().unwrap();
//!         let mut stream = connection.accept_stream().await.unwrap().receive;
//!         stream.read_to_end(1000).await.unwrap()
//!     })
//! });
//!
//! let caller = Endpoint::call_from("127.0.0.1:0".parse()?, &config)?;
//! wait(async {
//!     let connection = caller.connect(address, trust, None).await?;
//!     let mut stream = connection.open_message(5).await?;
//!     stream.write_all(b"hello").await?;
//!     stream.delivered().await
//! })?;
//! assert_eq!(listening.join().unwrap(), b"hello");
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]

mod clock;
mod connection;
mod driver;
mod endpoint;
mod error;
mod held;
mod lobby;
mod ports;
mod shared;
mod socket;
mod stream;
mod wait;

pub use self::connection::{BothStreams, Connection, Incoming};
pub use self::endpoint::{Config, Endpoint, Port, random};
pub use self::error::Error;
pub use self::lobby::Stray;
pub use self::stream::{RecvStream, SendStream};
pub use self::wait::wait;
