//! Blocks of known contents, and their losses.

use codes::{Code, Encoder, Engine, Error};

/// Fast engines that run here; at least the portable one.
pub(crate) fn engines() -> impl Iterator<Item = Engine> {
    Engine::available().filter(|&engine| engine != Engine::Naive)
}

/// Packets of bytes that look random (xorshift) and depend on the seed.
pub(crate) fn packets(count: usize, length: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1) ^ 0x9e37_79b9_7f4a_7c15;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| (0..length).map(|_| byte()).collect()).collect()
}

pub(crate) fn slices(packets: &[Vec<u8>]) -> Vec<&[u8]> {
    packets.iter().map(Vec::as_slice).collect()
}

pub(crate) fn places(packets: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    packets.iter_mut().map(Vec::as_mut_slice).collect()
}

/// Data and its parity.
pub(crate) fn block(code: &Code, length: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut block = packets(code.packets(), length, seed);
    let (data, parity) = block.split_at_mut(code.data());
    code.encode(&slices(data), &mut places(parity)).unwrap();
    block
}

/// A block as it arrives.
pub(crate) fn arrived<'a>(block: &'a [Vec<u8>], lost: &[usize]) -> Vec<Option<&'a [u8]>> {
    let is_received = |place: usize| !lost.contains(&place);
    block.iter().enumerate().map(|(place, packet)| is_received(place).then_some(packet.as_slice())).collect()
}

/// The data packets among the lost, as sent.
pub(crate) fn wanted(code: &Code, block: &[Vec<u8>], lost: &[usize]) -> Vec<Vec<u8>> {
    (0..code.data()).filter(|place| lost.contains(place)).map(|place| block[place].clone()).collect()
}

/// Returns the parity of an encoder.
pub(crate) fn parity_of(encoder: &Encoder) -> Result<Vec<&[u8]>, Error> {
    encoder.parity().map(Iterator::collect)
}
