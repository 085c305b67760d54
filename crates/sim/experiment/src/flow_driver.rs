//! Flows over any transport: a [`FlowTransport`] moves their bytes, and [`drive`] starts, ends and samples them. All are
//! connected before time zero, so a completion time has no handshake in it.

use flow::FlowStats;
use laws::LawActions;
use units::{Bytes, Span, Time};

use crate::outcome::{EngineStats, FlowOutcome, LinkOutcome, Outcome, SwitchOutcome};
use crate::predictions::Predictions;
use crate::series::{FlowSample, PortSample};
use crate::setup::Setup;
use crate::start::{Dependency, FlowId};
use crate::start_queue::StartQueue;

/// Maximum number of samples kept: about a gigabyte.
pub const MAX_SAMPLES: usize = 4_000_000;

/// Progress of the flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TrafficProgress {
    /// The run's time.
    pub now: Time,
    /// Flows that have ended.
    pub completed: usize,
}

/// Event of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlowEventKind {
    /// Its receiver has read every byte.
    Received,
    /// The sender knows that the receiver has all bytes.
    Delivered,
    /// Its connection broke, with the reason. No further events follow.
    Broken(String),
}

/// An event of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowEvent {
    /// Time of the run.
    pub time: Time,
    /// The flow's number.
    pub flow: usize,
    /// The event.
    pub event: FlowEventKind,
}

/// State of a flow at its sender.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SenderState {
    /// Bytes of frames sent since the flow began, retransmissions included, without packet headers and AEAD tags.
    pub sent: Bytes,
    /// Payload acknowledged.
    pub delivered: Bytes,
    /// The law's window; with several laws, their sum.
    pub window: Bytes,
    /// Smoothed RTT; with several open paths, their mean.
    pub rtt: Span,
    /// Counts of sent and lost packets.
    pub stats: FlowStats,
    /// Counts of its law's actions.
    pub actions: LawActions,
    /// The law's own state by name; units are the last word.
    pub trace: Vec<(&'static str, i64)>,
}

/// Transport that moves the bytes of a setup's flows, which it has connected. Flows are numbered as in the setup.
pub trait FlowTransport {
    /// Returns the time of the run.
    fn now(&self) -> Time;

    /// Starts a flow, which sends all of its bytes.
    fn start(&mut self, flow: usize);

    /// Moves bytes until `until`. Returns earlier if an event has occurred, and may return earlier for no reason. Events
    /// are appended to `events`.
    fn run_until(&mut self, until: Time, events: &mut Vec<FlowEvent>);

    /// Returns the state of a flow. Also of one that has not started, or has ended.
    fn sender_state(&mut self, flow: usize) -> SenderState;

    /// Ends everything, including work in progress.
    fn close(&mut self);
}

/// Intervals of [`drive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverConfig {
    /// Minimum time between samples.
    pub min_sample_interval: Span,
    /// Time of the run between progress reports. Zero for one whenever the transport returns.
    pub progress_interval: Span,
}

/// Outcome of all flows.
#[derive(Clone, PartialEq, Debug)]
pub struct DrivenFlows {
    /// By flow.
    pub flows: Vec<FlowOutcome>,
    /// By flow: the reason why its connection broke, if it did.
    pub failures: Vec<Option<String>>,
    /// By time, then by flow.
    pub samples: Vec<FlowSample>,
    /// True if samples are missing because the limit was reached.
    pub truncated: bool,
    /// The last completion, or the stop.
    pub ended: Time,
    /// True if the caller ended it before its time.
    pub interrupted: bool,
}

impl DrivenFlows {
    /// Returns the outcome of a run with these flows and a network.
    pub fn into_outcome(
        self,
        links: Vec<LinkOutcome>,
        port_samples: Vec<PortSample>,
        switches: Vec<SwitchOutcome>,
    ) -> Outcome {
        let outcome = outcome_of_packets(self.flows, self.samples, self.ended, links);
        Outcome { interrupted: self.interrupted, port_samples, switches, ..outcome }
    }

    /// Returns notes to read before the numbers are used: broken connections, missing samples.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = broken_connections(&self.failures);
        if self.truncated {
            notes.push(TRUNCATED.to_owned());
        }
        notes
    }
}

/// Returns the outcome of a run with real protocol packets. Its port samples and switches are empty and `interrupted`
/// is false: the caller fills them in.
pub fn outcome_of_packets(
    flows: Vec<FlowOutcome>,
    flow_samples: Vec<FlowSample>,
    ended: Time,
    links: Vec<LinkOutcome>,
) -> Outcome {
    let packet_hops = links.iter().map(|link| link.packets).sum();
    let data_packets = flows.iter().map(|flow| flow.stats.packets_sent).sum();
    let engine = EngineStats {
        events: packet_hops,
        packet_hops,
        data_packets,
        partitions: 1,
        threads: 1,
        ..EngineStats::default()
    };
    Outcome {
        flows,
        links,
        port_samples: Vec::new(),
        flow_samples,
        predictions: Predictions::default(),
        ended,
        until: Time::NEVER,
        lost_of: Vec::new(),
        copies_of: Vec::new(),
        interrupted: false,
        engine,
        switches: Vec::new(),
        deadlock: Vec::new(),
        switch_samples: Vec::new(),
        pauses: Vec::new(),
    }
}

/// Note on a run with more samples than are kept.
pub const TRUNCATED: &str = "flow samples are missing: the limit of samples was reached; lengthen [monitor] interval";

/// Returns a line for each flow with a broken connection, with the reason.
pub fn broken_connections<'a>(failures: impl IntoIterator<Item = &'a Option<String>>) -> Vec<String> {
    let describe = |(flow, failure): (usize, &Option<String>)| {
        Some(format!("flow {flow}: its connection broke: {}", failure.as_ref()?))
    };
    failures.into_iter().enumerate().filter_map(describe).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FlowPhase {
    Waiting,
    Sending,
    Ended,
}

struct FlowDriver<'a> {
    setup: &'a Setup,
    transport: &'a mut dyn FlowTransport,
    config: DriverConfig,
    start_queue: StartQueue<'a>,
    phases: Vec<FlowPhase>,
    ended: usize,
    end: DrivenFlows,
}

/// Runs all flows until they have ended, the stop, or `on_progress` returns false.
pub fn drive(
    setup: &Setup,
    transport: &mut dyn FlowTransport,
    config: DriverConfig,
    on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
) -> DrivenFlows {
    let never_started = FlowOutcome::never_started();
    let count = setup.flows.len();
    let end = DrivenFlows {
        flows: vec![never_started; count],
        failures: vec![None; count],
        samples: Vec::new(),
        truncated: false,
        ended: setup.stop,
        interrupted: false,
    };
    let (start_queue, phases) = (StartQueue::new(setup), vec![FlowPhase::Waiting; count]);
    FlowDriver { setup, transport, config, start_queue, phases, ended: 0, end }.run(on_progress)
}

impl FlowDriver<'_> {
    fn run(mut self, on_progress: &mut dyn FnMut(TrafficProgress) -> bool) -> DrivenFlows {
        let stop = self.setup.stop;
        let series = &self.setup.series;
        let is_sampled = !series.interval.is_zero() && !series.flows.is_empty();
        let interval = series.interval.max(self.config.min_sample_interval);
        let progress_interval = self.config.progress_interval;
        let mut sample_at = if is_sampled { Time::ZERO } else { Time::NEVER };
        let (mut report_at, mut events) = (Time::ZERO + progress_interval, Vec::new());
        loop {
            let now = self.transport.now();
            if now >= stop || self.ended == self.phases.len() {
                break;
            }
            if now >= report_at || progress_interval.is_zero() {
                report_at = now + progress_interval;
                if !on_progress(TrafficProgress { now, completed: self.ended }) {
                    self.end.interrupted = true;
                    break;
                }
            }
            while let Some(flow) = self.start_queue.pop_due(now) {
                self.start(flow, now);
            }
            if now >= sample_at {
                self.sample(now);
                // Times that were missed are left out.
                while sample_at <= now {
                    sample_at += interval;
                }
            }
            let report = if progress_interval.is_zero() { Time::NEVER } else { report_at };
            let until = self.start_queue.next().min(sample_at).min(report).min(stop);
            self.transport.run_until(until, &mut events);
            events.drain(..).for_each(|event| self.on_event(event));
        }
        self.finish()
    }

    fn start(&mut self, flow: usize, now: Time) {
        if self.phases[flow] == FlowPhase::Waiting {
            self.phases[flow] = FlowPhase::Sending;
            self.end.flows[flow].started = now;
            self.transport.start(flow);
            self.start_queue.dependency_met(Dependency::Begun(FlowId(flow as u32)), now);
        }
    }

    fn sample(&mut self, time: Time) {
        for &id in &self.setup.series.flows {
            let flow = id.0 as usize;
            if self.phases.get(flow) != Some(&FlowPhase::Sending) {
                continue;
            }
            if self.end.samples.len() >= MAX_SAMPLES {
                self.end.truncated = true;
                return;
            }
            let SenderState { sent, delivered, window, rtt, trace, .. } = self.transport.sender_state(flow);
            self.end.samples.push(FlowSample { time, flow: id, sent, delivered, window, rtt, trace });
        }
    }

    fn on_event(&mut self, FlowEvent { time, flow, event }: FlowEvent) {
        let id = FlowId(flow as u32);
        match event {
            FlowEventKind::Received => self.start_queue.dependency_met(Dependency::Received(id), time),
            FlowEventKind::Delivered if self.phases[flow] == FlowPhase::Sending => {
                self.end(flow);
                let completed = time.max(self.end.flows[flow].started);
                self.end.flows[flow].completed = completed;
                self.start_queue.dependency_met(Dependency::Complete(id), completed);
            }
            FlowEventKind::Broken(reason) if self.phases[flow] != FlowPhase::Ended => {
                self.end.failures[flow] = Some(reason);
                self.end(flow);
            }
            FlowEventKind::Delivered | FlowEventKind::Broken(_) => {}
        }
    }

    fn end(&mut self, flow: usize) {
        self.record_final_state(flow);
        self.phases[flow] = FlowPhase::Ended;
        self.ended += 1;
    }

    /// Takes the final report on a flow.
    fn record_final_state(&mut self, flow: usize) {
        let SenderState { delivered, stats, actions, .. } = self.transport.sender_state(flow);
        let end = &mut self.end.flows[flow];
        end.delivered = delivered.min(self.setup.flows[flow].size);
        (end.stats, end.actions) = (stats, actions);
    }

    fn finish(mut self) -> DrivenFlows {
        let ended_at = self.transport.now();
        for flow in 0..self.phases.len() {
            if self.phases[flow] != FlowPhase::Ended {
                self.record_final_state(flow);
            }
        }
        self.transport.close();
        let last = self.end.flows.iter().map(|flow| flow.completed).filter(|time| time.is_set()).max();
        self.end.ended = match (self.end.interrupted, self.ended < self.phases.len()) {
            (true, _) => ended_at,
            (false, true) => self.setup.stop,
            (false, false) => last.unwrap_or(self.setup.stop),
        };
        self.end
    }
}

#[cfg(test)]
mod tests {
    use fabric::{Builder, HostId, LinkClass, PortConfig, Routes};
    use units::Rate;

    use super::*;
    use crate::setup::{FlowSpec, HostConfig, SeriesConfig, TieBreak};
    use crate::start::{Dependencies, Start};

    const INTERVALS: DriverConfig =
        DriverConfig { min_sample_interval: Span::ZERO, progress_interval: Span::from_ms(50) };

    /// Two hosts, 3 ms apart.
    fn setup(flows: Vec<FlowSpec>, stop: Time) -> Setup {
        let mut builder = Builder::default();
        let switches = [builder.switch(0, "a"), builder.switch(1, "b")];
        let port = PortConfig::new(Rate::from_gbps(1), Span::from_ms(1));
        for (datacenter, switch) in switches.into_iter().enumerate() {
            let host = builder.host(datacenter as u16, format!("host{datacenter}"));
            builder.connect(host, switch, LinkClass::Host, port, port);
        }
        builder.connect(switches[0], switches[1], LinkClass::Inter, port, port);
        let network = builder.finish().unwrap();
        Setup {
            routes: Routes::new(&network).unwrap(),
            network,
            symmetric: false,
            flows,
            host: HostConfig::default(),
            series: SeriesConfig::default(),
            seed: 1,
            stop,
            intra_rtt: Span::ZERO,
            dependencies: Dependencies::default(),
            modules: Vec::new(),
            ties: TieBreak::default(),
        }
    }

    fn flow(src: u32, size: u64, start: Start) -> FlowSpec {
        let size = Bytes::new(size);
        let (src, dst) = (HostId(src), HostId(1 - src));
        FlowSpec { src, dst, size, start, kind: 0, class: 1, on_ramp: false, coded: false, kept: false }
    }

    /// Moves 100 kB a millisecond of each flow, in virtual time.
    #[derive(Default)]
    struct ConstantRateTransport {
        now: Time,
        /// By flow: the number of bytes, and the start if it has started.
        flows: Vec<(u64, Option<Time>)>,
        done: Vec<usize>,
        broken_flow: Option<usize>,
        closed: bool,
    }

    const PS_PER_BYTE: u64 = 10_000;

    impl ConstantRateTransport {
        fn of(setup: &Setup) -> Self {
            Self { flows: setup.flows.iter().map(|flow| (flow.size.get(), None)).collect(), ..Self::default() }
        }

        fn end_of(&self, flow: usize) -> Time {
            let (size, start) = self.flows[flow];
            start.map_or(Time::NEVER, |start| start + Span::from_unsigned_ps(size * PS_PER_BYTE))
        }
    }

    impl FlowTransport for ConstantRateTransport {
        fn now(&self) -> Time {
            self.now
        }

        fn start(&mut self, flow: usize) {
            self.flows[flow].1 = Some(self.now);
        }

        fn run_until(&mut self, until: Time, events: &mut Vec<FlowEvent>) {
            let open = (0..self.flows.len()).filter(|flow| !self.done.contains(flow));
            let Some(flow) = open.min_by_key(|&flow| self.end_of(flow)).filter(|&flow| self.end_of(flow) <= until)
            else {
                return self.now = until;
            };
            self.now = self.now.max(self.end_of(flow));
            self.done.push(flow);
            let flow_event = |event| FlowEvent { time: self.now, flow, event };
            if self.broken_flow == Some(flow) {
                events.push(flow_event(FlowEventKind::Broken("cut".to_owned())));
            } else {
                events.extend([FlowEventKind::Received, FlowEventKind::Delivered].map(flow_event));
            }
        }

        fn sender_state(&mut self, flow: usize) -> SenderState {
            let (size, start) = self.flows[flow];
            let sent = start.map_or(0, |start| self.now.saturating_since(start).unsigned_ps() / PS_PER_BYTE);
            SenderState { delivered: Bytes::new(sent.min(size)), ..SenderState::default() }
        }

        fn close(&mut self) {
            self.closed = true;
        }
    }

    fn driven(setup: &Setup, broken_flow: Option<usize>) -> DrivenFlows {
        let mut transport = ConstantRateTransport { broken_flow, ..ConstantRateTransport::of(setup) };
        let end = drive(setup, &mut transport, INTERVALS, &mut |_| true);
        assert!(transport.closed);
        end
    }

    fn three(dependencies: &mut Dependencies) -> Vec<FlowSpec> {
        vec![
            flow(0, 5_000_000, Start::At(Time::from_ms(30))),
            flow(1, 1, dependencies.start([Dependency::Complete(FlowId(0))], Span::ZERO)),
            flow(0, 700_000, Start::At(Time::ZERO)),
        ]
    }

    #[test]
    fn flows_start_are_sampled_and_end_on_time() {
        let mut dependencies = Dependencies::default();
        let flows = three(&mut dependencies);
        let mut setup = Setup { dependencies, ..setup(flows, Time::from_ms(5_000)) };
        (setup.series.interval, setup.series.flows) = (Span::from_ms(2), vec![FlowId(0)]);
        let end = driven(&setup, None);
        let times = |flow: usize| (end.flows[flow].started, end.flows[flow].completed);
        assert_eq!(times(0), (Time::from_ms(30), Time::from_ms(80)));
        // It starts one one-way delay, 3 ms of links and the transmission of a packet, after the other flow's end.
        assert_eq!(
            times(1).0,
            Time::from_ms(80) + setup.notice_delay(Dependency::Complete(FlowId(0)), &setup.flows[1])
        );
        assert!(times(1).0 >= Time::from_ms(83));
        assert_eq!(times(2), (Time::ZERO, Time::from_ms(7)));
        assert_eq!([0, 1, 2].map(|flow: usize| end.flows[flow].delivered.get()), [5_000_000, 1, 700_000]);
        assert_eq!(end.ended, times(1).1);
        let samples: Vec<(Time, u64)> = end.samples.iter().map(|it| (it.time, it.delivered.get())).collect();
        assert_eq!(samples[..2], [(Time::from_ms(30), 0), (Time::from_ms(32), 200_000)]);
        assert_eq!(samples.len(), 25);
    }

    #[test]
    fn broken_flows_never_complete() {
        let mut dependencies = Dependencies::default();
        let flows = three(&mut dependencies);
        let end = driven(&Setup { dependencies, ..setup(flows, Time::from_ms(200)) }, Some(0));
        assert_eq!(end.failures, [Some("cut".to_owned()), None, None]);
        assert!(!end.flows[0].completed.is_set() && !end.flows[1].started.is_set(), "{end:?}");
        assert_eq!((end.ended, end.interrupted), (Time::from_ms(200), false));
    }

    #[test]
    fn endless_flows_end_at_the_stop_or_by_on_progress() {
        let endless = setup(vec![flow(0, 1 << 40, Start::At(Time::ZERO))], Time::from_ms(150));
        let end = driven(&endless, None);
        assert!(!end.flows[0].completed.is_set(), "{end:?}");
        assert_eq!((end.flows[0].delivered, end.ended), (Bytes::new(15_000_000), Time::from_ms(150)));
        let mut transport = ConstantRateTransport::of(&endless);
        let end = drive(&endless, &mut transport, INTERVALS, &mut |progress| progress.now < Time::from_ms(60));
        assert_eq!((end.interrupted, end.ended), (true, Time::from_ms(100)));
    }
}
