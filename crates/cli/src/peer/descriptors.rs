//! The limit of open files and sockets of this process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files and sockets at a time, if the system lets this user have that many: thousands of connections, or of files that
/// wait to be synced.
const MAX_FILES: u64 = 65_536;

/// Raises the soft limit. Where this is not allowed fewer can be opened, and the caller that reaches the limit reports
/// it.
pub(crate) fn open_more_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(MAX_FILES)), hard);
    }
}
