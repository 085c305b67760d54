//! Files and directories across a connection: what is offered, what is there already, chunks and their checksums.
//!
//! [`send`] lists what a [`Source`] has and sends what the other end asks for; [`receive`] writes it below a [`Folder`].
//! Every chunk of 1 MiB and every file is checked by BLAKE3. A file has its final name when it is whole and on the disk,
//! and not before. Chunks of a file that was cut off are kept, and the next transfer sends the others.
//! `docs/src/send.md` has the protocol.
//!
//! No name of a peer leads out of the folder: [`Name`] has plain components alone, and directories are opened one by one
//! and never through a link.
#![forbid(unsafe_code)]

mod chunks;
mod crew;
mod digest;
mod entry;
mod error;
mod folder;
mod message;
mod name;
mod outbox;
mod partial;
mod progress;
mod receive;
mod send;
mod walk;

pub use chunks::{ChunkRun, ChunkSet, MAX_RUNS};
pub use digest::{CHUNK, Digest, of_bytes};
pub use entry::{Entry, Kind, Stamp};
pub use error::Error;
pub use folder::{Folder, Modes};
pub use message::{Hello, LONGEST_FRAME, Listing, MOST_LANES, Record, Reply, Start, Summary, VERSION, Welcome, parse};
pub use name::{DEEPEST, LONGEST_NAME, LONGEST_PATH, Name, NameError, PARTIALS, check_target};
pub use progress::{Progress, Watch};
pub use receive::{ReceiveOptions, receive};
pub use send::{MOST_OPEN, Outcome, SendOptions, send};
pub use walk::{Amount, Source, SourceError, survey};
