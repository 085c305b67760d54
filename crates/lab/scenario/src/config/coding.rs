//! `coding` of `[host]`: erasure coding of flows.

use std::num::NonZeroU8;

use experiment::Coding;
use flow::{Code, MOST_PACKETS, PathChoice, Recovery};
use units::{Bytes, Span};

use super::{Auto, Scope};
use crate::decode::{At, table, words};
use crate::error::{Fault, Origin};

const DATA: NonZeroU8 = match NonZeroU8::new(8) {
    Some(packets) => packets,
    None => NonZeroU8::MIN,
};
const PARITY: NonZeroU8 = match NonZeroU8::new(2) {
    Some(packets) => packets,
    None => NonZeroU8::MIN,
};

words! {
    /// When a receiver asks for a block.
    NackWord, "\"timer\" or \"gaps\"" {
        /// When its timer ends.
        Timer = "timer",
        /// Also when gaps show that it cannot be given back.
        Gaps = "gaps",
    }
}

words! {
    /// When a sender sends packets of a block again.
    ResendWord, "\"asked\" or \"known\"" {
        /// When the receiver asks or a timeout strikes.
        Asked = "asked",
        /// Also when it knows that too many are lost.
        Known = "known",
    }
}

table! {
    /// Erasure coding (Uno's `UnoRC`): flows are cut into blocks, any `data` packets of which give it back. Needs `recovery = "selective"`.
    CodingTable {
        /// Data packets of a block (k).
        data: At<NonZeroU8> = At::default_of(DATA);
        /// Parity packets of a block (m); with `data` at most 48.
        parity: NonZeroU8 = PARITY;
        /// Which flows are coded: those inside a datacenter, those between two, or all.
        scope: Scope = Scope::Inter;
        /// Payload at a flow's end that is coded. `auto`: all.
        tail: Auto<Bytes> = Auto::Auto;
        /// How long after a block's first packet its receiver asks for it. `auto`: the longest wait in all queues of the way there, and the time that a block takes on the narrowest link of all equal paths.
        block_timer: Auto<Span> = Auto::Auto;
        /// `timer`: a receiver asks for a block when its timer ends. `gaps`: also as soon as later packets on the same subflows show that more are missing than parity makes up for; not with `path = "spray"`.
        nack: At<NackWord> = At::default_of(NackWord::Timer);
        /// `asked`: packets of a block are sent again when the receiver asks or a timeout strikes. `known`: also as soon as the sender holds more for lost than parity makes up for.
        resend: ResendWord = ResendWord::Asked;
        /// Whether an acknowledgement also says which of the eight packets before its own on the subflow came. Without it, which is the paper's, a packet whose acknowledgement is lost counts as lost for the law.
        history: At<bool> = At::default_of(false);
    }
}

impl CodingTable {
    /// Refuses combinations that single values cannot show. `key` is the place of the table's key.
    pub(super) fn check(&self, key: Origin, recovery: Recovery, path: PathChoice, ack_every: u8) -> Result<(), Fault> {
        let packets = u32::from(self.data.get()) + u32::from(self.parity.get());
        if packets > MOST_PACKETS.into() {
            return Err(Fault::new(self.data.origin, format!("a block of {packets} packets is too large"))
                .label(format!("expected at most {MOST_PACKETS} with `parity`, {}", self.parity))
                .at_least(key));
        }
        if self.tail.value().is_some_and(Bytes::is_zero) {
            return Err(Fault::new(key, "a tail of nothing leaves nothing to code").label("expected over 0 bytes"));
        }
        if recovery != Recovery::Selective {
            return Err(Fault::new(key, "go-back-n takes packets in order only, so no block can lack one")
                .label("needs recovery = \"selective\""));
        }
        if *self.history && ack_every > 1 {
            return Err(Fault::new(
                self.history.origin,
                "only an acknowledgement of one packet has room for a history",
            )
            .label("needs ack_every = 1"));
        }
        if *self.nack == NackWord::Gaps && matches!(path, PathChoice::PerPacket(_) | PathChoice::Reps(_)) {
            return Err(Fault::new(self.nack.origin, "sprayed packets keep no order, so gaps show nothing")
                .label("expected \"timer\" with path = \"spray\" or \"reps\""));
        }
        let by_number = [
            (*self.history, self.history.origin, "history = false"),
            (*self.nack == NackWord::Gaps, self.nack.origin, "nack = \"timer\""),
        ];
        for (tells_by_number, origin, needed) in by_number {
            if tells_by_number && path.laws() > 1 {
                return Err(Fault::new(origin, "a receiver does not know subflows that have laws of their own")
                    .label(format!("needs {needed}, or laws = \"flow\" in path")));
            }
        }
        Ok(())
    }

    /// Returns the simulator's settings.
    pub(super) fn config(&self) -> Coding {
        Coding {
            code: Code { data: self.data.get(), parity: self.parity.get(), tail: self.tail.value() },
            block_timer: self.block_timer.value(),
            gaps: *self.nack == NackWord::Gaps,
            eager: self.resend == ResendWord::Known,
            history: *self.history,
        }
    }
}
