//! Transfer of files and directories across a connection: offers, existing files, chunks and their checksums.
//!
//! [`send()`] lists the contents of a [`SourcePath`] and sends the files that the other end requests; [`receive()`] writes them
//! below a [`DestDir`]. Every chunk of 1 MiB and every file is checked by BLAKE3. A file gets its final name only when
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
mod dest_dir;
mod digest;
mod entry;
mod error;
mod message;
mod message_writer;
mod name;
mod partial;
mod progress;
mod receive;
mod send;
mod walk;
mod worker_pool;

pub use chunks::{ChunkRun, ChunkSet, MAX_RUNS};
pub use dest_dir::{DestDir, Modes};
pub use digest::{CHUNK, Digest, of_bytes};
pub use entry::{Entry, EntryKind, Mtime};
pub use error::Error;
pub use message::{
    Amount, DataMessage, Hello, Listing, MAX_FRAME, MAX_LANES, ReceiverMessage, SendOptions, Start, Summary, VERSION,
    Welcome, parse,
};
pub use name::{MAX_DEPTH, MAX_NAME, MAX_PATH, Name, NameError, PARTIALS, check_target};
pub use progress::{ProgressObserver, TransferProgress};
pub use receive::{ReceiveOptions, receive};
pub use send::{MAX_OPEN, TransferOutcome, send};
pub use walk::{SourceError, SourcePath, survey};
