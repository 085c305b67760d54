//! Whether this machine can run laws in its kernel.

use std::path::Path;

/// Whether laws can be loaded here: for tests that report themselves skipped where not.
pub fn may_load() -> bool {
    let root = std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        status.lines().any(|line| line.strip_prefix("Uid:").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0")))
    });
    root && Path::new("/sys/kernel/btf/vmlinux").exists()
}
