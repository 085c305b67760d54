//! `narrows report`: the page of results that are already there.

use results::store::load_all;

use crate::args::ReportArgs;
use crate::exit::{Failure, print};
use crate::page::{self, Page};
use crate::session::replace;

pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let runs = load_all(&args.directory)?;
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
    };
    let shown = runs.iter().map(|run| page::one(run, &[], runs.len())).collect();
    let out = args.out.clone().unwrap_or_else(|| args.directory.join(page::REPORT));
    replace(&out, &page::render(&page, shown))?;
    print(&format!("wrote {}", out.display()))
}
