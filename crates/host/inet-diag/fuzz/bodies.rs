//! The bodies of the fuzz targets. `tests/fuzzed.rs` runs them on the corpora.

/// Any bytes from the netlink socket are a bounded number of messages.
pub(crate) fn inet_diag(bytes: &[u8]) {
    // A message has a header of 16 bytes.
    assert!(inet_diag::fuzzing::messages(bytes) <= bytes.len() / 16);
}
