//! Rebuilding of symbols: cached plans of the latest loss patterns.

use alloc::vec::Vec;

use codes::{Code, DecodePlan};

use super::{bit, packets};
use crate::frame::Shape;

/// Plans that are kept. They are enough for every loss of one of the data packets of (8,2); a plan may have 25 KB.
const PLANS: usize = 16;

/// The last plans.
#[derive(Default, Debug)]
pub(super) struct Repairs {
    known: Vec<(Shape, u64, DecodePlan)>,
    /// Index of the plan that is replaced next when all places are taken; places are replaced in round-robin order.
    oldest: usize,
}

impl Repairs {
    /// Returns the plan that rebuilds the missing data of a block from the packets in the bits `present`. None if they
    /// are too few.
    pub(super) fn plan(&mut self, shape: Shape, present: u64) -> Option<&DecodePlan> {
        let at = match self.known.iter().position(|&(known, bits, _)| (known, bits) == (shape, present)) {
            Some(at) => at,
            None => self.make(shape, present)?,
        };
        self.known.get(at).map(|(_, _, plan)| plan)
    }

    fn make(&mut self, shape: Shape, present: u64) -> Option<usize> {
        let code = Code::new(shape.data.into(), shape.parity.into()).ok()?;
        let flags: Vec<bool> = (0..packets(shape)).map(|place| present & bit(place) != 0).collect();
        let known = (shape, present, code.plan(&flags).ok()?);
        if self.known.len() < PLANS {
            self.known.push(known);
            return Some(self.known.len() - 1);
        }
        let at = self.oldest;
        self.oldest = (at + 1) % PLANS;
        self.known[at] = known;
        Some(at)
    }
}
