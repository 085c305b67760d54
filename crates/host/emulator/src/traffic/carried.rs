//! Flows over a user-space transport: the caller's [`FlowTransport`] moves their bytes, and this module starts, ends and samples
//! them. As for TCP, all are connected before time zero.

use std::time::Duration;

use experiment::{Dependency, FlowId, FlowOutcome, FlowSample, Setup};
use flow::FlowStats;
use laws::LawActions;
use units::{Bytes, Span, Time};

use super::start_queue::StartQueue;
use super::{HostNetwork, MAX_SAMPLES, MIN_INTERVAL, PROGRESS_INTERVAL, TrafficProgress};
use crate::clock::Clock;
use crate::error::Error;

/// Event of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
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
    /// Time by the clock that the transport was given.
    pub time: Time,
    /// The flow's number.
    pub flow: usize,
    /// The event.
    pub event: Event,
}

/// State of a flow at its sender.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SenderState {
    /// Bytes sent since it began, retransmissions and all transport overhead included.
    pub sent: Bytes,
    /// Payload acknowledged.
    pub delivered: Bytes,
    /// The window set by its law; of several laws, the sum.
    pub window: Bytes,
    /// The smoothed round trip.
    pub rtt: Span,
    /// Counts of sent and lost packets.
    pub stats: FlowStats,
    /// Counts of its law's actions.
    pub actions: LawActions,
    /// The law's own state by name; units are the last word.
    pub trace: Vec<(&'static str, i64)>,
}

/// Transport that moves the bytes of a setup's flows. Flows are numbered as in the setup.
pub trait FlowTransport {
    /// Makes an end in every host that needs one, and connects all flows; none sends. `keep_running` is called now and then
    /// and returns whether to go on.
    ///
    /// # Errors
    /// When an end or a connection cannot be made, or `keep_running` returns false.
    fn connect(
        &mut self,
        setup: &Setup,
        host_network: &dyn HostNetwork,
        keep_running: &mut dyn FnMut() -> bool,
    ) -> Result<(), Error>;

    /// Starts a flow, which sends all of its bytes.
    fn start(&mut self, flow: usize);

    /// Moves bytes until an event occurs, for at most `max_wait`. Events are appended to `events`.
    fn run_for(&mut self, max_wait: Duration, clock: Clock, events: &mut Vec<FlowEvent>);

    /// Returns the state of a flow. Also of one that has not started, or has ended.
    fn sender_state(&mut self, flow: usize) -> SenderState;

    /// Ends everything, including work in progress.
    fn close(&mut self);
}

/// Outcome of all flows.
#[derive(Clone, PartialEq, Debug)]
pub struct CarriedEnd {
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CarriedPhase {
    Waiting,
    Sending,
    Ended,
}

struct CarriedLoop<'a> {
    setup: &'a Setup,
    transport: &'a mut dyn FlowTransport,
    clock: Clock,
    start_queue: StartQueue<'a>,
    phases: Vec<CarriedPhase>,
    ended: usize,
    end: CarriedEnd,
}

/// Runs all flows, which are connected, until they have ended, the stop, or `on_progress` returns false. Times are the
/// `clock`'s.
pub fn run(
    setup: &Setup,
    transport: &mut dyn FlowTransport,
    clock: Clock,
    on_progress: &mut dyn FnMut(TrafficProgress) -> bool,
) -> CarriedEnd {
    let never_started = FlowOutcome::never_started();
    let count = setup.flows.len();
    let end = CarriedEnd {
        flows: vec![never_started; count],
        failures: vec![None; count],
        samples: Vec::new(),
        truncated: false,
        ended: setup.stop,
        interrupted: false,
    };
    let (start_queue, phases) = (StartQueue::new(setup), vec![CarriedPhase::Waiting; count]);
    CarriedLoop { setup, transport, clock, start_queue, phases, ended: 0, end }.run(on_progress)
}

impl CarriedLoop<'_> {
    fn run(mut self, on_progress: &mut dyn FnMut(TrafficProgress) -> bool) -> CarriedEnd {
        let stop = self.setup.stop;
        let series = &self.setup.series;
        let is_sampled = !series.interval.is_zero() && !series.flows.is_empty();
        let interval = series.interval.max(MIN_INTERVAL);
        let mut sample_at = if is_sampled { Time::ZERO } else { Time::NEVER };
        let (mut last_report, mut events) = (Time::ZERO, Vec::new());
        loop {
            let now = self.clock.now();
            if now >= stop || self.ended == self.phases.len() {
                break;
            }
            if now >= last_report + PROGRESS_INTERVAL {
                last_report = now;
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
            let until = self.start_queue.next().min(sample_at).min(last_report + PROGRESS_INTERVAL).min(stop);
            let max_wait = Duration::from_nanos(until.saturating_since(self.clock.now()).unsigned_ps() / 1_000);
            self.transport.run_for(max_wait, self.clock, &mut events);
            events.drain(..).for_each(|event| self.on_event(event));
        }
        self.finish()
    }

    fn start(&mut self, flow: usize, now: Time) {
        if self.phases[flow] == CarriedPhase::Waiting {
            self.phases[flow] = CarriedPhase::Sending;
            self.end.flows[flow].started = now;
            self.transport.start(flow);
            self.start_queue.dependency_met(Dependency::Begun(FlowId(flow as u32)), now);
        }
    }

    fn sample(&mut self, time: Time) {
        for &id in &self.setup.series.flows {
            let flow = id.0 as usize;
            if self.phases.get(flow) != Some(&CarriedPhase::Sending) {
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
            Event::Received => self.start_queue.dependency_met(Dependency::Received(id), time),
            Event::Delivered if self.phases[flow] == CarriedPhase::Sending => {
                self.end(flow);
                let completed = time.max(self.end.flows[flow].started);
                self.end.flows[flow].completed = completed;
                self.start_queue.dependency_met(Dependency::Complete(id), completed);
            }
            Event::Broken(reason) if self.phases[flow] != CarriedPhase::Ended => {
                self.end.failures[flow] = Some(reason);
                self.end(flow);
            }
            Event::Delivered | Event::Broken(_) => {}
        }
    }

    fn end(&mut self, flow: usize) {
        self.record_final_state(flow);
        self.phases[flow] = CarriedPhase::Ended;
        self.ended += 1;
    }

    /// Takes the final report on a flow.
    fn record_final_state(&mut self, flow: usize) {
        let SenderState { delivered, stats, actions, .. } = self.transport.sender_state(flow);
        let end = &mut self.end.flows[flow];
        end.delivered = delivered.min(self.setup.flows[flow].size);
        (end.stats, end.actions) = (stats, actions);
    }

    fn finish(mut self) -> CarriedEnd {
        let ended_at = self.clock.now();
        for flow in 0..self.phases.len() {
            if self.phases[flow] != CarriedPhase::Ended {
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
    use super::*;
    use crate::traffic::run::tests::{flow, setup};
    use experiment::{Dependencies, FlowSpec, Start};

    /// Carries a megabyte in 10 ms, each flow by itself.
    #[derive(Default)]
    struct ConstantRateTransport {
        now: Time,
        begun: Vec<(usize, Time)>,
        sizes: Vec<u64>,
        done: Vec<usize>,
        broken_flow: Option<usize>,
        closed: bool,
    }

    const BYTES_PER_MS: u64 = 100_000;

    impl ConstantRateTransport {
        fn of(setup: &Setup) -> Self {
            Self { sizes: setup.flows.iter().map(|flow| flow.size.get()).collect(), ..Self::default() }
        }

        fn carried(&self, flow: usize) -> u64 {
            let begun = self.begun.iter().find(|(begun, _)| *begun == flow);
            begun.map_or(0, |&(_, at)| {
                (self.now.saturating_since(at).ns() as u64 * BYTES_PER_MS / 1_000_000).min(self.sizes[flow])
            })
        }
    }

    impl FlowTransport for ConstantRateTransport {
        fn connect(&mut self, _: &Setup, _: &dyn HostNetwork, _: &mut dyn FnMut() -> bool) -> Result<(), Error> {
            Ok(())
        }

        fn start(&mut self, flow: usize) {
            self.begun.push((flow, self.now));
        }

        fn run_for(&mut self, max_wait: Duration, clock: Clock, events: &mut Vec<FlowEvent>) {
            std::thread::sleep(max_wait.min(Duration::from_millis(1)));
            self.now = clock.now();
            let ready = |flow: usize| self.carried(flow) == self.sizes[flow] && !self.done.contains(&flow);
            let ready: Vec<usize> = self.begun.iter().map(|&(flow, _)| flow).filter(|&flow| ready(flow)).collect();
            for flow in ready {
                self.done.push(flow);
                let flow_event = |event| FlowEvent { time: self.now, flow, event };
                if self.broken_flow == Some(flow) {
                    events.push(flow_event(Event::Broken("cut".to_owned())));
                } else {
                    events.extend([Event::Received, Event::Delivered].map(flow_event));
                }
            }
        }

        fn sender_state(&mut self, flow: usize) -> SenderState {
            SenderState { delivered: Bytes::new(self.carried(flow)), ..SenderState::default() }
        }

        fn close(&mut self) {
            self.closed = true;
        }
    }

    fn carried(setup: &Setup, broken_flow: Option<usize>) -> CarriedEnd {
        let mut transport = ConstantRateTransport { broken_flow, ..ConstantRateTransport::of(setup) };
        let end = run(setup, &mut transport, Clock::start(), &mut |_| true);
        assert!(transport.closed);
        end
    }

    fn three(causes: &mut Dependencies) -> Vec<FlowSpec> {
        vec![
            flow(0, 5_000_000, Start::At(Time::from_ms(30))),
            flow(1, 1, causes.start([Dependency::Complete(FlowId(0))], Span::ZERO)),
            flow(0, 700_000, Start::At(Time::ZERO)),
        ]
    }

    #[test]
    fn flows_start_are_sampled_and_end_on_time() {
        let mut causes = Dependencies::default();
        let flows = three(&mut causes);
        let mut setup = Setup { dependencies: causes, ..setup(flows, Time::from_ms(5_000)) };
        (setup.series.interval, setup.series.flows) = (Span::from_ms(2), vec![FlowId(0)]);
        let end = carried(&setup, None);
        let of = |flow: usize| (end.flows[flow].started, end.flows[flow].completed, end.flows[flow].delivered.get());
        assert_eq!([0, 1, 2].map(|flow| of(flow).2), [5_000_000, 1, 700_000]);
        // 50 ms of the line; the time between the first byte and the clock's next poll may be missing.
        assert!(of(0).0 >= Time::from_ms(30) && of(0).1 >= of(0).0 + Span::from_ms(49), "{end:?}");
        // It starts one one-way delay, 3 ms of links, after the other flow's end.
        assert!(of(1).0 >= of(0).1 + Span::from_ms(3), "{end:?}");
        assert_eq!(end.ended, end.flows.iter().map(|it| it.completed).max().unwrap());
        let times: Vec<Time> = end.samples.iter().map(|sample| sample.time).collect();
        assert!(end.samples.len() > 5 && times.is_sorted_by(|a, b| a < b), "{times:?}");
        assert!(times[0] >= of(0).0 && times[times.len() - 1] <= of(0).1, "{times:?}");
        assert!(end.samples.iter().map(|sample| sample.delivered).is_sorted());
    }

    #[test]
    fn broken_flows_never_complete() {
        let mut causes = Dependencies::default();
        let flows = three(&mut causes);
        let end = carried(&Setup { dependencies: causes, ..setup(flows, Time::from_ms(200)) }, Some(0));
        assert_eq!(end.failures, [Some("cut".to_owned()), None, None]);
        assert!(!end.flows[0].completed.is_set() && !end.flows[1].started.is_set(), "{end:?}");
        assert_eq!((end.ended, end.interrupted), (Time::from_ms(200), false));
    }

    #[test]
    fn endless_flows_end_at_the_stop_or_by_on_progress() {
        let endless = setup(vec![flow(0, 1 << 40, Start::At(Time::ZERO))], Time::from_ms(150));
        let end = carried(&endless, None);
        assert!(!end.flows[0].completed.is_set() && end.flows[0].delivered > Bytes::new(1_000_000), "{end:?}");
        assert_eq!(end.ended, Time::from_ms(150));
        let mut transport = ConstantRateTransport::of(&endless);
        let end = run(&endless, &mut transport, Clock::start(), &mut |progress| progress.now < Time::from_ms(60));
        assert!(end.interrupted && end.ended >= Time::from_ms(60) && end.ended < Time::from_ms(150), "{end:?}");
    }
}
