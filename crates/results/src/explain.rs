//! Why the slowest flows of a run are slow: what was counted of them, beside the same of typical flows of their size.
//!
//! The slowest are those with the greatest slowdowns, a share of a class, at least one. A flow's typical flows are the middle
//! tenth by slowdown (at least one) of those flows of its class that are at most twice and at least half its size. What
//! differs is not thereby the cause: that takes a run in which it is switched off.

use units::{Span, Time};

use crate::Class;
use crate::store::RunResults;
use crate::tables::FlowRow;

/// A quantile of fewer flows than this is moved by one of them.
pub const FEW: usize = 100;

/// The slowest flows of a class.
#[derive(Clone, PartialEq, Debug)]
pub struct Explained {
    /// The class.
    pub class: Class,
    /// Its flows that ended.
    pub flows: usize,
    /// Its flows that started and did not end. They have no slowdown, and so are not among the slowest.
    pub unfinished: usize,
    /// The slowest, the slowest first.
    pub slowest: Vec<Slow>,
    /// What was counted: means over the slowest, and over their typical flows.
    pub traits: Vec<Trait>,
}

/// A flow among the slowest.
#[derive(Clone, PartialEq, Debug)]
pub struct Slow {
    /// The flow.
    pub row: FlowRow,
    /// Its completion time over the ideal one.
    pub slowdown: f64,
}

/// What was counted of flows.
#[derive(Clone, PartialEq, Debug)]
pub struct Trait {
    /// What.
    pub what: What,
    /// The mean over the slowest flows.
    pub slowest: f64,
    /// The mean over their typical flows; none where no slow flow has one.
    pub typical: Option<f64>,
}

impl Trait {
    /// Whether the slowest have at least twice as much of it, or some where typical flows have none.
    pub fn stands_out(&self) -> bool {
        self.typical.is_some_and(|typical| self.slowest > 0.0 && self.slowest >= 2.0 * typical)
    }
}

/// What is counted of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// Completion time over the ideal one.
    Slowdown,
    /// Payload in bytes.
    Size,
    /// Completion time in base round trips.
    RoundTrips,
    /// Of the acknowledged payload, the share that was marked.
    Marked,
    /// Of the packets sent, the share that was sent again.
    Resent,
    /// Retransmission timeouts.
    Timeouts,
    /// Times that the receiver asked for packets again.
    Nacks,
    /// Notifications of congestion.
    Notifications,
    /// Times that the law grew.
    Increases,
    /// Times that the law was cut on congestion.
    Cuts,
    /// Times that the law was cut on a loss or timeout.
    LossCuts,
    /// Times that an emergency rule of the law struck.
    Strikes,
    /// Of the completion time, the share that it was held at the edge.
    Held,
    /// Flows from the same host at the same time, of a class, on average over its time, itself not counted.
    FromHost(Class),
    /// Flows to the same host at the same time, likewise.
    ToHost(Class),
}

impl What {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 17] = [
        Self::Slowdown,
        Self::Size,
        Self::RoundTrips,
        Self::Marked,
        Self::Resent,
        Self::Timeouts,
        Self::Nacks,
        Self::Notifications,
        Self::Increases,
        Self::Cuts,
        Self::LossCuts,
        Self::Strikes,
        Self::Held,
        Self::FromHost(Class::Intra),
        Self::FromHost(Class::Inter),
        Self::ToHost(Class::Intra),
        Self::ToHost(Class::Inter),
    ];

    /// Its name in JSON, with its unit where that is not a number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slowdown => "slowdown",
            Self::Size => "size_bytes",
            Self::RoundTrips => "base_round_trips",
            Self::Marked => "marked_share",
            Self::Resent => "resent_share",
            Self::Timeouts => "timeouts",
            Self::Nacks => "nacks",
            Self::Notifications => "cnps",
            Self::Increases => "increases",
            Self::Cuts => "cuts",
            Self::LossCuts => "loss_cuts",
            Self::Strikes => "emergencies",
            Self::Held => "held_share",
            Self::FromHost(Class::Intra) => "from_host_intra",
            Self::FromHost(Class::Inter) => "from_host_inter",
            Self::ToHost(Class::Intra) => "to_host_intra",
            Self::ToHost(Class::Inter) => "to_host_inter",
        }
    }
}

/// The slowest flows of each class that has any, `share` of its flows: over 0, at most 1.
pub fn explain(run: &RunResults, share: f64) -> Vec<Explained> {
    let crowds = Crowds::new(run);
    let of_class = |class: Class| {
        let started = || run.flows.rows.iter().filter(move |row| row.class == class && row.started.is_set());
        let mut flows: Vec<Slow> =
            started().filter_map(|row| Some(Slow { row: *row, slowdown: row.slowdown()? })).collect();
        flows.sort_by(|a, b| b.slowdown.total_cmp(&a.slowdown).then(a.row.flow.cmp(&b.row.flow)));
        if flows.is_empty() {
            return None;
        }
        let count = ((flows.len() as f64 * share).round() as usize).clamp(1, flows.len());
        let slowest = &flows[..count];
        let typical: Vec<Vec<&Slow>> = slowest.iter().map(|slow| typical(&flows, slow)).collect();
        let one = |what: What| {
            let of = |flow: &Slow| crowds.value(what, flow);
            let of_peers = |peers: &Vec<&Slow>| mean(peers.iter().map(|peer| of(peer)));
            let slow = mean(slowest.iter().map(of)).unwrap_or_default();
            Trait { what, slowest: slow, typical: mean(typical.iter().filter_map(of_peers)) }
        };
        Some(Explained {
            class,
            flows: flows.len(),
            unfinished: started().count() - flows.len(),
            slowest: slowest.to_vec(),
            traits: What::ALL.map(one).to_vec(),
        })
    };
    [Class::Intra, Class::Inter].into_iter().filter_map(of_class).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The middle tenth, by slowdown, of the flows about as large as `slow`, itself left out. `flows` are in order of slowdown.
fn typical<'a>(flows: &'a [Slow], slow: &Slow) -> Vec<&'a Slow> {
    let size = slow.row.size.get();
    let is_peer = |other: &&Slow| {
        let other_size = other.row.size.get();
        other.row.flow != slow.row.flow && other_size <= size.saturating_mul(2) && other_size >= size.div_ceil(2)
    };
    let peers: Vec<&Slow> = flows.iter().filter(is_peer).collect();
    let count = (peers.len() / 10).max(1).min(peers.len());
    let first = (peers.len() - count) / 2;
    peers[first..first + count].to_vec()
}

/// When flows of a host began and ended: for how many were there at a time.
#[derive(Clone, Default, Debug)]
struct Crowd {
    /// Beginnings and ends in order, in picoseconds, each with the sum of all up to it.
    starts: Vec<(u64, u128)>,
    ends: Vec<(u64, u128)>,
}

impl Crowd {
    fn new(mut starts: Vec<u64>, mut ends: Vec<u64>) -> Self {
        let summed = |times: &mut Vec<u64>| {
            times.sort_unstable();
            let mut sum = 0;
            let with_sum = |&time: &u64| {
                sum += u128::from(time);
                (time, sum)
            };
            times.iter().map(with_sum).collect()
        };
        Self { starts: summed(&mut starts), ends: summed(&mut ends) }
    }

    /// The number of flows there, integrated from the beginning of the run until `time`, in flows times picoseconds.
    fn until(&self, time: u64) -> u128 {
        let passed = |times: &[(u64, u128)]| {
            let count = times.partition_point(|&(other, _)| other < time);
            let sum = count.checked_sub(1).map_or(0, |last| times[last].1);
            count as u128 * u128::from(time) - sum
        };
        passed(&self.starts) - passed(&self.ends)
    }

    /// Flows there on average from `begin` to `end`, which lies later.
    fn mean(&self, begin: u64, end: u64) -> f64 {
        (self.until(end) - self.until(begin)) as f64 / (end - begin) as f64
    }
}

/// Who was active at each host, by class: as a sender and as a receiver.
struct Crowds {
    sends: Vec<[Crowd; 2]>,
    receives: Vec<[Crowd; 2]>,
}

impl Crowds {
    fn new(run: &RunResults) -> Self {
        let rows = || run.flows.rows.iter().filter(|row| row.started.is_set());
        let hosts = rows().map(|row| row.src.max(row.dst) as usize + 1).max().unwrap_or(0);
        let last = rows().map(|row| if row.completed.is_set() { row.completed } else { row.started }).max();
        let end = |row: &FlowRow| if row.completed.is_set() { row.completed } else { last.unwrap_or(Time::ZERO) };
        let of = |host: &dyn Fn(&FlowRow) -> u32| {
            let mut times = vec![[const { (Vec::new(), Vec::new()) }; 2]; hosts];
            for row in rows() {
                let (starts, ends) = &mut times[host(row) as usize][row.class as usize];
                starts.push(row.started.ps());
                ends.push(end(row).ps());
            }
            times.into_iter().map(|classes| classes.map(|(starts, ends)| Crowd::new(starts, ends))).collect()
        };
        Self { sends: of(&|row| row.src), receives: of(&|row| row.dst) }
    }

    fn value(&self, what: What, flow: &Slow) -> f64 {
        let row = &flow.row;
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        let fct = row.fct().map_or(0, Span::unsigned_ps);
        let beside = |crowds: &[[Crowd; 2]], host: u32, class: Class| {
            let (begin, end) = (row.started.ps(), row.completed.ps());
            let itself = f64::from(u8::from(class == row.class));
            if end > begin { crowds[host as usize][class as usize].mean(begin, end) - itself } else { 0.0 }
        };
        match what {
            What::Slowdown => flow.slowdown,
            What::Size => row.size.get() as f64,
            What::RoundTrips => share(fct, row.base_rtt.unsigned_ps()),
            What::Marked => share(row.stats.marked.get(), row.delivered.get()),
            What::Resent => share(row.stats.retransmits, row.stats.packets_sent),
            What::Timeouts => row.stats.timeouts.into(),
            What::Nacks => row.stats.nacks.into(),
            What::Notifications => row.stats.cnps as f64,
            What::Increases => row.acted.increases as f64,
            What::Cuts => row.acted.cuts as f64,
            What::LossCuts => row.acted.loss_cuts as f64,
            What::Strikes => row.acted.emergencies as f64,
            What::Held => share(row.stats.held.unsigned_ps(), fct),
            What::FromHost(class) => beside(&self.sends, row.src, class),
            What::ToHost(class) => beside(&self.receives, row.dst, class),
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of few whole numbers are exact")]
mod tests {
    use units::Bytes;

    use super::*;
    use crate::testbed;

    /// A flow of 1,000 B from host 0 to `dst`, of which 1 us is the ideal time.
    fn flow(number: u32, dst: u32, start_us: u64, takes_us: u64) -> FlowRow {
        FlowRow {
            dst,
            src: 0,
            class: Class::Intra,
            size: Bytes::new(1_000),
            started: Time::from_us(start_us),
            completed: Time::from_us(start_us + takes_us),
            ideal: Span::from_us(1),
            ..testbed::flow_row(number)
        }
    }

    fn run_of(rows: Vec<FlowRow>) -> RunResults {
        let mut run = testbed::results();
        run.flows.rows = rows;
        run
    }

    #[test]
    fn crowds_are_means_over_time() {
        // One from 0 to 10, one from 5 to 15.
        let crowd = Crowd::new(vec![5, 0], vec![10, 15]);
        assert_eq!([crowd.mean(0, 10), crowd.mean(5, 15), crowd.mean(5, 10), crowd.mean(20, 30)], [1.5, 1.5, 2.0, 0.0]);
    }

    #[test]
    fn the_slowest_stand_beside_flows_of_their_size() {
        // Nineteen like one another, each alone; one that takes ten times as long, beside them all, and a large one.
        let mut rows: Vec<FlowRow> =
            (0..19).map(|flow_number| flow(flow_number, 1, 10 * u64::from(flow_number), 2)).collect();
        let mut slow = flow(19, 1, 0, 20);
        slow.stats.timeouts = 3;
        rows.push(slow);
        let mut large = flow(20, 2, 0, 3);
        large.size = Bytes::new(1 << 20);
        large.stats.timeouts = 50;
        rows.push(large);
        let mut lost = flow(21, 1, 500, 1);
        lost.completed = Time::NEVER;
        rows.push(lost);
        let [of_class] = &explain(&run_of(rows), 0.01)[..] else { panic!("one class") };
        assert_eq!((of_class.flows, of_class.unfinished), (21, 1));
        assert_eq!(of_class.slowest.iter().map(|slow| slow.row.flow).collect::<Vec<_>>(), [19]);
        let of = |what: What| of_class.traits.iter().find(|it| it.what == what).unwrap();
        let both = |what: What| (of(what).slowest, of(what).typical.unwrap());
        assert_eq!(both(What::Slowdown), (20.0, 2.0));
        // The large flow is no peer.
        assert_eq!(both(What::Timeouts), (3.0, 0.0));
        assert!(of(What::Timeouts).stands_out() && !of(What::Resent).stands_out());
        // In its 20 us two others went to its host for 2 us each; a typical one is alone or beside the slow one.
        assert!((of(What::ToHost(Class::Intra)).slowest - 0.2).abs() < 1e-12);
        assert_eq!(of(What::ToHost(Class::Inter)).slowest, 0.0);
    }

    #[test]
    fn a_class_of_one_flow_has_nothing_to_stand_beside() {
        let [of_class] = &explain(&run_of(vec![flow(0, 1, 0, 5)]), 0.01)[..] else { panic!("one class") };
        assert!(of_class.traits.iter().all(|it| it.typical.is_none() && !it.stands_out()));
        assert!(explain(&run_of(Vec::new()), 0.01).is_empty());
    }
}
