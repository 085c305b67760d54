//! The kernel's `struct tcp_info`, read by offset. Fields that an older kernel lacks are zero; fields that a newer one
//! adds are ignored. Offsets as in `include/uapi/linux/tcp.h` of Linux 6.18.

use units::{Bytes, Rate, Span};

/// Counters and state of one TCP socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TcpInfo {
    /// TCP's state: 1 is established.
    pub state: u8,
    /// 0 open, 1 disorder, 2 congestion window reduced, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Retransmission timeouts in a row of the oldest segment.
    pub retransmits: u8,
    /// Negotiated options; bit 3 is ECN.
    pub options: u8,
    /// Maximum payload of a sent segment.
    pub snd_mss: u32,
    /// Smoothed round trip.
    pub rtt: Span,
    /// Windowed minimum of the round trip.
    pub min_rtt: Span,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Slow-start threshold, in segments.
    pub ssthresh: u32,
    /// Retransmitted segments.
    pub total_retrans: u32,
    /// Pacing rate; [`Rate::MAX`] if the socket is not paced.
    pub pacing_rate: Rate,
    /// Bytes acknowledged. A SYN or FIN that was acknowledged may count as one.
    pub bytes_acked: Bytes,
    /// Bytes received in order.
    pub bytes_received: Bytes,
    /// Segments with payload sent, retransmissions included.
    pub data_segs_out: u32,
    /// Time with data to send or in flight, as exact as the kernel's ticks (1 to 10 ms).
    pub busy: Span,
    /// Delivered segments.
    pub delivered: u32,
    /// Delivered segments with an ACK that echoed a mark.
    pub delivered_ce: u32,
    /// Payload sent, retransmissions included.
    pub bytes_sent: Bytes,
    /// Retransmitted payload.
    pub bytes_retrans: Bytes,
    /// Duplicate segments reported by DSACK: spurious retransmissions.
    pub dsack_dups: u32,
    /// Retransmission timeouts (Linux 6.7 and later).
    pub total_rto: u16,
}

/// `TCPI_OPT_ECN`.
const OPT_ECN: u8 = 8;

impl TcpInfo {
    /// Reads the structure as the kernel wrote it, in the machine's byte order, of any length.
    pub fn parse(bytes: &[u8]) -> Self {
        let u8_at = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let u16_at = |at: usize| word(bytes, at).map_or(0, u16::from_ne_bytes);
        let u32_at = |at: usize| word(bytes, at).map_or(0, u32::from_ne_bytes);
        let u64_at = |at: usize| word(bytes, at).map_or(0, u64::from_ne_bytes);
        Self {
            state: u8_at(0),
            ca_state: u8_at(1),
            retransmits: u8_at(2),
            options: u8_at(5),
            snd_mss: u32_at(16),
            rtt: Span::from_us(i64::from(u32_at(68))),
            ssthresh: u32_at(76),
            cwnd: u32_at(80),
            total_retrans: u32_at(100),
            pacing_rate: bits(u64_at(104)),
            bytes_acked: Bytes::new(u64_at(120)),
            bytes_received: Bytes::new(u64_at(128)),
            min_rtt: match u32_at(148) {
                // Not measured yet.
                u32::MAX => Span::ZERO,
                us => Span::from_us(i64::from(us)),
            },
            data_segs_out: u32_at(156),
            busy: Span::from_us(u64_at(168).min(1 << 40) as i64),
            delivered: u32_at(192),
            delivered_ce: u32_at(196),
            bytes_sent: Bytes::new(u64_at(200)),
            bytes_retrans: Bytes::new(u64_at(208)),
            dsack_dups: u32_at(216),
            total_rto: u16_at(240),
        }
    }

    /// Returns true if both ends agreed on ECN.
    pub fn ecn(&self) -> bool {
        self.options & OPT_ECN != 0
    }

    /// The congestion window in bytes.
    pub fn window(&self) -> Bytes {
        Bytes::new(u64::from(self.cwnd) * u64::from(self.snd_mss))
    }
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// Bytes per second as a rate, saturating: the kernel's value for unlimited is the maximum.
fn bits(bytes_per_s: u64) -> Rate {
    bytes_per_s.checked_mul(8).map_or(Rate::MAX, Rate::from_bps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        let mut bytes = vec![0u8; 248];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(0, &[1, 3, 2]);
        put(5, &[OPT_ECN]);
        put(16, &1448u32.to_ne_bytes());
        put(68, &20_500u32.to_ne_bytes());
        put(80, &10u32.to_ne_bytes());
        put(104, &u64::MAX.to_ne_bytes());
        put(120, &5_000_000_000u64.to_ne_bytes());
        put(148, &u32::MAX.to_ne_bytes());
        put(240, &7u16.to_ne_bytes());
        let info = TcpInfo::parse(&bytes);
        assert_eq!((info.state, info.ca_state, info.retransmits, info.ecn()), (1, 3, 2, true));
        assert_eq!((info.rtt, info.min_rtt), (Span::from_us(20_500), Span::ZERO));
        assert_eq!((info.window(), info.pacing_rate), (Bytes::new(14_480), Rate::MAX));
        assert_eq!((info.bytes_acked, info.total_rto), (Bytes::new(5_000_000_000), 7));
        // An older kernel reports fewer fields: the rest is zero.
        let older = TcpInfo::parse(&bytes[..104]);
        assert_eq!((older.cwnd, older.bytes_acked, older.total_rto), (10, Bytes::ZERO, 0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let info = TcpInfo::parse(&bytes);
            prop_assert!(info.rtt >= Span::ZERO && info.min_rtt >= Span::ZERO);
        }
    }
}
