//! `--qlog DIR`: log files of each connection's events. `crates/wire/qlog` writes them.

use std::path::Path;

use qlog::Directory;

use crate::exit::{CommandFailure, print_stderr};

/// Logs go to this directory from now on, until the directory is dropped.
///
/// # Errors
/// If no file can be made there.
pub(super) fn open(path: &Path) -> Result<Directory, CommandFailure> {
    let directory = Directory::open(path, |error| print_stderr(&format!("warning: {error}")));
    directory.map_err(|error| {
        CommandFailure::Input(format!(
            "error: --qlog: no log can be made in `{}`: {error}\nhelp: name a directory in which files can be made; one that is \
             not there is made",
            path.display()
        ))
    })
}
