//! Replays the corpora of fuzz targets by ordinary tests. Included by `tests/fuzzed.rs` of each crate that has some.

use std::path::Path;

/// Tries every file of a target's corpus, in order: every input that ever broke something is in it.
pub(crate) fn replay(crate_folder: &str, target: &str, body: fn(&[u8])) {
    let folder = Path::new(crate_folder).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 10, "{}: only {} files", folder.display(), files.len());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let tried = std::panic::catch_unwind(|| body(&bytes));
        assert!(tried.is_ok(), "{}", file.display());
    }
}
