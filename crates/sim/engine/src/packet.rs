//! A packet on its way: 32 bytes, moved by value.

use experiment::ByKind;
use fabric::{Arrival, PortTransit, QueueItem, path_hash};
use flow::AckHeader;
use units::Time;

use crate::body::{Body, BodyBytes, BodyKind, CORRUPTED, Label, MARKED, REPLY};

/// The place of the reports of the ports that a packet has passed, if it has any (INT).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TelemetrySlot(pub(crate) u32);

impl TelemetrySlot {
    /// None.
    pub const NONE: Self = Self(0);

    /// Returns the reference of a report that a [`Nic`](crate::host::Nic) has under this number, over 0.
    pub const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// The number of reports that means "too many to count".
    pub(crate) const TOO_MANY: u32 = 15;

    /// Returns the reference to `len` reports at this place, under 2^28.
    #[inline(always)]
    pub(crate) fn new(place: u32, len: u32) -> Self {
        Self(place << 4 | len)
    }

    #[inline(always)]
    pub(crate) fn place(self) -> usize {
        (self.0 >> 4) as usize
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        (self.0 & 15) as usize
    }

    /// Counts one report more.
    #[inline(always)]
    pub(crate) fn lengthen(&mut self) {
        self.0 += u32::from(self.0 & 15 < Self::TOO_MANY);
    }
}

/// Fields of every packet: its destination and how it is forwarded.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ForwardingHeader {
    /// The time at which its last bit reaches its next node.
    pub time: Time,
    /// Its flow.
    pub flow: u32,
    /// Its destination host.
    pub dst: u32,
    /// Entropy: selects among equal paths, with the flow, or alone ([`ForwardingHeader::pinned`]).
    pub entropy: u16,
    /// Bytes on the wire.
    pub size: u16,
    /// Its class at ports that have several, under 8: 0 is control.
    pub class: u8,
    /// Set if its entropy alone selects among equal paths: on a connection that outlives its flows.
    pub pinned: bool,
}

/// A packet: the fields of every packet, and a [`Body`], packed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Packet {
    /// The time at which its last bit reaches its next node.
    pub time: Time,
    /// Its flow.
    pub flow: u32,
    /// Its destination host.
    pub dst: u32,
    /// The body's [`BodyBytes`].
    number: u32,
    word: u32,
    /// Entropy: selects among equal paths.
    pub entropy: u16,
    /// Bytes on the wire.
    pub size: u16,
    bytes: [u8; 2],
    /// From the lowest bit: its class (3), its [`BodyKind`] (5), flags (8). One word, so that one comparison identifies
    /// data.
    pub(crate) label: u16,
}

/// The lowest bit of the flags in a label.
const FLAGS: u32 = 8;
/// The kind in a label.
const KIND: u16 = 0xf8;

const fn flag(flag: u8) -> u16 {
    (flag as u16) << FLAGS
}

const REQUESTS_ACK: u8 = 4;
const EXPENDABLE: u8 = 16;
const PINNED: u8 = 32;

impl Packet {
    /// Adds the packet to counts by kind.
    pub fn count_in(&self, counts: &mut ByKind) {
        let count = if self.is_data() {
            &mut counts.data
        } else if self.is_credit() {
            &mut counts.credits
        } else if self.kind() == BodyKind::Transfer {
            &mut counts.acks
        } else {
            &mut counts.signals
        };
        *count += 1;
    }

    /// Creates a packet with this body.
    #[inline(always)]
    pub fn new(header: ForwardingHeader, body: Body) -> Self {
        let ForwardingHeader { time, flow, dst, entropy, size, class, pinned } = header;
        let (label, BodyBytes { number, word, bytes }) = body.pack();
        debug_assert!(class < 8, "there is no class {class}");
        let flags = label.flags | if pinned { PINNED } else { 0 };
        let label = flag(flags) | (label.kind as u16) << 3 | u16::from(class);
        Self { time, flow, dst, number, word, entropy, size, bytes, label }
    }

    /// Returns its body.
    #[inline]
    pub fn body(&self) -> Body {
        Body::unpack(&Label { kind: self.kind(), flags: self.flags() }, self.words())
    }

    #[inline(always)]
    fn flags(&self) -> u8 {
        (self.label >> FLAGS) as u8
    }

    #[inline(always)]
    fn has(&self, mask: u8) -> bool {
        self.label & flag(mask) != 0
    }

    #[inline(always)]
    fn set(&mut self, mask: u8) {
        self.label |= flag(mask);
    }

    #[inline(always)]
    fn words(&self) -> BodyBytes {
        BodyBytes { number: self.number, word: self.word, bytes: self.bytes }
    }

    /// Returns the header of an acknowledgement that is no signal: [`Packet::body`] if the kind is known already.
    #[inline(always)]
    pub(crate) fn acknowledged(&self) -> AckHeader {
        debug_assert!(matches!(self.body(), Body::Ack(_)), "{:?} acknowledges nothing", self.body());
        self.words().header(self.flags())
    }

    /// Returns the number in the flow and the transmission count of data, trimmed or not.
    #[inline(always)]
    pub(crate) fn transmission(&self) -> (u32, u8) {
        debug_assert!(self.is_data() || self.is_of(BodyKind::Trimmed), "{:?} is no data", self.body());
        (self.number, self.bytes[0])
    }

    /// Returns the credit that data uses.
    #[inline(always)]
    pub(crate) fn used_credit(&self) -> Option<u32> {
        debug_assert!(self.is_data(), "{:?} is no data", self.body());
        self.words().credit()
    }

    /// The same packet with another body of the same kind.
    pub(crate) fn with_body(self, body: Body) -> Self {
        let (label, BodyBytes { number, word, bytes }) = body.pack();
        debug_assert!(label.kind == self.kind() && label.flags == self.flags() & REPLY, "{body:?} is of another kind");
        Self { number, word, bytes, ..self }
    }

    /// Returns the packet after a switch trimmed its payload: `header` bytes, a control packet.
    #[must_use]
    pub fn trimmed(&self, header: u16) -> Self {
        debug_assert!(self.is_data(), "{:?} has no payload", self.body());
        let (seq, attempt) = self.transmission();
        let &Self { time, flow, dst, entropy, .. } = self;
        let (size, class, pinned) = (header.min(self.size), self.class(), self.is_pinned());
        Self::new(ForwardingHeader { time, flow, dst, entropy, size, class, pinned }, Body::Trimmed { seq, attempt })
    }

    /// Returns the packet after a link has corrupted it: no receiver can read it, and ports queue it as before.
    #[must_use]
    pub fn corrupted(mut self) -> Self {
        // Control has the flag of an answer: without it ports would take the packet for data.
        let reply = if self.arrival().control { flag(REPLY) } else { 0 };
        self.label = self.label & !(KIND | flag(REPLY)) | (BodyKind::Probe as u16) << 3 | reply;
        self.bytes = [0, CORRUPTED];
        self
    }

    /// The same packet at another time.
    #[inline(always)]
    pub(crate) fn at(self, time: Time) -> Self {
        Self { time, ..self }
    }

    /// Returns the identity of this packet for random decisions: 64 bits and 40.
    pub(crate) fn identity(&self) -> (u64, u64) {
        let kind_and_class = u64::from(self.label & (flag(1) - 1));
        let kind = kind_and_class << 16 | u64::from(self.bytes[0]) << 8 | u64::from(self.flags());
        (u64::from(self.flow) << 32 | u64::from(self.number), kind)
    }

    /// Returns whether it is an acknowledgement, or another answer of a receiver to a packet.
    #[inline]
    pub fn is_ack(&self) -> bool {
        self.has(REPLY)
    }

    /// Returns whether a queue marked it or, for an acknowledgement, the packets that it acknowledges.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.has(MARKED)
    }

    /// Returns whether the sender requests an immediate acknowledgement.
    #[inline]
    pub fn requests_ack(&self) -> bool {
        self.has(REQUESTS_ACK)
    }

    /// Returns its kind.
    #[inline]
    pub fn kind(&self) -> BodyKind {
        BodyKind::ALL[usize::from((self.label & KIND) >> 3)]
    }

    #[inline(always)]
    fn is_of(&self, kind: BodyKind) -> bool {
        self.label & KIND == (kind as u16) << 3
    }

    /// Returns whether it is neither data nor an acknowledgement.
    #[inline(always)]
    pub(crate) fn is_signal(&self) -> bool {
        self.label & KIND != 0
    }

    /// Returns its class at ports that have several: 0 is control.
    #[inline(always)]
    pub fn class(&self) -> u8 {
        (self.label & 7) as u8
    }

    /// Returns whether it pauses or resumes a class.
    #[inline]
    pub fn is_frame(&self) -> bool {
        matches!(self.kind(), BodyKind::Pause | BodyKind::Resume)
    }

    /// Returns whether it is of a kind that ports may have a credit queue for.
    #[inline(always)]
    pub fn is_credit(&self) -> bool {
        self.is_of(BodyKind::Credit) || self.is_of(BodyKind::Emulation)
    }

    /// Returns whether it is dropped before others.
    #[inline(always)]
    pub fn is_expendable(&self) -> bool {
        self.has(EXPENDABLE)
    }

    /// Sets that it is dropped before others.
    #[inline]
    pub fn set_expendable(&mut self) {
        self.set(EXPENDABLE);
    }

    /// Returns whether it is data of a flow. Without a branch, as data and other packets arrive in no predictable
    /// order.
    #[inline(always)]
    pub fn is_data(&self) -> bool {
        self.label & (KIND | flag(REPLY)) == 0
    }

    /// Returns the hash by which a switch with this salt selects among equal ports ([`fabric::switch_salt`]).
    #[inline(always)]
    pub fn path_hash(&self, switch_salt: u64) -> u64 {
        if self.is_pinned() {
            return self.pinned_path_hash(switch_salt);
        }
        path_hash(switch_salt, self.flow, self.entropy)
    }

    #[cold]
    fn pinned_path_hash(&self, switch_salt: u64) -> u64 {
        path_hash(switch_salt, 0, self.entropy)
    }

    /// Marks it.
    #[inline]
    pub fn mark(&mut self) {
        self.set(MARKED);
    }

    /// Takes its mark off.
    pub(crate) fn unmark(&mut self) {
        self.label &= !flag(MARKED);
    }

    /// Returns whether its entropy alone selects among equal paths.
    #[inline(always)]
    pub(crate) fn is_pinned(&self) -> bool {
        self.has(PINNED)
    }

    /// Its label behind a port, which may have marked it.
    #[inline(always)]
    pub(crate) fn label_behind(&self, passage: PortTransit) -> u16 {
        self.label | if passage.marked { flag(MARKED) } else { 0 }
    }

    /// Requests an immediate acknowledgement.
    #[inline(always)]
    pub(crate) fn set_requests_ack(&mut self) {
        self.set(REQUESTS_ACK);
    }

    /// The packet on the link behind a port.
    #[inline(always)]
    pub(crate) fn passed(mut self, passage: PortTransit) -> Self {
        self.time = passage.arrives;
        self.label = self.label_behind(passage);
        self
    }

    /// Returns whether it queues with data though it is none: a probe finds out the fate of the data before it. Corrupted data
    /// has this kind, too.
    #[inline(always)]
    fn is_probe(&self) -> bool {
        self.is_of(BodyKind::Probe) & !self.is_ack()
    }

    /// Returns the packet as seen by a port, arriving now. Only data is ECN-capable; all else but a probe, and
    /// corrupted data, is control.
    #[inline(always)]
    pub fn arrival(&self) -> Arrival {
        let data = self.is_data();
        Arrival {
            now: self.time,
            size: self.size.into(),
            ecn_capable: data,
            control: !data & !self.is_probe(),
            credit: self.is_credit(),
            expendable: self.is_expendable(),
            // Another transmission comes at another time, an acknowledgement at another port.
            identity: u64::from(self.flow) << 32 | u64::from(self.number),
        }
    }
}

impl QueueItem for Packet {
    #[inline(always)]
    fn arrival(&self) -> Arrival {
        self.arrival()
    }

    fn flow(&self) -> u32 {
        self.flow
    }

    fn trimmed(&self, header: u16) -> Option<Self> {
        self.is_data().then(|| self.trimmed(header))
    }

    fn is_corrupted(&self) -> bool {
        self.is_of(BodyKind::Probe) && self.bytes[1] == CORRUPTED
    }

    fn corrupted(self, _: u64) -> Self {
        self.corrupted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_32_bytes() {
        assert_eq!(size_of::<Packet>(), 32);
    }

    #[test]
    fn a_corrupted_packet_keeps_its_path_and_its_queue() {
        let header =
            ForwardingHeader { flow: 3, dst: 4, size: 1_500, class: 2, pinned: true, ..ForwardingHeader::default() };
        let bodies = [
            Body::Data { seq: 7, attempt: 2, credit: None },
            Body::Ack(AckHeader { seq: 7, covers: 1, cumulative: 3, marked: true, attempt: 1 }),
            Body::Credit { number: 1 },
            Body::Probe,
            Body::ProbeReply { cumulative: 9 },
        ];
        for body in bodies {
            let packet = Packet::new(header, body);
            let corrupted = packet.corrupted();
            assert_eq!((corrupted.body(), corrupted.is_signal()), (Body::Corrupted, true));
            assert!(QueueItem::is_corrupted(&corrupted) && !QueueItem::is_corrupted(&packet));
            assert_eq!(corrupted.arrival().control, packet.arrival().control, "{body:?}");
            assert!(!corrupted.arrival().credit && !corrupted.is_data() && !corrupted.arrival().ecn_capable);
            assert_eq!((corrupted.path_hash(5), corrupted.class()), (packet.path_hash(5), packet.class()));
            assert_eq!((corrupted.size, corrupted.corrupted()), (1_500, corrupted));
        }
    }

    #[test]
    fn a_trimmed_packet_keeps_its_path() {
        let header = ForwardingHeader {
            flow: 3,
            dst: 4,
            entropy: 5,
            size: 4_160,
            class: 2,
            pinned: true,
            ..ForwardingHeader::default()
        };
        let mut data = Packet::new(header, Body::Data { seq: 7, attempt: 2, credit: Some(9) });
        data.mark();
        let trimmed = data.trimmed(64);
        assert_eq!(trimmed, Packet::new(ForwardingHeader { size: 64, ..header }, Body::Trimmed { seq: 7, attempt: 2 }));
        assert!(trimmed.arrival().control && !trimmed.arrival().ecn_capable && trimmed.is_signal());
        assert_eq!((trimmed.transmission(), trimmed.path_hash(1)), ((7, 2), data.path_hash(1)));
        assert_eq!(Packet { size: 50, ..data }.trimmed(64).size, 50);
    }
}
