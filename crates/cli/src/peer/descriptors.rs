//! How many files and sockets this process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files and sockets at a time, where the system lets this user have so many: thousands of connections, or of files that wait to be
/// synced.
const MOST_FILES: u64 = 65_536;

/// Raises the soft limit. Where this is not allowed there is room for fewer, and whoever meets the limit says so.
pub(crate) fn open_more_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(MOST_FILES)), hard);
    }
}
