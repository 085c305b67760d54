//! Conditions of a comparison in words: initial windows of the schemes, bandwidth-delay products, the most loaded links.

use crate::conditions::{ClassConditions, LinkLoad};
use crate::input::Class;
use crate::store::RunResults;

/// Schemes that begin alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitialWindows {
    /// Labels of the schemes.
    pub schemes: Vec<String>,
    /// Their initial windows by class, in words.
    pub windows: String,
}

impl std::fmt::Display for InitialWindows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "initial window of {}: {}", self.schemes.join("; "), self.windows)
    }
}

/// Initial windows of the schemes, over all points and seeds of each. Empty where results do not have them.
pub fn initial_windows<'a>(runs: impl IntoIterator<Item = &'a RunResults>) -> Vec<InitialWindows> {
    let mut schemes: Vec<(String, Vec<(Class, ClassConditions)>)> = Vec::new();
    for run in runs {
        let label = &run.manifest.label;
        let index = schemes.iter().position(|(known, _)| known == label).unwrap_or_else(|| {
            schemes.push((label.clone(), Vec::new()));
            schemes.len() - 1
        });
        let classes = &mut schemes[index].1;
        for class in [Class::Intra, Class::Inter] {
            // A class without flows begins nowhere.
            let cell = if class == Class::Intra { &run.summary.flows.intra } else { &run.summary.flows.inter };
            let Some(&found) = run.summary.conditions.classes.get(class.name()).filter(|_| cell.count > 0) else {
                continue;
            };
            match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, known)) => *known = known.join(found),
                None => classes.push((class, found)),
            }
        }
    }
    let mut entries: Vec<InitialWindows> = Vec::new();
    for (label, classes) in schemes.into_iter().filter(|(_, classes)| !classes.is_empty()) {
        let of_class = |(class, it): &(Class, ClassConditions)| format!("{class} {}", it.initial_window());
        let windows = classes.iter().map(of_class).collect::<Vec<_>>().join(", ");
        match entries.iter_mut().find(|known| known.windows == windows) {
            Some(known) => known.schemes.push(label),
            None => entries.push(InitialWindows { schemes: vec![label], windows }),
        }
    }
    entries
}

/// Number of most loaded links that are named.
const MAX_LOADED_LINKS: usize = 4;

/// Initial windows of the schemes, a line for those that begin alike.
pub fn initial_window_lines<'a>(runs: impl IntoIterator<Item = &'a RunResults>) -> Vec<String> {
    initial_windows(runs).iter().map(InitialWindows::to_string).collect()
}

/// Bandwidth-delay products and the most loaded links of all runs, a line each.
pub fn load_lines(runs: &[RunResults]) -> Vec<String> {
    let mut classes: Vec<(&str, ClassConditions)> = Vec::new();
    let mut loads: Vec<&LinkLoad> = Vec::new();
    for conditions in runs.iter().map(|run| &run.summary.conditions) {
        for (class, found) in conditions.classes.iter() {
            match classes.iter_mut().find(|(known, _)| *known == class) {
                Some((_, known)) => *known = known.join(*found),
                None => classes.push((class, *found)),
            }
        }
        for load in &conditions.most_loaded {
            match loads.iter_mut().find(|known| known.link == load.link) {
                Some(known) if load.load > known.load => *known = load,
                Some(_) => {}
                None => loads.push(load),
            }
        }
    }
    let mut lines = Vec::new();
    if !classes.is_empty() {
        let bdp = |(class, it): &(&str, ClassConditions)| format!("{class} {}", it.bdp());
        lines.push(format!("bandwidth-delay product: {}", classes.iter().map(bdp).collect::<Vec<_>>().join(", ")));
    }
    loads.sort_by(|a, b| b.load.total_cmp(&a.load));
    if !loads.is_empty() {
        let load = |it: &&LinkLoad| format!("{} {:.1} %", it.link, 100.0 * it.load);
        let all = loads.iter().take(MAX_LOADED_LINKS).map(load).collect::<Vec<_>>().join(", ");
        lines.push(format!("most loaded by arrivals: {all}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::{Beginning, Conditions};
    use crate::ordered::Ordered;
    use crate::testbed;
    use units::{Bytes, Rate};

    fn beginning(bdp: u64, window: u64) -> Beginning {
        Beginning { bdp: Bytes::new(bdp), window: Bytes::new(window), pacing: Rate::MAX }
    }

    #[test]
    fn equal_windows_share_an_entry() {
        let run = |label: &str, window: u64| {
            let mut run = testbed::results();
            run.manifest.label = label.into();
            let class = ClassConditions::of(beginning(100_000, window), beginning(100_000, window));
            run.summary.conditions.classes = Ordered(vec![("intra".into(), class)]);
            run
        };
        let runs = [run("A", 10_000), run("B", 50_000), run("C", 10_000), run("A", 20_000)];
        let lines = initial_window_lines(&runs);
        let expected = [
            "initial window of A: intra 10 KB to 20 KB (0.2 BDP)",
            "initial window of B: intra 50 KB (0.5 BDP)",
            "initial window of C: intra 10 KB (0.1 BDP)",
        ];
        assert_eq!(lines, expected);
        assert_eq!(initial_windows(&runs[..3])[0].schemes, ["A", "C"]);
        let mut old = run("A", 1);
        old.summary.conditions = Conditions::default();
        assert_eq!(initial_windows(&[old]), []);
    }
}
