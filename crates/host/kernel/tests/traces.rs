//! Replay of a law's calls in the simulator to the law in the kernel: after each call both have the same state.
#![cfg(feature = "bpf")]

use std::sync::{Arc, Mutex};

use experiment::{FlowId, FlowSpec, HostConfig, SeriesConfig, Setup, Start};
use fabric::topology::{Dumbbell, dumbbell};
use fabric::{Ecn, HostId, Phantom, PortConfig, Routes};
use kernel::tcp_adapter::{KernelFlow, SocketReport};
use kernel::trial::{KernelTrial, TrialCall, call_natively};
use kernel::{KernelLaw, Settings};
use laws::catalog::Parameters;
use laws::{Ack, Configured, ControlLaw, LawActions, Loss, Notification, PathInfo, SendLimits};
use units::{Bytes, Frac, Rate, Span, Time};

/// Calls of each flow, and its path.
type CallLog = Arc<Mutex<Vec<(PathInfo, Vec<TrialCall>)>>>;

/// A law that records all its calls.
struct RecordingLaw<L> {
    law: L,
    calls: Vec<TrialCall>,
    path: PathInfo,
    log: CallLog,
}

impl<L: ControlLaw> ControlLaw for RecordingLaw<L> {
    fn on_ack(&mut self, ack: &Ack) {
        self.calls.push(TrialCall::LawAck(Ack { hops: &[], ..*ack }));
        self.law.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.calls.push(TrialCall::LawLoss(*loss));
        self.law.on_loss(loss);
    }

    fn on_notification(&mut self, notification: &Notification) {
        self.law.on_notification(notification);
    }

    fn send_limits(&self) -> SendLimits {
        self.law.send_limits()
    }

    fn actions(&self) -> LawActions {
        self.law.actions()
    }
}

impl<L> Drop for RecordingLaw<L> {
    fn drop(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        self.log.lock().expect("no test fails with it held").push((self.path, calls));
    }
}

/// Eight flows, half of them far away, over one port with a shallow buffer that marks, and a phantom queue.
fn setup() -> Setup {
    let near = PortConfig::new(Rate::from_gbps(10), Span::from_us(5));
    let far = PortConfig::new(Rate::from_gbps(10), Span::from_ms(5));
    let ecn = Ecn { min: Bytes::new(75_000), max: Bytes::new(75_000), max_probability: Frac::ONE };
    let phantom = Phantom { size: Bytes::new(2_000_000), drain: Frac::millionths(900_000), ecn };
    let bottleneck = PortConfig {
        buffer: Bytes::new(300_000),
        ecn: Some(ecn),
        phantom: Some(phantom),
        ..PortConfig::new(Rate::from_gbps(1), Span::from_us(10))
    };
    let hosts =
        |far_ports: PortConfig| (0..8).map(move |host| if host < 4 { (near, near) } else { (far_ports, far_ports) });
    let shape =
        Dumbbell { left: hosts(far).collect(), right: hosts(near).collect(), bottleneck, two_datacenters: false };
    let network = dumbbell(&shape).expect("a network");
    let routes = Routes::new(&network).expect("one path");
    let flow = |pair: u32| FlowSpec {
        src: HostId(pair),
        dst: HostId(8 + pair),
        size: Bytes::new(1 << 40),
        start: Start::At(Time::from_us(u64::from(pair))),
        kind: 0,
        class: 1,
        on_ramp: false,
        coded: false,
        kept: false,
    };
    let host = HostConfig { mss: 1448, header: 52, ack_size: 52, ..HostConfig::default() };
    let mut setup = Setup {
        dependencies: experiment::Dependencies::default(),
        modules: Vec::new(),
        ties: experiment::TieBreak::default(),
        network,
        routes,
        symmetric: false,
        flows: (0..8).map(flow).collect(),
        host,
        series: SeriesConfig::default(),
        seed: 1,
        stop: Time::from_ms(400),
        intra_rtt: Span::ZERO,
    };
    setup.intra_rtt = setup.paths(HostId(0), HostId(8), 1448).base_rtt;
    setup
}

fn traces<L: Configured + std::fmt::Debug + Send>(name: &str) {
    if let Err(reason) = &kernel::probe::KernelProbe::get().trial {
        return testing::skipped(&format!("replay_equals_native::{name}"), reason);
    }
    let log = CallLog::default();
    let setup = setup();
    let make = |_: &FlowSpec, path: &PathInfo| {
        let law = L::configured(path, L::Params::for_path(path));
        RecordingLaw { law, calls: Vec::new(), path: *path, log: Arc::clone(&log) }
    };
    engine::run(&setup, 1, make, &mut |_| true);
    let log = std::mem::take(&mut *log.lock().expect("the run is over"));
    assert_eq!(log.len(), setup.flows.len());
    let row = KernelLaw::of_name(name).expect("a row");
    let (mut acks, mut marks, mut losses) = (0, 0, 0);
    for (number, (path, calls)) in log.iter().enumerate() {
        let flow = FlowId(number as u32);
        let settings = Settings {
            line_rate: path.line_rate,
            base_rtt: Some(path.base_rtt),
            intra_rtt: path.intra_rtt,
            params: Vec::new(),
        };
        let mut trial = KernelTrial::new(row, &settings).expect("the kernel takes the law");
        let config = *trial.config();
        let first = TrialCall::Begin(SocketReport { mss: path.mss.get(), ..SocketReport::default() });
        let mut native = KernelFlow::<L>::new(&config, &SocketReport::default());
        for (step, call) in std::iter::once(&first).chain(calls).enumerate() {
            trial.call(call).expect("the kernel runs the law");
            call_natively(&mut native, &config, call);
            assert_eq!(trial.flow::<L>(), native, "{name}, {flow:?}, call {step}: {call:?}");
            assert_eq!(trial.socket_settings(), native.socket_settings());
            match call {
                TrialCall::LawAck(ack) => {
                    acks += 1;
                    marks += u64::from(!ack.marked.is_zero());
                }
                TrialCall::LawLoss(_) => losses += 1,
                _ => {}
            }
        }
    }
    assert!(acks > 10_000 && marks > 1_000 && losses > 5, "{name}: {acks} ACKs, {marks} marks, {losses} losses");
    println!("{name}: {acks} acknowledgements, {marks} with marks, {losses} losses: equal in every field");
}

/// A test for each law that is built for the kernel, by the law's name.
macro_rules! each_law {
    ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
        mod replay_equals_native {
            $($(law!($law $module $kernel);)?)*
        }
    };
}
macro_rules! law {
    ($law:ident $module:ident kernel) => {
        #[test]
        fn $module() {
            super::traces::<laws::$law>(stringify!($module));
        }
    };
}
laws::laws!(each_law);
