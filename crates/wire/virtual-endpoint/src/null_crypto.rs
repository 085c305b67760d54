//! QUIC packet protection that neither encrypts nor authenticates. A build with sockets must not contain this module:
//! `crates/cli/tests/cli/virtual_time.rs` searches the program for its symbols.

use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{Error, SupportedCipherSuite, Tls13CipherSuite};

const TAG: [u8; 16] = [0; 16];

/// Returns a suite that protects TLS records, but no QUIC packets.
///
/// # Panics
/// If the suite is not of TLS 1.3, or has no support for QUIC.
pub(crate) fn suite(real: SupportedCipherSuite) -> &'static Tls13CipherSuite {
    let suite = real.tls13().expect("a suite of TLS 1.3");
    let quic: &'static NullAead = Box::leak(Box::new(NullAead { real: suite.quic.expect("a suite for QUIC") }));
    Box::leak(Box::new(Tls13CipherSuite {
        common: rustls::crypto::CipherSuiteCommon { ..suite.common },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(quic),
    }))
}

struct NullAead {
    real: &'static dyn Algorithm,
}

impl Algorithm for NullAead {
    fn packet_key(&self, _: AeadKey, _: Iv) -> Box<dyn PacketKey> {
        Box::new(NullPacketKey)
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.real.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.real.aead_key_len()
    }
}

struct NullPacketKey;

impl PacketKey for NullPacketKey {
    fn encrypt_in_place(&self, _: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Ok(Tag::from(&TAG[..]))
    }

    fn encrypt_in_place_for_path(&self, _: u32, _: u64, _: &[u8], _: &mut [u8]) -> Result<Tag, Error> {
        Ok(Tag::from(&TAG[..]))
    }

    fn decrypt_in_place<'a>(&self, _: u64, _: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        let (text, tag) = payload.split_at(payload.len().checked_sub(TAG.len()).ok_or(Error::DecryptError)?);
        if tag == TAG { Ok(text) } else { Err(Error::DecryptError) }
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        _: u32,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.decrypt_in_place(number, header, payload)
    }

    fn tag_len(&self) -> usize {
        TAG.len()
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}
