//! A code: how many data and parity packets a block has, and the making of parity.

use crate::engine::Matrix;
use crate::error::{Error, Role};
use crate::generator::{MAX_PACKETS, coefficient};
use crate::kind::Engine;

/// A systematic MDS code of blocks of data and parity packets.
///
/// The first parity packet is the XOR of the data. A parity packet is the same under every code that has it, however
/// many others there are.
#[derive(Clone, Debug)]
pub struct Code {
    data: usize,
    parity: usize,
    engine: Engine,
    matrix: Matrix,
}

impl Code {
    /// The code of `data` and `parity` packets a block, with the fastest engine that this processor has.
    ///
    /// # Errors
    /// [`Error::Shape`] unless each is at least 1 and both together are at most [`MAX_PACKETS`].
    pub fn new(data: usize, parity: usize) -> Result<Self, Error> {
        Self::with_engine(data, parity, Engine::fastest())
    }

    /// The same, with a given engine: for tests and measurements.
    ///
    /// # Errors
    /// As [`Code::new`]; [`Error::Engine`] if it does not run here.
    pub fn with_engine(data: usize, parity: usize, engine: Engine) -> Result<Self, Error> {
        let fits = data.checked_add(parity).is_some_and(|packets| packets <= MAX_PACKETS);
        if data == 0 || parity == 0 || !fits {
            return Err(Error::Shape { data, parity });
        }
        let matrix = Matrix::new(engine, parity, data, coefficient)?;
        Ok(Self { data, parity, engine, matrix })
    }

    /// The code of a block that has only `data` packets, such as a message's last, and as many parity packets.
    ///
    /// Its parity is that of this code for a block filled up with packets of zeros, which need not be sent.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `data` is from 1 to this code's.
    pub fn shortened(&self, data: usize) -> Result<Self, Error> {
        if data > self.data {
            return Err(Error::Shape { data, parity: self.parity });
        }
        Self::with_engine(data, self.parity, self.engine)
    }

    /// Data packets of a block.
    pub fn data(&self) -> usize {
        self.data
    }

    /// Parity packets of a block, and losses that can be repaired.
    pub fn parity(&self) -> usize {
        self.parity
    }

    /// Data and parity packets of a block.
    pub fn packets(&self) -> usize {
        self.data + self.parity
    }

    /// Returns the engine that does the arithmetic.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Writes the `parity` of `data`. All packets have one length, which may be 0.
    ///
    /// # Errors
    /// [`Error::Count`] or [`Error::Length`], and then no parity is written.
    pub fn encode(&self, data: &[&[u8]], parity: &mut [&mut [u8]]) -> Result<(), Error> {
        check_count(Role::Data, data.len(), self.data)?;
        check_count(Role::Parity, parity.len(), self.parity)?;
        let length = data.first().map_or(0, |packet| packet.len());
        check_lengths(Role::Data, data.iter().map(|packet| packet.len()), length)?;
        check_lengths(Role::Parity, parity.iter().map(|packet| packet.len()), length)?;
        self.matrix.multiply(data, parity);
        Ok(())
    }

    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }
}

pub(crate) fn check_count(role: Role, given: usize, expected: usize) -> Result<(), Error> {
    if given == expected { Ok(()) } else { Err(Error::Count { role, given, expected }) }
}

pub(crate) fn check_lengths(role: Role, lengths: impl Iterator<Item = usize>, expected: usize) -> Result<(), Error> {
    for (index, given) in lengths.enumerate() {
        if given != expected {
            return Err(Error::Length { role, index, given, expected });
        }
    }
    Ok(())
}
