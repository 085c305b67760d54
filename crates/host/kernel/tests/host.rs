//! Reports of a socket to a law, for cases in which the kernel's own numbers need interpretation. No kernel is needed.

use kernel::tcp_adapter::{KernelFlow, SocketReport};
use kernel::{KernelLaw, Settings};
use laws::{ControlLaw, Gemini, NewReno};
use units::Span;

const MSS: u64 = 1_448;
/// The path of these tests: 1.9 ms.
const RTT_US: u64 = 1_900;

/// A flow that began with a handshake of the path's round trip.
fn flow() -> KernelFlow<Gemini> {
    let config = Settings::default().config(KernelLaw::of_name("gemini").unwrap()).unwrap();
    KernelFlow::new(&config, &report(10_000, 1, RTT_US as i64))
}

/// Returns the socket state at `now_us`, `delivered` packets after the socket was made; the newest left a round trip
/// ago.
fn report(now_us: u64, delivered: u64, rtt_us: i64) -> SocketReport {
    SocketReport {
        now_us,
        sent_us: now_us - RTT_US,
        delivered_us: now_us - RTT_US,
        newest_us: now_us - RTT_US,
        rtt_us,
        srtt_eighths_us: 8 * RTT_US,
        mss: MSS,
        delivered,
        prior_delivered: 1,
        window: 10,
        max_packets_out: 10,
        ..SocketReport::default()
    }
}

/// The law's own base round trip.
fn base_rtt_ns(law: &impl ControlLaw) -> i64 {
    let mut base = 0;
    law.trace(&mut |name, value| {
        if name == "base_rtt_ns" {
            base = value;
        }
    });
    base
}

/// The kernel measures the RTT of retransmitted packets by time stamps, which count milliseconds.
#[test]
fn rtt_samples_are_at_least_the_time_since_departure() {
    let mut flow = flow();
    flow.acked(&report(20_000, 2, RTT_US as i64));
    flow.acked(&report(30_000, 3, 1_000));
    assert_eq!(flow.base_rtt, Span::from_us(RTT_US as i64));
    assert_eq!(base_rtt_ns(&flow.law), RTT_US as i64 * 1_000);
}

#[test]
fn minimum_rtt_is_the_base_rtt() {
    let mut flow = flow();
    let faster = SocketReport { sent_us: 20_000 - 1_500, ..report(20_000, 2, 1_500) };
    flow.acked(&faster);
    assert_eq!(flow.base_rtt, Span::from_us(1_500));
    flow.acked(&report(30_000, 3, 2_500));
    assert_eq!(flow.base_rtt, Span::from_us(1_500));
    assert_eq!(base_rtt_ns(&flow.law), 1_500_000);
}

/// The kernel's counts are of 32 bits.
#[test]
fn packet_counts_wrap() {
    let config = Settings::default().config(KernelLaw::of_name("gemini").unwrap()).unwrap();
    let max = u64::from(u32::MAX);
    let first = SocketReport { delivered_ce: max, ..report(10_000, max - 1, RTT_US as i64) };
    let mut flow = KernelFlow::<Gemini>::new(&config, &first);
    let next = SocketReport { delivered_ce: 1, prior_delivered: max, ..report(20_000, 3, RTT_US as i64) };
    flow.acked(&next);
    assert_eq!((flow.delivered.get(), flow.marked.get()), (5 * MSS, 2 * MSS));
}

/// Path MTU discovery changes the size of packets while a flow lives.
#[test]
fn mss_changes_reach_the_law() {
    let config = Settings::default().config(KernelLaw::of_name("newreno").unwrap()).unwrap();
    let mut flow = KernelFlow::<NewReno>::new(&config, &report(10_000, 1, RTT_US as i64));
    flow.acked(&report(20_000, 2, RTT_US as i64));
    let window = flow.law.send_limits().window;
    flow.acked(&SocketReport { mss: 9_000, app_limited: 1, ..report(30_000, 3, RTT_US as i64) });
    assert_eq!((flow.law.send_limits().window, flow.mss), (window, 9_000));
    flow.lost(&SocketReport { mss: 9_000, timeout: 1, newest_us: 35_000, ..report(40_000, 3, RTT_US as i64) });
    assert_eq!(flow.law.send_limits().window.get(), 9_000);
}

#[test]
fn acks_without_new_data_are_ignored() {
    let mut flow = flow();
    flow.acked(&report(20_000, 1, RTT_US as i64));
    assert_eq!(flow.acks, 0);
}
