//! Incremental encoder: computes parity from one packet at a time.

use alloc::vec::Vec;

use crate::buffer::ParityBuffer;
use crate::code::Code;
use crate::engine::WriteMode;
use crate::error::{Error, Role};
use crate::generator::MAX_PACKETS;

/// Computes and stores the parity of a block from one data packet at a time, in any order. The caller need not keep the
/// packets. [`Code::encode`] is faster where all data is at hand: it writes parity once, not once a packet.
///
/// ```
/// # fn main() -> Result<(), codes::Error> {
/// let mut encoder = codes::Encoder::new(codes::Code::new(8, 2)?);
/// for index in 0..8 {
///     encoder.push(index, &[index as u8; 1400])?;
/// }
/// assert_eq!(encoder.parity()?.len(), 2);
/// encoder.clear();
///
/// // The message's last block has five packets.
/// for index in 0..5 {
///     encoder.push(index, &[index as u8; 1400])?;
/// }
/// encoder.shorten(5)?;
/// assert_eq!(encoder.parity()?.next(), Some(&[0 ^ 1 ^ 2 ^ 3 ^ 4; 1400][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Encoder {
    code: Code,
    /// Data packets of this block: the code's, or fewer.
    data: usize,
    given: [bool; MAX_PACKETS],
    count: usize,
    parity: Vec<ParityBuffer>,
}

impl Encoder {
    /// An encoder of blocks of `code`.
    pub fn new(code: Code) -> Self {
        let parity = (0..code.parity()).map(|_| ParityBuffer::default()).collect();
        Self { data: code.data(), given: [false; MAX_PACKETS], count: 0, parity, code }
    }

    /// The code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Adds the data packet `index` of the block. The first one sets the length of all.
    ///
    /// # Errors
    /// [`Error::Index`] if the block has no such packet; [`Error::Twice`] if it was given; [`Error::Length`] if it is
    /// not as long as the block's first. Then the packet does not count.
    pub fn push(&mut self, index: usize, packet: &[u8]) -> Result<(), Error> {
        if index >= self.data {
            return Err(Error::Index { role: Role::Data, index, count: self.data });
        }
        if self.given[index] {
            return Err(Error::Twice { index });
        }
        if self.count == 0 {
            self.parity.iter_mut().for_each(|parity| parity.resize(packet.len()));
        }
        let (given, expected) = (packet.len(), self.parity.first().map_or(0, |parity| parity.len()));
        if given != expected {
            return Err(Error::Length { role: Role::Data, index, given, expected });
        }
        let mode = if self.count == 0 { WriteMode::Overwrite } else { WriteMode::Accumulate };
        self.code.matrix().multiply_column(index, packet, &mut self.parity, mode);
        self.given[index] = true;
        self.count += 1;
        Ok(())
    }

    /// Shortens this block to `data` packets, numbered from 0: the others count as zeros and are not sent. The block is
    /// repaired with the [shortened](Code::shortened) code.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `data` is from 1 to the code's; [`Error::Index`] if a packet beyond was given.
    pub fn shorten(&mut self, data: usize) -> Result<(), Error> {
        if data == 0 || data > self.code.data() {
            return Err(Error::Shape { data, parity: self.code.parity() });
        }
        if let Some(index) = self.given.iter().rposition(|&given| given).filter(|&index| index >= data) {
            return Err(Error::Index { role: Role::Data, index, count: data });
        }
        self.data = data;
        Ok(())
    }

    /// Returns whether all data of the block was given.
    pub fn is_finished(&self) -> bool {
        self.count == self.data
    }

    /// The block's parity packets, in order.
    ///
    /// # Errors
    /// [`Error::Unfinished`] until all data was given.
    pub fn parity(&self) -> Result<impl ExactSizeIterator<Item = &[u8]>, Error> {
        if !self.is_finished() {
            return Err(Error::Unfinished { given: self.count, expected: self.data });
        }
        Ok(self.parity.iter().map(|parity| &**parity))
    }

    /// Discards the block and begins the next one, which may have another packet length.
    pub fn clear(&mut self) {
        self.data = self.code.data();
        self.given = [false; MAX_PACKETS];
        self.count = 0;
    }
}
