//! Secrets and proofs of their possession: HMAC-SHA256 (RFC 2104).

use core::fmt;

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::{Digest as _, Sha256};

/// Bytes of a ticket's secret.
pub const SECRET_LEN: usize = 16;

/// Label before the exporter in the derivation of a resumption secret. A proof covers the exporter alone, so neither
/// reveals the other.
const RESUMPTION: &[u8] = b"narrows resume";

/// A ticket's secret. `Debug` does not print it, and comparison takes constant time.
#[derive(Clone)]
pub struct Secret([u8; SECRET_LEN]);

impl Secret {
    /// Creates a secret from these bytes, which must be unpredictable.
    pub const fn new(bytes: [u8; SECRET_LEN]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; SECRET_LEN] {
        &self.0
    }

    /// Computes a client's proof of this secret for the one connection that has this exporter.
    pub(crate) fn proof(&self, exporter: &[u8; 32]) -> [u8; 32] {
        MacKey::new(&self.0).tag(&[exporter])
    }

    /// Derives the resumption secret of the one connection that has this exporter.
    pub(crate) fn resumption(&self, exporter: &[u8; 32]) -> Self {
        let mut bytes = [0; SECRET_LEN];
        bytes.copy_from_slice(&MacKey::new(&self.0).tag(&[RESUMPTION, exporter])[..SECRET_LEN]);
        Self(bytes)
    }

    /// Returns whether this secret produced the proof.
    pub(crate) fn verifies(&self, exporter: &[u8; 32], proof: &[u8; 32]) -> bool {
        MacKey::new(&self.0).verifies(&[exporter], proof)
    }
}

impl PartialEq for Secret {
    /// Compares in constant time: both secrets are keys of the same tag.
    fn eq(&self, other: &Self) -> bool {
        MacKey::new(&self.0).verifies(&[], &MacKey::new(&other.0).tag(&[]))
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A key that computes and verifies tags.
#[derive(Clone)]
pub(crate) struct MacKey(Hmac<Sha256>);

impl MacKey {
    /// Creates a key from any number of bytes.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        // A key may have any length: longer ones are hashed. So there is always one.
        let key =
            Hmac::new_from_slice(bytes).unwrap_or_else(|_| Hmac::new(&hmac::digest::Key::<Hmac<Sha256>>::default()));
        Self(key)
    }

    /// Returns the tag of the concatenated parts. The caller ensures that no other parts concatenate to the same bytes.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.over(parts).finalize().into_bytes().into()
    }

    /// Returns whether this is the tag of these parts, or a prefix of it, in constant time. An empty tag is never
    /// valid.
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

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKey(..)")
    }
}

/// Returns the SHA-256 of the concatenated parts.
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
        let tag = MacKey::new(b"Jefe").tag(&[b"what do ya want ", b"for nothing?"]);
        assert_eq!(tag[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
        assert!(MacKey::new(b"Jefe").verifies(&[b"what do ya want for nothing?"], &tag[..16]));
        assert!(!MacKey::new(b"Jefe").verifies(&[b"what do ya want for nothing?"], &[]));
        assert!(!MacKey::new(b"jefe").verifies(&[b"what do ya want for nothing?"], &tag));
    }

    #[test]
    fn a_proof_is_bound_to_its_secret_and_connection() {
        let (secret, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let proof = secret.proof(&[7; 32]);
        assert!(secret.verifies(&[7; 32], &proof));
        assert!(!secret.verifies(&[8; 32], &proof) && !other.verifies(&[7; 32], &proof));
        assert!(secret == secret.clone() && secret != other);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_resumption_is_bound_to_its_secret_and_connection() {
        let (secret, other) = (Secret::new([1; 16]), Secret::new([2; 16]));
        let resumption = secret.resumption(&[7; 32]);
        assert!(resumption == secret.resumption(&[7; 32]) && resumption != secret);
        assert!(resumption != secret.resumption(&[8; 32]) && resumption != other.resumption(&[7; 32]));
        // The proof on the wire does not reveal it.
        assert_ne!(resumption.bytes()[..], secret.proof(&[7; 32])[..SECRET_LEN]);
    }
}
