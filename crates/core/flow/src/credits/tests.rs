//! Both ends by hand: 10 Gb/s, a round trip of 1 ms, packets of 1460 bytes of payload.

extern crate std;

use super::*;
use crate::FlowConfig;
use laws::catalog::{LawKind, ParamValue as Setting, build};
use laws::{Law, PathInfo};
use std::vec::Vec;

const PATH: PathInfo = PathInfo {
    base_rtt: Span::from_ms(1),
    intra_rtt: Span::from_ms(1),
    line_rate: Rate::from_gbps(10),
    mss: Bytes::new(1_460),
};

fn flow(kind: LawKind, packets: u64, settings: &[(&str, Setting)]) -> (CreditSender, Sender<Law>) {
    let law = build(kind, &PATH, settings).unwrap();
    let config = CreditConfig {
        credits: law.credits().unwrap(),
        longest: Span::from_us(1_200),
        base_rtt: PATH.base_rtt,
        line_rate: PATH.line_rate,
        mss: 1_460,
        header: 78,
        tick: Tick::NONE,
        salt: 7,
    };
    let sender = Sender::new(FlowConfig::new(Bytes::new(packets * 1_460), 1_460, PATH.base_rtt), law, Time::ZERO);
    (CreditSender::new(config, Time::ZERO), sender)
}

const SPACING: Spacing = Spacing { jitter: Frac::ZERO, tick: Tick::NONE, salt: 7 };
const CREDITING: CreditingConfig =
    CreditingConfig { spacing: SPACING, stops_at_demand: false, base_rtt: PATH.base_rtt, longest: PATH.base_rtt };
const EVEN: (&str, Setting) = ("jitter", Setting::Fraction(Frac::ZERO));
const LATE_START: (&str, Setting) = ("early_start", Setting::Switch(false));

/// Returns the packets other than data sent from `now` up to `until`, with their times.
fn act(flow: &mut CreditSender, sender: &mut Sender<Law>, mut now: Time, until: Time) -> Vec<(Time, Signal)> {
    let mut signals = Vec::new();
    loop {
        now = now.max(flow.next_action(sender, now));
        if now > until {
            return signals;
        }
        while let Some(signal) = flow.act(sender, now) {
            signals.push((now, signal));
        }
    }
}

/// Ten packets: an emulation packet every 1297.6 ns. With 12 in flight 12 * 0.9 = 10.8 credits are expected, with 11 it is
/// 9.9: the first 12 are ordinary. Their echo covers the flow and ends them; data is sent 1200 us after each.
#[test]
fn emulation_packets_are_ordinary_until_those_in_flight_cover_the_demand() {
    let (mut flow, mut sender) = flow(LawKind::FlashPass, 10, &[EVEN, LATE_START]);
    let signals = act(&mut flow, &mut sender, Time::ZERO, Time::from_us(20));
    assert_eq!(signals.len(), 16);
    for (index, &(at, signal)) in (0u32..).zip(&signals) {
        assert_eq!(signal, Signal::Emulation { number: index, expendable: index >= 12 });
        // The law's rate is cut to whole bits a second, so a gap is 1297.6 ns plus less than a picosecond.
        assert!(at.ps().abs_diff(u64::from(index) * 1_297_600) <= u64::from(index), "{index} at {at}");
    }
    assert_eq!(flow.poll(&mut sender, Time::from_us(20)), SendState::Blocked);
    // The host's queue held number 1 back.
    flow.on_left(1, Time::from_us(3));
    // 0 to 9 except 5 arrived; then 10 and 11.
    flow.on_echo(&mut sender, Time::from_us(1_020), Echo { newest: 9, map: 0b11_1110_1111 });
    flow.on_echo(&mut sender, Time::from_us(1_030), Echo { newest: 10, map: 1 });
    assert_eq!(flow.next_action(&mut sender, Time::from_us(1_030)), Time::NEVER);
    let first = Time::from_us(1_200);
    assert_eq!(flow.poll(&mut sender, Time::from_us(1_030)), SendState::At(first));
    assert_eq!(flow.poll(&mut sender, first), SendState::Now);
    assert_eq!(flow.take(&mut sender, first).credit, Some(0));
    assert_eq!(flow.poll(&mut sender, first), SendState::At(Time::from_us(1_203)));
    // An echo that is late: its data is sent at once, and first.
    flow.on_echo(&mut sender, Time::from_us(1_300), Echo { newest: 13, map: 1 });
    let sent: Vec<_> = (0..9).map(|_| flow.take(&mut sender, Time::from_us(1_300)).credit.unwrap()).collect();
    assert_eq!(sent, [13, 1, 2, 3, 4, 6, 7, 8, 9]);
    // One credit is left and nothing to send.
    assert_eq!(flow.poll(&mut sender, Time::from_us(1_300)), SendState::Blocked);
    let stats = flow.stats();
    assert_eq!((stats.sent, stats.received, stats.used, stats.wasted, stats.late), (16, 11, 10, 1, 1));
    assert_eq!(stats.over_provisioned, 4);
}

/// Ten packets, one round trip, and only five of the twelve ordinary emulation packets are echoed. If all in flight are
/// counted, later ones are over-provisioned as before, because hundreds of those are in flight. If only ordinary ones are
/// counted, five packets are uncovered, and six more are ordinary until they cover them: 6 * 0.9 = 5.4.
#[test]
fn over_provisioned_packets_need_not_count() {
    for (counts_spared, ordinary) in [(true, 0), (false, 6)] {
        let counts = ("counts_spared", Setting::Switch(counts_spared));
        let fixed = ("feedback", Setting::Switch(false));
        let (mut flow, mut sender) = flow(LawKind::FlashPass, 10, &[EVEN, LATE_START, counts, fixed]);
        act(&mut flow, &mut sender, Time::ZERO, Time::from_us(1_020));
        assert_eq!(flow.stats().sent - flow.stats().over_provisioned, 12, "{counts_spared}");
        flow.on_echo(&mut sender, Time::from_us(1_020), Echo { newest: 11, map: 0b1_1111 });
        act(&mut flow, &mut sender, Time::from_us(1_020), Time::from_us(1_100));
        assert_eq!(flow.stats().sent - flow.stats().over_provisioned, 12 + ordinary, "{counts_spared}");
    }
}

/// A round is over when the outcome of a packet sent after it began is known: the law is notified of all since the last
/// one. The first round has no credits to be judged by.
#[test]
fn rounds_are_counted_in_emulation_packets() {
    let (mut flow, mut sender) = flow(LawKind::FlashPass, 10_000, &[EVEN, LATE_START]);
    let us = Time::from_us;
    let rate = |sender: &Sender<Law>| sender.law().credit_rate().bps();
    let full = rate(&sender);
    // 771 are sent in the first millisecond. The echo of number 0 ends the first round.
    act(&mut flow, &mut sender, Time::ZERO, us(1_000));
    flow.on_echo(&mut sender, us(1_000), Echo { newest: 0, map: 1 });
    // Every second one is echoed. The round ends with number 771, the first one sent in it.
    act(&mut flow, &mut sender, us(1_000), us(1_100));
    for newest in (2..=770).step_by(2) {
        flow.on_echo(&mut sender, us(1_100), Echo { newest, map: 1 });
        assert_eq!(rate(&sender), full, "{newest}");
    }
    flow.on_echo(&mut sender, us(2_000), Echo { newest: 772, map: 1 });
    // 386 of 772 in a millisecond: 84 * 8 * 386 * 1000 bits a second, and a hundredth.
    assert!(rate(&sender).abs_diff(259_392_000 / 100 * 101) <= 10, "{}", rate(&sender));
}

#[test]
fn an_early_start_ends_with_its_round_trip_and_a_probe() {
    let (mut flow, mut sender) = flow(LawKind::FlashPass, 10_000, &[EVEN]);
    let mut now = Time::ZERO;
    while let State::At(next) | State::Now(next) = state(&mut flow, &mut sender, now) {
        now = next;
        assert_eq!(flow.take(&mut sender, now).credit, None);
    }
    // 1538 bytes last 1230.4 ns: 813 in a millisecond.
    assert_eq!(flow.stats().unscheduled, 813);
    let signals = act(&mut flow, &mut sender, Time::from_ms(1), Time::from_us(1_001));
    let probes: Vec<_> = signals.iter().filter(|(_, signal)| *signal == Signal::Probe).collect();
    assert_eq!(probes, [&(Time::from_ms(1), Signal::Probe)]);
    // No packet was acknowledged: all are lost, and wait for credits.
    flow.on_probe_reply(&mut sender, Time::from_us(2_000), 0);
    assert!(sender.has_lost() && sender.waiting() == 10_000);
}

/// Without the probe an early start ends as it does otherwise.
#[test]
fn an_early_start_may_have_no_probe() {
    let (mut flow, mut sender) = flow(LawKind::FlashPass, 10_000, &[EVEN, ("probe", Setting::Switch(false))]);
    flow.take(&mut sender, Time::ZERO);
    let signals = act(&mut flow, &mut sender, Time::from_ms(1), Time::from_us(1_001));
    assert!(!signals.is_empty() && signals.iter().all(|(_, signal)| *signal != Signal::Probe), "{signals:?}");
    assert!(matches!(state(&mut flow, &mut sender, Time::from_us(1_001)), State::Never));
}

/// [`SendState`] with the time at which a packet may go.
enum State {
    Now(Time),
    At(Time),
    Never,
}

fn state(flow: &mut CreditSender, sender: &mut Sender<Law>, now: Time) -> State {
    match flow.poll(sender, now) {
        SendState::Now => State::Now(now),
        SendState::At(at) => State::At(at),
        SendState::Blocked => State::Never,
    }
}

/// A request at once; a stop once the credits of a round trip equal the packets left; a repetition a round trip later.
#[test]
fn a_sender_requests_and_stops_credits() {
    let (mut flow, mut sender) = flow(LawKind::ExpressPass, 4, &[]);
    assert_eq!(
        act(&mut flow, &mut sender, Time::ZERO, Time::from_ms(99)),
        [(Time::ZERO, Signal::Request { packets: 4 })]
    );
    let again = Time::from_ms(100);
    assert_eq!(flow.act(&mut sender, again), Some(Signal::Request { packets: 4 }));
    let mut credit = |us, number| {
        let now = Time::from_us(us);
        flow.on_credit(&mut sender, now, number);
        let taken = (flow.poll(&mut sender, now) == SendState::Now).then(|| flow.take(&mut sender, now).credit);
        (taken, flow.act(&mut sender, now))
    };
    assert_eq!(credit(101_000, 0), (Some(Some(0)), None));
    // Two are left, and two arrived within a round trip.
    assert_eq!(credit(101_010, 1), (Some(Some(1)), Some(Signal::Stop)));
    assert_eq!(credit(101_020, 3), (Some(Some(3)), None));
    assert_eq!(credit(101_030, 4), (Some(Some(4)), None));
    assert_eq!(credit(101_040, 5), (None, None));
    assert_eq!(credit(102_011, 6), (None, Some(Signal::Stop)));
    let stats = flow.stats();
    assert_eq!((stats.received, stats.used, stats.wasted), (6, 4, 2));
}

/// Without `stops_ahead`, the stop is sent with the credit for the last packet.
#[test]
fn a_sender_stops_when_nothing_is_left() {
    let (mut flow, mut sender) = flow(LawKind::ExpressPass, 4, &[("stops_ahead", Setting::Switch(false))]);
    act(&mut flow, &mut sender, Time::ZERO, Time::ZERO);
    let signals: Vec<_> = (0..4u32)
        .map(|number| {
            let now = Time::from_us(1_000 + 10 * u64::from(number));
            flow.on_credit(&mut sender, now, number);
            flow.take(&mut sender, now);
            flow.act(&mut sender, now)
        })
        .collect();
    assert_eq!(signals, [None, None, None, Some(Signal::Stop)]);
}

/// Echoes wait for half of the rest of `T_wait`, or for 32; a gap longer than the map releases the held echo.
#[test]
fn echoes_are_batched_while_there_is_time() {
    let mut emulation_receiver = EmulationReceiver::new(Some(Span::from_us(1_200)));
    let delay = Span::from_us(500);
    assert_eq!(emulation_receiver.on_emulation(Time::from_us(500), 0, delay), [None, None]);
    assert_eq!(emulation_receiver.next_action(), Time::from_us(600));
    assert_eq!(emulation_receiver.on_emulation(Time::from_us(510), 3, delay), [None, None]);
    assert_eq!(emulation_receiver.next_action(), Time::from_us(600));
    let held = Echo { newest: 3, map: 0b1001 };
    assert_eq!(emulation_receiver.on_emulation(Time::from_us(520), 34, delay), [Some(held), None]);
    assert_eq!(emulation_receiver.flush(), Some(Echo { newest: 34, map: 1 }));
    for number in 40..71 {
        assert_eq!(emulation_receiver.on_emulation(Time::from_us(530), number, delay), [None, None]);
    }
    let full = Echo { newest: 71, map: u32::MAX };
    assert_eq!(emulation_receiver.on_emulation(Time::from_us(540), 71, delay), [None, Some(full)]);
    // No time is left, or no wait is configured.
    let late = Echo { newest: 72, map: 1 };
    assert_eq!(emulation_receiver.on_emulation(Time::from_us(600), 72, Span::from_us(600)), [None, Some(late)]);
    assert_eq!(EmulationReceiver::new(None).on_emulation(Time::ZERO, 72, Span::ZERO), [None, Some(late)]);
}

/// Credits at half of the maximum for a flow of many packets; gaps in the numbers that data returns are losses.
#[test]
fn a_receiver_paces_credits_and_counts_lost_ones() {
    let law = build(LawKind::ExpressPass, &PATH, &[]).unwrap();
    let mut credit_receiver = CreditReceiver::new(law, CreditingConfig { stops_at_demand: true, ..CREDITING });
    assert_eq!(credit_receiver.next_action(), Time::NEVER);
    credit_receiver.on_request(Time::from_us(500), 1_000);
    let mut times = Vec::new();
    while credit_receiver.next_action() < Time::from_us(1_400) {
        let now = credit_receiver.next_action();
        times.push((credit_receiver.act(now).unwrap(), now));
    }
    // 84 bytes at 258.9 Mb/s last 2595.2 ns.
    assert_eq!(times[0], (0, Time::from_us(500)));
    assert!(times.windows(2).all(|pair| pair[1].1.since(pair[0].1).ps().abs_diff(2_595_200) <= 20));
    // Every second one is answered; the update comes with the first credit a round trip after the start.
    for number in (1..300).step_by(2) {
        credit_receiver.on_data(Time::from_us(1_500), number);
    }
    let (_, before) = credit_receiver.stats();
    let now = Time::from_us(1_510);
    assert_eq!(credit_receiver.act(now), Some(times.len() as u32));
    assert_eq!((before.cuts, credit_receiver.stats().1.cuts), (0, 1));
    credit_receiver.stop();
    assert_eq!(credit_receiver.act(Time::from_ms(5)), None);
}

/// A path that is down for a second: after four round trips of 1.2 ms credits are lost, the rate falls to one in a
/// round trip, and no more credits are kept than were sent in that time. Later data is processed, and the rate grows
/// again.
#[test]
fn credits_without_data_are_declared_lost() {
    let law = build(LawKind::ExpressPass, &PATH, &[]).unwrap();
    let mut credit_receiver = CreditReceiver::new(law, CreditingConfig { longest: Span::from_us(1_200), ..CREDITING });
    credit_receiver.on_request(Time::ZERO, 1_000_000);
    let mut until = |end: Time, data_follows: bool| {
        let before = credit_receiver.stats().0;
        while credit_receiver.next_action() < end {
            let now = credit_receiver.next_action();
            let number = credit_receiver.act(now).unwrap();
            if data_follows {
                credit_receiver.on_data(now + PATH.base_rtt, number);
            }
        }
        (credit_receiver.stats().0 - before, credit_receiver.unresolved())
    };
    // Half of the maximum, 2595.2 ns each, for 4.8 ms and up to a round trip more; then 995 in as many milliseconds.
    let (sent, kept) = until(Time::from_ms(1_000), false);
    assert!((1_850..1_850 + 386 + 1_000).contains(&sent), "{sent}");
    assert!(kept <= 6, "{kept}");
    let (sent, kept) = until(Time::from_ms(1_100), true);
    assert!(sent > 10_000 && kept == 0, "{sent}, {kept}");
}
