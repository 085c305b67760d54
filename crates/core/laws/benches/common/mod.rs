//! Synthetic flow events, as if recorded.

use laws::catalog::{LawKind, build};
use laws::{Ack, ControlLaw, Cookie, Law, Loss, LossCause, PathInfo, SendLimits};
use units::{Bytes, Rate, Span, Time, mix64};

/// 100 Gb/s, 14 us.
pub(crate) const PATH: PathInfo = PathInfo {
    base_rtt: Span::from_us(14),
    intra_rtt: Span::from_us(14),
    line_rate: Rate::from_gbps(100),
    mss: Bytes::new(4_096),
};

/// A law at the start of a flow.
pub(crate) fn law(kind: LawKind) -> Law {
    build(kind, &PATH, &[]).expect("the defaults hold")
}

/// 1,000 acknowledgements, one per packet of a flow at line rate. Every fourth round trip has a queue: round trips grow to
/// twice the base, and half of the packets are marked.
pub(crate) fn acks() -> Vec<Ack<'static>> {
    let gap = PATH.line_rate.tx_time(PATH.mss);
    let packets_per_rtt = PATH.bdp().get() / PATH.mss.get();
    let ack = |index: u64| {
        let now = Time::from_ms(1) + gap.times(index as u32);
        let queued = index / packets_per_rtt % 4 == 3;
        let rtt = if queued { PATH.base_rtt + gap.times((index % packets_per_rtt) as u32) } else { PATH.base_rtt };
        let marked = queued && mix64(index).is_multiple_of(2);
        Ack {
            now,
            sent_at: now - rtt,
            rtt,
            acked: PATH.mss,
            marked: if marked { PATH.mss } else { Bytes::ZERO },
            in_flight: PATH.bdp(),
            delivered: PATH.mss.times(index + 1),
            bytes_remaining: Bytes::MAX,
            delivered_at_send: PATH.mss.times(index.saturating_sub(packets_per_rtt)),
            delivered_time_at_send: now - rtt,
            send_elapsed: PATH.base_rtt,
            app_limited: false,
            sample_limited: false,
            cookie: Cookie::NONE,
            hops: &[],
        }
    };
    (0..1_000).map(ack).collect()
}

/// Reports all of them and one loss to a law.
pub(crate) fn steps(mut law: Law, acks: &[Ack]) -> SendLimits {
    for ack in acks {
        law.on_ack(ack);
        std::hint::black_box(law.send_limits());
    }
    let Some(last) = acks.last() else { return law.send_limits() };
    let Ack { now, sent_at, acked: lost, in_flight, .. } = *last;
    law.on_loss(&Loss { now, sent_at, lost, in_flight, cause: LossCause::Reordered });
    law.send_limits()
}
