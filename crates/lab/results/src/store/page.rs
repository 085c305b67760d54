//! The report in a directory of results: it is known again, and one that somebody edited is not replaced.

use std::path::Path;

use files::Seal;

use crate::Error;

/// The last line of a report.
pub const REPORT_SEAL: Seal = Seal {
    what: "a report that `narrows report` wrote",
    before: "<!-- narrows report, SHA-256 of all above: ",
    after: " -->\n",
};

/// Refuses to replace a report that somebody edited, or another file in its place.
///
/// # Errors
/// When it was, or cannot be read.
pub fn may_replace_report(path: &Path) -> Result<(), Error> {
    let there = path.metadata().is_ok_and(|there| there.is_file());
    match if there { REPORT_SEAL.refusal(path)? } else { None } {
        None => Ok(()),
        Some(why) => Err(Error::Edited { path: path.to_path_buf(), why }),
    }
}
