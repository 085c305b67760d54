//! Packet protection: RFC 9001 §5 and §6, with a nonce that depends on the path, too. `docs/src/transport.md`,
//! "Protection".

use alloc::boxed::Box;
use alloc::vec::Vec;

use rustls::quic::{DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, PacketKeySet, Secrets};
use units::{Span, Time};

use crate::header::{KeyPhase, SAMPLE, put_number, whole_number};

/// Bytes that sealing adds.
pub(crate) const SEAL_LEN: usize = 16;

/// The maximum length of a packet that is short for [`max_sealed`], in bytes (RFC 9001 §B.1.1: 128 blocks of 16
/// bytes).
const SHORT: usize = 2_048;

/// Packets that fail to open after which a connection ends (RFC 9001 §6.6: the minimum over the three ciphers).
pub(crate) const MAX_FAILURES: u64 = 1 << 36;

/// Returns the number of packets that one key may seal (RFC 9001 §6.6 and §B.1.1).
const fn max_sealed(lengths: SealedLengths) -> u64 {
    match lengths {
        SealedLengths::Short => 1 << 27,
        SealedLengths::Any => 1 << 22,
    }
}

/// Lengths of the packets that a connection has sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SealedLengths {
    /// All were short: at most [`SHORT`] bytes.
    Short,
    /// Longer ones, too.
    Any,
}

/// Path and packet number, from which the nonce is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Numbered {
    /// The path; 0 in the handshake.
    pub(crate) path: u32,
    /// The packet's number there.
    pub(crate) number: u64,
}

/// Error for a packet that does not open: it was sealed with another key, or was modified. It is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unopened;

/// A packet that was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DecryptedPacket {
    /// Packet number.
    pub(crate) number: u64,
    /// Range of its frames.
    pub(crate) payload: core::ops::Range<usize>,
    /// Set if the reserved bits are 0, as required.
    pub(crate) has_zero_reserved_bits: bool,
}

/// Position of a packet that is being written to a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeaderOffsets {
    /// Offset of the packet.
    pub(crate) start: usize,
    /// Offset of its packet number.
    pub(crate) number_at: usize,
    /// Length of the packet number, 1 to 4 bytes.
    pub(crate) number_len: usize,
}

/// Seals the packet at the end of a buffer. Its header and frames are written already, its packet number is not.
///
/// # Panics
/// In debug builds, if the packet is too short to be protected.
fn seal(
    header: &dyn HeaderProtectionKey,
    key: &dyn PacketKey,
    out: &mut Vec<u8>,
    offsets: HeaderOffsets,
    nonce_input: Numbered,
) {
    let HeaderOffsets { start, number_at, number_len } = offsets;
    let bytes = nonce_input.number.to_be_bytes();
    out[number_at..number_at + number_len].copy_from_slice(&bytes[bytes.len() - number_len..]);
    let (head, payload) = out[start..].split_at_mut(number_at + number_len - start);
    // Sealing fails only for packets of over 2^36 bytes (RFC 5116 §5.1).
    if let Ok(tag) = key.encrypt_in_place_for_path(nonce_input.path, nonce_input.number, head, payload) {
        out.extend(tag.as_ref());
    } else {
        debug_assert!(false, "a packet cannot be sealed");
    }
    let (head, sample) = out[start..].split_at_mut(number_at + SAMPLE.start - start);
    debug_assert!(sample.len() >= SAMPLE.len(), "a packet of {} bytes cannot be protected", head.len() + sample.len());
    let (first, number) = head.split_at_mut(number_at - start);
    let done = header.encrypt_in_place(&sample[..SAMPLE.len()], &mut first[0], &mut number[..number_len]);
    debug_assert!(done.is_ok(), "a header cannot be protected");
}

/// Removes a packet's header protection. Returns the length of its packet number and the number itself.
fn unmask(
    header: &dyn HeaderProtectionKey,
    packet: &mut [u8],
    number_at: usize,
    newest: Option<u64>,
) -> Result<(usize, u64), Unopened> {
    let (head, sample) = packet.split_at_mut_checked(number_at + SAMPLE.start).ok_or(Unopened)?;
    let sample = sample.get(..SAMPLE.len()).ok_or(Unopened)?;
    let (first, number) = head.split_at_mut(number_at);
    header.decrypt_in_place(sample, first.first_mut().ok_or(Unopened)?, number).map_err(|_| Unopened)?;
    let len = usize::from(first[0] & 3) + 1;
    let lowest = number[..len].iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
    Ok((len, whole_number(lowest, len, newest)))
}

/// Opens a packet without header protection.
fn open(key: &dyn PacketKey, packet: &mut [u8], payload_at: usize, nonce_input: Numbered) -> Result<usize, Unopened> {
    let (head, sealed) = packet.split_at_mut(payload_at);
    key.decrypt_in_place_for_path(nonce_input.path, nonce_input.number, head, sealed)
        .map(<[u8]>::len)
        .map_err(|_| Unopened)
}

/// The keys of Initial or of Handshake packets. They are never updated.
pub(crate) struct HandshakeKeys(pub(crate) Keys);

/// The reserved bits of a long and of a short header.
const LONG_RESERVED: u8 = 0x0c;
const SHORT_RESERVED: u8 = 0x18;

impl HandshakeKeys {
    /// Seals the packet at the end of a buffer.
    pub(crate) fn seal(&self, out: &mut Vec<u8>, offsets: HeaderOffsets, number: u64) {
        let DirectionalKeys { header, packet } = &self.0.local;
        seal(&**header, &**packet, out, offsets, Numbered { path: 0, number });
    }

    /// Opens a packet; `newest` is the highest number received.
    pub(crate) fn open(
        &self,
        packet: &mut [u8],
        number_at: usize,
        newest: Option<u64>,
    ) -> Result<DecryptedPacket, Unopened> {
        let DirectionalKeys { header, packet: key } = &self.0.remote;
        let (len, number) = unmask(&**header, packet, number_at, newest)?;
        let at = number_at + len;
        let opened = open(&**key, packet, at, Numbered { path: 0, number })?;
        Ok(DecryptedPacket { number, payload: at..at + opened, has_zero_reserved_bits: packet[0] & LONG_RESERVED == 0 })
    }
}

/// Key phase that a path has received last.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SeenPhase {
    /// The lowest number received in a key phase, and the number of updates before that phase.
    lowest: Option<(u64, u64)>,
}

impl SeenPhase {
    /// Returns the lowest number received in this phase.
    fn lowest(self, updates: u64) -> Option<u64> {
        self.lowest.filter(|&(_, of)| of == updates).map(|(number, _)| number)
    }

    fn record(&mut self, number: u64, updates: u64) {
        let lowest = self.lowest(updates).map_or(number, |lowest| lowest.min(number));
        if self.lowest.is_none_or(|(_, of)| of <= updates) {
            self.lowest = Some((lowest, updates));
        }
    }
}

/// A received packet with a short header, and the receiving state of its path.
pub(crate) struct SealedPacket<'a> {
    pub(crate) packet: &'a mut [u8],
    /// Offset of its packet number.
    pub(crate) number_at: usize,
    /// Its path.
    pub(crate) path: u32,
    /// The highest number received on that path.
    pub(crate) newest: Option<u64>,
    pub(crate) seen: &'a mut SeenPhase,
}

/// The keys of short-header packets, and their updates.
pub(crate) struct DataKeys {
    header_local: Box<dyn HeaderProtectionKey>,
    header_remote: Box<dyn HeaderProtectionKey>,
    current: PacketKeySet,
    next: PacketKeySet,
    /// The peer's key before the last update, and the time when it is discarded: three timeouts after the arrival of
    /// the first packet under the present key. Before that arrival the peer may not know of the update.
    previous: Option<(Box<dyn PacketKey>, Time)>,
    secrets: Secrets,
    /// Number of key updates. Its lowest bit is the key phase.
    updates: u64,
    /// Packets sealed with the present key.
    sealed_count: u64,
    lengths: SealedLengths,
    /// Set if a packet sealed with the present key was acknowledged.
    is_acknowledged: bool,
    /// The earliest time of the next key update.
    not_before: Time,
    /// Packets that failed to open.
    pub(crate) failures: u64,
}

impl DataKeys {
    pub(crate) fn new(keys: Keys, mut secrets: Secrets) -> Self {
        let next = secrets.next_packet_keys();
        Self {
            header_local: keys.local.header,
            header_remote: keys.remote.header,
            current: PacketKeySet { local: keys.local.packet, remote: keys.remote.packet },
            next,
            previous: None,
            secrets,
            updates: 0,
            sealed_count: 0,
            lengths: SealedLengths::Short,
            is_acknowledged: false,
            not_before: Time::ZERO,
            failures: 0,
        }
    }

    /// Returns the key phase bit of packets that are sealed now.
    pub(crate) fn phase(&self) -> KeyPhase {
        KeyPhase::after(self.updates)
    }

    /// Returns the number of key updates.
    pub(crate) fn updates(&self) -> u64 {
        self.updates
    }

    /// Returns whether the present key has reached its limit of sealed packets.
    pub(crate) fn is_used_up(&self) -> bool {
        self.sealed_count >= max_sealed(self.lengths)
    }

    /// Returns whether the present key should be replaced: it has sealed half of its limit.
    pub(crate) fn wants_update(&self) -> bool {
        self.sealed_count >= max_sealed(self.lengths) / 2
    }

    /// Seals the packet at the end of a buffer. Its header has the bit of [`DataKeys::phase`].
    pub(crate) fn seal(&mut self, out: &mut Vec<u8>, offsets: HeaderOffsets, nonce_input: Numbered) {
        debug_assert!(!self.is_used_up(), "a key has sealed {} packets", self.sealed_count);
        self.sealed_count += 1;
        seal(&*self.header_local, &*self.current.local, out, offsets, nonce_input);
        if out.len() - offsets.start > SHORT {
            self.lengths = SealedLengths::Any;
        }
    }

    /// Notes that a packet sealed after `updates` key updates was acknowledged.
    pub(crate) fn acknowledged(&mut self, updates: u64) {
        self.is_acknowledged |= updates == self.updates;
    }

    /// Updates the keys if that is allowed: a packet under the present ones was acknowledged, and three timeouts have
    /// passed since the last update. The caller ensures that the handshake is complete. Returns whether it did.
    pub(crate) fn update(&mut self, now: Time, timeout: Span) -> bool {
        let may = self.is_acknowledged && now >= self.not_before;
        if may {
            self.switch(now, timeout);
        }
        may
    }

    fn switch(&mut self, now: Time, timeout: Span) {
        let next = self.secrets.next_packet_keys();
        let new = core::mem::replace(&mut self.next, next);
        let old = core::mem::replace(&mut self.current, new);
        self.not_before = now.saturating_add(timeout.times(3));
        self.previous = Some((old.remote, Time::NEVER));
        self.updates += 1;
        (self.sealed_count, self.is_acknowledged) = (0, false);
    }

    /// Opens a packet of a path. A packet of the next phase that opens updates the keys.
    pub(crate) fn open(&mut self, now: Time, timeout: Span, sealed: SealedPacket) -> Result<DecryptedPacket, Unopened> {
        let opened = self.try_open(now, timeout, sealed);
        self.failures += u64::from(opened.is_err());
        opened
    }

    fn try_open(&mut self, now: Time, timeout: Span, sealed: SealedPacket) -> Result<DecryptedPacket, Unopened> {
        let SealedPacket { packet, number_at, path, newest, seen } = sealed;
        if self.previous.as_ref().is_some_and(|&(_, until)| until <= now) {
            self.previous = None;
        }
        let (len, number) = unmask(&*self.header_remote, packet, number_at, newest)?;
        let (at, nonce_input) = (number_at + len, Numbered { path, number });
        let opened = |payload, packet: &[u8]| DecryptedPacket {
            number,
            payload: at..at + payload,
            has_zero_reserved_bits: packet[0] & SHORT_RESERVED == 0,
        };
        if KeyPhase::of(packet[0]) == self.phase() {
            let payload = open(&*self.current.remote, packet, at, nonce_input)?;
            seen.record(number, self.updates);
            self.confirm_current(now, timeout);
            return Ok(opened(payload, packet));
        }
        let lowest = seen.lowest(self.updates);
        let mut copy = Vec::new();
        if let Some((previous, _)) = self.previous.as_ref().filter(|_| lowest.is_none_or(|lowest| number < lowest)) {
            if lowest.is_none() {
                // A failed attempt may modify the bytes, and the next key may have to open the same bytes.
                copy.extend_from_slice(packet);
            }
            match open(&**previous, packet, at, nonce_input) {
                Ok(payload) => return Ok(opened(payload, packet)),
                Err(Unopened) if lowest.is_some() => return Err(Unopened),
                Err(Unopened) => packet.copy_from_slice(&copy),
            }
        }
        if lowest.is_some_and(|lowest| number < lowest) {
            return Err(Unopened);
        }
        let payload = open(&*self.next.remote, packet, at, nonce_input)?;
        self.switch(now, timeout);
        seen.record(number, self.updates);
        self.confirm_current(now, timeout);
        Ok(opened(payload, packet))
    }

    /// Notes the arrival of a packet under the peer's present key.
    fn confirm_current(&mut self, now: Time, timeout: Span) {
        if let Some((_, until)) = self.previous.as_mut().filter(|(_, until)| !until.is_set()) {
            *until = now.saturating_add(timeout.times(3));
        }
    }
}

/// Leaves room for a packet's number, to be filled in by sealing.
pub(crate) fn leave_number(out: &mut Vec<u8>, len: usize) {
    put_number(out, 0, len);
}
