//! Reading files that a user names: regular files only, of bounded size.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use crate::Error;
use crate::text::utf8;

/// The most that a kind of file may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeLimit {
    /// The kind with its article: `a scenario`.
    pub kind: &'static str,
    /// The most, in MiB.
    pub mib: u64,
}

/// Reads a regular file. Pipes, terminals, devices and directories are refused at once, because reading them could
/// block or never end.
///
/// # Errors
/// When the file is not regular, is larger than the limit, or cannot be read.
pub fn read(path: &Path, limit: SizeLimit) -> Result<Vec<u8>, Error> {
    let (file, size) = open(path)?;
    let max_bytes = limit.mib << 20;
    let too_large = |size| Error::TooLarge {
        path: path.to_path_buf(),
        size,
        kind: limit.kind,
        limit: format!("{} MiB", limit.mib),
    };
    if size > max_bytes {
        return Err(too_large(size));
    }
    // The size is only the current one: files grow, and those of /proc have none.
    let mut bytes = Vec::new();
    take(&file, max_bytes + 1, &mut bytes).map_err(Error::io("read", path))?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}

/// Returns the first bytes of a regular file, at most `max_bytes`. They may reveal the file's type.
///
/// # Errors
/// As [`read()`], but a file of any size is accepted.
pub fn head(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    take(&open(path)?.0, max_bytes, &mut bytes).map_err(Error::io("read", path))?;
    Ok(bytes)
}

/// A regular file, and its size in bytes as the system states it.
fn open(path: &Path) -> Result<(File, u64), Error> {
    // Non-blocking: opening a FIFO without a writer would block before its type can be checked.
    let nonblocking = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).map_err(Error::io("read", path))?;
    let metadata = file.metadata().map_err(Error::io("read", path))?;
    match not_regular(metadata.file_type()) {
        Some(kind) => Err(Error::NotRegular { path: path.to_path_buf(), kind }),
        None => Ok((file, metadata.len())),
    }
}

fn take(file: &File, max_bytes: u64, bytes: &mut Vec<u8>) -> std::io::Result<usize> {
    file.take(max_bytes).read_to_end(bytes)
}

/// Reads a file of text in UTF-8, which may begin with a [byte-order mark](crate::BYTE_ORDER_MARK).
///
/// # Errors
/// As [`read()`], and when the file is not UTF-8.
pub fn text(path: &Path, limit: SizeLimit) -> Result<String, Error> {
    utf8(read(path, limit)?).map_err(|reason| Error::NotText { path: path.to_path_buf(), reason })
}

/// Returns the kind of a file that is not regular, with its article; none for a regular file.
pub(crate) fn not_regular(kind: std::fs::FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_file() => None,
        kind if kind.is_dir() => Some("a directory"),
        kind if kind.is_fifo() => Some("a pipe"),
        kind if kind.is_socket() => Some("a socket"),
        kind if kind.is_char_device() => Some("a character device"),
        kind if kind.is_block_device() => Some("a block device"),
        _ => Some("something else"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::ScratchDir;

    const SMALL: SizeLimit = SizeLimit { kind: "a test's file", mib: 1 };

    fn error_of(path: &Path) -> String {
        text(path, SMALL).unwrap_err().to_string()
    }

    #[test]
    fn a_file_up_to_its_limit_is_read() {
        let scratch = ScratchDir::new("read-limit");
        let path = scratch.path().join("file");
        std::fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
        assert_eq!(read(&path, SMALL).unwrap().len(), 1 << 20);
        std::fs::write(&path, vec![b'x'; (1 << 20) + 1]).unwrap();
        assert!(
            error_of(&path).ends_with("it has 1048577 bytes; a test's file has at most 1 MiB"),
            "{}",
            error_of(&path)
        );
        assert_eq!(head(&path, 3).unwrap(), b"xxx");
        // Its stated size is 0.
        assert!(!text(Path::new("/proc/self/status"), SMALL).unwrap().is_empty());
    }

    #[test]
    fn unbounded_files_are_immediate_errors() {
        let scratch = ScratchDir::new("read-kinds");
        assert!(error_of(scratch.path()).ends_with("it is a directory; expected a regular file"));
        let fifo = scratch.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // The FIFO has no writer, so waiting for it would never end.
        assert!(error_of(&fifo).ends_with("it is a pipe; expected a regular file"));
        assert!(error_of(Path::new("/dev/zero")).ends_with("it is a character device; expected a regular file"));
        assert!(error_of(&scratch.path().join("none")).starts_with("cannot read `"));
    }

    #[test]
    fn invalid_utf8_is_an_error_with_its_position() {
        let scratch = ScratchDir::new("read-text");
        let path = scratch.path().join("latin");
        std::fs::write(&path, b"one\ntwo \xb5s\n").unwrap();
        let error = error_of(&path);
        assert!(error.contains("latin`: it is not UTF-8 text: line 2, byte 5 of the line (offset 8"), "{error}");
        std::fs::write(&path, "\u{b5}s").unwrap();
        assert_eq!(text(&path, SMALL).unwrap(), "\u{b5}s");
    }
}
