//! Reaction of a sender to a request for a packet that arrived without its payload.

use crate::open::{UnlimitedLaw, send};
use flow::{AckHeader, FlowConfig, Sender};
use units::{Bytes, Span, Time};

const RTT: Span = Span::from_us(100);

fn four() -> Sender<UnlimitedLaw> {
    let mut sender = Sender::new(FlowConfig::new(Bytes::new(4_000), 1_000, RTT), UnlimitedLaw, Time::ZERO);
    assert_eq!(send(&mut sender, Time::ZERO), [0, 1, 2, 3]);
    sender
}

fn nack(seq: u32, attempt: u8) -> AckHeader {
    AckHeader { seq, covers: 0, cumulative: 0, marked: false, attempt }
}

/// Only that packet is resent, at once, and the others stay in flight.
#[test]
fn a_requested_packet_is_retransmitted() {
    let mut sender = four();
    sender.on_nack(Time::from_us(100), &nack(2, 1));
    assert_eq!((sender.in_flight(), sender.delivered()), (Bytes::new(3_000), Bytes::ZERO));
    assert_eq!(send(&mut sender, Time::from_us(100)), [2]);
    let stats = sender.stats();
    assert_eq!((stats.nacks, stats.retransmits, stats.timeouts, stats.spurious), (1, 1, 0, 0));
}

/// A request for a transmission that is not the last one, or was already declared lost, changes nothing.
#[test]
fn an_old_request_changes_nothing() {
    let mut sender = four();
    let at = Time::from_us(100);
    sender.on_nack(at, &nack(2, 1));
    sender.on_nack(at, &nack(2, 1));
    assert_eq!(send(&mut sender, at), [2]);
    sender.on_nack(at, &nack(2, 1));
    assert_eq!(send(&mut sender, at), []);
    sender.on_nack(Time::from_us(200), &nack(2, 2));
    assert_eq!(send(&mut sender, Time::from_us(200)), [2]);
    // A packet that has arrived is no longer requested.
    sender.on_ack(Time::from_us(210), &AckHeader { seq: 3, covers: 1, cumulative: 0, marked: false, attempt: 1 }, &[]);
    sender.on_nack(Time::from_us(211), &nack(3, 1));
    assert_eq!((send(&mut sender, Time::from_us(211)), sender.stats().retransmits), (vec![], 2));
}

/// The cumulative number of a request counts, too: it may be the only report of the flow's end.
#[test]
fn a_request_may_report_completion() {
    let mut sender = four();
    sender.on_nack(Time::from_us(100), &AckHeader { cumulative: 4, ..nack(3, 1) });
    assert!(sender.is_complete() && sender.in_flight().is_zero());
}
