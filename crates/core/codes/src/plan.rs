//! The repair of one pattern of losses, worked out once.

use alloc::vec::Vec;

use crate::code::{Code, check_count, check_lengths};
use crate::engine::Matrix;
use crate::error::{Error, Role};
use crate::generator::solve;

/// Computation of the lost data packets of a block from packets that arrived. Made by [`Code::plan`], for any number of
/// blocks with the same losses.
#[derive(Clone, Debug)]
pub struct DecodePlan {
    packets: usize,
    sources: Vec<usize>,
    lost: Vec<usize>,
    matrix: Matrix,
}

impl Code {
    /// Plans the repair of a block. `present` has a flag for each packet, true if it arrived: first data, then parity.
    ///
    /// # Errors
    /// [`Error::Count`] if `present` does not have a value for every packet; [`Error::Lost`] if too few are there.
    pub fn plan(&self, present: &[bool]) -> Result<DecodePlan, Error> {
        DecodePlan::new(self, present)
    }
}

impl DecodePlan {
    fn new(code: &Code, present: &[bool]) -> Result<Self, Error> {
        check_count(Role::Block, present.len(), code.packets())?;
        let (data, parity) = present.split_at(code.data());
        let lost: Vec<usize> = absent_indices(data).collect();
        // The first ones are used, because the very first costs only XORs.
        let used: Vec<usize> = present_indices(parity).take(lost.len()).collect();
        if used.len() < lost.len() {
            let present = code.data() - lost.len() + used.len();
            return Err(Error::Lost { present, needed: code.data() });
        }
        let mut sources: Vec<usize> = present_indices(data).collect();
        let coefficients = solve(&sources, &lost, &used);
        sources.extend(used.iter().map(|parity| code.data() + parity));
        let columns = sources.len();
        let matrix =
            Matrix::new(code.engine(), lost.len(), columns, |row, column| coefficients[row * columns + column])?;
        Ok(Self { packets: code.packets(), sources, lost, matrix })
    }

    /// The packets that are read, numbered as in the block: all data that is present, and parity for the lost packets.
    pub fn sources(&self) -> &[usize] {
        &self.sources
    }

    /// The data packets that are repaired, in ascending order.
    pub fn lost(&self) -> &[usize] {
        &self.lost
    }

    /// Writes the lost data packets to `repaired`, in ascending order. `block` has the packets that arrived, each in
    /// its slot; those that are not among [`DecodePlan::sources`] are not looked at.
    ///
    /// # Errors
    /// [`Error::Count`] if `block` or `repaired` has another number of packets; [`Error::Missing`] if a source is not
    /// there; [`Error::Length`] if sources and repaired packets are not of one length. Then nothing is written.
    pub fn repair(&self, block: &[Option<&[u8]>], repaired: &mut [&mut [u8]]) -> Result<(), Error> {
        check_count(Role::Block, block.len(), self.packets)?;
        check_count(Role::Repaired, repaired.len(), self.lost.len())?;
        if self.lost.is_empty() {
            return Ok(());
        }
        // Most blocks are small; clearing places for the largest would take as long as repairing one.
        if self.sources.len() <= 32 {
            self.repair_from(&mut [&[][..]; 32], block, repaired)
        } else {
            self.repair_from(&mut [&[][..]; crate::MAX_PACKETS], block, repaired)
        }
    }

    fn repair_from<'a>(
        &self,
        slots: &mut [&'a [u8]],
        block: &[Option<&'a [u8]>],
        repaired: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        let sources = &mut slots[..self.sources.len()];
        for (source, &index) in sources.iter_mut().zip(&self.sources) {
            *source = block.get(index).copied().flatten().ok_or(Error::Missing { index })?;
        }
        let expected = sources.first().map_or(0, |packet| packet.len());
        for (packet, &index) in sources.iter().zip(&self.sources) {
            if packet.len() != expected {
                return Err(Error::Length { role: Role::Block, index, given: packet.len(), expected });
            }
        }
        check_lengths(Role::Repaired, repaired.iter().map(|packet| packet.len()), expected)?;
        self.matrix.multiply(sources, repaired);
        Ok(())
    }
}

/// Returns the indices of the packets that are `present`.
fn present_indices(present: &[bool]) -> impl Iterator<Item = usize> {
    present.iter().enumerate().filter(|&(_, &is_present)| is_present).map(|(index, _)| index)
}

/// Returns the indices of the packets that are not `present`.
fn absent_indices(present: &[bool]) -> impl Iterator<Item = usize> {
    present.iter().enumerate().filter(|&(_, &is_present)| !is_present).map(|(index, _)| index)
}
