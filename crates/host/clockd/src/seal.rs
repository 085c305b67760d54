//! Authentication of messages by a key that all members of a mesh share, and protection against replays.
//!
//! A sealed message is the message, its number (u64, big-endian) and a tag: the first 16 bytes of HMAC-SHA256 (RFC 2104) over
//! both. The key of the tags is derived from the shared key and a digest of the mesh's members, so hosts with different lists
//! of members do not understand each other: an index of a member would mean different hosts.
//!
//! A member with the key can send as any other one. Messages are not encrypted: they have timestamps and estimates only.

use clocks::Session;
use hmac::{Hmac, KeyInit, Mac as _};
use sha2::{Digest as _, Sha256};
use units::{Span, Time};

/// Length of the tag, in bytes.
const TAG_LENGTH: usize = 16;

/// Length that sealing adds to a message, in bytes.
const SEAL_OVERHEAD: usize = 8 + TAG_LENGTH;

/// Minimum length of the shared key, in bytes.
pub(crate) const MIN_KEY_LENGTH: usize = 16;

/// Key of a mesh.
#[derive(Clone)]
pub struct MeshKey(Hmac<Sha256>);

impl std::fmt::Debug for MeshKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MeshKey(..)")
    }
}

/// An authentic message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opened<'a> {
    /// The message.
    pub(crate) message: &'a [u8],
    /// Its number, ascending within the sender's session.
    pub(crate) number: u64,
}

impl MeshKey {
    /// Derives the key of a mesh from the shared secret and a description of the mesh.
    pub fn derive(secret: &[u8], mesh: &[u8]) -> Self {
        let mut extracted = mac(secret);
        extracted.update(b"narrows clocks 1");
        extracted.update(&Sha256::digest(mesh));
        Self(mac(&extracted.finalize().into_bytes()))
    }

    /// Returns the sealed message.
    pub(crate) fn seal(&self, message: &[u8], number: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(message.len() + SEAL_OVERHEAD);
        bytes.extend_from_slice(message);
        bytes.extend_from_slice(&number.to_be_bytes());
        let mut mac = self.0.clone();
        mac.update(&bytes);
        bytes.extend_from_slice(&mac.finalize().into_bytes()[..TAG_LENGTH]);
        bytes
    }

    /// Returns the message in these bytes; none if they are not authentic. The comparison takes the same time for any tag.
    pub(crate) fn open<'a>(&self, bytes: &'a [u8]) -> Option<Opened<'a>> {
        let (sealed, tag) = bytes.split_last_chunk::<TAG_LENGTH>()?;
        let (message, number) = sealed.split_last_chunk::<8>()?;
        let mut mac = self.0.clone();
        mac.update(sealed);
        mac.verify_truncated_left(tag).ok()?;
        Some(Opened { message, number: u64::from_be_bytes(*number) })
    }
}

fn mac(key: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(key).expect("HMAC takes keys of any length (RFC 2104 §2)")
}

/// Numbers below the highest one that are distinguished.
const WINDOW: u64 = 128;

/// Silence of a session after which a lower one is accepted: the sender's clock was set back before it restarted.
const SILENCE: Span = Span::from_s(10);

/// Numbers of a sender's messages that have been accepted (RFC 4303, appendix A2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReplayWindow {
    state: Option<WindowState>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct WindowState {
    session: Session,
    highest: u64,
    /// Bit n: the number `highest - n` has been accepted.
    accepted: u128,
    last: Time,
}

impl ReplayWindow {
    /// Returns whether an authentic message is new, and if so records it.
    pub(crate) fn accept(&mut self, now: Time, session: Session, number: u64) -> bool {
        let Some(state) = &mut self.state else { return self.begin(now, session, number) };
        if session != state.session {
            let is_silent = now.saturating_since(state.last) >= SILENCE;
            return (session.0 > state.session.0 || is_silent) && self.begin(now, session, number);
        }
        if number > state.highest {
            let shift = number - state.highest;
            state.accepted = if shift < WINDOW { state.accepted << shift | 1 } else { 1 };
            (state.highest, state.last) = (number, now);
            return true;
        }
        let age = state.highest - number;
        let bit = if age < WINDOW { 1u128 << age } else { return false };
        let is_new = state.accepted & bit == 0;
        if is_new {
            state.accepted |= bit;
            state.last = now;
        }
        is_new
    }

    /// Lets times begin at zero again.
    pub(crate) fn restart_time(&mut self) {
        if let Some(state) = &mut self.state {
            state.last = Time::ZERO;
        }
    }

    fn begin(&mut self, now: Time, session: Session, number: u64) -> bool {
        self.state = Some(WindowState { session, highest: number, accepted: 1, last: now });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_depend_on_secret_and_mesh() {
        let sealed = MeshKey::derive(b"secret", b"mesh").seal(b"message", 7);
        assert_eq!(sealed.len(), 7 + SEAL_OVERHEAD);
        let open = |secret: &[u8], mesh: &[u8]| MeshKey::derive(secret, mesh).open(&sealed).is_some();
        assert!(open(b"secret", b"mesh"));
        assert!(!open(b"Secret", b"mesh") && !open(b"secret", b"Mesh") && !open(b"", b""));
    }

    /// RFC 4231, test case 2, truncated.
    #[test]
    fn tags_are_those_of_hmac_sha256() {
        let mut tag = mac(b"Jefe");
        tag.update(b"what do ya want for nothing?");
        assert_eq!(files::hexadecimal(&tag.finalize().into_bytes()[..TAG_LENGTH]), "5bdcc146bf60754e6a042426089575c7");
    }

    #[test]
    fn lower_sessions_need_silence() {
        let mut window = ReplayWindow::default();
        let (old, new) = (Session(5), Session(6));
        assert!(window.accept(Time::from_ms(0), old, 3));
        assert!(window.accept(Time::from_ms(1), new, 0));
        assert!(!window.accept(Time::from_ms(9_000), old, 4));
        assert!(!window.accept(Time::from_ms(9_000), new, 0));
        assert!(window.clone().accept(Time::from_ms(10_001), old, 4));
        // Silence is measured by the new times, too.
        assert!(window.accept(Time::from_ms(1_000_000), new, 1));
        window.restart_time();
        assert!(!window.accept(Time::from_ms(9_999), old, 4));
        assert!(window.accept(Time::from_ms(10_000), old, 4));
    }

    proptest! {
        /// Changed in any bit, or cut, a message is refused.
        #[test]
        fn changed_messages_are_refused(
            message in proptest::collection::vec(any::<u8>(), 0..200),
            number: u64,
            bit: prop::sample::Index,
            cut: prop::sample::Index,
        ) {
            let key = MeshKey::derive(b"0123456789abcdef", b"");
            let sealed = key.seal(&message, number);
            prop_assert_eq!(key.open(&sealed), Some(Opened { message: &message, number }));
            let mut changed = sealed.clone();
            let bit = bit.index(8 * changed.len());
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(key.open(&changed), None);
            prop_assert_eq!(key.open(&sealed[..cut.index(sealed.len())]), None);
        }

        /// No number is accepted twice, and those within the window of the highest one are accepted once.
        #[test]
        fn replays_are_refused(numbers in proptest::collection::vec(0u64..400, 1..300)) {
            let mut window = ReplayWindow::default();
            let (mut seen, mut highest) = (BTreeSet::new(), None);
            for number in numbers {
                let is_recent = highest.is_none_or(|highest| number + WINDOW > highest);
                let expected = is_recent && !seen.contains(&number);
                prop_assert_eq!(window.accept(Time::ZERO, Session(1), number), expected, "{}", number);
                seen.insert(number);
                highest = highest.max(Some(number));
            }
        }
    }
}
