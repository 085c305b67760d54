//! Counts, lists and warnings as text.

use results::warning_groups::{RunWarnings, group_warnings};
use results::{RunResults, Summary};

/// Returns a count with its noun: `1 flow`, `2 flows`.
pub fn count(n: usize, noun: &str) -> String {
    let plural = match noun {
        _ if n == 1 => "",
        "switch" => "es",
        _ => "s",
    };
    format!("{n} {noun}{plural}")
}

/// Returns up to five items of a list, and the number of the others.
pub fn first_of(list: &[String], separator: &str) -> String {
    const SHOWN: usize = 5;
    let shown = list[..list.len().min(SHOWN)].join(separator);
    if list.len() > SHOWN { format!("{shown}{separator}and {} more", list.len() - SHOWN) } else { shown }
}

/// Returns warnings of all runs, then notes, grouped by cause.
pub fn warnings(runs: &[RunResults]) -> Vec<String> {
    let of = |prefix: &str, texts: fn(&Summary) -> &Vec<String>| {
        let run_warnings = runs.iter().map(|run| RunWarnings {
            run: &run.manifest.run,
            point: &run.manifest.point.0,
            texts: texts(&run.summary),
        });
        let lines = group_warnings(&run_warnings.collect::<Vec<_>>()).into_iter();
        lines.map(|group| format!("{prefix}: {group}")).collect::<Vec<_>>()
    };
    [of("warning", |it| &it.warnings), of("note", |it| &it.notes)].concat()
}
