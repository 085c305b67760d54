//! Packet bodies and their packed form: ten bytes, and two bits among the packet's flags. A body is packed and unpacked
//! as a whole, so no field is read under the name of another kind.

use flow::credits::Echo;
use flow::{AckHeader, BlockNack, MAX_PACKETS};
use units::Rate;

/// The kind of a packet. Together with its answer flag it determines its [`Body`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum BodyKind {
    /// Data, or an acknowledgement of it.
    #[default]
    Transfer,
    /// A receiver's negative acknowledgement; otherwise an acknowledgement.
    Nack,
    /// Congestion notification packet (CNP) of a receiver that receives ECN marks.
    Cnp,
    /// A switch's notification that the source is to reduce its rate.
    DirectCnp,
    /// A switch's report of the ports that a packet has passed so far.
    DirectInt,
    /// Arrival time of a packet, by the receiver's clock.
    OrAck,
    /// Pauses a class on the link's other direction.
    Pause,
    /// Ends a pause.
    Resume,
    /// A rate from the far end of a long-haul link to the near one.
    Feedback,
    /// A receiver's request for packets of a block.
    BlockNack,
    /// Asks a receiver for credits (`ExpressPass`).
    Request,
    /// Asks it for no more.
    Stop,
    /// Lets the sender send a packet.
    Credit,
    /// Rehearses a packet on its path (`FlashPass`).
    Emulation,
    /// A receiver's report of the emulation packets that arrived.
    Echo,
    /// The last of an early start, and its answer.
    Probe,
    /// The header of data with a payload that was trimmed by a switch.
    Trimmed,
}

/// The second of a probe's bytes, if the packet is no probe but corrupted. Ports take a probe for data that is not
/// ECN-capable, and its answer for control: so a corrupted packet passes ports as it did before, and they need no check.
pub(crate) const CORRUPTED: u8 = 1;

impl BodyKind {
    /// By number; the numbers left over mean nothing.
    pub(crate) const ALL: [Self; 32] = {
        let mut all = [Self::Transfer; 32];
        all[Self::Nack as usize] = Self::Nack;
        all[Self::Cnp as usize] = Self::Cnp;
        all[Self::DirectCnp as usize] = Self::DirectCnp;
        all[Self::DirectInt as usize] = Self::DirectInt;
        all[Self::OrAck as usize] = Self::OrAck;
        all[Self::Pause as usize] = Self::Pause;
        all[Self::Resume as usize] = Self::Resume;
        all[Self::Feedback as usize] = Self::Feedback;
        all[Self::BlockNack as usize] = Self::BlockNack;
        all[Self::Request as usize] = Self::Request;
        all[Self::Stop as usize] = Self::Stop;
        all[Self::Credit as usize] = Self::Credit;
        all[Self::Emulation as usize] = Self::Emulation;
        all[Self::Echo as usize] = Self::Echo;
        all[Self::Probe as usize] = Self::Probe;
        all[Self::Trimmed as usize] = Self::Trimmed;
        all
    };
}

/// The content of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// Data of a flow.
    Data {
        /// Its number in the flow.
        seq: u32,
        /// The transmission count of that packet, from 1 on.
        attempt: u8,
        /// The number of the receiver's credit that it uses.
        credit: Option<u32>,
    },
    /// An acknowledgement.
    Ack(AckHeader),
    /// The same, and a request to retransmit from `cumulative` on. With selective recovery it acknowledges nothing: it
    /// requests a retransmission of `seq`, because this transmission arrived trimmed.
    Nack(AckHeader),
    /// The receiver received this packet, or earlier ones, with marks.
    Cnp {
        /// The packet's number in its flow.
        seq: u32,
        /// Its transmission count.
        attempt: u8,
    },
    /// A switch's request to the source to send less.
    DirectCnp,
    /// A switch returns the INT reports that this packet has collected so far. They are stored next to the packet
    /// ([`TelemetrySlot`]).
    ///
    /// [`TelemetrySlot`]: crate::TelemetrySlot
    DirectInt {
        /// The packet's number in its flow.
        seq: u32,
        /// Its transmission count.
        attempt: u8,
    },
    /// Arrival time of this packet.
    OrAck {
        /// Its number in its flow.
        seq: u32,
        /// Its transmission count.
        attempt: u8,
        /// By the receiver's clock, which wraps.
        clock_ns: u32,
    },
    /// Pauses the packet's class.
    Pause,
    /// Ends that.
    Resume,
    /// The rate that the far end of a long-haul link allows.
    Feedback(Rate),
    /// Packets of a block that are missing.
    BlockNack(BlockNack),
    /// Asks for credits.
    Request {
        /// For how many packets.
        packets: u32,
    },
    /// Asks for no more credits.
    Stop,
    /// A credit.
    Credit {
        /// Credits of a flow are counted.
        number: u32,
    },
    /// A rehearsal of a packet.
    Emulation {
        /// They are counted, too.
        number: u32,
        /// Its departure time, by its host's clock, which wraps.
        clock_ns: u32,
    },
    /// The emulation packets that arrived.
    Echo(Echo),
    /// Data that a switch trimmed, because it had no room for the payload.
    Trimmed {
        /// Its number in its flow.
        seq: u32,
        /// Its transmission count.
        attempt: u8,
    },
    /// Asks for the arrival status.
    Probe,
    /// The answer.
    ProbeReply {
        /// Every packet below has been received.
        cumulative: u32,
    },
    /// Bits that no receiver can read: a checksum rejects them.
    Corrupted,
}

/// A body's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct BodyBytes {
    /// The packet's number, or a body's own number, in bodies that have one: random decisions at ports depend on it.
    pub(crate) number: u32,
    pub(crate) word: u32,
    pub(crate) bytes: [u8; 2],
}

/// The kind of a body, and those of its flags ([`REPLY`], [`MARKED`]) that are set.
pub(crate) struct Label {
    pub(crate) kind: BodyKind,
    pub(crate) flags: u8,
}

/// A receiver's answer to a packet.
pub(crate) const REPLY: u8 = 1;
/// Marked by a queue; of an acknowledgement: the acknowledged data was marked.
pub(crate) const MARKED: u8 = 2;

impl Body {
    /// Packs it.
    #[inline(always)]
    pub(crate) fn pack(self) -> (Label, BodyBytes) {
        let nothing = BodyBytes::default();
        let (kind, flags, words) = match self {
            Self::Data { seq, attempt, credit } => {
                let word = credit.map_or(0, |number| number.wrapping_add(1));
                (BodyKind::Transfer, 0, BodyBytes { number: seq, word, bytes: [attempt, 0] })
            }
            Self::Ack(header) => (BodyKind::Transfer, flags_of(&header), BodyBytes::acknowledging(&header)),
            Self::Nack(header) => (BodyKind::Nack, flags_of(&header), BodyBytes::acknowledging(&header)),
            Self::Cnp { seq, attempt } => (BodyKind::Cnp, REPLY, BodyBytes::about(seq, attempt)),
            Self::DirectCnp => (BodyKind::DirectCnp, 0, nothing),
            Self::DirectInt { seq, attempt } => (BodyKind::DirectInt, 0, BodyBytes::about(seq, attempt)),
            Self::OrAck { seq, attempt, clock_ns } => {
                (BodyKind::OrAck, REPLY, BodyBytes { word: clock_ns, ..BodyBytes::about(seq, attempt) })
            }
            Self::Pause => (BodyKind::Pause, 0, nothing),
            Self::Resume => (BodyKind::Resume, 0, nothing),
            Self::Feedback(rate) => {
                let (number, word) = (rate.bps() as u32, (rate.bps() >> 32) as u32);
                (BodyKind::Feedback, 0, BodyBytes { number, word, bytes: [0; 2] })
            }
            Self::BlockNack(BlockNack { block, missing }) => {
                const { assert!(MAX_PACKETS as u32 <= u32::BITS + 2 * u8::BITS) };
                let bytes = [(missing >> 32) as u8, (missing >> 40) as u8];
                (BodyKind::BlockNack, REPLY, BodyBytes { number: block, word: missing as u32, bytes })
            }
            Self::Request { packets } => (BodyKind::Request, 0, BodyBytes { word: packets, ..nothing }),
            Self::Stop => (BodyKind::Stop, 0, nothing),
            Self::Credit { number } => (BodyKind::Credit, 0, BodyBytes { number, ..nothing }),
            Self::Emulation { number, clock_ns } => {
                (BodyKind::Emulation, 0, BodyBytes { number, word: clock_ns, ..nothing })
            }
            Self::Echo(Echo { newest, map }) => (BodyKind::Echo, 0, BodyBytes { number: newest, word: map, ..nothing }),
            Self::Trimmed { seq, attempt } => (BodyKind::Trimmed, 0, BodyBytes::about(seq, attempt)),
            Self::Probe => (BodyKind::Probe, 0, nothing),
            Self::ProbeReply { cumulative } => (BodyKind::Probe, REPLY, BodyBytes { word: cumulative, ..nothing }),
            Self::Corrupted => (BodyKind::Probe, 0, BodyBytes { bytes: [0, CORRUPTED], ..nothing }),
        };
        (Label { kind, flags }, words)
    }

    /// The body that was packed like this.
    #[inline]
    pub(crate) fn unpack(label: &Label, words: BodyBytes) -> Self {
        let BodyBytes { number, word, bytes: [attempt, _] } = words;
        let answers = label.flags & REPLY != 0;
        match label.kind {
            BodyKind::Transfer if !answers => Self::Data { seq: number, attempt, credit: words.credit() },
            BodyKind::Transfer => Self::Ack(words.header(label.flags)),
            BodyKind::Nack => Self::Nack(words.header(label.flags)),
            BodyKind::Cnp => Self::Cnp { seq: number, attempt },
            BodyKind::DirectCnp => Self::DirectCnp,
            BodyKind::DirectInt => Self::DirectInt { seq: number, attempt },
            BodyKind::OrAck => Self::OrAck { seq: number, attempt, clock_ns: word },
            BodyKind::Pause => Self::Pause,
            BodyKind::Resume => Self::Resume,
            BodyKind::Feedback => Self::Feedback(Rate::from_bps(u64::from(word) << 32 | u64::from(number))),
            BodyKind::BlockNack => {
                let [low, high] = words.bytes.map(u64::from);
                Self::BlockNack(BlockNack { block: number, missing: high << 40 | low << 32 | u64::from(word) })
            }
            BodyKind::Request => Self::Request { packets: word },
            BodyKind::Stop => Self::Stop,
            BodyKind::Credit => Self::Credit { number },
            BodyKind::Emulation => Self::Emulation { number, clock_ns: word },
            BodyKind::Echo => Self::Echo(Echo { newest: number, map: word }),
            BodyKind::Trimmed => Self::Trimmed { seq: number, attempt },
            BodyKind::Probe if words.bytes[1] == CORRUPTED => Self::Corrupted,
            BodyKind::Probe if !answers => Self::Probe,
            BodyKind::Probe => Self::ProbeReply { cumulative: word },
        }
    }
}

#[inline(always)]
fn flags_of(header: &AckHeader) -> u8 {
    REPLY | if header.marked { MARKED } else { 0 }
}

impl BodyBytes {
    /// Packs a reference to a packet.
    #[inline(always)]
    fn about(seq: u32, attempt: u8) -> Self {
        Self { number: seq, word: 0, bytes: [attempt, 0] }
    }

    #[inline(always)]
    fn acknowledging(header: &AckHeader) -> Self {
        let AckHeader { seq, covers, cumulative, attempt, marked: _ } = *header;
        Self { number: seq, word: cumulative, bytes: [attempt, covers] }
    }

    /// Returns the credit that this data uses.
    #[inline(always)]
    pub(crate) fn credit(self) -> Option<u32> {
        (self.word != 0).then(|| self.word - 1)
    }

    /// Returns the header of this acknowledgement, which has these flags.
    #[inline(always)]
    pub(crate) fn header(self, flags: u8) -> AckHeader {
        let [attempt, covers] = self.bytes;
        AckHeader { seq: self.number, covers, cumulative: self.word, marked: flags & MARKED != 0, attempt }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every body survives packing and unpacking, with any field values.
        #[test]
        fn bodies_round_trip(
            (seq, word) in (any::<u32>(), 0..u32::MAX),
            (attempt, covers) in (any::<u8>(), any::<u8>()),
            (marked, missing) in (any::<bool>(), 0..1u64 << MAX_PACKETS),
        ) {
            let header = AckHeader { seq, covers, cumulative: word, marked, attempt };
            let bodies = [
                Body::Data { seq, attempt, credit: None },
                Body::Data { seq, attempt, credit: Some(word) },
                Body::Ack(header),
                Body::Nack(header),
                Body::Cnp { seq, attempt },
                Body::DirectCnp,
                Body::DirectInt { seq, attempt },
                Body::OrAck { seq, attempt, clock_ns: word },
                Body::Pause,
                Body::Resume,
                Body::Feedback(Rate::from_bps(u64::from(word) << 32 | u64::from(seq))),
                Body::BlockNack(BlockNack { block: seq, missing }),
                Body::Request { packets: word },
                Body::Stop,
                Body::Credit { number: seq },
                Body::Emulation { number: seq, clock_ns: word },
                Body::Echo(Echo { newest: seq, map: word }),
                Body::Probe,
                Body::ProbeReply { cumulative: word },
                Body::Trimmed { seq, attempt },
                Body::Corrupted,
            ];
            for body in bodies {
                let (label, words) = body.pack();
                prop_assert_eq!(BodyKind::ALL[label.kind as usize], label.kind);
                prop_assert_eq!(Body::unpack(&label, words), body);
            }
        }
    }
}
