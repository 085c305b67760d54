//! The wall clock. The only place in the command that reads one, but for what a study's stopwatch reads.

use std::time::SystemTime;

/// Seconds since 1970, by which tickets end.
#[expect(clippy::disallowed_methods, reason = "a ticket ends by the wall clock; no result depends on it")]
pub(crate) fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
