//! A directory that appears whole or not at all.
//!
//! Files go to `NAME.partial-PID-N` beside the target; [`Staging::commit`] flushes them to the disk and renames. The
//! partial directory is locked as long as its writer lives, wherever that runs, so a later writer can tell a dead
//! one's leftovers from a live one's work and removes only the former.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::manifest::{MANIFEST, PROGRAM};
use super::{REPORT, RUNS, SUMMARY};
use crate::Error;

/// A file being written.
pub(crate) trait Sink: Write + Send {
    /// Waits until it is on the disk.
    fn sync(&self) -> io::Result<()>;
}

impl Sink for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

type Create = fn(&Path) -> io::Result<Box<dyn Sink>>;

fn create_file(path: &Path) -> io::Result<Box<dyn Sink>> {
    Ok(Box::new(File::create_new(path)?))
}

/// A directory in the making. Dropped without [`Staging::commit`], it removes what it wrote.
#[derive(Debug)]
pub struct Staging {
    target: PathBuf,
    partial: PathBuf,
    /// Holds the lock on `partial`.
    _lock: File,
    create: Create,
    committed: bool,
}

impl Staging {
    /// Begins a directory that will replace `target`: nothing, an empty directory, or earlier results. Parents are
    /// made as needed; a link to a directory is followed.
    ///
    /// # Errors
    /// When the target is anything else, or a directory cannot be made beside it.
    pub fn new(target: &Path) -> Result<Self, Error> {
        Self::with(target, create_file)
    }

    fn with(target: &Path, create: Create) -> Result<Self, Error> {
        let target = resolve(target)?;
        replaceable(&target)?;
        let parent = parent_of(&target);
        fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        remove_stale(&target);
        let (partial, lock) = make_partial(&target)?;
        Ok(Self { target, partial, _lock: lock, create, committed: false })
    }

    /// Where the directory will be, links followed.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Where the files are until [`Staging::commit`].
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// Writes one file; `name` may lie in folders, with `/`.
    ///
    /// # Errors
    /// When it cannot be written, or `name` leads elsewhere.
    pub fn file(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>,
    ) -> Result<(), Error> {
        let relative = Path::new(name);
        let path = self.partial.join(relative);
        // Errors name the file where it was to be, not where it was for a while.
        let shown = self.target.join(relative);
        if name.is_empty() || !relative.components().all(|part| matches!(part, Component::Normal(_))) {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a name inside the directory");
            return Err(Error::io("create", &shown)(source));
        }
        let parent = parent_of(&path);
        fs::create_dir_all(parent).map_err(Error::io("create", &shown))?;
        let mut out = BufWriter::new((self.create)(&path).map_err(Error::io("create", &shown))?);
        let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync());
        // What is left in the buffer after an error would only fail again.
        let _ = out.into_parts();
        written.map_err(Error::io("write", &shown))
    }

    /// Writes one file of text.
    ///
    /// # Errors
    /// As [`Staging::file`].
    pub fn text(&mut self, name: &str, text: &str) -> Result<(), Error> {
        self.file(name, |out| out.write_all(text.as_bytes()))
    }

    /// Puts the directory in its place.
    ///
    /// # Errors
    /// When that fails; the old results are in their place then.
    pub fn commit(mut self) -> Result<(), Error> {
        sync_tree(&self.partial).map_err(Error::io("flush", &self.target))?;
        replaceable(&self.target)?;
        let rename = |from: &Path, to: &Path| fs::rename(from, to).map_err(Error::io("put in place", &self.target));
        // A rename replaces nothing or an empty directory; full ones are put aside first.
        match fs::rename(&self.partial, &self.target) {
            Ok(()) => {}
            Err(_) if self.target.is_dir() => {
                let aside = with_suffix(&self.partial, "-old");
                rename(&self.target, &aside)?;
                if let Err(error) = rename(&self.partial, &self.target) {
                    rename(&aside, &self.target)?;
                    return Err(error);
                }
                // It is out of the way; if it cannot be removed, the results are still in place.
                let _ = fs::remove_dir_all(&aside);
            }
            Err(error) => return Err(Error::io("put in place", &self.target)(error)),
        }
        self.committed = true;
        let parent = parent_of(&self.target);
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(Error::io("flush", parent))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.committed {
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

/// The target with links followed, if it is there.
fn resolve(target: &Path) -> Result<PathBuf, Error> {
    if target.file_name().is_none() && !target.exists() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "not a name for a directory");
        return Err(Error::io("create", target)(source));
    }
    match fs::canonicalize(target) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(target.to_path_buf()),
        Err(error) => Err(Error::io("create", target)(error)),
    }
}

/// Refuses to replace what Narrows did not write.
fn replaceable(target: &Path) -> Result<(), Error> {
    let occupied = |reason: &str| Error::Occupied { path: target.to_path_buf(), reason: reason.to_owned() };
    let metadata = match fs::symlink_metadata(target) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("look at", target)(error)),
    };
    if !metadata.is_dir() {
        return Err(occupied("it is not a directory"));
    }
    let mut entries = fs::read_dir(target).map_err(Error::io("read", target))?;
    if entries.next().is_none() {
        return Ok(());
    }
    if has_our_manifest(target) || is_cut_short(target) {
        return Ok(());
    }
    Err(occupied("it holds files that are not Narrows results"))
}

fn has_our_manifest(directory: &Path) -> bool {
    let manifest = fs::read(directory.join(MANIFEST)).ok();
    let manifest = manifest.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    manifest.is_some_and(|manifest| manifest["program"] == PROGRAM)
}

/// Whether this is a grid whose writer was stopped before it wrote the manifest: nothing but files that come just
/// before it, and `runs` with nothing but runs, whole or partial.
fn is_cut_short(directory: &Path) -> bool {
    let names = |directory: &Path| {
        let names = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>).ok()?;
        Some(names.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>())
    };
    let runs = directory.join(RUNS);
    let (Some(beside), Some(inside)) = (names(directory), names(&runs)) else { return false };
    let known = |name: &str| {
        name == RUNS || [MANIFEST, SUMMARY, REPORT].iter().any(|file| name == *file || is_partial_of(name, file))
    };
    let run = |name: &String| {
        let partial =
            name.rsplit_once(".partial-").is_some_and(|(_, suffix)| is_partial(suffix.trim_end_matches("-old")));
        partial || has_our_manifest(&runs.join(name))
    };
    beside.iter().all(|name| known(name)) && inside.iter().all(run)
}

/// `FILE.partial-PID`.
fn is_partial_of(name: &str, file: &str) -> bool {
    let pid = name.strip_prefix(file).and_then(|rest| rest.strip_prefix(".partial-"));
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()))
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Makes and locks a directory beside the target.
fn make_partial(target: &Path) -> Result<(PathBuf, File), Error> {
    let mut attempt = 0u32;
    loop {
        let partial = with_suffix(target, &format!(".partial-{}-{attempt}", std::process::id()));
        attempt += 1;
        match fs::create_dir(&partial) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 1_000 => continue,
            Err(error) => return Err(Error::io("create", target)(error)),
        }
        match hold(&partial) {
            Ok(Hold::Ours(lock) | Hold::Unknown(lock)) => return Ok((partial, lock)),
            // Another writer took it for a dead one's before it was locked: the next name will do.
            Ok(Hold::Theirs) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound && attempt < 1_000 => {}
            Err(error) => {
                let _ = fs::remove_dir(&partial);
                return Err(Error::io("create", target)(error));
            }
        }
    }
}

/// Whether a directory could be locked.
enum Hold {
    Ours(File),
    Theirs,
    /// The file system has no locks.
    Unknown(File),
}

/// Locks a directory that is still there under this name.
fn hold(directory: &Path) -> io::Result<Hold> {
    let file = File::open(directory)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Hold::Theirs),
        Err(TryLockError::Error(_)) => return Ok(Hold::Unknown(file)),
    }
    let (held, named) = (file.metadata()?, fs::metadata(directory)?);
    let same = held.ino() == named.ino() && held.dev() == named.dev();
    Ok(if same { Hold::Ours(file) } else { Hold::Theirs })
}

/// Removes partial directories for `target` whose writers are dead: their locks are free. What cannot be removed or
/// judged is left.
fn remove_stale(target: &Path) {
    let Some(name) = target.file_name() else { return };
    let prefix = format!("{}.partial-", name.to_string_lossy());
    let Ok(entries) = fs::read_dir(parent_of(target)) else { return };
    for entry in entries.flatten() {
        let stale = entry.file_name().to_string_lossy().strip_prefix(&prefix).is_some_and(is_partial);
        // A directory put aside is all that is left of old results if the target is gone: it is no partial one.
        if stale
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(Hold::Ours(_lock)) = hold(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// `PID-N` and nothing more.
fn is_partial(suffix: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    suffix.split_once('-').is_some_and(|(pid, number)| digits(pid) && digits(number))
}

/// Flushes a directory and those in it; files were flushed when written.
fn sync_tree(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::Scratch;

    const OURS: &str = r#"{ "program": "narrows" }"#;

    fn written(target: &Path, text: &str) {
        let mut staging = Staging::new(target).unwrap();
        staging.text(MANIFEST, OURS).unwrap();
        staging.text("runs/a/text", text).unwrap();
        staging.commit().unwrap();
    }

    #[test]
    fn a_directory_appears_whole_and_is_replaced_whole() {
        let scratch = Scratch::new("whole");
        let target = scratch.path().join("deep/out");
        let mut staging = Staging::new(&target).unwrap();
        staging.text(MANIFEST, OURS).unwrap();
        assert!(!target.exists());
        staging.commit().unwrap();
        assert_eq!(fs::read_to_string(target.join(MANIFEST)).unwrap(), OURS);
        written(&target, "one");
        written(&target, "two");
        assert_eq!(fs::read_to_string(target.join("runs/a/text")).unwrap(), "two");
        assert_eq!(scratch.names("deep"), ["out"]);
    }

    #[test]
    fn what_is_not_ours_is_not_replaced() {
        let scratch = Scratch::new("ours");
        let target = scratch.path().join("out");
        fs::create_dir(&target).unwrap();
        written(&target, "an empty directory is fine");
        fs::write(target.join(MANIFEST), "{}").unwrap();
        let error = Staging::new(&target).unwrap_err().to_string();
        assert!(error.contains("out`: it holds files that are not Narrows results"), "{error}");

        let file = scratch.path().join("file");
        fs::write(&file, "mine").unwrap();
        let error = Staging::new(&file).unwrap_err().to_string();
        assert!(error.contains("file`: it is not a directory; remove it"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        let error = Staging::new(&file.join("inside")).unwrap_err().to_string();
        assert!(error.starts_with("cannot ") && error.contains("file/inside"), "{error}");
        assert!(Staging::new(Path::new("")).is_err());
        assert_eq!(scratch.names(""), ["file", "out"]);
    }

    #[test]
    fn a_grid_that_was_cut_short_is_replaced() {
        let scratch = Scratch::new("cut");
        let target = scratch.path().join("out");
        let write = |name: &str, text: &str| {
            let _ = fs::remove_dir_all(&target);
            fs::create_dir_all(target.join("runs")).unwrap();
            let path = target.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for file in
            ["summary.json", "report.html.partial-12", "runs/uno/manifest.json", "runs/x.partial-1-0/flows.parquet"]
        {
            write(file, OURS);
            written(&target, "whole");
            assert_eq!(scratch.names("out"), [MANIFEST, "runs"], "{file}");
        }
        for (file, text) in [("mine", ""), ("runs/mine", ""), ("runs/uno/manifest.json", "{}"), ("a.partial-1", "")] {
            write(file, text);
            assert!(Staging::new(&target).is_err(), "{file}");
        }
    }

    #[test]
    fn a_link_to_a_directory_is_followed() {
        let scratch = Scratch::new("link");
        let (real, link) = (scratch.path().join("real"), scratch.path().join("link"));
        fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        written(&link, "x");
        assert!(real.join(MANIFEST).exists() && link.is_symlink());
    }

    #[test]
    fn a_full_disk_leaves_nothing_and_names_the_file() {
        if !Path::new("/dev/full").exists() {
            eprintln!("SKIPPED a_full_disk_leaves_nothing_and_names_the_file: no /dev/full here");
            return;
        }
        let scratch = Scratch::new("full");
        let target = scratch.path().join("out");
        written(&target, "old");
        let full: Create = |_| Ok(Box::new(File::options().write(true).open("/dev/full")?));
        let mut staging = Staging::with(&target, full).unwrap();
        // Small files fail when they are flushed, large ones before.
        for size in [10, 1 << 20] {
            let error = staging.text("flows.parquet", &"x".repeat(size)).unwrap_err().to_string();
            assert!(error.starts_with("cannot write `") && error.contains("out/flows.parquet"), "{error}");
            assert!(error.contains("No space left on device"), "{error}");
        }
        drop(staging);
        assert_eq!(scratch.names(""), ["out"]);
        assert_eq!(fs::read_to_string(target.join("runs/a/text")).unwrap(), "old");
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_named() {
        let scratch = Scratch::new("closed");
        let closed = scratch.path().join("closed");
        fs::create_dir(&closed).unwrap();
        let mut rights = fs::metadata(&closed).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o555);
        fs::set_permissions(&closed, rights).unwrap();
        // Rights do not bind the super-user; nobody makes a directory in /proc.
        let bound = fs::create_dir(closed.join("try")).is_err();
        let target = if bound { closed.join("out") } else { PathBuf::from("/proc/self/out") };
        let error = Staging::new(&target).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot create `{}`: ", target.display())), "{error}");
    }

    #[test]
    fn leftovers_of_the_dead_go_and_the_work_of_the_living_stays() {
        let scratch = Scratch::new("stale");
        let target = scratch.path().join("out");
        let living = Staging::new(&target).unwrap();
        let kept = living.partial().file_name().unwrap().to_string_lossy().into_owned();
        for name in ["out.partial-1-0", "out.partial-1-0-old", "out.partial-mine", "other.partial-1-0"] {
            fs::create_dir(scratch.path().join(name)).unwrap();
        }
        let second = Staging::new(&target).unwrap();
        assert_ne!(second.partial(), living.partial());
        drop(second);
        let mut left = vec!["other.partial-1-0", "out.partial-1-0-old", "out.partial-mine", kept.as_str()];
        left.sort_unstable();
        assert_eq!(scratch.names(""), left);
        drop(living);
        assert!(!scratch.names("").contains(&kept));
    }

    #[test]
    fn names_stay_inside() {
        let scratch = Scratch::new("inside");
        let mut staging = Staging::new(&scratch.path().join("out")).unwrap();
        for name in ["../x", "/tmp/x", "", "a/../b"] {
            assert!(staging.text(name, "x").is_err(), "{name}");
        }
        staging.text("twice", "x").unwrap();
        assert!(staging.text("twice", "y").is_err());
    }
}
