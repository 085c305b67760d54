//! Errors in the arguments of a caller.

use core::str::FromStr;

use thiserror::Error;

use crate::kind::Engine;

/// Packets of a block that an error refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The protected packets.
    Data,
    /// The redundant packets.
    Parity,
    /// All of a block: first data, then parity.
    Block,
    /// The destinations of repaired data.
    Repaired,
}

impl core::fmt::Display for Role {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Parity => "parity",
            Self::Block => "block",
            Self::Repaired => "repaired",
        })
    }
}

/// Reason why nothing was coded. Outputs are not written on an error.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No code has these numbers of packets.
    #[error(
        "{data} data and {parity} parity packets: a block has at least one of each and at most {} in all",
        crate::MAX_PACKETS
    )]
    Shape {
        /// Data packets a block.
        data: usize,
        /// Parity packets a block.
        parity: usize,
    },
    /// Too many or too few packets in an argument.
    #[error("{given} {role} packets given where this block has {expected}")]
    Count {
        /// The argument.
        role: Role,
        /// The number given.
        given: usize,
        /// The number required.
        expected: usize,
    },
    /// A packet that is not as long as the others.
    #[error(
        "{role} packet {index} has {given} bytes where the block's first has {expected}; pad packets to one length"
    )]
    Length {
        /// The argument.
        role: Role,
        /// Its index there, from 0.
        index: usize,
        /// Its length in bytes.
        given: usize,
        /// The length in bytes of the others.
        expected: usize,
    },
    /// A block has no packet of this number.
    #[error("no {role} packet {index}: they are numbered from 0 to {}", .count.saturating_sub(1))]
    Index {
        /// The packets.
        role: Role,
        /// The requested index.
        index: usize,
        /// The number of packets.
        count: usize,
    },
    /// A packet was given to an encoder for the second time.
    #[error("data packet {index} of this block was already given")]
    Twice {
        /// Its number.
        index: usize,
    },
    /// An encoder has not seen all data of its block.
    #[error("{given} of the block's {expected} data packets were given; parity needs them all")]
    Unfinished {
        /// The number given.
        given: usize,
        /// The number required.
        expected: usize,
    },
    /// More is lost than the code can repair.
    #[error("{present} packets of the block are present and {needed} are needed")]
    Lost {
        /// The number of packets present.
        present: usize,
        /// The number of data packets of a block.
        needed: usize,
    },
    /// A repair was planned with a packet that is missing.
    #[error("packet {index} is missing, and this repair was planned with it")]
    Missing {
        /// Its number in the block.
        index: usize,
    },
    /// The engine's instructions are missing on this processor or in this build.
    #[error("the engine {engine} does not run on this processor")]
    Engine {
        /// The engine.
        engine: Engine,
    },
    /// No engine has this name.
    #[error("no such engine; there are {}", Engine::NAMES)]
    EngineName,
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|engine| engine.name() == name).ok_or(Error::EngineName)
    }
}
