//! Repairs blocks, and remembers how.

use alloc::vec::Vec;

use crate::code::{Code, check_count};
use crate::error::{Error, Role};
use crate::generator::MAX_PACKETS;
use crate::plan::DecodePlan;

/// Repairs blocks of one code. It keeps the last plans that it made, so that losses in the same places cost no more
/// than multiplying.
#[derive(Clone, Debug)]
pub struct Decoder {
    code: Code,
    plans: Vec<(Losses, DecodePlan)>,
    /// Index of the plan to replace when all places are taken; plans are replaced in round-robin order.
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

    /// Writes the data packets that `block` lacks to `repaired`, in ascending order of their places.
    ///
    /// `block` has a place for each data and then each parity packet; `repaired` has a packet for each empty place of
    /// data, and is empty where there is none. All packets have one length.
    ///
    /// # Errors
    /// [`Error::Lost`] if fewer packets arrived than a block has data; [`Error::Count`] and [`Error::Length`] if
    /// something is wrong with an argument. Then nothing is written.
    pub fn repair(&mut self, block: &[Option<&[u8]>], repaired: &mut [&mut [u8]]) -> Result<(), Error> {
        check_count(Role::Block, block.len(), self.code.packets())?;
        let mut losses = Losses::default();
        for (place, packet) in block.iter().enumerate() {
            losses[place / 64] |= u64::from(packet.is_none()) << (place % 64);
        }
        let place = match self.plans.iter().position(|(known, _)| *known == losses) {
            Some(place) => place,
            None => self.plan(losses, block)?,
        };
        self.plans[place].1.repair(block, repaired)
    }

    fn plan(&mut self, losses: Losses, block: &[Option<&[u8]>]) -> Result<usize, Error> {
        let present: Vec<bool> = block.iter().map(Option::is_some).collect();
        let plan = (losses, self.code.plan(&present)?);
        if self.plans.len() < Self::PLANS {
            self.plans.push(plan);
            return Ok(self.plans.len() - 1);
        }
        let place = self.oldest;
        self.oldest = (place + 1) % Self::PLANS;
        self.plans[place] = plan;
        Ok(place)
    }
}
