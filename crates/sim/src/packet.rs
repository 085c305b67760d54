//! A packet on its way: 32 bytes, moved by value.

use fabric::{Arrival, Item, Passage, path_hash};
use flow::{BlockNack, MOST_PACKETS};
use units::Time;

/// Where the reports of the ports that a packet has passed lie, if it has any (INT).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Report(pub(crate) u32);

impl Report {
    /// None.
    pub const NONE: Self = Self(0);

    /// The one that a [`Wire`](crate::host::Wire) knows by this number, over 0.
    pub const fn numbered(number: u32) -> Self {
        Self(number)
    }

    /// How many reports it has where it has had too many to count any.
    pub(crate) const TOO_MANY: u32 = 15;

    /// The one at this place, under 2^28, with so many reports.
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

    /// One report more.
    #[inline(always)]
    pub(crate) fn lengthen(&mut self) {
        self.0 += u32::from(self.0 & 15 < Self::TOO_MANY);
    }
}

/// A data packet or an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Packet {
    /// When its last bit reaches the node that it is on the way to.
    pub time: Time,
    /// Its flow.
    pub flow: u32,
    /// Its number in the flow; of an acknowledgement, the newest packet acknowledged; of a credit, an emulation packet or an
    /// echo, the credit's number.
    pub seq: u32,
    /// The host that it is for.
    pub dst: u32,
    /// Of an acknowledgement: every packet below has come. Of data: one more than the number of the credit that it answers,
    /// or 0. Of an emulation packet: when it left, by its host's clock. Of an echo: which emulation packets came. Of a
    /// request: for how many packets.
    pub cumulative: u32,
    /// What chooses among equal paths: with the flow, or alone on a connection that outlives its flows.
    pub entropy: u16,
    /// Bytes on the wire.
    pub size: u16,
    /// Which transmission of `seq` this is, or acknowledges.
    pub attempt: u8,
    /// Of an acknowledgement: how many packets, ending with `seq`.
    pub covers: u8,
    pub(crate) flags: u8,
    /// What it is, if neither data nor an acknowledgement, and its class.
    pub(crate) kind_and_class: u8,
}

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Data, or an acknowledgement of it.
    #[default]
    Transfer,
    /// A receiver's word that something is missing; else an acknowledgement.
    Nack,
    /// A receiver's word that marks came.
    Cnp,
    /// A switch's word that the source is to send less.
    DirectCnp,
    /// A switch's report of the ports that a packet has passed so far.
    DirectInt,
    /// When a packet came, by the receiver's clock.
    OrAck,
    /// Pauses a class on the link's other direction.
    Pause,
    /// Ends a pause.
    Resume,
    /// A rate from the far end of a long-haul link to the near one.
    Feedback,
    /// A receiver's request for packets of a block: `seq` is the block's number, and `cumulative`, `attempt` and `covers`
    /// are the bits of the packets that are missing, from the lowest on.
    BlockNack,
    /// Asks a receiver for credits (`ExpressPass`).
    Request,
    /// Asks it for no more.
    Stop,
    /// Lets the sender send a packet.
    Credit,
    /// Rehearses a packet on its path (`FlashPass`).
    Emulation,
    /// A receiver's word which emulation packets came.
    Echo,
    /// The last of an early start, and its answer.
    Probe,
}

const ACK: u8 = 1;
const MARKED: u8 = 2;
const ASK: u8 = 4;
const LOST: u8 = 8;
const EXPENDABLE: u8 = 16;
/// Its entropy alone chooses among equal paths.
pub(crate) const PINNED: u8 = 32;

impl Kind {
    /// By number; the numbers left over mean nothing.
    const ALL: [Self; 32] = {
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
        all
    };
}

impl Packet {
    /// Whether it is an acknowledgement.
    #[inline]
    pub fn is_ack(&self) -> bool {
        self.flags & ACK != 0
    }

    /// Whether a queue marked it, or, of an acknowledgement, the packets that it acknowledges.
    #[inline]
    pub fn is_marked(&self) -> bool {
        self.flags & MARKED != 0
    }

    /// Whether the sender wants an acknowledgement at once.
    #[inline]
    pub fn asks(&self) -> bool {
        self.flags & ASK != 0
    }

    /// What it is.
    #[inline]
    pub fn kind(&self) -> Kind {
        Kind::ALL[usize::from(self.kind_and_class >> 3)]
    }

    /// Whether it is neither data nor an acknowledgement.
    #[inline(always)]
    pub(crate) fn is_signal(&self) -> bool {
        self.kind_and_class > 7
    }

    /// Its class at ports that have several: 0 is control.
    #[inline(always)]
    pub fn class(&self) -> u8 {
        self.kind_and_class & 7
    }

    /// Whether it pauses a class, or lets it go on.
    #[inline]
    pub fn is_frame(&self) -> bool {
        matches!(self.kind(), Kind::Pause | Kind::Resume)
    }

    /// Says what it is, and its class, under 8.
    #[inline]
    pub fn classify(&mut self, kind: Kind, class: u8) {
        self.kind_and_class = (kind as u8) << 3 | class & 7;
    }

    /// Whether it is one that ports may have a credit queue for.
    #[inline(always)]
    pub fn is_credit(&self) -> bool {
        let kind = self.kind_and_class >> 3;
        kind == Kind::Credit as u8 || kind == Kind::Emulation as u8
    }

    /// Whether it is dropped before others.
    #[inline(always)]
    pub fn is_expendable(&self) -> bool {
        self.flags & EXPENDABLE != 0
    }

    /// Says whether it is dropped before others.
    #[inline]
    pub fn set_expendable(&mut self, expendable: bool) {
        self.flags |= if expendable { EXPENDABLE } else { 0 };
    }

    /// Whether it is data of a flow. Without a branch: what comes next is data or not as it happens.
    #[inline(always)]
    pub fn is_data(&self) -> bool {
        (self.flags & ACK) | (self.kind_and_class >> 3) == 0
    }

    /// The hash by which a switch with this salt chooses among equal ports ([`fabric::switch_salt`]).
    #[inline(always)]
    pub fn path_hash(&self, switch_salt: u64) -> u64 {
        if self.flags & PINNED != 0 {
            return self.pinned_path_hash(switch_salt);
        }
        path_hash(switch_salt, self.flow, self.entropy)
    }

    #[cold]
    fn pinned_path_hash(&self, switch_salt: u64) -> u64 {
        path_hash(switch_salt, 0, self.entropy)
    }

    /// Says whether its entropy alone chooses among equal paths.
    pub(crate) fn set_pinned(&mut self, pinned: bool) {
        self.flags |= if pinned { PINNED } else { 0 };
    }

    pub(crate) fn set_ack(&mut self) {
        self.flags |= ACK;
    }

    /// Marks it.
    #[inline]
    pub fn mark(&mut self, marked: bool) {
        self.flags = self.flags_if(marked);
    }

    /// Takes its mark off.
    pub(crate) fn unmark(&mut self) {
        self.flags &= !MARKED;
    }

    /// Its flags once it is marked, or not.
    #[inline(always)]
    pub(crate) fn flags_if(&self, marked: bool) -> u8 {
        self.flags | if marked { MARKED } else { 0 }
    }

    /// Whether the link behind the port where it waits will lose it.
    #[inline(always)]
    pub(crate) fn is_lost(&self) -> bool {
        self.flags & LOST != 0
    }

    pub(crate) fn set_lost(&mut self) {
        self.flags |= LOST;
    }

    /// Makes it ask for packets of a block.
    pub(crate) fn set_block_nack(&mut self, nack: &BlockNack) {
        const { assert!(MOST_PACKETS as u32 <= u32::BITS + 2 * u8::BITS) };
        self.seq = nack.block;
        self.cumulative = nack.missing as u32;
        self.attempt = (nack.missing >> 32) as u8;
        self.covers = (nack.missing >> 40) as u8;
    }

    /// What packets of which block it asks for, if it does.
    pub(crate) fn block_nack(&self) -> BlockNack {
        let missing = u64::from(self.covers) << 40 | u64::from(self.attempt) << 32 | u64::from(self.cumulative);
        BlockNack { block: self.seq, missing }
    }

    pub(crate) fn set_ask(&mut self, ask: bool) {
        self.flags |= if ask { ASK } else { 0 };
    }

    /// The packet on the link behind a port.
    #[inline(always)]
    pub(crate) fn passed(mut self, passage: Passage) -> Self {
        self.time = passage.arrives;
        self.mark(passage.marked);
        self
    }

    /// Whether it goes in line with data though it is none: a probe finds out what became of the data before it.
    #[inline(always)]
    fn is_probe(&self) -> bool {
        (self.kind_and_class >> 3 == Kind::Probe as u8) & !self.is_ack()
    }

    /// The packet as a port sees it, arriving now. Only data is ECN-capable; all else but a probe is control.
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
            identity: u64::from(self.flow) << 32 | u64::from(self.seq),
        }
    }
}

impl Item for Packet {
    #[inline(always)]
    fn arrival(&self) -> Arrival {
        self.arrival()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_in_flight_costs_32_bytes_here() {
        assert_eq!(size_of::<Packet>(), 32);
    }

    #[test]
    fn a_request_for_a_block_keeps_every_bit() {
        for missing in [0, 1, (1 << MOST_PACKETS) - 1, 0x8765_4321_0fed & ((1 << MOST_PACKETS) - 1)] {
            let nack = BlockNack { block: 77, missing };
            let mut packet = Packet::default();
            packet.set_block_nack(&nack);
            assert_eq!(packet.block_nack(), nack);
        }
    }
}
