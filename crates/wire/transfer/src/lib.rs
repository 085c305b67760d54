//! Transfer of files and directories across a connection: offers, existing files, chunks and their checksums.
//!
//! [`send`] lists the contents of a [`Source`] and sends the files that the other end requests; [`receive`] writes them
//! below a [`Folder`]. Every chunk of 1 MiB and every file is checked by BLAKE3. A file gets its final name only when
//! it is complete and on the disk. Chunks of an interrupted file are kept, and the next transfer sends the others.
//! `docs/src/send.md` has the protocol.
//!
//! No name of a peer leads out of the folder: [`Name`] has plain components alone, and directories are opened one by one
//! and never through a link.
#![forbid(unsafe_code)]
// Sizes come from the peer: a conversion states its range. Tests convert small constants.
#![cfg_attr(
    not(test),
    deny(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_lossless
    )
)]

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
pub use message::{
    Amount, Hello, LONGEST_FRAME, Listing, MOST_LANES, Record, Reply, SendOptions, Start, Summary, VERSION, Welcome,
    parse,
};
pub use name::{DEEPEST, LONGEST_NAME, LONGEST_PATH, Name, NameError, PARTIALS, check_target};
pub use progress::{Progress, Watch};
pub use receive::{ReceiveOptions, receive};
pub use send::{MOST_OPEN, Outcome, send};
pub use walk::{Source, SourceError, survey};
