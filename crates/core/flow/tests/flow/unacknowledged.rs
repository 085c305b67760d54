//! A receiver that does not acknowledge: the effect of a request, and the end of a flow that loses its last packet, a request
//! or the completion report.

use crate::open::{UnlimitedLaw, send};
use flow::{AckHeader, AckReply, DataHeader, FlowConfig, Receiver, Recovery, Sender};
use units::{Bytes, Span, Time};

const RTT: Span = Span::from_us(100);
const RECOVERY: Recovery = Recovery::GoBackN { nack_interval: RTT, acks: false };

/// Creates a flow of four packets, all sent at time zero.
fn four() -> (Sender<UnlimitedLaw>, Receiver) {
    let config = FlowConfig { recovery: RECOVERY, ..FlowConfig::new(Bytes::new(4_000), 1_000, RTT) };
    let mut sender = Sender::new(config, UnlimitedLaw, Time::ZERO);
    assert_eq!(send(&mut sender, Time::ZERO), [0, 1, 2, 3]);
    (sender, Receiver::new(4, 8, RECOVERY))
}

/// Delivers packets to a receiver. Returns its replies.
fn arrive(receiver: &mut Receiver, now: Time, packets: &[u32]) -> Vec<AckReply> {
    let packet = |&seq: &u32| DataHeader { seq, marked: false, requests_ack: true };
    packets.iter().map(packet).flat_map(|packet| receiver.on_data(now, packet)).flatten().collect()
}

fn receive(sender: &mut Sender<UnlimitedLaw>, now: Time, reply: AckReply) {
    let AckReply { seq, covers, cumulative, marked, nack } = reply;
    let header = AckHeader { seq, covers, cumulative, marked, attempt: 1 };
    if nack { sender.on_nack(now, &header) } else { sender.on_ack(now, &header, &[]) }
}

/// Fires the sender's timer. Returns the time, and the packets sent then.
fn expire_timer(sender: &mut Sender<UnlimitedLaw>) -> (Time, Vec<u32>) {
    let now = sender.next_timer();
    sender.on_timer(now);
    (now, send(sender, now))
}

/// Packet 1 is lost: one request, which acknowledges packet 0, and all from 1 on are sent again.
#[test]
fn a_request_triggers_go_back_n() {
    let (mut sender, mut receiver) = four();
    let requests = arrive(&mut receiver, Time::from_us(50), &[0, 2, 3]);
    assert_eq!(requests, [AckReply { seq: 2, covers: 1, cumulative: 1, marked: false, nack: true }]);
    receive(&mut sender, Time::from_us(100), requests[0]);
    assert_eq!((sender.delivered(), sender.in_flight()), (Bytes::new(1_000), Bytes::ZERO));
    assert_eq!(send(&mut sender, Time::from_us(100)), [1, 2, 3]);
    let reports = arrive(&mut receiver, Time::from_us(150), &[1, 2, 3]);
    assert_eq!(reports, [AckReply { seq: 3, covers: 1, cumulative: 4, marked: false, nack: false }]);
    receive(&mut sender, Time::from_us(200), reports[0]);
    assert!(sender.is_complete() && sender.in_flight().is_zero());
    assert_eq!((sender.stats().retransmits, sender.stats().nacks, sender.stats().timeouts), (3, 1, 0));
}

/// The last packet is lost. It is resent alone, after a timeout, and then after one twice as long.
#[test]
fn a_lost_last_packet_is_retransmitted_alone() {
    let (mut sender, mut receiver) = four();
    assert_eq!(arrive(&mut receiver, Time::from_us(50), &[0, 1, 2]), []);
    let (first, sent) = expire_timer(&mut sender);
    assert!(first >= Time::ZERO + RTT.times(2), "{first}");
    assert_eq!(sent, [3]);
    let (second, sent) = expire_timer(&mut sender);
    assert_eq!((second.since(first), sent), (first.since(Time::ZERO).times(2), vec![3]));
    let reports = arrive(&mut receiver, second, &[3]);
    receive(&mut sender, second + RTT, reports[0]);
    assert!(sender.is_complete() && receiver.is_complete());
    assert_eq!(sender.stats().retransmits, 2);
}

/// The request for packet 1 is lost: the last packet, which the timer sends again, makes the receiver repeat it.
#[test]
fn a_lost_request_is_repeated_for_the_last_packet() {
    let (mut sender, mut receiver) = four();
    assert_eq!(arrive(&mut receiver, Time::from_us(50), &[0, 2, 3]).len(), 1);
    let (now, sent) = expire_timer(&mut sender);
    assert_eq!(sent, [3]);
    let requests = arrive(&mut receiver, now, &[3]);
    receive(&mut sender, now, requests[0]);
    assert_eq!(send(&mut sender, now), [1, 2, 3]);
    let reports = arrive(&mut receiver, now, &[1, 2, 3]);
    receive(&mut sender, now, reports[0]);
    assert!(sender.is_complete());
}

/// The completion report is lost: it is repeated when the last packet arrives again.
#[test]
fn a_lost_completion_report_is_repeated() {
    let (mut sender, mut receiver) = four();
    assert_eq!(arrive(&mut receiver, Time::from_us(50), &[0, 1, 2, 3]).len(), 1);
    let (now, sent) = expire_timer(&mut sender);
    let reports = arrive(&mut receiver, now, &sent);
    receive(&mut sender, now, reports[0]);
    assert!(sender.is_complete());
    assert_eq!((sender.stats().retransmits, sender.delivered()), (1, Bytes::new(4_000)));
}

/// The reply to a probe acknowledges the packets that it reports as received. All others sent before the probe are resent.
#[test]
fn a_probe_reply_acknowledges() {
    let (mut sender, _) = four();
    sender.on_probe_reply(Time::from_us(100), Time::ZERO, 2);
    assert_eq!((sender.delivered(), sender.in_flight()), (Bytes::new(2_000), Bytes::ZERO));
    assert_eq!(send(&mut sender, Time::from_us(100)), [2, 3]);
}
