//! Body of the fuzz target. A test replays its corpus through the same function.

use clockd::fuzzing::FuzzedMember;
use units::{Span, Time};

/// Takes the bytes as a datagram without the key, and then as messages with it. Each has a head of five bytes: time before it
/// in units of 25 ms, sender, second byte of the message, and length of the content; from the sender 128 on the content is the
/// whole message.
pub(crate) fn message(bytes: &[u8]) {
    let (mut member, mut now) = (FuzzedMember::default(), Time::ZERO);
    assert!(!member.receive(now, bytes), "accepted without the key");
    let mut rest = bytes;
    while let Some(([pause, sender, kind, high, low], tail)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(tail.len());
        let (content, after) = tail.split_at(length);
        rest = after;
        now += Span::from_ms(25 * i64::from(*pause));
        let whole =
            if *sender < 128 { FuzzedMember::message(u16::from(*sender), *kind, content) } else { content.to_vec() };
        member.receive_sealed(now, &whole);
        member.wake(now);
    }
}
