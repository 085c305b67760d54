//! The key that identifies this machine's user: a file with its 32 secret bytes, made at first use.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use files::SizeLimit;
use proto::identity::SEED_LEN;

use crate::exit::CommandFailure;

const LIMIT: SizeLimit = SizeLimit { kind: "an identity", mib: 1 };

/// The secret bytes in that file, or in the one that is usual. Where there is none they are made.
pub(crate) fn seed(named: Option<&Path>) -> Result<[u8; SEED_LEN], CommandFailure> {
    let path = named.map_or_else(default_path, |path| Ok(path.to_path_buf()))?;
    // If several processes make it at a time, all of them use the first one.
    if let Some(seed) = read(&path)? {
        return Ok(seed);
    }
    let directory = files::parent_of(&path);
    make_directory(directory).map_err(|error| CommandFailure::file("make", directory, &error))?;
    let seed = transport::random::<SEED_LEN>().map_err(|error| CommandFailure::Run(error.into()))?;
    match files::create_private(&path, &seed) {
        Ok(()) => Ok(seed),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read(&path)?.ok_or_else(|| CommandFailure::file("make", &path, &error))
        }
        Err(error) => Err(CommandFailure::file("make", &path, &error)),
    }
}

/// Directory of this user's persistent state; none if neither `XDG_STATE_HOME` nor `HOME` is absolute.
pub(super) fn state() -> Option<PathBuf> {
    // A path that is not absolute does not count (XDG Base Directory Specification).
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("narrows"))
}

/// Returns its usual path.
fn default_path() -> Result<PathBuf, CommandFailure> {
    state().map(|state| state.join("identity")).ok_or_else(|| {
        CommandFailure::Input(
            "error: there is no place for this machine's key: neither XDG_STATE_HOME nor HOME is an absolute path\nhelp: name \
             a file with --identity"
                .to_owned(),
        )
    })
}

/// Returns the contents of the file; none if there is no such file.
fn read(path: &Path) -> Result<Option<[u8; SEED_LEN]>, CommandFailure> {
    let Some(bytes) = secret(path, LIMIT, "pose as you")? else { return Ok(None) };
    let seed = <[u8; SEED_LEN]>::try_from(&*bytes).map_err(|_| {
        CommandFailure::Input(format!(
            "error: `{}` is no identity: it has {} bytes, and an identity {SEED_LEN}\nhelp: name another file with --identity",
            path.display(),
            bytes.len()
        ))
    })?;
    Ok(Some(seed))
}

/// Makes a directory that is closed to other users, unless it exists.
pub(super) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns the contents of a file that other users may not read; none if there is no such file. `risk` names the risk if
/// they could.
pub(super) fn secret(path: &Path, limit: SizeLimit, risk: &str) -> Result<Option<Vec<u8>>, CommandFailure> {
    let bytes = match files::read(path, limit) {
        Err(error) if error.is_missing() => return Ok(None),
        bytes => bytes?,
    };
    let mode =
        path.metadata().map_err(|error| CommandFailure::file("read", path, &error))?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(CommandFailure::Input(format!(
            "error: `{path}` can be used by others (its mode is {mode:o}), and anyone with read access can {risk}\nhelp: chmod 600 \
             {path}, or remove it if others may have read it",
            path = path.display()
        )));
    }
    Ok(Some(bytes))
}
