//! All flows in one loop: they start, write, read, and end.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;

use experiment::{Dependency, FlowId, StartQueue, TrafficProgress};
use inet_diag::TcpInfo;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use units::{Bytes, Span, Time};

use super::connect::{Connected, Token};
use super::{FlowEnd, PROGRESS_INTERVAL, TrafficEnd, socket};
use crate::clock::Clock;
use crate::socket_calls::{discard, tcp_info};

/// Payload of a write: zeros, because the contents are never inspected. Its length is the maximum of one write.
static ZEROS: [u8; 256 << 10] = [0; 256 << 10];

/// Maximum that one flow writes or reads before the others get their turn.
const MAX_IO_BYTES: usize = 1 << 20;

/// Interval at which flows that have written all are checked, in case a time stamp is missing.
const DRAIN_CHECK_INTERVAL: Span = Span::from_ms(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TransferPhase {
    Waiting,
    Sending,
    /// All bytes are written, but not all acknowledged.
    Draining,
    Ended,
}

struct FlowProgress {
    phase: TransferPhase,
    /// Payload to be written.
    left: u64,
    /// Payload to be read by the receiver.
    unread: u64,
    stamped: bool,
    end: FlowEnd,
}

/// Reason for which the loop ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LoopExit {
    /// All flows have ended, or the stop has come.
    Over,
    /// The caller asked for it.
    Interrupted,
}

struct TrafficLoop<'a> {
    connections: Connected<'a>,
    clock: Clock,
    flows: Vec<FlowProgress>,
    start_queue: StartQueue<'a>,
    ended: usize,
    draining: usize,
}

impl Connected<'_> {
    /// Runs all flows until they have ended, the stop, or `on_progress` returns false. Times are the `clock`'s.
    pub fn run(self, clock: Clock, on_progress: &mut dyn FnMut(TrafficProgress) -> bool) -> TrafficEnd {
        let setup = self.traffic.setup;
        let flows = setup.flows.iter().map(|spec| FlowProgress::new(spec.size.get())).collect();
        let traffic_loop =
            TrafficLoop { connections: self, clock, flows, start_queue: StartQueue::new(setup), ended: 0, draining: 0 };
        traffic_loop.run(setup.stop, on_progress)
    }
}

impl FlowProgress {
    fn new(size: u64) -> Self {
        let end = FlowEnd {
            started: Time::NEVER,
            completed: Time::NEVER,
            delivered: Bytes::ZERO,
            info: TcpInfo::default(),
            failure: None,
        };
        Self { phase: TransferPhase::Waiting, left: size, unread: size, stamped: false, end }
    }
}

impl TrafficLoop<'_> {
    fn run(mut self, stop: Time, on_progress: &mut dyn FnMut(TrafficProgress) -> bool) -> TrafficEnd {
        let mut events = [EpollEvent::empty(); 256];
        let (mut last_report, mut last_check) = (Time::ZERO, Time::ZERO);
        let exit = loop {
            let now = self.clock.now();
            if now >= stop || self.ended == self.flows.len() {
                break LoopExit::Over;
            }
            if now >= last_report + PROGRESS_INTERVAL {
                last_report = now;
                if !on_progress(TrafficProgress { now, completed: self.ended }) {
                    break LoopExit::Interrupted;
                }
            }
            while let Some(flow) = self.start_queue.pop_due(now) {
                self.start(flow, now);
            }
            if self.draining > 0 && now >= last_check + DRAIN_CHECK_INTERVAL {
                last_check = now;
                (0..self.flows.len()).for_each(|flow| self.drain(flow));
            }
            let next_check = if self.draining > 0 { last_check + DRAIN_CHECK_INTERVAL } else { Time::NEVER };
            self.wait(self.start_queue.next().min(next_check).min(last_report + PROGRESS_INTERVAL).min(stop));
            let count = self.connections.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
            for event in &events[..count] {
                match Token::of(event.data()) {
                    Token::Sender(flow) => match self.flows[flow].phase {
                        TransferPhase::Sending => self.feed(flow),
                        TransferPhase::Draining => self.drain(flow),
                        TransferPhase::Waiting => self.reset_before_start(flow),
                        TransferPhase::Ended => {}
                    },
                    Token::Receiver(flow) => self.read(flow),
                    Token::Listener(_) => {}
                }
            }
        };
        self.finish(stop, exit)
    }

    /// Waits until a socket is ready, or `until`.
    fn wait(&self, until: Time) {
        let left = until.since(self.clock.now()).unsigned_ps() / 1_000;
        let timeout = TimeSpec::new((left / 1_000_000_000) as i64, (left % 1_000_000_000) as i64);
        let mut polled = [PollFd::new(self.connections.epoll.0.as_fd(), PollFlags::POLLIN)];
        // A signal ends the wait early, which does no harm.
        let _ = ppoll(&mut polled, Some(timeout), None);
    }

    fn start(&mut self, flow: usize, now: Time) {
        self.flows[flow].phase = TransferPhase::Sending;
        self.flows[flow].end.started = now;
        self.start_queue.dependency_met(Dependency::Begun(FlowId(flow as u32)), now);
        self.interest(flow, EpollFlags::EPOLLOUT);
        self.feed(flow);
    }

    fn interest(&self, flow: usize, events: EpollFlags) {
        if let Some(sender) = &self.connections.flows[flow].sender {
            let mut event = EpollEvent::new(events, Token::Sender(flow).number());
            // A socket that is already polled cannot fail to be polled for another event.
            let _ = self.connections.epoll.modify(sender, &mut event);
        }
    }

    /// Writes until the socket has enough, or it is the others' turn.
    fn feed(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let Some(sender) = &mut self.connections.flows[flow].sender else { return };
        if state.stamped {
            // Stamps of a write that was only begun would wake the poll for ever.
            socket::acknowledged_ns(sender.as_fd());
        }
        let mut written = 0;
        while state.left > 0 && written < MAX_IO_BYTES {
            let size = state.left.min(ZEROS.len() as u64) as usize;
            if size as u64 == state.left && !state.stamped {
                // Without stamps the end is seen when it is checked, up to 10 ms late.
                state.stamped = socket::stamp_acknowledgements(sender.as_fd()).is_ok();
            }
            match sender.write(&ZEROS[..size]) {
                Ok(count) => {
                    state.left -= count as u64;
                    written += count;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
                Err(error) => {
                    state.end.failure = Some(error.to_string());
                    return self.end(flow, Time::NEVER);
                }
            }
        }
        if state.left == 0 {
            let _ = sender.shutdown(Shutdown::Write);
            state.phase = TransferPhase::Draining;
            self.draining += 1;
            self.interest(flow, EpollFlags::empty());
        }
    }

    /// Ends the flow if all bytes written have been acknowledged, and records the time; also ends it if its connection
    /// broke.
    fn drain(&mut self, flow: usize) {
        if self.flows[flow].phase != TransferPhase::Draining {
            return;
        }
        let sockets = &self.connections.flows[flow];
        let Some(sender) = &sockets.sender else { return };
        let stamp = socket::acknowledged_ns(sender.as_fd());
        let acked = tcp_info(sender.as_fd()).bytes_acked.get().saturating_sub(sockets.acked_before);
        if acked >= self.connections.traffic.setup.flows[flow].size.get() {
            let completed = stamp.map_or_else(|| self.clock.now(), |ns| self.clock.at_realtime(ns));
            self.end(flow, completed.max(self.flows[flow].end.started));
        } else if let Some(error) = socket::failure(sender.as_fd()) {
            self.flows[flow].end.failure = Some(error.to_string());
            self.end(flow, Time::NEVER);
        }
    }

    /// A connection that is reset before its flow starts.
    fn reset_before_start(&mut self, flow: usize) {
        let sender = self.connections.flows[flow].sender.as_ref();
        let error = sender.and_then(|sender| socket::failure(sender.as_fd()));
        self.flows[flow].end.failure = Some(error.map_or("the connection was closed".into(), |it| it.to_string()));
        self.end(flow, Time::NEVER);
    }

    fn read(&mut self, flow: usize) {
        let Some(receiver) = &self.connections.flows[flow].receiver else { return };
        match discard(receiver.as_fd(), MAX_IO_BYTES) {
            Ok(count @ 1..) => {
                let state = &mut self.flows[flow];
                state.unread = state.unread.saturating_sub(count as u64);
                if state.unread == 0 {
                    self.start_queue.dependency_met(Dependency::Received(FlowId(flow as u32)), self.clock.now());
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // The end, or a reset: no more data arrives.
            Ok(_) | Err(_) => self.connections.flows[flow].receiver = None,
        }
    }

    /// A flow is over: its last report is kept. A broken flow is never complete, so flows that wait for its end never start.
    fn end(&mut self, flow: usize, completed: Time) {
        self.record_final_state(flow);
        let state = &mut self.flows[flow];
        self.draining -= usize::from(state.phase == TransferPhase::Draining);
        state.phase = TransferPhase::Ended;
        state.end.completed = completed;
        self.ended += 1;
        self.connections.flows[flow].sender = None;
        if completed.is_set() {
            self.start_queue.dependency_met(Dependency::Complete(FlowId(flow as u32)), completed);
        }
    }

    fn record_final_state(&mut self, flow: usize) {
        let sockets = &self.connections.flows[flow];
        let Some(sender) = &sockets.sender else { return };
        let end = &mut self.flows[flow].end;
        end.info = tcp_info(sender.as_fd());
        let acked = end.info.bytes_acked.get().saturating_sub(sockets.acked_before);
        end.delivered = Bytes::new(acked).min(self.connections.traffic.setup.flows[flow].size);
    }

    fn finish(mut self, stop: Time, exit: LoopExit) -> TrafficEnd {
        let open = self.ended < self.flows.len();
        for flow in 0..self.flows.len() {
            self.record_final_state(flow);
            if let Some(sender) = self.connections.flows[flow].sender.take() {
                socket::abort(sender);
            }
        }
        let last = self.flows.iter().map(|flow| flow.end.completed).filter(|time| time.is_set()).max();
        let ended = match (exit, open) {
            (LoopExit::Interrupted, _) => self.clock.now(),
            (LoopExit::Over, true) => stop,
            (LoopExit::Over, false) => last.unwrap_or(stop),
        };
        let interrupted = exit == LoopExit::Interrupted;
        TrafficEnd { flows: self.flows.into_iter().map(|flow| flow.end).collect(), ended, interrupted }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::error::Error;
    use crate::traffic::{HostNetwork, Traffic};
    use experiment::{Dependencies, FlowSpec, HostConfig, SeriesConfig, Setup, Start};
    use fabric::{Builder, HostId, LinkClass, PortConfig, Routes};
    use router::IpVersion;
    use std::net::{IpAddr, Ipv4Addr};
    use units::Rate;

    /// Hosts that are addresses of this machine's loopback: no rights are needed. Each test has a range of its own.
    struct Loopback(u8);

    impl HostNetwork for Loopback {
        fn address(&self, host: HostId, _: IpVersion) -> IpAddr {
            Ipv4Addr::new(127, 77, self.0, 1 + host.0 as u8).into()
        }

        fn within(&self, _: HostId, work: &mut (dyn FnMut() -> Result<(), Error> + Send)) -> Result<(), Error> {
            work()
        }
    }

    pub(in crate::traffic) fn setup(flows: Vec<FlowSpec>, stop: Time) -> Setup {
        let mut builder = Builder::default();
        let switches = [builder.switch(0, "a"), builder.switch(1, "b")];
        let port = PortConfig::new(Rate::from_gbps(1), Span::from_ms(1));
        for (dc, switch) in switches.into_iter().enumerate() {
            let host = builder.host(dc as u16, format!("dc{dc}.host0"));
            builder.connect(host, switch, LinkClass::Host, port, port);
        }
        builder.connect(switches[0], switches[1], LinkClass::Inter, port, port);
        let network = builder.finish().unwrap();
        let routes = Routes::new(&network).unwrap();
        let host = HostConfig::default();
        let series = SeriesConfig::default();
        Setup {
            network,
            routes,
            symmetric: false,
            flows,
            host,
            series,
            seed: 1,
            stop,
            intra_rtt: Span::ZERO,
            dependencies: Dependencies::default(),
            modules: Vec::new(),
            ties: experiment::TieBreak::default(),
        }
    }

    pub(in crate::traffic) fn flow(src: u32, size: u64, start: Start) -> FlowSpec {
        FlowSpec {
            src: HostId(src),
            dst: HostId(1 - src),
            size: Bytes::new(size),
            start,
            kind: 0,
            class: 1,
            on_ramp: false,
            coded: false,
            kept: false,
        }
    }

    fn run(range: u8, setup: &Setup) -> TrafficEnd {
        let traffic = Traffic { setup, congestion: &["reno".to_owned()], ip_version: IpVersion::V4 };
        let connections = Connected::new(traffic, &Loopback(range), &mut || true).unwrap();
        connections.run(Clock::start(), &mut |_| true)
    }

    #[test]
    fn flows_start_on_time_and_end_with_their_last_ack() {
        let mut causes = Dependencies::default();
        let flows = vec![
            flow(0, 5_000_000, Start::At(Time::from_ms(30))),
            flow(1, 1, causes.start([Dependency::Complete(FlowId(0))], Span::ZERO)),
            flow(0, 700_000, Start::At(Time::ZERO)),
        ];
        let end = run(1, &Setup { dependencies: causes, ..setup(flows, Time::from_ms(20_000)) });
        assert!(!end.interrupted && end.ended < Time::from_ms(20_000));
        for ended in &end.flows {
            assert!(ended.completed > ended.started && ended.failure.is_none(), "{ended:?}");
        }
        assert_eq!(end.flows.iter().map(|it| it.delivered.get()).collect::<Vec<_>>(), [5_000_000, 1, 700_000]);
        assert!(end.flows[0].started >= Time::from_ms(30));
        // It starts one one-way delay, 3 ms of links, after the other flow's end.
        assert!(end.flows[1].started >= end.flows[0].completed + Span::from_ms(3), "{:?}", end.flows);
        assert_eq!(end.ended, end.flows.iter().map(|it| it.completed).max().unwrap());
        assert!(end.flows[0].info.bytes_sent >= Bytes::new(5_000_000) && end.flows[0].info.data_segs_out > 0);
    }

    /// A flow that waits for a receipt at its own host, its turn and another flow's end starts after all three and its
    /// computing time. A flow with a dependency that fails or is never met does not start.
    #[test]
    fn flows_wait_for_all_dependencies() {
        let mut causes = Dependencies::default();
        let all = [Dependency::Received(FlowId(0)), Dependency::Begun(FlowId(1)), Dependency::Complete(FlowId(2))];
        let never = [Dependency::Received(FlowId(0)), Dependency::Received(FlowId(5))];
        let flows = vec![
            flow(0, 3_000_000, Start::At(Time::from_ms(20))),
            flow(1, 1_000, Start::At(Time::from_ms(10))),
            flow(0, 1_000, Start::At(Time::from_ms(60))),
            flow(1, 1_000, causes.start([all[0]], Span::from_ms(5))),
            flow(1, 1_000, causes.start(all, Span::from_ms(40))),
            flow(0, 1_000, Start::At(Time::from_ms(900))),
            flow(1, 1_000, causes.start(never, Span::ZERO)),
        ];
        let end = run(7, &Setup { dependencies: causes, ..setup(flows, Time::from_ms(800)) });
        let started = |flow: usize| end.flows[flow].started;
        assert!(started(3) > started(0) + Span::from_ms(5) && started(3) < started(4), "{:?}", end.flows);
        assert!(started(4) >= end.flows[2].completed + Span::from_ms(43), "{:?}", end.flows);
        assert!(end.flows[4].completed.is_set() && !started(6).is_set(), "{:?}", end.flows);
    }

    #[test]
    fn endless_flows_end_at_the_stop() {
        let flows = vec![flow(0, 1 << 40, Start::At(Time::ZERO)), flow(1, 10, Start::At(Time::from_ms(900)))];
        let end = run(2, &setup(flows, Time::from_ms(200)));
        assert_eq!((end.ended, end.interrupted), (Time::from_ms(200), false));
        assert!(!end.flows[0].completed.is_set() && end.flows[0].delivered > Bytes::new(1_000_000), "{end:?}");
        assert!(!end.flows[1].started.is_set() && end.flows[1].delivered == Bytes::ZERO);
    }

    #[test]
    fn on_progress_can_end_the_run() {
        let setup = setup(vec![flow(0, 1 << 40, Start::At(Time::ZERO))], Time::from_ms(60_000));
        let traffic = Traffic { setup: &setup, congestion: &["reno".to_owned()], ip_version: IpVersion::V4 };
        let connections = Connected::new(traffic, &Loopback(3), &mut || true).unwrap();
        let end = connections.run(Clock::start(), &mut |progress| progress.now < Time::from_ms(100));
        assert!(end.interrupted && end.ended >= Time::from_ms(100) && end.ended < Time::from_ms(10_000));
        let refused = Connected::new(traffic, &Loopback(4), &mut || false).unwrap_err();
        assert!(matches!(refused, Error::Interrupted));
    }

    #[test]
    fn many_flows_connect_and_unknown_laws_are_errors() {
        let flows: Vec<_> = (0..1_500).map(|_| flow(0, 3_000, Start::At(Time::ZERO))).collect();
        let setup = setup(flows, Time::from_ms(20_000));
        let end = run(5, &setup);
        assert!(
            end.flows.iter().all(|it| it.completed.is_set()),
            "{:?}",
            end.flows.iter().find(|it| !it.completed.is_set())
        );
        let traffic = Traffic { setup: &setup, congestion: &["nosuchlaw".to_owned()], ip_version: IpVersion::V4 };
        let message = Connected::new(traffic, &Loopback(6), &mut || true).unwrap_err().to_string();
        assert!(message.contains("nosuchlaw"), "{message}");
    }
}
