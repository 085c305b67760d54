//! One of the two packet number spaces of the handshake: its keys, the output of TLS in it, and received packets.

use alloc::vec::Vec;

use flow::{
    AckPolicy, Channel, ChannelConfig, CwndValidationConfig, DataSource, PacketContent, ReceivedPackets, ReturnReason,
    SendState,
};
use laws::{Fixed, Law, PathInfo, fixed};
use units::{Bytes, Rate, Span, Time};

use crate::assembler::Assembler;
use crate::event_buffer::EventBuffer;
use crate::frame::{Ack, AckContent, Frame};
use crate::keys::HandshakeKeys;
use crate::narrow::to_u32;
use crate::observe::LostNote;
use crate::receive_memory::ReceiveMemory;

/// Out-of-order bytes of CRYPTO frames that are kept.
pub(crate) const MAX_AHEAD: usize = 16 << 10;
pub(crate) const MAX_GAPS: usize = 16;
/// Bytes of CRYPTO that a peer may send in one space: TLS's messages here have a few hundred.
pub(crate) const MAX_CRYPTO: u64 = 32 << 10;
/// The round trip that is expected before one was measured (RFC 9002 §6.2.2).
pub(crate) const FIRST_RTT: Span = Span::from_ms(333);
/// The window of the handshake (RFC 9002 §7.2).
const WINDOW: u64 = 14_720;
/// Maximum number of packet records of a space.
const MAX_OUTSTANDING: u64 = 1_000;

/// Part of the output of TLS; no bytes for a PING.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct CryptoRange {
    offset: u32,
    len: u32,
}

/// Output of TLS, and the parts that are due.
#[derive(Debug, Default)]
pub(crate) struct Crypto {
    output: Vec<u8>,
    /// Length of the part that was sent, in bytes.
    sent: usize,
    lost: Vec<CryptoRange>,
    ping: bool,
    /// Buffer for the next packet; it may have frames already.
    pub(crate) packet: Vec<u8>,
    /// Maximum length of the packet, in bytes.
    pub(crate) max_len: usize,
    /// Packets declared lost, for the observer.
    pub(crate) lost_packets: EventBuffer<LostNote>,
}

impl Crypto {
    /// Appends output of TLS.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Returns the length of TLS's output, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.output.len()
    }

    /// Returns the output of TLS.
    pub(crate) fn into_output(self) -> Vec<u8> {
        self.output
    }

    /// Queues a PING.
    pub(crate) fn ping(&mut self) {
        self.ping = true;
    }
}

/// The longest head of a CRYPTO frame: its type, and an offset and a length below 2^30.
const CRYPTO_HEAD: usize = 1 + 4 + 4;

impl DataSource for Crypto {
    type Content = CryptoRange;

    fn next_bytes(&mut self, mss: u32) -> Option<u32> {
        (self.ping || self.sent < self.output.len() || !self.lost.is_empty()).then_some(mss)
    }

    fn take(&mut self, _: u8, _: u32) -> PacketContent<CryptoRange> {
        let before = self.packet.len();
        debug_assert!(self.sent <= self.output.len(), "{} of {} bytes were sent", self.sent, self.output.len());
        // The oldest first: while a peer is silent one packet is sent at a time, and each part should be repeated in turn.
        let again = (!self.lost.is_empty()).then(|| self.lost.remove(0));
        let mut part = again.unwrap_or(CryptoRange {
            offset: to_u32(self.sent as u64),
            len: to_u32((self.output.len() - self.sent) as u64),
        });
        let room = to_u32(self.max_len.saturating_sub(before + CRYPTO_HEAD) as u64);
        if part.len > room {
            if again.is_some() {
                self.lost.insert(0, CryptoRange { offset: part.offset + room, len: part.len - room });
            }
            part.len = room;
        }
        if part.len > 0 {
            let (start, end) = (part.offset as usize, (part.offset + part.len) as usize);
            self.sent = self.sent.max(end);
            Frame::Crypto { offset: part.offset.into(), data: &self.output[start..end] }.put(&mut self.packet);
        } else {
            Frame::Ping.put(&mut self.packet);
        }
        self.ping = false;
        PacketContent {
            bytes: to_u32((self.packet.len() - before) as u64),
            content: part,
            is_retransmission: again.is_some(),
        }
    }

    fn acked(&mut self, part: CryptoRange) {
        self.lost.retain(|&lost| lost != part);
    }

    fn lost(&mut self, part: CryptoRange, why: ReturnReason) {
        if let ReturnReason::Lost { subflow, number, cause } = why {
            self.lost_packets.record(|| LostNote { subflow, number, cause });
        }
        if part.len == 0 {
            self.ping = true;
        } else if !self.lost.contains(&part) {
            self.lost.push(part);
        }
    }
}

/// A packet with complete frames.
pub(crate) struct WrittenPacket {
    pub(crate) number: u64,
    /// Set if it counts as in flight.
    pub(crate) in_flight: bool,
}

/// One of the two number spaces of the handshake.
pub(crate) struct Space {
    pub(crate) keys: HandshakeKeys,
    pub(crate) channel: Channel<Law, Crypto>,
    pub(crate) arrivals: ReceivedPackets,
    pub(crate) incoming: Assembler,
}

impl Space {
    /// Creates a space over a path of this RTT, or an estimate of it, in packets of `mss` bytes of payload.
    pub(crate) fn new(now: Time, rtt: Span, mss: u32, keys: HandshakeKeys) -> Self {
        let path =
            PathInfo { base_rtt: rtt, intra_rtt: rtt, line_rate: Rate::from_gbps(1), mss: Bytes::new(mss.into()) };
        let params = fixed::Params { window: Bytes::new(WINDOW), ..fixed::Params::for_path(&path) };
        let law = Law::Fixed(Fixed::new(&path, params));
        let mut config = ChannelConfig { max_outstanding: MAX_OUTSTANDING, ..ChannelConfig::new(rtt, mss) };
        config.usage = CwndValidationConfig::default();
        // Acknowledgements are never delayed in the handshake (RFC 9000 §13.2.1).
        let ack_policy = AckPolicy { every: 1, delay: Span::ZERO, echo: Span::ZERO, timestamps: false };
        Self {
            keys,
            channel: Channel::new(config, law, Crypto::default(), now),
            arrivals: ReceivedPackets::new(ack_policy),
            incoming: Assembler::new(MAX_GAPS, MAX_AHEAD, ReceiveMemory::default()),
        }
    }

    /// Returns whether a packet would be sent now.
    pub(crate) fn has_something(&mut self, now: Time) -> bool {
        self.arrivals.ack_due_at() <= now || self.channel.poll(now) == SendState::Now
    }

    /// Writes the frames of a packet at the end of `out`, up to a length of `max_len`. None if nothing is due; `out` is
    /// unchanged then.
    pub(crate) fn write(&mut self, now: Time, out: &mut Vec<u8>, max_len: usize) -> Option<WrittenPacket> {
        let begun = out.len();
        if self.arrivals.newest().is_some()
            && let Some(acks) = self.arrivals.ack(now)
        {
            let ecn = acks.ecn.unwrap_or_default();
            Ack::put(out, &AckContent { path: 0, delay: acks.delay, ranges: acks.ranges, ecn, times: &[] });
            self.arrivals.on_ack_sent();
        }
        let work = self.channel.work_mut();
        core::mem::swap(&mut work.packet, out);
        work.max_len = max_len;
        let departed = self.channel.send(now);
        core::mem::swap(&mut self.channel.work_mut().packet, out);
        if let Some(departed) = departed {
            return Some(WrittenPacket { number: departed.number, in_flight: true });
        }
        if out.len() == begun { None } else { self.number_apart(now) }
    }

    /// Returns the number of a packet that does not count as in flight.
    pub(crate) fn number_apart(&mut self, now: Time) -> Option<WrittenPacket> {
        self.channel.number_apart(0, now).map(|number| WrittenPacket { number, in_flight: false })
    }
}
