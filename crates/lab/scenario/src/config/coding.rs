//! `coding` of `[host]`: erasure coding of flows.

use std::num::NonZeroU8;

use experiment::Coding;
use flow::{FlowCoding, LoadBalancing, MAX_PACKETS, Recovery};
use units::{Bytes, Span};

use super::{Auto, Scope};
use crate::decode::{Located, table, words};
use crate::error::{SourceSpan, SpannedError};

const DATA: NonZeroU8 = match NonZeroU8::new(8) {
    Some(packets) => packets,
    None => NonZeroU8::MIN,
};
const PARITY: NonZeroU8 = match NonZeroU8::new(2) {
    Some(packets) => packets,
    None => NonZeroU8::MIN,
};

words! {
    /// Trigger of a receiver's NACK for a block.
    NackWord, "\"timer\" or \"gaps\"" {
        /// Expiry of the block timer.
        Timer = "timer",
        /// Also gaps that show that the block cannot be decoded.
        Gaps = "gaps",
    }
}

words! {
    /// Trigger of a sender's retransmission for a block.
    RetransmitWord, "\"on-nack\" or \"on-loss\"" {
        /// A NACK or a retransmission timeout.
        OnNack = "on-nack",
        /// Also more losses than parity can repair.
        OnLoss = "on-loss",
    }
}

table! {
    /// Erasure coding (Uno's `UnoRC`): flows are cut into blocks, each of which can be decoded from any `data` of its packets. Needs `recovery = "selective"`.
    CodingTable {
        /// Data packets of a block (k).
        data: Located<NonZeroU8> = Located::default_of(DATA);
        /// Parity packets of a block (m); with `data` at most 48.
        parity: NonZeroU8 = PARITY;
        /// Coded flows: those inside a datacenter, those between two, or all.
        scope: Scope = Scope::Inter;
        /// Payload at the end of a flow that is coded. `auto`: all.
        tail: Auto<Bytes> = Auto::Auto;
        /// Time after a block's first packet at which its receiver sends a NACK for it. `auto`: the longest wait in all
        /// queues of the forward path, plus the time that a block takes on the narrowest link of all equal paths.
        block_timer: Auto<Span> = Auto::Auto;
        /// `timer`: a receiver sends a NACK for a block when its timer expires. `gaps`: also as soon as later packets
        /// on the same subflows show that more are missing than parity can repair; not with `load_balancing = "spray"` or
        /// `"reps"`.
        nack: Located<NackWord> = Located::default_of(NackWord::Timer);
        /// `on-nack`: packets of a block are retransmitted on a NACK or a retransmission timeout. `on-loss`: also as soon
        /// as the sender has declared more packets lost than parity can repair.
        retransmit: RetransmitWord = RetransmitWord::OnNack;
        /// Adds to each ACK which of the eight packets before its own on the subflow arrived. Without it, as in the
        /// paper, a packet whose ACK is lost counts as lost for the law.
        ack_history: Located<bool> = Located::default_of(false);
    }
}

impl CodingTable {
    /// Refuses combinations that single values cannot show. `key` is the place of the table's key.
    pub(super) fn check(
        &self,
        key: SourceSpan,
        recovery: Recovery,
        path: LoadBalancing,
        ack_every: u8,
    ) -> Result<(), SpannedError> {
        let packets = u32::from(self.data.get()) + u32::from(self.parity.get());
        if packets > MAX_PACKETS.into() {
            return Err(SpannedError::new(self.data.origin, format!("a block of {packets} packets is too large"))
                .label(format!("expected at most {MAX_PACKETS} with `parity`, {}", self.parity))
                .at_least(key));
        }
        if self.tail.value().is_some_and(Bytes::is_zero) {
            return Err(
                SpannedError::new(key, "a tail of nothing leaves nothing to code").label("expected over 0 bytes")
            );
        }
        if recovery != Recovery::Selective {
            return Err(SpannedError::new(key, "go-back-n takes packets in order only, so no block can lack one")
                .label("needs recovery = \"selective\""));
        }
        if *self.ack_history && ack_every > 1 {
            return Err(SpannedError::new(
                self.ack_history.origin,
                "only an acknowledgement of one packet has room for a history",
            )
            .label("needs ack_every = 1"));
        }
        if *self.nack == NackWord::Gaps && matches!(path, LoadBalancing::PerPacket(_) | LoadBalancing::Reps(_)) {
            return Err(SpannedError::new(self.nack.origin, "sprayed packets keep no order, so gaps show nothing")
                .label("expected \"timer\" with load_balancing = \"spray\" or \"reps\""));
        }
        let by_number = [
            (*self.ack_history, self.ack_history.origin, "ack_history = false"),
            (*self.nack == NackWord::Gaps, self.nack.origin, "nack = \"timer\""),
        ];
        for (reports_packet_numbers, origin, needed) in by_number {
            if reports_packet_numbers && path.laws() > 1 {
                return Err(SpannedError::new(origin, "a receiver does not know subflows that have laws of their own")
                    .label(format!("needs {needed}, or law_per = \"flow\" in load_balancing")));
            }
        }
        Ok(())
    }

    /// Returns the simulator's settings.
    pub(super) fn config(&self) -> Coding {
        Coding {
            code: FlowCoding { data: self.data.get(), parity: self.parity.get(), tail: self.tail.value() },
            block_timer: self.block_timer.value(),
            gaps: *self.nack == NackWord::Gaps,
            eager: self.retransmit == RetransmitWord::OnLoss,
            history: *self.ack_history,
        }
    }
}
