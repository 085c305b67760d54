//! Outputs: the files that a command line may name to be written.
//!
//! A regular file, a pipe and a terminal are outputs. So are the devices that keep nothing, `/dev/null` and `/dev/full`:
//! people name the first to throw an output away, and the second to test a full disk, and no existing data is lost. Any
//! other device, above all a disk, would be overwritten from its beginning, or act on the bytes, and is therefore refused.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::read::not_regular;

/// The way in which an output is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// A regular file: replaced as a whole.
    File,
    /// A pipe, a terminal or a device that keeps nothing: written to.
    Stream,
}

/// Devices that discard everything that is written to them.
const NULL_DEVICES: [&str; 2] = ["/dev/null", "/dev/full"];
/// Terminal of this process, and console of the machine.
const OWN_TERMINALS: [&str; 2] = ["/dev/tty", "/dev/console"];

/// Returns whether a device has a number of Linux's consoles, serial lines or pseudo-terminals (Documentation/admin-guide/devices.txt).
/// Opening a device to ask would not do: some act on it, as a watchdog does.
#[cfg(target_os = "linux")]
fn is_terminal_device(metadata: &Metadata) -> bool {
    matches!(nix::sys::stat::major(metadata.rdev()), 4 | 136..=143)
}

#[cfg(not(target_os = "linux"))]
fn is_terminal_device(_: &Metadata) -> bool {
    false
}

/// Returns whether a character device is one of those at these paths.
fn is_device_at(metadata: &Metadata, paths: &[&str]) -> bool {
    paths.iter().any(|path| {
        Path::new(path)
            .metadata()
            .is_ok_and(|known| known.file_type().is_char_device() && known.rdev() == metadata.rdev())
    })
}

impl Output {
    /// Classifies a file by its metadata.
    ///
    /// # Errors
    /// `InvalidInput`, with the kind of the file, if it is no output.
    pub(crate) fn new(metadata: &Metadata) -> io::Result<Self> {
        let kind = metadata.file_type();
        let is_sink = || {
            is_device_at(metadata, &NULL_DEVICES)
                || is_device_at(metadata, &OWN_TERMINALS)
                || is_terminal_device(metadata)
        };
        match not_regular(kind) {
            None => Ok(Self::File),
            Some(_) if kind.is_fifo() || kind.is_char_device() && is_sink() => Ok(Self::Stream),
            Some(kind) => {
                let why = format!("it is {kind}; expected a regular file, a pipe, a terminal or /dev/null");
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }
}

/// Refuses a path that names neither an output nor nothing, and changes nothing. For files that are appended to: a
/// [`AtomicFile`](crate::AtomicFile) does so itself.
///
/// # Errors
/// If it is a directory, a socket or a device that is no output.
pub fn check_output(path: &Path) -> io::Result<()> {
    path.metadata().map_or(Ok(()), |metadata| Output::new(&metadata).map(drop))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use nix::errno::Errno;
    use nix::sys::stat::{Mode, SFlag, makedev, mknod};

    use super::*;
    use crate::testbed::ScratchDir;
    use crate::{AtomicFile, replace, writable};

    fn of(path: impl AsRef<Path>) -> Result<Output, String> {
        Output::new(&path.as_ref().metadata().unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn files_pipes_terminals_and_null_devices_are_outputs() {
        let scratch = ScratchDir::new("outputs");
        let (file, pipe) = (scratch.path().join("file"), scratch.path().join("pipe"));
        std::fs::write(&file, "").unwrap();
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        assert_eq!((of(&file), of(&pipe)), (Ok(Output::File), Ok(Output::Stream)));
        for device in NULL_DEVICES.iter().chain(&OWN_TERMINALS).filter(|device| Path::new(device).exists()) {
            assert_eq!(of(device), Ok(Output::Stream), "{device}");
        }
        check_output(&scratch.path().join("none")).unwrap();
        replace(Path::new("/dev/null"), "text").unwrap();
    }

    /// Each is refused by its kind, by whatever writes, and before it is opened.
    #[test]
    fn storage_devices_are_not_outputs() {
        let scratch = ScratchDir::new("no-outputs");
        let socket = scratch.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let mut refused = vec![
            (socket, "a socket"),
            (scratch.path().to_path_buf(), "a directory"),
            ("/dev/zero".into(), "a character device"),
        ];
        // A disk that no driver has, so that nothing is lost if this fails. It takes root to make one.
        let disk = scratch.path().join("disk");
        match mknod(&disk, SFlag::S_IFBLK, Mode::S_IRUSR | Mode::S_IWUSR, makedev(0xfff, 0)) {
            Ok(()) => refused.push((disk, "a block device")),
            Err(Errno::EPERM) => {}
            Err(error) => panic!("{error}"),
        }
        for (path, kind) in refused {
            let expected = format!("it is {kind}; expected a regular file, a pipe, a terminal or /dev/null");
            assert_eq!(check_output(&path).unwrap_err().to_string(), expected);
            assert_eq!(AtomicFile::new(&path).unwrap_err().to_string(), expected);
            for said in [writable(&path), replace(&path, "text")] {
                assert!(said.unwrap_err().to_string().ends_with(&expected), "{}", path.display());
            }
        }
    }
}
