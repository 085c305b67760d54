//! Knowledge of senders at the departure of packets, against the packets' own delays (On-Ramp's Figure 6).

use crate::common;
use experiment::{Clocks, FlowId, FlowSpec, OnRampConfig, Outcome, Predictions, Setup};
use fabric::topology::{SingleSwitch, single_switch};
use fabric::{PortConfig, Switch};
use laws::catalog::{LawKind, ParamValue};
use laws::on_ramp::OnRampParams;
use units::{Bytes, Rate, Span, Time};

const MSS: u64 = 4_096;

/// Hosts 1 to `senders` send to host 0, which they are 1, 2, 3 ... us away from the switch.
fn incast(senders: u32, packets: u64, sigma: Span) -> Setup {
    let port = |us| PortConfig::new(Rate::from_gbps(10), Span::from_us(us));
    let hosts = (0..=i64::from(senders)).map(|host| (port(host.max(1)), port(host.max(1)))).collect();
    let flow = |src| FlowSpec { on_ramp: true, ..common::flow(src, 0, packets * MSS) };
    let shared = Switch { buffer: Bytes::MAX, reserve: Bytes::ZERO, egress_alpha: None, pfc: None, int: false };
    let network = single_switch(&SingleSwitch { hosts }).unwrap().sharing(|_, _| Some(shared));
    let mut setup = common::setup(network, (1..=senders).map(flow).collect(), Time::from_ms(100));
    let params = OnRampParams { threshold: Span::from_s(1), gain: OnRampParams::GAIN, strawman: false };
    setup.host.on_ramp =
        Some(OnRampConfig { params, on_queueing_delay: false, ack_every: 1, ack_size: 78, memory: false });
    setup.host.clocks = Clocks { sigma, ..Clocks::default() };
    setup.host.rto_min = Some(Span::from_ms(20));
    setup.series.predictors = (0..senders).map(FlowId).collect();
    setup
}

fn fixed(setup: &Setup, packets: u64) -> Outcome {
    common::run(setup, LawKind::Fixed, &[("window", ParamValue::Bytes(Bytes::new(packets * MSS)))])
}

fn correlation(pairs: &experiment::Pairs) -> f64 {
    let [xx, xy, yy] = pairs.about_means().map(|sum| sum as f64);
    xy / (xx * yy).sqrt()
}

/// One flow with one packet in flight at a time meets no queue: the last measurement predicts the next exactly.
#[test]
fn a_path_without_queues_is_known_after_one_packet() {
    let outcome = fixed(&incast(1, 50, Span::ZERO), 1);
    let Predictions { owd, rtt } = outcome.predictions;
    // Nothing is known when the first leaves, and nothing varies.
    assert_eq!((owd.count, rtt.count), (49, 49));
    assert_eq!((owd.about_means(), rtt.about_means()), ([0; 3], [0; 3]));
}

/// Flows over paths of their own lengths, one after the other: delays differ between flows, and a flow measures its own
/// delay, which is hidden by clocks that are off by far more than that.
#[test]
fn clock_offsets_hide_the_correlation_of_delays() {
    let run = |sigma| {
        let mut setup = incast(8, 20, sigma);
        for flow in 1..8 {
            setup.flows[flow].start =
                setup.dependencies.start([experiment::Dependency::Complete(FlowId(flow as u32 - 1))], Span::ZERO);
        }
        fixed(&setup, 1).predictions
    };
    let exact = run(Span::ZERO);
    let [xx, xy, yy] = exact.owd.about_means();
    assert!(xx > 0 && xx == xy && xy == yy, "{exact:?}");
    // A round trip is twice the delay, less the difference for shorter acknowledgements.
    assert!((correlation(&exact.rtt) - 1.0).abs() < 1e-9, "{exact:?}");
    let off = run(Span::from_ms(1));
    assert!((correlation(&off.rtt) - 1.0).abs() < 1e-9, "{off:?}");
    assert!(correlation(&off.owd).abs() < 0.9, "{}", correlation(&off.owd));
}

/// Notes change nothing else, and count chosen flows alone.
#[test]
fn predictors_change_no_result() {
    let mut setup = incast(6, 200, Span::from_us(1));
    if let Some(on_ramp) = &mut setup.host.on_ramp {
        on_ramp.params.threshold = Span::from_us(40);
    }
    let looked = fixed(&setup, 64);
    let one = Setup {
        series: experiment::SeriesConfig { predictors: vec![FlowId(2)], ..setup.series.clone() },
        ..setup.clone()
    };
    let one = fixed(&one, 64);
    setup.series.predictors.clear();
    let plain = fixed(&setup, 64);
    assert_eq!(plain.predictions, Predictions::default());
    assert!(looked.predictions.owd.count > 5 * one.predictions.owd.count && one.predictions.owd.count > 0);
    assert_eq!(looked.flows, plain.flows);
    assert_eq!(looked.links, plain.links);
    assert_eq!(Outcome { predictions: Predictions::default(), ..one }.flows, plain.flows);
}
