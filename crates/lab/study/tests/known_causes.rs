//! Flows that are slow by construction: checks that the attribution names the planted cause first.
//!
//! Scenarios are drawn from a seed: ten each of one loss on an idle path, one starved flow, one failed link, and a host
//! with 40 flows. A drawn scenario counts only if the planted cause is effective, which is decided without the attribution:
//! without that cause, the same scenario must lose at least half of the excess, and that part must be at least a tenth of
//! the ideal time.

mod common;

use common::Scratch;
use experiment::{DropCause, FlowId};
use results::RunResults;
use results::attribution::{Attribution, DelayCause, LostAt, Root};
use results::tables::FlowRow;
use scenario::{Overrides, parse};
use study::{
    Error, NullRecorder, Others, ProgressDisplay, Replay, Silent, Simulator, Study, SweepObserver, unrepeatable,
};
use units::mix64;

/// The draws' seed.
const SEED: u64 = 20_261_129;
/// Scenarios of a kind.
const OF_A_KIND: usize = 10;
/// Maximum number of draws to find enough valid scenarios.
const DRAWS: u64 = 400;

const LAWS: [&str; 6] = ["dctcp", "gemini", "unocc", "cubic", "newreno", "bbr"];
/// Laws that keep a queue short where it marks.
const ECN_LAWS: [&str; 3] = ["dctcp", "gemini", "unocc"];
/// Laws that send data only for credits.
const CREDIT_LAWS: [&str; 2] = ["expresspass", "flashpass"];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Planted {
    Loss,
    Starved,
    FailedLink,
    BusyHost,
    /// A failed link, under a law with credits.
    DeadCredits,
}

/// A scenario with a planted cause.
struct PlantedCause {
    /// With the cause, and without.
    texts: [String; 2],
    /// The flow that is slow.
    flow: u32,
}

/// Numbers drawn one after the other.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    /// Draws a number from `low` to `high`, both included.
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// Draws a number from `low` to `high`, with equal probability for each doubling.
    fn scale(&mut self, low: u64, high: u64) -> u64 {
        let unit = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        (low as f64 * (high as f64 / low as f64).powf(unit)) as u64
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.next() % all.len() as u64) as usize]
    }
}

fn head(seed: u64, law: &str) -> String {
    format!("schema = 1\nname = \"known\"\nseed = {seed}\nstop = \"2s\"\nschemes.s = {{ law = \"{law}\" }}\n")
}

impl Planted {
    fn draw(self, number: u64) -> PlantedCause {
        let mut draw = Draw(mix64(mix64(SEED) ^ (self as u64) << 32 ^ number));
        let seed = draw.between(1, 1_000_000);
        let rate = draw.one_of(&[10, 25, 40, 100]);
        match self {
            // One flow alone; the link between the switches loses one packet in as many as the flow has, about.
            Self::Loss => {
                let delay = draw.scale(2, 500);
                let size = draw.scale(20_000, 20_000_000);
                let head = head(seed, draw.one_of(&LAWS));
                let text = |loss: f64| {
                    format!(
                        "{head}port = {{ buffer = \"4MB\", other = {{ loss_probability = {loss:.9} }} }}\n\
                         topology = {{ kind = \"dumbbell\", left = 1, right = 1, rate = \"{rate}Gbps\", delay = \"{delay}us\" }}\n\
                         traffic = [{{ kind = \"long\", flows = [[0, 1]], size = \"{size}B\" }}]\n"
                    )
                };
                let packets = size.div_ceil(4096) as f64;
                PlantedCause { texts: [text(0.7 / packets), text(0.0)], flow: 0 }
            }
            // Flows with short round trips fill a link that marks early; one with a long round trip comes later.
            Self::Starved => {
                let others = draw.between(3, 8);
                let rtt_us = draw.scale(200, 500);
                let rate = draw.one_of(&[10, 25, 40]);
                let law = draw.one_of(&ECN_LAWS);
                // The BDP of the long round trip. Each flow sends at least four times that; the queue has room for twice
                // that and marks from a twentieth of it.
                let bdp = rate * 1_000 / 8 * rtt_us;
                let (buffer, size) = (2 * bdp, draw.between(4, 8) * bdp);
                let start = draw.between(3, 8);
                let head = head(seed, law);
                let delays = std::iter::once(rtt_us / 2).chain((0..others).map(|_| 1));
                let delays: Vec<String> = delays.map(|us| format!("\"{us}us\"")).collect();
                let delays = [delays.join(", "), vec!["\"1us\""; others as usize + 1].join(", ")].join(", ");
                let text = |with: bool| {
                    let pairs: Vec<String> =
                        (1..=others).map(|host| format!("[{host}, {}]", host + others + 1)).collect();
                    let others_text = if with {
                        format!("[[traffic]]\nkind = \"long\"\nname = \"others\"\nflows = [{}]\n", pairs.join(", "))
                    } else {
                        String::new()
                    };
                    format!(
                        "{head}port = {{ buffer = \"{buffer}B\", ecn = {{ step = \"2.5%\" }} }}\n\
                         topology = {{ kind = \"dumbbell\", left = {n}, right = {n}, rate = \"{rate}Gbps\", delay = \"1us\", \
                         host_rate = \"100Gbps\", host_delay = [{delays}] }}\n\
                         [[traffic]]\nkind = \"long\"\nname = \"victim\"\nflows = [[0, {n}]]\nsize = \"{size}B\"\nstart = \"{start}ms\"\n\
                         {others_text}",
                        n = others + 1,
                    )
                    .replace("stop = \"2s\"", "stop = \"100ms\"")
                };
                PlantedCause { texts: [text(true), text(false)], flow: 0 }
            }
            // One flow, and the only link of its path is down for a while in the middle of it.
            Self::FailedLink | Self::DeadCredits => {
                let delay = draw.scale(2, 500);
                let laws: &[&str] = if self == Self::DeadCredits { &CREDIT_LAWS } else { &LAWS };
                let head = head(seed, draw.one_of(laws));
                // At the line's rate the flow takes `ms`, and the link fails within that.
                let ms = draw.between(2, 8);
                let size = rate * 1_000_000 / 8 * ms;
                let at_us = draw.between(100, ms * 1_000 - 500);
                let down_us = draw.scale(5_000, 50_000);
                let text = |failure: &str| {
                    format!(
                        "{head}port = {{ buffer = \"4MB\" }}\n\
                         topology = {{ kind = \"dumbbell\", left = 1, right = 1, rate = \"{rate}Gbps\", delay = \"{delay}us\" }}\n\
                         traffic = [{{ kind = \"long\", flows = [[0, 1]], size = \"{size}B\" }}]\n{failure}"
                    )
                };
                let until = at_us + down_us;
                let failure =
                    format!("[[failure]]\nports = [\"class:other\"]\nat = \"{at_us}us\"\nuntil = \"{until}us\"\n");
                PlantedCause { texts: [text(&failure), text("")], flow: 0 }
            }
            // 40 flows of one host at once, to 40 others, through a network that is faster than its NIC.
            Self::BusyHost => {
                let delay = draw.scale(1, 10);
                let head = head(seed, draw.one_of(&LAWS));
                let sizes: Vec<u64> = (0..40).map(|_| draw.scale(50_000, 2_000_000)).collect();
                let flow = draw.between(0, 39);
                let text = |only: Option<u64>| {
                    let flows = (0..40).filter(|flow| only.is_none_or(|only| only == *flow));
                    let flows: Vec<String> = flows
                        .map(|flow| {
                            format!(
                                "{{ start = \"0s\", src = 0, dst = {}, size = \"{}B\" }}",
                                flow + 1,
                                sizes[flow as usize]
                            )
                        })
                        .collect();
                    format!(
                        "{head}port = {{ buffer = \"4MB\" }}\n\
                         topology = {{ kind = \"dumbbell\", left = 1, right = 40, rate = \"400Gbps\", delay = \"{delay}us\", \
                         host_rate = \"{rate}Gbps\" }}\n\
                         traffic = [{{ kind = \"list\", flows = [{}] }}]\n",
                        flows.join(", ")
                    )
                };
                PlantedCause { texts: [text(None), text(Some(flow))], flow: flow as u32 }
            }
        }
    }

    /// Returns true if a root names the planted cause.
    fn is(self, root: &Root) -> bool {
        let lost_by = |by: DropCause| matches!(root, Root::Loss { lost: Some(LostAt { cause, .. }) } if *cause == by);
        match self {
            Self::Loss => lost_by(DropCause::Chance),
            Self::Starved => matches!(root, Root::Cause(DelayCause::Starved { .. })),
            Self::FailedLink | Self::DeadCredits => lost_by(DropCause::Down),
            Self::BusyHost => matches!(root, Root::Cause(DelayCause::HostQueue { .. })),
        }
    }
}

fn run(scratch: &Scratch, text: &str) -> RunResults {
    let scenario = parse(text, "known.toml", &Overrides::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let study = Study {
        scenario: &scenario,
        backend: &Simulator { checked: false },
        watch: &Silent,
        notes: &NullRecorder,
        schemes: &[],
        shard: None,
        only: &[],
        from: &[],
        runs_missing: true,
        threads: Some(1),
        out: scratch.0.join("r"),
        replay: vec!["narrows run known.toml".into()],
        claims: &[],
        tables: &[],
        force: true,
        others: Others::Replace,
    };
    study.run().unwrap_or_else(|error| panic!("{error}\n{text}")).runs.remove(0)
}

fn excess(row: &FlowRow) -> Option<f64> {
    Some((row.fct()? - row.ideal).ps() as f64)
}

/// Returns the run and its explanation, if the scenario is as intended.
fn explained(planted: Planted, number: u64, scratch: &Scratch) -> Option<Attribution> {
    let PlantedCause { texts: [with, without], flow } = planted.draw(number);
    let ran = run(scratch, &with);
    let row = ran.flows.row(flow)?;
    if planted == Planted::Loss
        && (ran.summary.network.drops, ran.summary.network.drops_by_kind.get("data")) != (1, Some(&1))
    {
        return None;
    }
    // Starved: nothing is lost, and it gets less than half of an equal share of the link.
    if planted == Planted::Starved {
        let sharing = ran.flows.rows.len() as u32;
        if ran.summary.network.drops > 0 || row.fct()? < row.ideal.times(2 * sharing) {
            return None;
        }
    }
    let alone = run(scratch, &without);
    let other = alone.flows.rows.iter().find(|other| other.size == row.size && other.src == row.src)?;
    // A slow flow, and slow for that.
    if excess(row)? < 2.0 * excess(other)? || excess(row)? < 0.1 * row.ideal.ps() as f64 {
        return None;
    }
    let replay = Replay::new(&ran, &scratch.0).unwrap_or_else(|error| panic!("{error}\n{with}"));
    let board = Silent.board(&[], 0);
    let mut replayed =
        replay.run(&[FlowId(flow)], 1, &Silent, &*board).unwrap_or_else(|error| panic!("{error}\n{with}"));
    let found = replayed.flows.remove(0);
    let sum: i64 = found.shares.iter().map(|share| share.time.ps()).sum();
    assert_eq!(sum, found.excess().ps(), "{planted:?} {number}: causes sum up to the excess");
    let path = &replayed.paths[0].steps;
    assert_eq!((path[0].start, path[path.len() - 1].end), (row.started, row.completed), "{planted:?} {number}");
    assert!(path.windows(2).all(|two| two[0].end == two[1].start), "{planted:?} {number}: a gap");
    Some(found)
}

/// Runs ten scenarios of each kind. Returns in how many the planted cause is named first.
fn named_first(all: &[Planted], scratch: &Scratch) -> usize {
    let mut right_of_all = 0;
    for &planted in all {
        let drawn = (0..DRAWS).filter_map(|number| Some((number, explained(planted, number, scratch)?)));
        let (mut right, mut seen) = (0, 0);
        for (number, found) in drawn.take(OF_A_KIND) {
            seen += 1;
            let is_right = found.ranked().first().is_some_and(|ranked| planted.is(&ranked.root));
            right += usize::from(is_right);
            let percent =
                |share: &results::attribution::Share| 100.0 * share.time.ps() as f64 / found.excess().ps() as f64;
            let shares: Vec<String> =
                found.shares.iter().map(|share| format!("{:?} {:.1} %", share.cause, percent(share))).collect();
            println!("{planted:?} {number}: {is_right}, {} of {}: {}", found.took, found.ideal, shares.join("; "));
        }
        println!("{planted:?}: {right} of {seen}");
        assert_eq!(seen, OF_A_KIND, "{planted:?}: too few draws are what they should be");
        right_of_all += right;
    }
    right_of_all
}

#[test]
fn planted_causes_rank_first() {
    let scratch = Scratch::new("known-causes");
    let right = named_first(&[Planted::Loss, Planted::Starved, Planted::FailedLink, Planted::BusyHost], &scratch);
    assert!(right >= 36, "{right} of 40");
}

/// While a link is down, data waits for credits that were lost on it. It is the only link of the path, so no other cause fits.
#[test]
fn a_failed_link_is_named_under_laws_with_credits() {
    let right = named_first(&[Planted::DeadCredits], &Scratch::new("dead-credits"));
    assert_eq!(right, OF_A_KIND);
}

/// A watch that always interrupts.
struct Impatient;

impl SweepObserver for Impatient {
    fn tell(&self, _: &str) {}

    fn interrupted(&self) -> bool {
        true
    }

    fn board<'a>(&'a self, names: &[String], kept: usize) -> Box<dyn ProgressDisplay + 'a> {
        Silent.board(names, kept)
    }
}

/// Results of another build are detected, an interruption ends a replay, and measurements that cannot be repeated are
/// not replayed.
#[test]
fn replay_verifies_stored_results() {
    let scratch = Scratch::new("replay");
    let PlantedCause { texts: [text, _], flow } = Planted::BusyHost.draw(0);
    let mut ran = run(&scratch, &text);
    let replayed = |ran: &RunResults, watch: &dyn SweepObserver| {
        let board = Silent.board(&[], 0);
        Replay::new(ran, &scratch.0)?.run(&[FlowId(flow)], 1, watch, &*board).map(|it| it.flows[0].shares.len())
    };
    assert!(replayed(&ran, &Silent).unwrap() > 0);
    assert!(matches!(replayed(&ran, &Impatient), Err(Error::Interrupted)));
    let place = ran.flows.rows.iter().position(|row| row.flow == flow).unwrap();
    ran.flows.rows[place].stats.retransmits += 1;
    let Err(Error::InvalidRequest { what, help }) = replayed(&ran, &Silent) else {
        panic!("other counters are found out")
    };
    assert!(what.contains(&format!("flow {flow} of `s`")) && help.contains("--force"), "{what}; {help}");
    ran.manifest.backend = results::BackendKind::Emulator;
    assert!(unrepeatable(&ran).is_some() && matches!(replayed(&ran, &Silent), Err(Error::InvalidRequest { .. })));
}
