//! Losses in bursts: several of a group of packets at once.

use thiserror::Error;
use units::{Frac, below, mix64};

/// Maximum number of losses in a group that [`Bursts`] distinguishes.
pub const MAX_IN_GROUP: usize = 8;

/// Losses in bursts, by groups of consecutive data packets: measured in this form between regions of a cloud in Uno (SC
/// 2025), Table 1, with groups of 10.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bursts {
    /// Data packets of a group, from 1 to 64.
    pub group: u32,
    /// The probability that a group loses one packet, two, and so on. Their sum is at most one.
    pub losses: [Frac; MAX_IN_GROUP],
}

/// Invalid burst-loss configuration.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum BurstError {
    #[error("losses come in groups of 1 to 64 packets, not of {group}")]
    Group { group: u32 },
    #[error("a group of {group} packets cannot lose {lost}")]
    MoreThanGroup { group: u32, lost: u32 },
    #[error("the probabilities of losses in a group sum up to more than one")]
    OverOne,
}

impl Bursts {
    /// # Errors
    /// When a value is out of its range.
    pub(crate) fn check(&self) -> Result<(), BurstError> {
        let group = self.group;
        if !(1..=64).contains(&group) {
            return Err(BurstError::Group { group });
        }
        let beyond = (1..).zip(&self.losses).find(|(lost, probability)| *lost > group && !probability.is_zero());
        if let Some((lost, _)) = beyond {
            return Err(BurstError::MoreThanGroup { group, lost });
        }
        if self.losses.iter().map(|probability| probability.bits()).sum::<u64>() > Frac::ONE.bits() {
            return Err(BurstError::OverOne);
        }
        Ok(())
    }

    /// Returns whether the group with random number `drawn` loses its packet at index `index`.
    pub(crate) fn loses(&self, drawn: u64, index: u32) -> bool {
        let mut lost = self.lost_of(drawn);
        if lost == 0 {
            return false;
        }
        // Each subset of that size is equally likely: an index is taken with probability (left to take) / (indices left).
        for at in 0..=index {
            let taken = below(mix64(drawn ^ u64::from(at + 1)), self.group - at) < lost;
            if at == index {
                return taken;
            }
            lost -= u32::from(taken);
        }
        false
    }

    /// Returns the number of packets that the group loses.
    fn lost_of(&self, drawn: u64) -> u32 {
        let mut up_to = 0;
        for (lost, probability) in (1..).zip(&self.losses) {
            up_to += probability.bits();
            if (drawn >> 32) < up_to {
                return lost;
            }
        }
        0
    }
}
