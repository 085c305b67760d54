//! The folder that a receiver writes: everything is done relative to open directories, which are opened component by
//! component and never through a link.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use files::Lock;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat, renameat};
use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};
use nix::sys::stat::{FileStat, Mode, UtimensatFlags, fchmod, fstat, fstatat, futimens, mkdirat, utimensat};
use nix::sys::statvfs::fstatvfs;
use nix::sys::time::TimeSpec;
use nix::unistd::{UnlinkatFlags, geteuid, linkat, symlinkat, syncfs, unlinkat};
use rustix::fs::{RenameFlags, renameat_with};

use crate::digest::{Digest, HashTree, chunks_of, read_chunk};
use crate::entry::{MODES, Mtime};
use crate::error::Error;
use crate::name::{Name, PARTIALS};

/// Permissions with the setuid, setgid and sticky bits.
const ALL_MODE_BITS: u32 = 0o7777;
/// The owner's permissions: a new directory needs all of them while files are written into it.
pub(crate) const OWNER: u32 = 0o700;

/// Permissions that a receiver sets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Modes {
    /// New entries get the sender's permissions under the receiver's umask, or the default ACL of the folder. Entries that are
    /// there keep their own, as with rsync's `--no-perms`.
    #[default]
    OfNew,
    /// All entries get the sender's permissions, as with rsync's `--perms`.
    Exact,
}

/// The change to a directory's mode once all files are in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FinalMode {
    /// None.
    Kept,
    /// The sender's permissions are set.
    Exact,
    /// The owner loses the permissions that the sender's directory does not have.
    Closed,
}

/// The type of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeType {
    Directory,
    File,
    Link,
    Other,
}

/// An existing directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ExistingEntry {
    pub(crate) node_type: NodeType,
    pub(crate) size: u64,
    /// Permissions with the setuid, setgid and sticky bits.
    mode: u32,
    pub(crate) mtime: Mtime,
    inode: (u64, u64),
}

impl ExistingEntry {
    fn new(stat: &FileStat) -> Self {
        let node_type = match stat.st_mode & S_IFMT {
            S_IFDIR => NodeType::Directory,
            S_IFREG => NodeType::File,
            S_IFLNK => NodeType::Link,
            _ => NodeType::Other,
        };
        Self {
            node_type,
            size: stat.st_size.cast_unsigned(),
            mode: stat.st_mode & ALL_MODE_BITS,
            mtime: Mtime::of_file(stat.st_mtime, stat.st_mtime_nsec),
            inode: (stat.st_dev, stat.st_ino),
        }
    }

    /// Permissions, at most 0o777.
    pub(crate) fn permissions(&self) -> u32 {
        self.mode & MODES
    }

    /// The mode with other permissions. The setuid, setgid and sticky bits are this machine's own and stay.
    fn mode_with(&self, permissions: u32) -> u32 {
        self.mode & !MODES | permissions
    }

    /// Returns whether it has this modification time. Some file systems keep full seconds.
    pub(crate) fn is_of(&self, mtime: Mtime) -> bool {
        self.mtime.s == mtime.s && (self.mtime.ns == mtime.ns || self.mtime.ns == 0)
    }

    /// Returns its type, with its article.
    pub(crate) fn words(&self) -> &'static str {
        match self.node_type {
            NodeType::Directory => "a directory",
            NodeType::File => "a file",
            NodeType::Link => "a link",
            NodeType::Other => "neither a file, a directory nor a link",
        }
    }
}

fn time(mtime: Mtime) -> TimeSpec {
    TimeSpec::new(mtime.s, mtime.ns.into())
}

/// The access time stays as it is.
const AS_IT_IS: TimeSpec = TimeSpec::UTIME_OMIT;

/// A directory that a receiver writes to, locked against other processes.
#[derive(Debug)]
pub struct DestDir {
    path: PathBuf,
    root: OwnedFd,
    partials: OwnedFd,
    /// Permissions that a new file may have here.
    mask: u32,
    lock: Lock,
}

impl DestDir {
    /// Locks a directory; creates it if its parent exists. `command` is the command line that is shown to others.
    ///
    /// # Errors
    /// If it cannot be made or written, or another process has it.
    pub fn take(path: &Path, command: &str) -> Result<Self, Error> {
        match std::fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::local("make", path)(error));
            }
            _ => {}
        }
        let seen = std::fs::metadata(path).map_err(Error::local("use", path))?;
        if !seen.is_dir() {
            return Err(Error::local("use", path)(io::Error::new(io::ErrorKind::NotADirectory, "it is no directory")));
        }
        let lock = Lock::take(path, command)?;
        let root: OwnedFd = File::open(path).map_err(Error::local("open", path))?.into();
        let opened = (|| {
            match mkdirat(&root, PARTIALS, Mode::from_bits_truncate(0o700)) {
                Err(error) if error != Errno::EEXIST => return Err(error),
                _ => {}
            }
            openat(&root, PARTIALS, DIRECTORY, Mode::empty())
        })();
        let at = path.join(PARTIALS);
        let partials = opened.map_err(|error| Error::local("make", at.clone())(error.into()))?;
        // A process with write access there could replace the bytes of files that were checked.
        let seen = fstat(&partials).map_err(|error| Error::local("look at", at.clone())(error.into()))?;
        if seen.st_uid != geteuid().as_raw() || seen.st_mode & 0o022 != 0 {
            let why =
                "it belongs to another user, or others may write there; remove it, or receive into another directory";
            return Err(Error::local("use", at)(io::Error::new(io::ErrorKind::PermissionDenied, why)));
        }
        let mask = mask(&partials).map_err(Error::local("write", at))?;
        Ok(Self { path: path.to_path_buf(), root, partials, mask, lock })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its lock, which may have belonged to a dead process.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Permissions that a new file may have here: an upper bound.
    pub(crate) fn mask(&self) -> u32 {
        self.mask
    }

    /// Returns the directory for incomplete files.
    pub(crate) fn partials(&self) -> &OwnedFd {
        &self.partials
    }

    /// Bytes that are free for this user.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let stat = fstatvfs(&self.root)?;
        Ok(stat.blocks_available().saturating_mul(stat.fragment_size()))
    }

    /// Waits until all that was written is on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(syncfs(&self.root)?)
    }
}

/// A temporary file, used to find the permissions that a new file may have.
const PROBE: &str = "mode";

/// Permissions that a new file may have: those that the umask leaves, or the default ACL that directories inherit from the folder.
/// A probe finds them, because a process can read its umask only by changing it, for all its threads.
fn mask(partials: &OwnedFd) -> io::Result<u32> {
    // Left by a killed process.
    let _ = unlink(partials, PROBE);
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let probe = openat(partials, PROBE, flags, Mode::from_bits_truncate(MODES))?;
    let seen = fstat(&probe);
    unlink(partials, PROBE)?;
    Ok(seen?.st_mode & MODES)
}

impl Drop for DestDir {
    fn drop(&mut self) {
        // Unless it has incomplete files.
        let _ = unlinkat(&self.root, PARTIALS, UnlinkatFlags::RemoveDir);
    }
}

const READ: OFlag = OFlag::O_RDONLY.union(OFlag::O_NOFOLLOW).union(OFlag::O_NONBLOCK).union(OFlag::O_CLOEXEC);
const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);
/// For traversal, which does not need the permission to list the directory.
const WAY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// A folder's names, as one thread sees them: the directory that was used last stays open.
pub(crate) struct View<'a> {
    folder: &'a DestDir,
    last: Option<(Vec<u8>, OwnedFd)>,
}

impl<'a> View<'a> {
    pub(crate) fn new(folder: &'a DestDir) -> Self {
        Self { folder, last: None }
    }

    /// The directory of a name, and its last component.
    fn at<'n>(&mut self, name: &'n Name) -> io::Result<(&OwnedFd, &'n OsStr)> {
        let (parent, last) = name.split();
        if parent.is_empty() {
            return Ok((&self.folder.root, last));
        }
        if self.last.as_ref().is_none_or(|(open, _)| open != parent) {
            self.last = None;
            let mut way: Option<OwnedFd> = None;
            for part in parent.split(|&byte| byte == b'/') {
                let from = way.as_ref().unwrap_or(&self.folder.root);
                let opened = openat(from, OsStr::from_bytes(part), WAY, Mode::empty());
                way = Some(opened.map_err(|error| match error {
                    Errno::ELOOP | Errno::ENOTDIR => {
                        io::Error::new(io::ErrorKind::NotADirectory, "a part of its path is a link or a file here")
                    }
                    Errno::ENOENT => io::Error::new(io::ErrorKind::NotFound, "its directory is not there"),
                    error => error.into(),
                })?);
            }
            self.last = way.map(|way| (parent.to_vec(), way));
        }
        match &self.last {
            Some((_, directory)) => Ok((directory, last)),
            None => Ok((&self.folder.root, last)),
        }
    }

    /// Returns the existing entry of this name, if any.
    pub(crate) fn lookup(&mut self, name: &Name) -> io::Result<Option<ExistingEntry>> {
        let (directory, last) = self.at(name)?;
        match fstatat(directory, last, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(ExistingEntry::new(&stat))),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a directory with these permissions, as far as the umask leaves them. Returns the directory that was there, if one
    /// was: it stays as it is.
    pub(crate) fn make_directory(&mut self, name: &Name, permissions: u32) -> io::Result<Option<ExistingEntry>> {
        let (directory, last) = self.at(name)?;
        match mkdirat(directory, last, Mode::from_bits_truncate(permissions)) {
            Ok(()) => return Ok(None),
            Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let existing = ExistingEntry::new(&fstatat(directory, last, AtFlags::AT_SYMLINK_NOFOLLOW)?);
        if existing.node_type != NodeType::Directory {
            return Err(cannot_replace(&existing));
        }
        Ok(Some(existing))
    }

    /// Grants the owner of an existing directory write permission, until its mode is set. Another user's directory may be
    /// writable nevertheless, so a failure shows on a later write.
    pub(crate) fn open_to_owner(&mut self, name: &Name, existing: &ExistingEntry) -> io::Result<()> {
        let (directory, last) = self.at(name)?;
        if existing.mode & OWNER != OWNER
            && let Ok(opened) = openat(directory, last, DIRECTORY, Mode::empty())
        {
            let _ = fchmod(&opened, Mode::from_bits_truncate(existing.mode | OWNER));
        }
        Ok(())
    }

    /// Sets a directory's time, and its mode if that changes. `sent` are the sender's permissions.
    pub(crate) fn finish_directory(&mut self, name: &Name, mode: FinalMode, sent: u32, mtime: Mtime) -> io::Result<()> {
        let (directory, last) = self.at(name)?;
        let opened = openat(directory, last, DIRECTORY, Mode::empty())?;
        futimens(&opened, &AS_IT_IS, &time(mtime))?;
        let existing = ExistingEntry::new(&fstat(&opened)?);
        let permissions = match mode {
            FinalMode::Kept => existing.permissions(),
            FinalMode::Exact => sent,
            FinalMode::Closed => existing.permissions() & (sent | !OWNER),
        };
        set_mode(&opened, &existing, permissions)
    }

    /// Returns the hash of an existing file.
    pub(crate) fn digest(&mut self, name: &Name, size: u64, should_continue: impl Fn() -> bool) -> io::Result<Digest> {
        let (directory, last) = self.at(name)?;
        let file = File::from(openat(directory, last, READ, Mode::empty())?);
        let (mut tree, mut data) = (HashTree::default(), Vec::new());
        for chunk in 0..chunks_of(size) {
            if !should_continue() {
                return Err(io::Error::other("interrupted"));
            }
            tree.push(read_chunk(&file, &mut data, size, chunk)?);
        }
        Ok(tree.root())
    }

    /// Sets the permissions and the time of a file that is the same: of the very file that was checked, even if its
    /// name was reused since.
    pub(crate) fn touch(
        &mut self,
        name: &Name,
        existing: &ExistingEntry,
        permissions: u32,
        mtime: Mtime,
    ) -> io::Result<()> {
        if existing.permissions() == permissions && existing.is_of(mtime) {
            return Ok(());
        }
        let (directory, last) = self.at(name)?;
        let file = match openat(directory, last, READ, Mode::empty()) {
            // A file that its owner may not read: its mode stays as it is.
            Err(Errno::EACCES) => return Err(io::Error::other("its mode or time cannot be set: it may not be read")),
            file => file.map_err(|_| changed_meanwhile())?,
        };
        if ExistingEntry::new(&fstat(&file)?) != *existing {
            return Err(changed_meanwhile());
        }
        set_mode(&file, existing, permissions)?;
        Ok(futimens(&file, &AS_IT_IS, &time(mtime))?)
    }

    /// Returns whether a link with this target exists.
    pub(crate) fn is_link_to(&mut self, name: &Name, target: &[u8]) -> io::Result<bool> {
        let (directory, last) = self.at(name)?;
        Ok(readlinkat(directory, last)?.as_bytes() == target)
    }

    /// Moves a file, or a link, from the partial files to its final name. It replaces the entry that was seen there,
    /// and nothing else.
    pub(crate) fn place(&mut self, partial: &str, name: &Name, replaces: Option<&ExistingEntry>) -> io::Result<()> {
        if let Some(seen) = replaces
            && self.lookup(name)?.as_ref() != Some(seen)
        {
            return Err(changed_meanwhile());
        }
        let partials = &self.folder.partials;
        let (directory, last) = self.at(name)?;
        if replaces.is_some() {
            return Ok(renameat(partials, partial, directory, last)?);
        }
        // nix has this call for glibc alone.
        let renamed = renameat_with(partials, partial, directory, last, RenameFlags::NOREPLACE);
        let placed = match renamed.map_err(|error| Errno::from_raw(error.raw_os_error())) {
            // The file system does not support that.
            Err(Errno::EINVAL | Errno::ENOSYS) => {
                linkat(partials, partial, directory, last, AtFlags::empty()).and_then(|()| unlink(partials, partial))
            }
            placed => placed,
        };
        placed.map_err(|error| match error {
            Errno::EEXIST => io::Error::new(io::ErrorKind::AlreadyExists, "a file of that name was created meanwhile"),
            error => error.into(),
        })
    }
}

fn changed_meanwhile() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "the file was changed meanwhile")
}

/// Returns the error for an existing entry that cannot be replaced.
pub(crate) fn cannot_replace(existing: &ExistingEntry) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("there is {} of that name", existing.words()))
}

/// Makes a link among the partial files.
pub(crate) fn make_link(folder: &DestDir, partial: &str, target: &[u8], mtime: Mtime) -> io::Result<()> {
    // Left by a killed process.
    let _ = unlink(&folder.partials, partial);
    symlinkat(OsStr::from_bytes(target), &folder.partials, partial)?;
    Ok(utimensat(&folder.partials, partial, &AS_IT_IS, &time(mtime), UtimensatFlags::NoFollowSymlink)?)
}

pub(crate) fn unlink(directory: &impl AsFd, name: &str) -> nix::Result<()> {
    unlinkat(directory, name, UnlinkatFlags::NoRemoveDir)
}

/// Sets the permissions of an existing file, if they differ.
fn set_mode(opened: &impl AsFd, existing: &ExistingEntry, permissions: u32) -> io::Result<()> {
    let mode = existing.mode_with(permissions);
    // Only the owner may set a mode, even an unchanged one.
    if mode == existing.mode { Ok(()) } else { Ok(fchmod(opened, Mode::from_bits_truncate(mode))?) }
}

/// Sets the permissions and the time of an open file.
pub(crate) fn finish_file(file: &File, permissions: u32, mtime: Mtime) -> io::Result<()> {
    fchmod(file, Mode::from_bits_truncate(permissions))?;
    Ok(futimens(file, &AS_IT_IS, &time(mtime))?)
}
