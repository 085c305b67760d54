//! Jain's index over time.
//!
//! An interval ends at a sample time and begins the window's length before, a whole number of sampling intervals. A flow
//! counts in it if it was sampled at both ends, so was active throughout, and if it had started at least its base round
//! trip before the interval began: no acknowledgement can arrive earlier. The compared values are the bytes of acknowledged
//! payload, not of sent payload: a flow that has sent all and waits for its last acknowledgements is still getting its
//! share.

use experiment::{Outcome, Setup};
use units::Span;

use super::Fairness;
use crate::stats::Jain;
use crate::tables::{FlowRow, FlowTable, RateTable};

/// Jain's index from which on flows count as sharing evenly.
pub const CONVERGED: f64 = 0.95;

/// Jain's index at one sample time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct JainPoint {
    pub(crate) time_ns: u64,
    /// Flows that count.
    pub(crate) flows: usize,
    /// None for fewer than two flows, or if nothing was delivered.
    pub(crate) index: Option<f64>,
    fair: bool,
}

/// Jain's index at each sample time but those with less than `window_ns` before them.
pub(crate) fn jain_points(rates: &RateTable, flows: &FlowTable, window_ns: u64) -> Vec<JainPoint> {
    // The rows of each sample time: (time, first row, end).
    let mut times: Vec<(u64, usize, usize)> = Vec::new();
    for (row, sample) in rates.rows.iter().enumerate() {
        match times.last_mut() {
            Some((time, _, end)) if *time == sample.time_ns => *end = row + 1,
            _ => times.push((sample.time_ns, row, row + 1)),
        }
    }
    let mut points = Vec::new();
    let mut begin = 0;
    for index in 1..times.len() {
        let (now_ns, first, end) = times[index];
        // The latest sample time at least a window ago, and always an earlier one.
        while begin + 1 < index && now_ns - times[begin + 1].0 >= window_ns {
            begin += 1;
        }
        if now_ns - times[begin].0 < window_ns {
            continue;
        }
        let (from_ns, from_first, from_end) = times[begin];
        let mut shares = Vec::new();
        let mut before = rates.rows[from_first..from_end].iter().peekable();
        for row in &rates.rows[first..end] {
            while before.next_if(|earlier| earlier.flow < row.flow).is_some() {}
            let Some(earlier) = before.next_if(|earlier| earlier.flow == row.flow) else { continue };
            let counted = flows
                .row(row.flow)
                .is_none_or(|flow| flow.started.saturating_add(flow.base_rtt).ps().div_ceil(1_000) <= from_ns);
            if counted {
                shares.push(row.delivered_bytes.saturating_sub(earlier.delivered_bytes));
            }
        }
        points.push(point(now_ns, &shares));
    }
    points
}

/// Returns Jain's index of the shares at one time; none for fewer than two shares.
fn point(time_ns: u64, shares: &[u64]) -> JainPoint {
    let jain = Jain::of(shares).filter(|_| shares.len() >= 2);
    let fair = jain.is_some_and(|jain| jain.is_at_least(95));
    JainPoint { time_ns, flows: shares.len(), index: jain.map(Jain::index), fair }
}

/// Returns the fairness of the `sampled` flows, in windows of `window_ns` (0: one sampling interval).
pub fn fairness(rates: &RateTable, flows: &FlowTable, sampled: usize, window_ns: u64) -> Fairness {
    let points = jain_points(rates, flows, window_ns);
    let defined: Vec<f64> = points.iter().filter_map(|point| point.index).collect();
    let complete: Vec<&JainPoint> = points.iter().filter(|point| sampled >= 2 && point.flows == sampled).collect();
    let fair_tail = complete.iter().rev().take_while(|point| point.fair).last();
    let reached = complete.iter().position(|point| point.fair);
    let since: Vec<f64> =
        complete[reached.unwrap_or(complete.len())..].iter().filter_map(|point| point.index).collect();
    Fairness {
        jain_mean: crate::stats::mean_real(&defined),
        jain_final: complete.last().and_then(|point| point.index),
        converged_at_ns: fair_tail.map(|point| point.time_ns),
        reached_at_ns: reached.map(|index| complete[index].time_ns),
        jain_since: crate::stats::mean_real(&since),
    }
}

/// Returns a warning if no index was computed because its window is longer than the time in which flows were together.
pub(crate) fn too_long_a_window(
    fair: &Fairness,
    setup: &Setup,
    outcome: &Outcome,
    flows: &FlowTable,
    window: Span,
) -> Option<String> {
    let (sampled, interval) = (&setup.series.flows, setup.series.interval.unsigned_ps());
    if interval == 0 || sampled.len() < 2 || fair.jain_final.is_some() {
        return None;
    }
    // From when to when a flow counts.
    let rows = sampled.iter().filter_map(|flow| flows.row(flow.0)).filter(|row| row.started.is_set());
    let counts = |row: &FlowRow| {
        let until = if row.completed.is_set() { row.completed } else { outcome.ended };
        (row.started.saturating_add(row.base_rtt).ps(), until.ps())
    };
    let mut active: Vec<(u64, u64)> = rows.map(counts).collect();
    active.sort_unstable();
    let overlap = if fair.jain_mean.is_some() {
        let (last_start, _) = *active.last().filter(|_| active.len() == sampled.len())?;
        active.iter().map(|&(_, until)| until).min()?.saturating_sub(last_start)
    } else {
        let mut latest = 0;
        let with_earlier = active.iter().map(|&(from, until)| {
            let both = until.min(latest).saturating_sub(from);
            latest = latest.max(until);
            both
        });
        with_earlier.max()?
    };
    // Both ends of the window are samples: in an interval more there is a whole window for certain.
    let needed = window.unsigned_ps().div_ceil(interval).max(1).saturating_mul(interval);
    let scope = if fair.jain_mean.is_some() { "of all sampled flows: all" } else { "of any sampled flows: two" };
    let span = |ps: u64| Span::from_ps(i64::try_from(ps).unwrap_or(i64::MAX));
    (overlap > 0 && overlap < needed.saturating_add(interval)).then(|| {
        format!(
            "no Jain's index {scope} were active together for {}, and an index needs two samples {} apart in that time \
             (`fairness_window` of [monitor])",
            span(overlap),
            span(needed)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::RateRow;
    use crate::testbed::{self, flow_row};
    use units::Time;

    /// Flows sampled every 10 ns; `delivered[flow]` from the first sample on, `None` where it is not active.
    fn sampled(delivered: &[&[Option<u64>]]) -> (RateTable, FlowTable) {
        let mut rows = Vec::new();
        for index in 0..delivered[0].len() {
            for (flow, values) in delivered.iter().enumerate() {
                if let Some(bytes) = values[index] {
                    let flow = flow as u32;
                    rows.push(RateRow {
                        time_ns: 10 * index as u64,
                        flow,
                        sent_bytes: bytes,
                        delivered_bytes: bytes,
                        cwnd_bytes: None,
                        srtt_ns: 1,
                    });
                }
            }
        }
        let flow = |flow| FlowRow { started: Time::ZERO, base_rtt: Span::ZERO, ..flow_row(flow) };
        let flows = FlowTable {
            rows: (0..delivered.len() as u32).map(flow).collect(),
            laws: vec!["x".into()],
            ..FlowTable::default()
        };
        (RateTable { rows, traces: Vec::new() }, flows)
    }

    #[test]
    fn two_flows_converge_to_fair_shares() {
        let one = [0, 100, 200, 250, 300, 350].map(Some);
        let two = [0, 0, 50, 100, 150, 200].map(Some);
        let (rates, flows) = sampled(&[&one, &two]);
        let indices: Vec<_> = jain_points(&rates, &flows, 0).iter().map(|point| point.index.unwrap()).collect();
        assert_eq!(indices, [0.5, 0.9, 1.0, 1.0, 1.0]);
        let fair = fairness(&rates, &flows, 2, 0);
        assert_eq!((fair.converged_at_ns, fair.reached_at_ns, fair.jain_since), (Some(30), Some(30), Some(1.0)));
        assert_eq!((fair.jain_final, fair.jain_mean), (Some(1.0), Some(4.4 / 5.0)));
        // Over two intervals: 200 and 50, 150 and 100, 100 and 100, 100 and 100.
        let points = jain_points(&rates, &flows, 20);
        let seen: Vec<_> = points.iter().map(|point| (point.time_ns, point.index.unwrap())).collect();
        assert_eq!(seen, [(20, 62_500.0 / 85_000.0), (30, 62_500.0 / 65_000.0), (40, 1.0), (50, 1.0)]);
        assert_eq!(fairness(&rates, &flows, 2, 11), fairness(&rates, &flows, 2, 20));
    }

    #[test]
    fn convergence_must_persist() {
        let one = [0, 10, 20, 30, 40].map(Some);
        let two = [0, 10, 20, 30, 30].map(Some);
        let (rates, flows) = sampled(&[&one, &two]);
        let fair = fairness(&rates, &flows, 2, 0);
        assert_eq!((fair.converged_at_ns, fair.jain_final), (None, Some(0.5)));
        // It was reached, and the mean after that point shows the size of the dip.
        assert_eq!((fair.reached_at_ns, fair.jain_since), (Some(10), Some(3.5 / 4.0)));
    }

    #[test]
    fn events_after_the_first_completion_keep_convergence() {
        let one = [Some(0), Some(10), Some(20), Some(30), Some(60), Some(90)];
        let two = [Some(0), Some(10), Some(20), None, None, None];
        let (rates, flows) = sampled(&[&one, &two]);
        let fair = fairness(&rates, &flows, 2, 0);
        assert_eq!((fair.converged_at_ns, fair.jain_final, fair.jain_mean), (Some(10), Some(1.0), Some(1.0)));
    }

    #[test]
    fn disjoint_flows_have_no_final_jain_index() {
        let one = [Some(0), Some(10), Some(20)];
        let (rates, flows) = sampled(&[&one]);
        assert_eq!(fairness(&rates, &flows, 1, 0), Fairness::default());
        // Three were to be sampled and one never was.
        let (rates, flows) = sampled(&[&one, &one]);
        let fair = fairness(&rates, &flows, 3, 0);
        assert_eq!((fair.jain_mean, fair.jain_final, fair.converged_at_ns), (Some(1.0), None, None));
    }

    #[test]
    fn a_flow_counts_from_its_first_possible_acknowledgement() {
        let one = [0, 10, 20, 30].map(Some);
        let two = [0, 0, 0, 10].map(Some);
        let (rates, mut flows) = sampled(&[&one, &two]);
        assert_eq!(fairness(&rates, &flows, 2, 0).jain_mean, Some(2.0 / 3.0));
        flows.rows[1].base_rtt = Span::from_ps(19_001);
        let fair = fairness(&rates, &flows, 2, 0);
        assert_eq!((fair.jain_mean, fair.converged_at_ns), (Some(1.0), Some(30)));
    }

    /// A window that no flows fill has no index, and the run has a warning with the reason. Four flows start at once:
    /// two inside a datacenter, two across, which last longer.
    #[test]
    fn too_long_fairness_windows_are_warned_of() {
        let (mut info, setup, outcome) = testbed::two_datacenters();
        let mut summarise = |sets: bool, window: Span, flows: &[u32]| {
            info.sets_fairness_window = sets;
            let mut setup = setup.clone();
            setup.series.flows = flows.iter().copied().map(experiment::FlowId).collect();
            info.fairness_window = window;
            let summary = testbed::results_of(&info, &setup, &outcome).summary;
            (summary.fairness, summary.notes.into_iter().filter(|note| note.contains("Jain")).collect::<Vec<_>>())
        };
        let (fair, notes) = summarise(true, Span::from_us(100), &[1, 2, 3, 4]);
        assert!(fair.jain_final.is_some() && notes.is_empty(), "{fair:?}, {notes:?}");
        let (fair, notes) = summarise(true, Span::from_s(1), &[1, 2, 3, 4]);
        assert_eq!(fair, Fairness::default());
        let parts =
            ["no Jain's index of any sampled flows: two were active together for 18.2", " two samples 1.000 s apart"];
        assert!(notes.len() == 1 && parts.iter().all(|part| notes[0].contains(part)), "{notes:?}");
        // The two inter flows overlap for that time, but not with the intra flows, which end after 3.5 ms.
        let (fair, notes) = summarise(true, Span::from_ms(5), &[1, 2, 3, 4]);
        assert!(fair.jain_mean.is_some() && fair.jain_final.is_none(), "{fair:?}");
        let parts = ["no Jain's index of all sampled flows: all were active together for 3.332 ms", "5.000 ms"];
        assert!(notes.len() == 1 && parts.iter().all(|part| notes[0].contains(part)), "{notes:?}");
        // The round trip was not a choice, and shorter flows are expected.
        assert_eq!(summarise(false, Span::from_ms(5), &[1, 2, 3, 4]).1, [""; 0]);
    }

    #[test]
    fn the_threshold_is_exact() {
        // 19 equal shares and an empty one: exactly 0.95.
        let mut shares = vec![7; 19];
        shares.push(0);
        assert!(point(0, &shares).fair);
        shares.push(0);
        assert!(!point(0, &shares).fair);
        assert_eq!(point(0, &[0, 0]).index, None);
        assert_eq!(point(0, &[5]).index, None);
    }
}
