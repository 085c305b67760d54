//! The network namespaces of the machine: finding and entering them.
//!
//! A namespace is found as the thread's own, by a mount, by a process in it, or by a descriptor of a process: one of
//! the namespace itself, or a socket in it. The last covers namespaces that are deleted while their sockets live on.
//! Not found: namespaces with only kernel sockets or sockets that no process holds any more, and those of processes
//! outside this PID namespace.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};

use crate::sys::{duplicate_from, netns_of_socket, open_process};

/// The network namespace of the calling thread.
pub const OWN: &str = "/proc/thread-self/ns/net";
/// The mounts that this process sees.
const MOUNTS: &str = "/proc/self/mountinfo";
/// The PID namespace of this process.
const PID_NAMESPACE: &str = "/proc/self/ns/pid";
/// Inode of the initial PID namespace (`PROC_PID_INIT_INO` in `include/linux/proc_ns.h`).
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Returns a namespace's inode, which identifies it.
///
/// # Errors
/// If the file cannot be read.
pub fn inode(file: &Path) -> io::Result<u64> {
    fs::metadata(file).map(|found| found.ino())
}

/// Returns the network namespace with that inode, from a mount or a process. It exists at least as long as the file is
/// open.
pub fn of_inode(wanted: u64) -> Option<File> {
    let mounted = mounts().into_iter().filter(|mount| mount.inode == wanted).map(|mount| mount.path);
    let processes = processes().map(|process| process.join("ns/net"));
    let files = mounted.chain(processes).filter_map(|path| File::open(path).ok());
    { files }.find(|file| file.metadata().is_ok_and(|found| found.ino() == wanted))
}

/// Moves the calling thread into a network namespace.
///
/// # Errors
/// If the process may not, or the file is no network namespace.
pub(crate) fn enter(netns: &File) -> io::Result<()> {
    Ok(setns(netns, CloneFlags::CLONE_NEWNET)?)
}

/// Calls `act` on a thread that has entered a network namespace.
///
/// # Errors
/// If the namespace cannot be entered, or the thread panics.
pub fn inside<T: Send>(netns: &File, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| enter(netns).map(|()| act()));
        worker.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
    })
}

/// A network namespace that is mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Mount {
    inode: u64,
    path: PathBuf,
}

fn mounts() -> Vec<Mount> {
    fs::read_to_string(MOUNTS).unwrap_or_default().lines().filter_map(mounted).collect()
}

/// The network namespace that a line of `MOUNTS` mounts (`proc_pid_mountinfo(5)`).
fn mounted(line: &str) -> Option<Mount> {
    let (fields, kind) = line.split_once(" - ")?;
    let mut fields = fields.split(' ').skip(3);
    let (root, path) = (fields.next()?, fields.next()?);
    let unescaped = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (code, character)| path.replace(code, character));
    let inode = bracketed(root, "net")?;
    kind.starts_with("nsfs ").then(|| Mount { inode, path: unescaped.into() })
}

/// The number in `KIND:[NUMBER]`, as the kernel names namespaces and sockets.
fn bracketed(text: &str, kind: &str) -> Option<u64> {
    text.strip_prefix(kind)?.strip_prefix(":[")?.strip_suffix(']')?.parse().ok()
}

fn processes() -> impl Iterator<Item = PathBuf> {
    let numbered = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0].is_ascii_digit());
    fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path()).filter(numbered)
}

/// Finds the machine's network namespaces. Remembers the namespaces of sockets, so that a second look costs little.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    /// The namespace of each socket, both by inode.
    sockets: BTreeMap<u64, u64>,
}

/// Result of a look.
#[derive(Debug, Default)]
pub(crate) struct NamespaceSearch {
    /// By inode.
    pub(crate) namespaces: BTreeMap<u64, File>,
    /// Places that could not be searched, and why.
    pub(crate) unsearched: Vec<String>,
}

impl NamespaceSearch {
    fn add(&mut self, inode: u64, path: &Path) -> io::Result<()> {
        if let Entry::Vacant(place) = self.namespaces.entry(inode) {
            place.insert(File::open(path)?);
        }
        Ok(())
    }
}

impl Finder {
    pub(crate) fn find(&mut self) -> NamespaceSearch {
        let mut found = NamespaceSearch::default();
        if let Ok(own) = inode(Path::new(OWN)) {
            let _ = found.add(own, Path::new(OWN));
        }
        for mount in mounts() {
            // A mount that another one hides cannot be opened; its processes are searched below.
            let _ = found.add(mount.inode, &mount.path);
        }
        let (mut known, mut refused) = (BTreeMap::new(), BTreeMap::<i32, Vec<String>>::new());
        for process in processes() {
            if let Some(errno) = self.search(&process, &mut found, &mut known) {
                let name = process.file_name().unwrap_or_default().to_string_lossy().into_owned();
                refused.entry(errno as i32).or_default().push(name);
            }
        }
        self.sockets = known;
        for (errno, processes) in refused {
            let names: Vec<String> = processes.iter().take(3).cloned().collect();
            let more = if processes.len() > names.len() { ", ..." } else { "" };
            found.unsearched.push(format!(
                "network namespaces that only a process which cannot be inspected knows (PID {}{more}: {})",
                names.join(", "),
                Errno::from_raw(errno),
            ));
        }
        if inode(Path::new(PID_NAMESPACE)).is_ok_and(|inode| inode != INITIAL_PID_NAMESPACE) {
            found.unsearched.push("namespaces of processes outside this PID namespace (container)".to_owned());
        }
        found
    }

    /// Searches a process: its namespace, namespaces that it has open, and the namespaces of its sockets, which are
    /// added to `known`. Returns the first refusal.
    fn search(&self, process: &Path, found: &mut NamespaceSearch, known: &mut BTreeMap<u64, u64>) -> Option<Errno> {
        let mut refusal = None;
        let mut note = |result: io::Result<()>| {
            let errno = result.err().map(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)));
            refusal = refusal.or(errno.filter(|&errno| !is_gone(errno)));
        };
        let own = process.join("ns/net");
        note(fs::read_link(&own).and_then(|link| match bracketed(&link.to_string_lossy(), "net") {
            Some(inode) => found.add(inode, &own),
            None => Ok(()),
        }));
        let entries = match fs::read_dir(process.join("fd")) {
            Ok(entries) => entries,
            Err(error) => {
                note(Err(error));
                return refusal;
            }
        };
        let mut opened = None;
        for entry in entries.flatten() {
            let Ok(link) = fs::read_link(entry.path()) else { continue };
            let link = link.to_string_lossy();
            if let Some(inode) = bracketed(&link, "net") {
                note(found.add(inode, &entry.path()));
            } else if let Some(socket) = bracketed(&link, "socket") {
                let netns = self.sockets.get(&socket).or_else(|| known.get(&socket)).copied();
                if let Some(netns) = netns.filter(|netns| found.namespaces.contains_key(netns)) {
                    known.insert(socket, netns);
                    continue;
                }
                note(namespace_of(process, &mut opened, &entry.path(), socket).and_then(|file| {
                    let netns = file.metadata()?.ino();
                    known.insert(socket, netns);
                    found.namespaces.entry(netns).or_insert(file);
                    Ok(())
                }));
            }
        }
        refusal
    }
}

/// Returns true for the errors of a process or descriptor that no longer exists.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::ENOENT | Errno::ESRCH | Errno::EBADF | Errno::ENOTTY)
}

/// The network namespace of a process's socket. `opened` keeps the process open for its next socket.
fn namespace_of(process: &Path, opened: &mut Option<OwnedFd>, link: &Path, socket: u64) -> io::Result<File> {
    let number = |path: &Path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let gone = || io::Error::from_raw_os_error(libc::ENOENT);
    let (Some(process), Some(descriptor)) = (number(process), number(link)) else { return Err(gone()) };
    let handle = match opened {
        Some(handle) => handle,
        None => opened.insert(open_process(process)?),
    };
    let copy = File::from(duplicate_from(handle.as_fd(), descriptor as RawFd)?);
    // The descriptor may be another file by now.
    if copy.metadata()?.ino() != socket {
        return Err(gone());
    }
    netns_of_socket(&copy)
}

#[cfg(test)]
mod tests {
    use testing::{DEFAULT_TIMEOUT, eventually, skipped};

    use super::*;

    #[test]
    fn own_namespace_is_found_by_its_inode() {
        let own = inode(Path::new(OWN)).unwrap();
        let file = of_inode(own).expect("this process is in it");
        assert_eq!(file.metadata().unwrap().ino(), own);
        assert!(of_inode(0).is_none());
        assert!(Finder::default().find().namespaces.contains_key(&own));
    }

    #[test]
    fn mounted_namespace_has_inode_and_path() {
        let line = "310 26 0:4 net:[4026532200] /run/my\\040ns/a rw shared:176 - nsfs nsfs rw";
        assert_eq!(mounted(line), Some(Mount { inode: 4_026_532_200, path: "/run/my ns/a".into() }));
        assert_eq!(mounted("310 26 0:4 mnt:[4026532200] /run/a rw shared:176 - nsfs nsfs rw"), None);
        assert_eq!(mounted("26 1 8:1 / / rw,relatime - ext4 /dev/root rw"), None);
        assert_eq!(mounted(""), None);
    }

    /// A namespace without a name and without a process, which only a socket keeps; needs root.
    #[test]
    fn namespace_of_a_socket_alone_is_found() {
        let own = inode(Path::new(OWN)).unwrap();
        let left = std::thread::spawn(|| {
            nix::sched::unshare(CloneFlags::CLONE_NEWNET).ok()?;
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            Some((socket, inode(Path::new(OWN)).unwrap()))
        });
        let Some((socket, netns)) = left.join().unwrap() else {
            return skipped("namespace_of_a_socket_alone_is_found", "a network namespace needs root");
        };
        assert_ne!(own, netns);
        let mut finder = Finder::default();
        for _ in 0..2 {
            let found = finder.find();
            assert!(found.namespaces.contains_key(&netns), "{found:?}");
        }
        drop(socket);
        // The kernel may list a namespace for a moment after its last socket was closed; the cause was not looked into.
        eventually(DEFAULT_TIMEOUT, "the finder keeps no namespace that is gone", || {
            !finder.find().namespaces.contains_key(&netns)
        });
    }
}
