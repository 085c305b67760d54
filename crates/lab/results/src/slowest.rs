//! The slowest flows of groups: of each scheme at each point of the grid, by class or by size bin.

use crate::averages::by_point;
use crate::claims::name_in_claims;
use crate::store::RunResults;
use crate::tables::FlowRow;
use crate::{Class, SizeBin};

/// Criterion that splits the flows of a scheme at a point into groups.
#[derive(Clone, PartialEq, Debug)]
pub enum GroupBy {
    /// Their class.
    Class,
    /// Their size.
    Bins(Vec<SizeBin>),
}

/// The flows of a group that are the slowest.
#[derive(Clone, PartialEq, Debug)]
pub struct SlowGroup {
    /// The name of its runs, without their seeds where there are several.
    pub name: String,
    /// The class or the size bin.
    pub part: String,
    /// Its flows that ended.
    pub flows: usize,
    /// Its flows that started and did not end.
    pub unfinished: usize,
    /// The slowest, the slowest first.
    pub slowest: Vec<SlowestFlow>,
}

/// A flow among the slowest.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowestFlow {
    /// The place of its run among those given.
    pub run: usize,
    /// The flow.
    pub row: FlowRow,
    /// Its completion time over the ideal one.
    pub slowdown: f64,
}

impl SlowGroup {
    /// The mean slowdown of the slowest.
    pub fn mean_slowdown(&self) -> f64 {
        self.slowest.iter().map(|flow| flow.slowdown).sum::<f64>() / self.slowest.len().max(1) as f64
    }
}

/// The slowest flows of each scheme at each point and of each part, all seeds together; the groups with the slowest flows
/// come first. `share` is the share of a group's flows to return: over 0, at most 1. Groups without completed flows are
/// left out.
pub fn slowest(runs: &[RunResults], by: &GroupBy, class: Option<Class>, share: f64) -> Vec<SlowGroup> {
    let mut groups = Vec::new();
    for (_, schemes) in by_point(runs) {
        for (_, members) in schemes {
            let run_indices: Vec<usize> =
                members.iter().filter_map(|run| runs.iter().position(|other| std::ptr::eq(*run, other))).collect();
            let name = match &members[..] {
                [run, _, ..] => name_in_claims(&run.summary.run, run.summary.seed),
                [run] => run.summary.run.clone(),
                [] => continue,
            };
            let mut add = |part: &str, is_match: &dyn Fn(&RunResults, &FlowRow) -> bool| {
                groups.extend(
                    group(runs, &run_indices, share, |run, row| {
                        is_match(run, row) && class.is_none_or(|class| class == row.class)
                    })
                    .map(|group| SlowGroup { name: name.clone(), part: part.to_owned(), ..group }),
                );
            };
            match by {
                GroupBy::Class => {
                    for class in [Class::Intra, Class::Inter] {
                        add(class.name(), &|_, row| row.class == class);
                    }
                }
                GroupBy::Bins(bins) => {
                    for bin in bins {
                        add(&bin.name, &|run, row| run.flows.is_in(row, bin));
                    }
                }
            }
        }
    }
    groups.sort_by(|a, b| b.mean_slowdown().total_cmp(&a.mean_slowdown()));
    groups
}

fn group(
    runs: &[RunResults],
    run_indices: &[usize],
    share: f64,
    is_match: impl Fn(&RunResults, &FlowRow) -> bool,
) -> Option<SlowGroup> {
    let (mut ended, mut unfinished) = (Vec::new(), 0);
    for &index in run_indices {
        let run = &runs[index];
        for row in run.flows.rows.iter().filter(|row| row.started.is_set() && is_match(run, row)) {
            match row.slowdown() {
                Some(slowdown) => ended.push(SlowestFlow { run: index, row: *row, slowdown }),
                None => unfinished += 1,
            }
        }
    }
    let flows = ended.len();
    ended.sort_by(|a, b| b.slowdown.total_cmp(&a.slowdown).then((a.run, a.row.flow).cmp(&(b.run, b.row.flow))));
    ended.truncate(((flows as f64 * share).round() as usize).max(1));
    (flows > 0).then(|| SlowGroup { name: String::new(), part: String::new(), flows, unfinished, slowest: ended })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;

    /// Groups are split by class, or by overlapping bins; the slowest come first, and a group has at least one.
    #[test]
    fn groups_have_their_slowest_flows() {
        let runs = [testbed::results()];
        let rows = &runs[0].flows.rows;
        let ended = |is_match: &dyn Fn(&FlowRow) -> bool| {
            rows.iter().filter(|row| row.slowdown().is_some() && is_match(row)).count()
        };
        let all = SizeBin { name: "all".into(), ..SizeBin::default() };
        let groups = slowest(&runs, &GroupBy::Bins(vec![all]), None, 1.0);
        assert_eq!(groups.len(), 1);
        assert_eq!((groups[0].flows, groups[0].slowest.len()), (ended(&|_| true), ended(&|_| true)));
        assert!(groups[0].slowest.windows(2).all(|two| two[0].slowdown >= two[1].slowdown));
        for group in slowest(&runs, &GroupBy::Class, None, 1e-9) {
            assert_eq!(group.slowest.len(), 1, "{}", group.part);
            assert_eq!(group.flows, ended(&|row| row.class.name() == group.part));
        }
        let of = |class: Class| {
            slowest(&runs, &GroupBy::Class, Some(class), 1.0).iter().map(|it| it.part.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(Class::Intra).iter().filter(|part| *part != "intra").count(), 0);
    }
}
