//! A daemon for mesh time: kernel timestamps, authenticated probes, and a page in shared memory for readers.
//!
//! [`DaemonConfig::read`] reads a peers file, [`Daemon::new`] binds the sockets and opens the pages, [`Daemon::run`] runs until
//! it is stopped. It needs no privileges beyond write access to the directories of its files. Programs read mesh time with
//! [`PageReader`], or with `include/narrows_clock.h`; [`query`] asks a running daemon for its [`Status`].
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! static STOP: AtomicBool = AtomicBool::new(false);
//! let config = clockd::DaemonConfig::read(Path::new("/etc/narrows/peers.toml"), None)?;
//! clockd::Daemon::new(config)?.run(&STOP, &mut |event| eprintln!("{event}"))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | job | module |
//! |---|---|
//! | timestamps of datagrams | `socket`, `real_time` |
//! | authentication, replays | `seal`, `inbox` |
//! | the peers file | `peers` |
//! | the page, and its readers | `page` |
//! | UTC for all members, pages of `ClockBound` | `utc`, `clock_bound` |
//! | state and metrics | `status`, `status_socket` |
//!
//! The synchronised clock is `CLOCK_MONOTONIC_RAW`. The system clock is never set. Timestamps of NICs are not used.
#![cfg(target_os = "linux")]

mod clock_bound;
mod daemon;
mod event;
#[doc(hidden)]
pub mod fuzzing;
mod host_clock;
mod inbox;
mod page;
mod peers;
mod real_time;
mod seal;
mod shared_file;
mod socket;
mod status;
mod status_socket;
mod suspend;
mod sys;
mod utc;

pub use daemon::{Daemon, DaemonError};
pub use event::DaemonEvent;
pub use host_clock::{ArtificialClock, HostClock, raw_ns};
pub use inbox::Refusals;
pub use page::{MeshTime, NoTime, PageContent, PageReader, PageStatus, PageWriter};
pub use peers::{ClockBoundConfig, DaemonConfig, PeerConfig, PeersError, UtcSource};
pub use seal::MeshKey;
pub use shared_file::PageError;
pub use socket::SocketCounters;
pub use status::{PairStatus, PeerStatus, Status, UtcStatus};
pub use status_socket::{Query, query};
