//! The report in a directory of results: it is recognised, and an edited one is not replaced.

use std::path::Path;

use files::IntegrityTrailer;

use crate::Error;

/// The last line of a report.
pub const REPORT_SEAL: IntegrityTrailer = IntegrityTrailer {
    kind: "a report that `narrows report` wrote",
    before: "<!-- narrows report, SHA-256 of all above: ",
    after: " -->\n",
};

/// Refuses to replace an edited report, or another file in its place.
///
/// # Errors
/// When it was, or cannot be read.
pub fn may_replace_report(path: &Path) -> Result<(), Error> {
    let exists = path.metadata().is_ok_and(|metadata| metadata.is_file());
    match if exists { REPORT_SEAL.refusal(path)? } else { None } {
        None => Ok(()),
        Some(reason) => Err(Error::Edited { path: path.to_path_buf(), reason }),
    }
}
