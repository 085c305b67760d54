//! `narrows report`: the page of existing results.
//!
//! Reading takes no lock: a set is complete, or the command reports that it is unfinished. The directory is locked while
//! the page is written into a complete set. The page of an unfinished set is written next to its runs without a lock,
//! because the set's writer may be running.

use std::path::Path;

use results::store::{self, MANIFEST, NEXT, REPORT, REPORT_SEAL, load_set, may_replace_report};
use study::page;

use crate::args::ReportArgs;
use crate::exit::{CommandFailure, print, tell, tell_of_lock};
use crate::named_file::{NamedFile, OutputKind, tell_of_leftovers};

pub(crate) fn report(args: &ReportArgs) -> Result<(), CommandFailure> {
    let directory = &args.directory;
    let inside = directory.join(REPORT);
    // The report's own place is no other file, however it is called.
    let other = args.out.as_ref().filter(|out| !is_same(out, &inside));
    let other = other.map(|out| NamedFile::new(out, OutputKind::Report, "--out")).transpose()?;
    if other.is_none() {
        tell_of_leftovers(&inside);
        tell_of_leftovers(&directory.join(NEXT).join(REPORT));
    }
    let is_whole = || directory.join(MANIFEST).exists();
    let lock = if other.is_none() && is_whole() { Some(store::lock(directory, "narrows report")?) } else { None };
    if let Some(lock) = &lock {
        tell_of_lock(directory, lock);
    }
    let set = load_set(directory)?;
    let said = super::compare::what_it_lacks(directory, &set);
    for said in &said {
        tell(said);
    }
    let whole = set.unfinished.is_none();
    if whole && other.is_none() && lock.is_none() {
        // The set became whole in between, and this process has not locked it.
        return report(args);
    }
    let html = page::of_results(&set.runs, said.into_iter().filter(|_| !whole).collect());
    let out = if let Some(other) = other {
        other.write(html)?
    } else {
        // The report of an unfinished set is in `.next`, so that the complete set's can later take its place.
        let out = if whole { inside } else { directory.join(NEXT).join(REPORT) };
        lock.as_ref().map_or(Ok(()), files::Lock::check)?;
        may_replace_report(&out)?;
        files::replace(&out, &REPORT_SEAL.put_on(html))?;
        out
    };
    print(&format!("wrote {}", out.display()))
}

/// Returns whether two paths name one file, which need not exist.
fn is_same(one: &Path, other: &Path) -> bool {
    let directory = |path: &Path| std::fs::canonicalize(files::parent_of(path)).ok();
    one.file_name() == other.file_name() && directory(one).is_some_and(|one| Some(one) == directory(other))
}
