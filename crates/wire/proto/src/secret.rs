//! Secrets, and what proves that somebody has one: HMAC-SHA256 (RFC 2104).

use core::fmt;

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::{Digest as _, Sha256};

/// Bytes of a ticket's secret.
pub const SECRET_LEN: usize = 16;

/// Label before the exporter in the derivation of a resumption secret. A proof covers the exporter alone, so neither reveals the other.
const RESUMPTION: &[u8] = b"narrows resume";

/// A ticket's secret. It is not shown by `Debug`, and is compared in constant time.
#[derive(Clone)]
pub struct Secret([u8; SECRET_LEN]);

impl Secret {
    /// Of these bytes, which nobody can guess.
    pub const fn new(bytes: [u8; SECRET_LEN]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; SECRET_LEN] {
        &self.0
    }

    /// Proves that a caller has this secret, for the one connection that has this exporter.
    pub(crate) fn proof(&self, exporter: &[u8; 32]) -> [u8; 32] {
        Key::new(&self.0).tag(&[exporter])
    }

    /// Derives the resumption secret of the one connection that has this exporter.
    pub(crate) fn resumption(&self, exporter: &[u8; 32]) -> Self {
        let mut bytes = [0; SECRET_LEN];
        bytes.copy_from_slice(&Key::new(&self.0).tag(&[RESUMPTION, exporter])[..SECRET_LEN]);
        Self(bytes)
    }

    /// Whether a proof is this secret's.
    pub(crate) fn verifies(&self, exporter: &[u8; 32], proof: &[u8; 32]) -> bool {
        Key::new(&self.0).verifies(&[exporter], proof)
    }
}

impl PartialEq for Secret {
    /// In constant time: both are keys of the same tag.
    fn eq(&self, other: &Self) -> bool {
        Key::new(&self.0).verifies(&[], &Key::new(&other.0).tag(&[]))
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A key that makes and checks tags.
#[derive(Clone)]
pub(crate) struct Key(Hmac<Sha256>);

impl Key {
    /// Of these bytes, as many as there may be.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        // A key may have any length: longer ones are hashed. So there is always one.
        let key =
            Hmac::new_from_slice(bytes).unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
        Self(key)
    }

    /// The tag of these parts, one behind the other. The caller sees to it that no other parts give the same bytes.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.over(parts).finalize().into_bytes().into()
    }

    /// Whether this is the tag of these parts, or its beginning; in constant time. No bytes are no tag.
    pub(crate) fn verifies(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        !tag.is_empty() && self.over(parts).verify_truncated_left(tag).is_ok()
    }

    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        mac
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// SHA-256 of these parts, one behind the other.
pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    /// RFC 4231, test case 2.
    #[test]
    fn the_tag_is_hmac_sha256() {
        let tag = Key::new(b"Jefe").tag(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(tag[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
        assert!(Key::new(b"Jefe").verifies(&[b"what do ya want for nothing?"], &tag[..16]));
        assert!(!Key::new(b"Jefe").verifies(&[b"what do ya want for nothing?"], &[]));
        assert!(!Key::new(b"jefe").verifies(&[b"what do ya want for nothing?"], &tag));
    }

    #[test]
    fn a_proof_is_of_one_secret_and_one_connection() {
        let (secret, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let proof = secret.proof(&[7; 32]);
        assert!(secret.verifies(&[7; 32], &proof));
        assert!(!secret.verifies(&[8; 32], &proof) && !other.verifies(&[7; 32], &proof));
        assert!(secret == secret.clone() && secret != other);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_resumption_is_of_one_secret_and_one_connection() {
        let (secret, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let resumption = secret.resumption(&[7; 32]);
        assert!(resumption == secret.resumption(&[7; 32]) && resumption != secret);
        assert!(resumption != secret.resumption(&[8; 32]) && resumption != other.resumption(&[7; 32]));
        // The proof that crosses does not show it.
        assert_ne!(resumption.bytes()[..], secret.proof(&[7; 32])[..SECRET_LEN]);
    }
}
