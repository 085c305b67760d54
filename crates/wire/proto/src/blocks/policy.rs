//! Selection of the packets that are coded, and of their blocks' shapes.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use flow::MAX_PACKETS;
use thiserror::Error;
use units::Frac;

use super::binomial;
use crate::frame::{MAX_PARITY, Shape};
use crate::narrow::to_u8;

/// Blocks of [`CodingPolicy::Tail`]: those of Uno (SC 2025, §4.2).
const TAIL: Shape = Shape { data: 8, parity: 2 };

/// Maximum probability that any block of a [`CodingPolicy::Auto`] tail needs retransmissions.
const MAX_FAILURE: Frac = Frac::millionths(5_000);

/// Maximum number of data packets of a block in [`CodingPolicy::Auto`]: with [`MAX_PARITY`] they are [`MAX_PACKETS`].
const MAX_DATA: u64 = (MAX_PACKETS - MAX_PARITY) as u64;

/// Selection of the packets that a sender codes. As text: `off`, `8,2`, `tail`, `auto`, `auto=10%`.
///
/// The last block has as many data packets as are left.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CodingPolicy {
    /// None.
    #[default]
    Off,
    /// All, in blocks of this shape. A block has fewer data packets if fewer are pending when it begins. An impossible
    /// shape codes nothing.
    Fixed(Shape),
    /// The last bandwidth-delay product, or the last packet, of data with a known end, in blocks of 8 and 2. Losses
    /// before it are repaired by the time that the end is sent (`docs/src/codes.md`, "When coding pays").
    Tail,
    /// The same part as [`CodingPolicy::Tail`], with the least parity that suffices, and none if losses are rare.
    ///
    /// Blocks have up to 32 data packets, all about the same number. The parity m is the least with which no block to
    /// the end loses more than it can rebuild, except with a probability of 0.5 % at the measured loss rate; or the
    /// rest of the budget, if that is less.
    ///
    /// All parity from a block to the end is at most one packet, or at most `budget` of one bandwidth-delay product. A
    /// block is not coded if that leaves no parity for it. So data longer than that product gets at most `budget` of
    /// itself as parity. Shorter data may get more than `budget` of itself.
    Auto {
        /// Parity, as a fraction of the data: 0 to 1.
        budget: Frac,
    },
}

/// Data that is left to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Bytes of symbols, including those of the next packet.
    pub bytes: u64,
    /// Set if no data follows them, as far as is known.
    pub ends: bool,
}

/// Spent part of a budget: parity packets of the previous blocks, since the end was known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Spent {
    parity: u64,
    /// Pending bytes when the last block began.
    pending: u64,
}

impl Spent {
    /// Begins a block. A new budget begins if no less is pending than at the last block: more was written since.
    pub(super) fn begin(&mut self, pending: u64) {
        if pending >= self.pending {
            self.parity = 0;
        }
        self.pending = pending;
    }

    /// Counts a block's parity packets.
    pub(super) fn add(&mut self, parity: u8) {
        self.parity += u64::from(parity);
    }
}

/// Network conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conditions {
    /// Fraction of the packets that is lost, 0 to 1.
    pub loss: Frac,
    /// The bandwidth-delay product of all paths, in bytes.
    pub bdp: u64,
}

/// Error of a text that names no coding.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CodingError {
    /// No coding has this name.
    #[error("no coding {given:?}; write off, tail, auto, auto=10% or, for 8 data and 2 parity packets a block, 8,2")]
    Unknown {
        /// The text.
        given: String,
    },
    /// No block has these packets.
    #[error(
        "no block has packets {given:?}; write k,m with k data packets, at least 1, and m parity packets, 1 to \
         {MAX_PARITY}, at most {MAX_PACKETS} together"
    )]
    Shape {
        /// The text.
        given: String,
    },
    /// A budget that cannot be.
    #[error("no budget {given:?}; write whole percents from 1% to 100%")]
    Budget {
        /// Text in place of the budget.
        given: String,
    },
}

impl CodingPolicy {
    /// [`CodingPolicy::Auto`] with a budget of 10 %.
    pub const AUTO: Self = Self::Auto { budget: Frac::ratio(1, 10) };

    /// Returns the shape of a block that begins now, in symbols of up to `mss` bytes. None if the next packet is not
    /// coded.
    pub(super) fn shape(self, pending: Pending, mss: u16, conditions: Conditions, spent: &mut Spent) -> Option<Shape> {
        let mss = u64::from(mss.max(1));
        let packets = pending.bytes.div_ceil(mss);
        let is_tail = pending.ends && pending.bytes <= conditions.bdp.max(mss);
        match self {
            Self::Fixed(shape) if is_possible(shape) => cut(shape, packets),
            Self::Tail if is_tail => cut(TAIL, packets),
            Self::Auto { budget } if is_tail && packets > 0 => {
                let blocks = packets.div_ceil(MAX_DATA);
                spent.begin(pending.bytes);
                let max_parity = (budget.of(conditions.bdp) / mss).max(1).saturating_sub(spent.parity);
                // At most 32, because there are `blocks` of them.
                let data = to_u8(packets.div_ceil(blocks));
                let max_failure = Frac::from_bits(MAX_FAILURE.bits() / blocks);
                let wanted = binomial::parity(data, conditions.loss, max_failure).unwrap_or(MAX_PARITY);
                let parity = wanted.min(to_u8((max_parity / blocks).min(MAX_PARITY.into())));
                spent.add(parity);
                (parity > 0).then_some(Shape { data, parity })
            }
            Self::Off | Self::Fixed(_) | Self::Tail | Self::Auto { .. } => None,
        }
    }
}

/// Returns the shape with at most `packets` data packets. None if there are none.
fn cut(shape: Shape, packets: u64) -> Option<Shape> {
    let data = to_u8(packets.min(shape.data.into()));
    (data > 0).then_some(Shape { data, ..shape })
}

/// Returns whether a block may have this shape.
pub(super) fn is_possible(shape: Shape) -> bool {
    let (data, parity) = (shape.data, shape.parity);
    data > 0 && (1..=MAX_PARITY).contains(&parity) && data <= MAX_PACKETS - parity
}

impl FromStr for CodingPolicy {
    type Err = CodingError;

    fn from_str(text: &str) -> Result<Self, CodingError> {
        if let Some(given) = text.strip_prefix("auto=") {
            let percent = given.strip_suffix('%').and_then(|number| number.parse().ok());
            let percent: u64 = percent
                .filter(|percent| (1..=100).contains(percent))
                .ok_or(CodingError::Budget { given: given.into() })?;
            return Ok(Self::Auto { budget: Frac::ratio(percent, 100) });
        }
        if let Some((data, parity)) = text.split_once(',') {
            let shape = data.parse().ok().zip(parity.parse().ok()).map(|(data, parity)| Shape { data, parity });
            return shape
                .filter(|&shape| is_possible(shape))
                .map(Self::Fixed)
                .ok_or(CodingError::Shape { given: text.into() });
        }
        match text {
            "off" => Ok(Self::Off),
            "tail" => Ok(Self::Tail),
            "auto" => Ok(Self::AUTO),
            _ => Err(CodingError::Unknown { given: text.into() }),
        }
    }
}

impl fmt::Display for CodingPolicy {
    /// Writes the text that [`FromStr`] reads; a budget is rounded to whole percents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.pad("off"),
            Self::Fixed(Shape { data, parity }) => write!(f, "{data},{parity}"),
            Self::Tail => f.pad("tail"),
            &Self::AUTO => f.pad("auto"),
            Self::Auto { budget } => write!(f, "auto={}%", (*budget + Frac::millionths(5_000)).of(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    fn pending(packets: u64) -> Pending {
        Pending { bytes: packets * 1000, ends: true }
    }

    fn auto(packets: u64, loss_ppm: u64, bdp_packets: u64) -> Option<(u8, u8)> {
        let conditions = Conditions { loss: Frac::millionths(loss_ppm), bdp: bdp_packets * 1000 };
        CodingPolicy::AUTO
            .shape(pending(packets), 1000, conditions, &mut Spent::default())
            .map(|shape| (shape.data, shape.parity))
    }

    #[test]
    fn as_text() {
        for text in ["off", "8,2", "1,1", "32,16", "47,1", "tail", "auto", "auto=1%", "auto=29%", "auto=100%"] {
            assert_eq!(text.parse::<CodingPolicy>().unwrap().to_string(), text);
        }
        assert_eq!("auto=10%".parse(), Ok(CodingPolicy::AUTO));
        for (text, expected) in [
            ("on", "no coding \"on\"; write off, tail, auto, auto=10% or"),
            ("", "no coding \"\"; write off"),
            ("0,1", "no block has packets \"0,1\"; write k,m"),
            ("8,0", "no block has packets \"8,0\""),
            ("8,17", "1 to 16, at most 48 together"),
            ("48,1", "no block has packets \"48,1\""),
            ("8,2,1", "no block has packets \"8,2,1\""),
            ("255,255", "no block has packets \"255,255\""),
            ("auto=0%", "no budget \"0%\"; write whole percents from 1% to 100%"),
            ("auto=101%", "no budget \"101%\""),
            ("auto=10", "no budget \"10\""),
        ] {
            let error = text.parse::<CodingPolicy>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn fixed_codes_all_and_the_last_block_is_short() {
        let anywhere = Conditions { loss: Frac::ZERO, bdp: 0 };
        let shape = |packets, ends| {
            let pending = Pending { ends, ..pending(packets) };
            CodingPolicy::Fixed(TAIL).shape(pending, 1000, anywhere, &mut Spent::default()).map(|shape| shape.data)
        };
        assert_eq!([9, 8, 3, 1, 0].map(|packets| shape(packets, true)), [Some(8), Some(8), Some(3), Some(1), None]);
        assert_eq!([9, 3].map(|packets| shape(packets, false)), [Some(8), Some(3)]);
        assert_eq!(
            CodingPolicy::Fixed(Shape { data: 0, parity: 1 }).shape(pending(5), 1000, anywhere, &mut Spent::default()),
            None
        );
        assert_eq!(CodingPolicy::Off.shape(pending(5), 1000, anywhere, &mut Spent::default()), None);
    }

    #[test]
    fn the_tail_is_one_bandwidth_delay_product_of_what_ends() {
        let shape = |packets, ends, bdp| {
            let (pending, conditions) = (Pending { ends, ..pending(packets) }, Conditions { loss: Frac::ZERO, bdp });
            CodingPolicy::Tail.shape(pending, 1000, conditions, &mut Spent::default())
        };
        assert_eq!(shape(100, true, 100_000), Some(TAIL));
        assert_eq!([shape(101, true, 100_000), shape(100, false, 100_000), shape(2, true, 0)], [None; 3]);
        assert_eq!(shape(1, true, 0), Some(Shape { data: 1, parity: 2 }));
    }

    #[test]
    fn auto_follows_losses_and_its_budget() {
        // One parity packet is enough for a short message, and may exceed the budget.
        assert_eq!(auto(5, 10_000, 5), Some((5, 1)));
        // No losses, no parity; rare ones do not matter to few packets.
        assert_eq!([auto(100, 0, 1000), auto(5, 1_000, 1000)], [None, None]);
        // Four blocks of 25 packets. Ten parity packets are a tenth of 100, and 3 each would be 12.
        assert_eq!([auto(100, 10_000, 100), auto(100, 10_000, 200)], [Some((25, 2)), Some((25, 3))]);
        // A short message on a long path has room for more than a tenth.
        assert_eq!([auto(8, 100_000, 100), auto(8, 100_000, 30)], [Some((8, 4)), Some((8, 2))]);
        // With losses too high for any parity, the whole budget is used.
        assert_eq!(auto(32, 900_000, 1000), Some((32, 16)));
        // Only the tail is coded.
        assert_eq!(auto(101, 10_000, 100), None);
    }

    proptest! {
        /// The choice is always a possible shape and within the budget.
        #[test]
        fn auto_keeps_its_budget(
            packets in 0..2_000u64,
            loss in 0..1u64 << 33,
            bdp in 0..2_000u64,
            percent in 1..100u64,
        ) {
            let coding = CodingPolicy::Auto { budget: Frac::ratio(percent, 100) };
            let (mut left, mut parity, mut block, mut spent) = (packets, 0, 0, Spent::default());
            while left > 0 {
                if block == 0 {
                    let conditions = Conditions { loss: Frac::from_bits(loss), bdp: bdp * 1000 };
                    if let Some(shape) = coding.shape(pending(left), 1000, conditions, &mut spent) {
                        prop_assert!(is_possible(shape) && u64::from(shape.data) <= left);
                        block = shape.data;
                        parity += u64::from(shape.parity);
                    }
                }
                block = block.saturating_sub(1);
                left -= 1;
            }
            prop_assert!(parity <= (bdp * percent / 100).max(1));
        }
    }
}
