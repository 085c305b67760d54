//! Repairs blocks, and remembers how.

use alloc::vec::Vec;

use crate::code::{Code, check_count};
use crate::error::{Error, Role};
use crate::generator::MAX_PACKETS;
use crate::plan::DecodePlan;

/// Repairs blocks of one code. It keeps the last plans that it made, so that losses in the same slots cost no more
/// than multiplying.
#[derive(Clone, Debug)]
pub struct Decoder {
    code: Code,
    plans: Vec<(Losses, DecodePlan)>,
    /// Index of the plan to replace when all slots are taken; plans are replaced in round-robin order.
    oldest: usize,
}

/// A bit per packet of the block.
type Losses = [u64; MAX_PACKETS.div_ceil(64)];

impl Decoder {
    /// Maximum number of plans kept: enough for every loss of one or two of ten packets.
    pub const PLANS: usize = 64;

    /// A decoder of blocks of `code`.
    pub fn new(code: Code) -> Self {
        Self { code, plans: Vec::new(), oldest: 0 }
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Writes the data packets that `block` lacks to `repaired`, in ascending order of their slots.
    ///
    /// `block` has a slot for each data and then each parity packet; `repaired` has a packet for each empty slot of
    /// data, and is empty where there is none. All packets have one length.
    ///
    /// # Errors
    /// [`Error::Lost`] if fewer packets arrived than a block has data; [`Error::Count`] and [`Error::Length`] if
    /// something is wrong with an argument. Then nothing is written.
    pub fn repair(&mut self, block: &[Option<&[u8]>], repaired: &mut [&mut [u8]]) -> Result<(), Error> {
        check_count(Role::Block, block.len(), self.code.packets())?;
        let mut losses = Losses::default();
        for (slot, packet) in block.iter().enumerate() {
            losses[slot / 64] |= u64::from(packet.is_none()) << (slot % 64);
        }
        let slot = match self.plans.iter().position(|(known, _)| *known == losses) {
            Some(slot) => slot,
            None => self.plan(losses, block)?,
        };
        self.plans[slot].1.repair(block, repaired)
    }

    fn plan(&mut self, losses: Losses, block: &[Option<&[u8]>]) -> Result<usize, Error> {
        let present: Vec<bool> = block.iter().map(Option::is_some).collect();
        let plan = (losses, self.code.plan(&present)?);
        if self.plans.len() < Self::PLANS {
            self.plans.push(plan);
            return Ok(self.plans.len() - 1);
        }
        let slot = self.oldest;
        self.oldest = (slot + 1) % Self::PLANS;
        self.plans[slot] = plan;
        Ok(slot)
    }
}
