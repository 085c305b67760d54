//! `narrows report`: the page of results that are already there.

use results::store::{NEXT, load_set};

use crate::args::ReportArgs;
use crate::exit::{Failure, print, tell};
use crate::page::{self, Page};

pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let set = load_set(&args.directory)?;
    let said = super::compare::what_it_lacks(&args.directory, &set);
    if let Some(said) = &said {
        tell(said);
    }
    let (runs, whole) = (set.runs, set.unfinished.is_none());
    let first = runs.first().map(|run| &run.manifest);
    let text = |key: &str| {
        let resolved = first.and_then(|manifest| manifest.resolved.get(key));
        resolved.and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let resolved = first.map(|manifest| format!("{:#}", manifest.resolved)).unwrap_or_default();
    let page = Page {
        title: text("title"),
        subtitle: text("description"),
        scale: None,
        scenario_toml: resolved,
        replay: Vec::new(),
        claims: Vec::new(),
        averages: Vec::new(),
        warnings: said.into_iter().filter(|_| !whole).collect(),
    };
    let shown = runs.iter().map(|run| page::one(run, &[], runs.len())).collect();
    let html = page::render(&page, shown);
    let out = match &args.out {
        Some(out) => out.clone(),
        // Beside an unfinished set nothing of its report is in the way of the whole one's.
        None if !whole => args.directory.join(NEXT).join(page::REPORT),
        None => args.directory.join(page::REPORT),
    };
    let _lock = match &args.out {
        None if whole => Some(files::Lock::take(&args.directory, "narrows report")?),
        _ => None,
    };
    files::replace(&out, &html)?;
    print(&format!("wrote {}", out.display()))
}
