//! Counts of marks, as payload.

use units::Bytes;

/// Returns the payload that counts as marked when a host receives `marks` marks for `packets` acknowledged packets with
/// `acked` payload in all: `marks` packets of their mean size, and at most all of it. A host that counts codepoints (QUIC,
/// RFC 9000 §19.3.2) knows the number of marked packets only.
///
/// No overflow: No more than 2^40 bytes and 2^24 packets are ever acknowledged at once; more marks than packets count as all.
#[inline]
pub const fn marked_share(acked: Bytes, packets: u64, marks: u64) -> Bytes {
    if marks >= packets {
        return if marks == 0 { Bytes::ZERO } else { acked };
    }
    Bytes::new(acked.get() * marks / packets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_count_for_packets_of_mean_size() {
        let share = |acked, packets, marks| marked_share(Bytes::new(acked), packets, marks).get();
        assert_eq!([share(10_000, 10, 3), share(1_001, 2, 1), share(9, 3, 0)], [3_000, 500, 0]);
        assert_eq!([share(9, 3, 3), share(9, 3, 7), share(0, 0, 0), share(0, 0, 2)], [9, 9, 0, 0]);
        assert_eq!(share(1 << 40, 1 << 23, (1 << 23) - 1), (1 << 40) - (1 << 17));
    }
}
