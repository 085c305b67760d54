//! Parity encoder: one block at a time, while its symbols are sent.

use alloc::vec::Vec;

use codes::{Code, Encoder};
use flow::MAX_PACKETS;

use super::LENGTH_BYTES;
use crate::frame::Shape;
use crate::narrow::to_u16;

/// Encoders, and the state of the current block.
#[derive(Default, Debug)]
pub(super) struct Encoding {
    /// One for each number of parity packets that was used: fewer data packets are a shortened code.
    encoders: Vec<Encoder>,
    /// Encoder of the current block.
    current: usize,
    /// A symbol after its length, padded with zeros.
    padded: Vec<u8>,
}

impl Encoding {
    /// Begins a block with symbols of up to `max_len` bytes. Returns false if no code has this shape.
    pub(super) fn begin(&mut self, shape: Shape, max_len: u16) -> bool {
        let parity = usize::from(shape.parity);
        let known = self.encoders.iter().position(|encoder| encoder.code().parity() == parity);
        self.current = match known {
            Some(known) => known,
            None => match Code::new(usize::from(MAX_PACKETS).saturating_sub(parity), parity) {
                Ok(code) => {
                    self.encoders.push(Encoder::new(code));
                    self.encoders.len() - 1
                }
                Err(_) => return false,
            },
        };
        self.padded.clear();
        self.padded.resize(usize::from(max_len) + LENGTH_BYTES, 0);
        let encoder = &mut self.encoders[self.current];
        encoder.clear();
        encoder.shorten(shape.data.into()).is_ok()
    }

    /// Adds the symbol of a place that has none, of at most the `max_len` bytes of [`Encoding::begin`].
    pub(super) fn push(&mut self, place: u8, symbol: &[u8]) {
        debug_assert!(symbol.len() + LENGTH_BYTES <= self.padded.len(), "{} bytes", symbol.len());
        let (head, rest) = self.padded.split_at_mut(LENGTH_BYTES);
        let (body, zeros) = rest.split_at_mut(symbol.len());
        head.copy_from_slice(&to_u16(symbol.len() as u64).to_be_bytes());
        body.copy_from_slice(symbol);
        zeros.fill(0);
        let pushed = self.encoders[self.current].push(place.into(), &self.padded);
        debug_assert_eq!(pushed, Ok(()));
    }

    /// Returns the parity of a block that has all its data, cut to `len` bytes; the bytes beyond are zeros.
    pub(super) fn parity(&self, len: usize) -> impl Iterator<Item = &[u8]> {
        let parity = self.encoders[self.current].parity();
        debug_assert!(parity.is_ok(), "the block lacks data");
        parity.into_iter().flatten().map(move |symbol| symbol.get(..len).unwrap_or(symbol))
    }
}
