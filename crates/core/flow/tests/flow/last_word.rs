//! An acknowledgement without news can still report that everything has arrived.

use crate::open::{UnlimitedLaw, send};
use flow::{AckHeader, FlowConfig, Sender};
use units::{Bytes, Span, Time};

/// Both packets are sent twice because the first acknowledgement is late; that of the second packet is lost. The reply to the
/// needless copy of the first one is the only report of completion: no later one follows, and a host looks for completion
/// only when an acknowledgement arrives.
#[test]
fn the_ack_of_a_duplicate_completes_the_flow() {
    let rtt = Span::from_us(100);
    let config = FlowConfig::new(Bytes::new(2_000), 1_000, rtt);
    let mut sender = Sender::new(config, UnlimitedLaw, Time::ZERO);
    let mut now = Time::ZERO;
    for _ in 0..2 {
        assert_eq!(send(&mut sender, now), [0, 1]);
        now = sender.next_timer();
        sender.on_timer(now);
    }
    send(&mut sender, now);
    now += Span::from_us(1);
    sender.on_ack(now, &AckHeader { seq: 0, covers: 1, cumulative: 1, marked: false, attempt: 1 }, &[]);
    assert!(!sender.is_complete());
    now += Span::from_us(1);
    sender.on_ack(now, &AckHeader { seq: 0, covers: 1, cumulative: 2, marked: false, attempt: 2 }, &[]);
    assert!(sender.is_complete());
    assert_eq!((sender.delivered(), sender.in_flight()), (Bytes::new(2_000), Bytes::ZERO));
}
