//! Laws that stay when the process that loaded them ends: their links and maps are pinned in the BPF file system,
//! one directory a law, until they are removed or the machine restarts.

#![allow(unsafe_code, reason = "the BPF file system is mounted by a system call")]

use std::ffi::CString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use inet_diag::Machine;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use crate::attach_scope::{AttachScope, AttachedScope};
use crate::loaded::{need_root, registered};
use crate::object::Programs;
use crate::sockets::{COUNT, LawSockets, SocketWatcher, refused};
use crate::tcp_adapter::Config;
use crate::{BUILD, Error, KernelLaw, Loaded, Settings, rows};

/// Mount point of the kernel's BPF file system.
const BPFFS: &str = "/sys/fs/bpf";
/// Its magic number.
const BPFFS_MAGIC: i64 = 0xcafe_4a11;
/// Directory with the names and scopes of pinned laws; gone with a restart, as the pins are.
const STATE_DIR: &str = "/run/narrows/kernel";

fn root() -> PathBuf {
    Path::new(BPFFS).join("narrows")
}

/// A law that is pinned.
#[derive(Clone, PartialEq, Debug)]
pub struct Pinned {
    /// The law.
    pub row: &'static KernelLaw,
    /// Its name in the kernel.
    pub tcp_name: String,
    /// Places that use it.
    pub scopes: Vec<AttachedScope>,
    /// Unreadable parts of its state file, in words.
    unreadable_lines: Vec<String>,
    folder: PathBuf,
}

/// A law that was loaded and pinned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinnedLaw {
    /// Its name in the kernel.
    pub tcp_name: String,
    /// True if the BPF file system had to be mounted.
    pub mounted: bool,
}

/// Loads a law, pins it and makes scopes use it, while no other command changes pins.
///
/// # Errors
/// When the law is pinned already, cannot be loaded, the BPF file system cannot be mounted, or a scope does not take the law.
/// Nothing is left behind then.
pub fn load(
    row: &'static KernelLaw,
    settings: &Settings,
    tcp_name: Option<&str>,
    programs: Programs,
    scopes: &[AttachScope],
) -> Result<PinnedLaw, Error> {
    need_root()?;
    let mounted = mount()?;
    let _lock = lock_pins(LOCK_TIMEOUT)?;
    if root().join(row.name).exists() {
        return Err(Error::AlreadyLoaded { law: row.name.to_owned() });
    }
    let loaded = Loaded::load(row, settings, tcp_name, programs)?;
    let tcp_name = loaded.tcp_name().to_owned();
    pin(loaded, scopes)?;
    Ok(PinnedLaw { tcp_name, mounted })
}

/// Pins a law and makes scopes use it. Nothing is left behind after an error.
fn pin(mut loaded: Loaded, scopes: &[AttachScope]) -> Result<(), Error> {
    let law = loaded.row.name;
    let folder = root().join(law);
    fs::create_dir_all(root()).map_err(|error| Error::io("create", root(), error))?;
    // Made only by this process: pins that another process makes at the same time are not undone below.
    fs::create_dir(&folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::AlreadyLoaded { law: law.to_owned() },
        _ => Error::io("create", &folder, error),
    })?;
    let mut undo = Undo {
        state_file: state_file(law),
        folder,
        tcp_name: loaded.tcp_name().to_owned(),
        scopes: Vec::new(),
        committed: false,
    };
    pin_all(&mut loaded, scopes, &undo.folder)?;
    undo.scopes = scopes.iter().map(AttachedScope::find).collect::<Result<_, _>>()?;
    // Recorded before a scope changes: if the process is killed in between, `unload` has all the data that it needs.
    write_state_file(&undo.state_file, &undo.tcp_name, &undo.scopes)?;
    undo.scopes.iter().try_for_each(|scope| scope.attach(&undo.tcp_name))?;
    undo.commit();
    Ok(())
}

fn pin_all(loaded: &mut Loaded, scopes: &[AttachScope], folder: &Path) -> Result<(), Error> {
    let failed = |error: libbpf_rs::Error| Error::Failed { action: "pin the law", reason: error.to_string() };
    loaded.link.pin(folder.join("law")).map_err(failed)?;
    for mut map in loaded.object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if ["flows", "config", "refused"].contains(&&*name) {
            map.pin(folder.join(name)).map_err(failed)?;
        }
    }
    for (number, scope) in scopes.iter().enumerate() {
        if let AttachScope::Cgroup(path) = scope {
            let mut link = loaded.choose_in_cgroup(path)?;
            link.pin(folder.join(format!("cgroup{number}"))).map_err(failed)?;
        }
    }
    Ok(())
}

/// Longest wait for another command that changes pins: loading a law takes under a second.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits until no other command changes pins, notes or scopes, and keeps others out for as long as it is held.
fn lock_pins(timeout: Duration) -> Result<File, Error> {
    fs::create_dir_all(STATE_DIR).map_err(|error| Error::io("create", STATE_DIR, error))?;
    lock(Path::new(STATE_DIR), timeout)
}

fn lock(folder: &Path, timeout: Duration) -> Result<File, Error> {
    const PAUSE: Duration = Duration::from_millis(20);
    let file = File::open(folder).map_err(|error| Error::io("open", folder, error))?;
    for _ in 0..=timeout.as_millis() / PAUSE.as_millis() {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", folder, error)),
        }
    }
    Err(Error::Busy { folder: folder.to_owned(), seconds: timeout.as_secs() })
}

/// Notes a law's name in the kernel and its scopes, one a line. An earlier file stays until the new one is whole.
fn write_state_file(state_file: &Path, tcp_name: &str, scopes: &[AttachedScope]) -> Result<(), Error> {
    let lines: Vec<String> =
        std::iter::once(tcp_name.to_owned()).chain(scopes.iter().map(AttachedScope::line)).collect();
    let draft = state_file.with_extension("new");
    let written = fs::write(&draft, lines.join("\n")).and_then(|()| fs::rename(&draft, state_file));
    written.map_err(|error| Error::io("write", state_file, error))
}

/// Undoes all steps so far when dropped, unless they are committed.
struct Undo {
    folder: PathBuf,
    state_file: PathBuf,
    tcp_name: String,
    scopes: Vec<AttachedScope>,
    committed: bool,
}

impl Undo {
    fn commit(mut self) {
        self.committed = true;
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        if !self.committed {
            for scope in &self.scopes {
                let _ = scope.restore(&self.tcp_name);
            }
            let _ = remove_folder(&self.folder);
            let _ = fs::remove_file(&self.state_file);
        }
    }
}

/// The laws that are pinned now.
///
/// # Errors
/// When the BPF file system cannot be read or is not seen from here.
pub fn pinned() -> Result<Vec<Pinned>, Error> {
    check_mounts()?;
    rows().iter().filter(|row| root().join(row.name).exists()).map(Pinned::open).collect()
}

impl Pinned {
    /// The pinned law of that name.
    ///
    /// # Errors
    /// When it is not pinned, or the BPF file system is not seen from here.
    pub fn of_name(name: &str) -> Result<Self, Error> {
        check_mounts()?;
        let row = KernelLaw::of_name(name).filter(|row| root().join(row.name).exists());
        row.map_or_else(|| Err(Error::NotLoaded { law: name.to_owned() }), Self::open)
    }

    fn open(row: &'static KernelLaw) -> Result<Self, Error> {
        need_root()?;
        let state_file = state_file(row.name);
        let (mut scopes, mut unreadable_lines) = (Vec::new(), Vec::new());
        let text =
            fs::read(&state_file).map_or_else(|_| String::new(), |text| String::from_utf8_lossy(&text).into_owned());
        // Without its state file a law can still be shown and removed.
        if text.is_empty() {
            unreadable_lines.push(format!(
                "its state file, `{}`, is missing, empty or unreadable: what used it is not known",
                state_file.display()
            ));
        }
        let mut lines = text.lines();
        let tcp_name = lines.next().unwrap_or(row.tcp_name).to_owned();
        for line in lines {
            match AttachedScope::of_line(line) {
                Some(scope) => scopes.push(scope),
                None => unreadable_lines
                    .push(format!("this build cannot read how it was noted: `{}`", line.replace('\t', " "))),
            }
        }
        Ok(Self { row, tcp_name, scopes, unreadable_lines, folder: root().join(row.name) })
    }

    /// Returns the configuration of its flows.
    ///
    /// # Errors
    /// When the pinned map cannot be read.
    pub fn config(&self) -> Result<Config, Error> {
        let failed = |reason: String| Error::Failed { action: "read the law's parameters", reason };
        let map = MapHandle::from_pinned_path(self.folder.join("config")).map_err(|error| {
            failed(format!(
                "{error}; a load that was killed leaves this: `narrows kernel unload {}` removes it",
                self.row.name
            ))
        })?;
        let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(|error| failed(error.to_string()))?;
        let bytes = bytes.unwrap_or_default();
        if bytes.len() != Config::WORDS * 8 {
            return Err(failed(format!("{} bytes, not {}: another version loaded it", bytes.len(), Config::WORDS * 8)));
        }
        let mut words = [0; Config::WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
        }
        Ok(Config::of_words(&words))
    }

    /// Lists the sockets that run the law, of all network namespaces.
    ///
    /// # Errors
    /// [`Error::Sockets`] if the kernel lists none; another error if the law was loaded by another build with another state
    /// layout, or its pins cannot be read.
    pub fn sockets(&self, machine: &mut Machine) -> Result<LawSockets, Error> {
        let failed = |reason: String| Error::Failed { action: "list sockets", reason };
        if self.config()?.build != BUILD {
            return Err(failed(format!(
                "another build of narrows loaded {}; `narrows kernel unload {}` and load it again",
                self.row.kind.info().title,
                self.row.name
            )));
        }
        let flows =
            MapHandle::from_pinned_path(self.folder.join("flows")).map_err(|error| failed(error.to_string()))?;
        SocketWatcher::new(self.row, flows.as_fd())?.sockets(machine)
    }

    /// Returns the number of sockets that found no memory for a flow, and run without the law: they keep the initial
    /// window.
    ///
    /// # Errors
    /// When the pinned map cannot be read.
    pub fn refused(&self) -> Result<u64, Error> {
        let map = MapHandle::from_pinned_path(self.folder.join("refused"));
        refused(&map.map_err(|error| Error::Failed { action: COUNT, reason: error.to_string() })?)
    }

    /// Restores every scope and unloads the law. A law that was attached over this one at a scope now has this law's
    /// predecessor as its own. Sockets that run the law keep it until they close. Returns messages about scopes that could
    /// not be restored.
    ///
    /// # Errors
    /// If it is no longer pinned, pins cannot be removed or notes cannot be written.
    pub fn remove(self) -> Result<Vec<String>, Error> {
        let _lock = lock_pins(LOCK_TIMEOUT)?;
        // Read again now, because another command may have changed it first.
        let law = Self::of_name(self.row.name)?;
        let mut failures: Vec<String> = law.scopes.iter().filter_map(|scope| scope.restore(&law.tcp_name)).collect();
        for mut other in pinned()?.into_iter().filter(|other| other.row != law.row) {
            let inherited =
                other.scopes.iter_mut().filter_map(|scope| scope.inherit(&law.tcp_name, &law.scopes).then_some(()));
            if inherited.count() > 0 {
                write_state_file(&state_file(other.row.name), &other.tcp_name, &other.scopes)?;
            }
        }
        failures.extend(law.unreadable_lines);
        remove_folder(&law.folder)?;
        failures.extend(wait_until_unregistered(&law.tcp_name));
        let state_file = state_file(law.row.name);
        match fs::remove_file(&state_file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", state_file, error)),
            _ => Ok(failures),
        }
    }
}

/// Waits until the kernel, which frees unpinned objects late, has no congestion control of that name, because the next
/// `load` may need the name. Returns a message at the deadline.
fn wait_until_unregistered(tcp_name: &str) -> Option<String> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    const PAUSE: Duration = Duration::from_millis(5);
    for _ in 0..TIMEOUT.as_millis() / PAUSE.as_millis() {
        match registered() {
            Ok(names) if names.iter().any(|name| name == tcp_name) => std::thread::sleep(PAUSE),
            Ok(_) => return None,
            Err(error) => return Some(error.to_string()),
        }
    }
    let seconds = TIMEOUT.as_secs();
    Some(format!("the kernel still has `{tcp_name}` after {seconds} s: another process holds it"))
}

fn state_file(law: &str) -> PathBuf {
    Path::new(STATE_DIR).join(law)
}

/// Unpins all that a law's directory holds, and removes it, and the one above when it is empty.
fn remove_folder(folder: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(folder).map_err(|error| Error::io("read", folder, error))?;
    for entry in entries.flatten() {
        fs::remove_file(entry.path()).map_err(|error| Error::io("remove", entry.path(), error))?;
    }
    fs::remove_dir(folder).map_err(|error| Error::io("remove", folder, error))?;
    let _ = fs::remove_dir(root());
    Ok(())
}

/// Returns whether the BPF file system is mounted here.
fn is_mounted() -> bool {
    let Ok(path) = CString::new(BPFFS) else { return false };
    // SAFETY: zero is a valid value of this struct of numbers, and the path ends with a zero.
    unsafe {
        let mut status: libc::statfs = std::mem::zeroed();
        libc::statfs(path.as_ptr(), &raw mut status) == 0 && status.f_type == BPFFS_MAGIC
    }
}

/// Returns an error if the machine may have pins that are not visible from here: for example under `ip netns exec`, which
/// runs its command with separate mounts without the BPF file system. Pins made in there would end with the command.
fn check_mounts() -> Result<(), Error> {
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let parent = |process: &String| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        Some(status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().to_owned())
    };
    let own = mounts("self");
    // A process with unreadable mounts is no evidence.
    let differs = |process: String| mounts(&process).is_some_and(|mounts| Some(mounts) != own);
    let has_own_mounts = || std::iter::successors(parent(&"self".to_owned()), parent).any(differs);
    if !is_mounted() && has_own_mounts() { Err(Error::OwnMounts) } else { Ok(()) }
}

/// Mounts the BPF file system where it is not. Returns whether it had to.
fn mount() -> Result<bool, Error> {
    check_mounts()?;
    if is_mounted() {
        return Ok(false);
    }
    let failed = |error: io::Error| Error::io("mount the BPF file system at", BPFFS, error);
    let path = CString::new(BPFFS).map_err(|error| failed(error.into()))?;
    let kind = c"bpf";
    // SAFETY: all strings end with a zero and live through the call; this kind of file system takes no data.
    let mounted = unsafe {
        libc::mount(kind.as_ptr(), path.as_ptr(), kind.as_ptr(), libc::MS_NOSUID | libc::MS_NODEV, std::ptr::null())
    };
    if mounted == 0 { Ok(true) } else { Err(failed(io::Error::last_os_error())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command that hangs while it holds the lock is named, not waited for without end.
    #[test]
    fn waiting_for_the_lock_times_out() {
        let folder = std::env::temp_dir().join(format!("narrows-pins-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let held = lock(&folder, Duration::ZERO).unwrap();
        let timeout = Duration::from_millis(40);
        let message = lock(&folder, timeout).unwrap_err().to_string();
        assert!(message.contains("another command") && message.contains(&folder.display().to_string()), "{message}");
        drop(held);
        assert!(lock(&folder, timeout).is_ok());
        fs::remove_dir(&folder).unwrap();
    }
}
