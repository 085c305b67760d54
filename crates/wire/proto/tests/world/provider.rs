//! The provider of worlds: that of [`virtual_endpoint`], which is reproducible from a seed, with checks of its key use and
//! with forged packets. No key seals two packets under one nonce.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{Error, SupportedCipherSuite, Tls13CipherSuite};
use virtual_endpoint::provider as seeded;

thread_local! {
    static INJECTED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    static FORGERY: Cell<u64> = const { Cell::new(0) };
    static KEYS: Cell<u64> = const { Cell::new(0) };
    static NONCES: RefCell<BTreeSet<(u64, u32, u64)>> = RefCell::default();
}

/// Begins a run: randomness follows from the seed, and no nonce was used.
///
/// One packet in `forgery` has modified contents, and is sealed nevertheless; 0 for none.
pub fn begin(seed: u64, forgery: u64) {
    seeded::begin(seed);
    INJECTED.take();
    FORGERY.set(forgery);
    KEYS.set(0);
    NONCES.take();
}

/// Replaces the contents of the next sealed packet by these frames, as far as it is long enough.
pub fn inject_frames(frames: &[u8]) {
    INJECTED.set(Some(frames.to_vec()));
}

/// Returns the provider of all endpoints of a world.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        let suite = seeded::aes().tls13().expect("a suite of TLS 1.3");
        let watched = Watched { real: suite.quic.expect("a suite for QUIC") };
        let suite: &'static Tls13CipherSuite = Box::leak(Box::new(Tls13CipherSuite {
            common: rustls::crypto::CipherSuiteCommon { ..suite.common },
            hkdf_provider: suite.hkdf_provider,
            aead_alg: suite.aead_alg,
            quic: Some(Box::leak(Box::new(watched))),
        }));
        seeded::with_suite(SupportedCipherSuite::Tls13(suite))
    });
    PROVIDER.clone()
}

/// An algorithm with checks of its key use.
struct Watched {
    real: &'static dyn Algorithm,
}

impl Algorithm for Watched {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        KEYS.set(KEYS.get() + 1);
        Box::new(WatchedKey { real: self.real.packet_key(key, iv), name: KEYS.get() })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        self.real.header_protection_key(key)
    }

    fn aead_key_len(&self) -> usize {
        self.real.aead_key_len()
    }
}

/// Changes the contents of a packet occasionally: a byte near its beginning, where frames have their types and numbers.
fn tamper(payload: &mut [u8]) {
    if let Some(frames) = INJECTED.take() {
        payload.fill(0);
        let len = frames.len().min(payload.len());
        payload[..len].copy_from_slice(&frames[..len]);
        return;
    }
    let draw = seeded::random;
    if FORGERY.get() == 0 || !draw().is_multiple_of(FORGERY.get()) {
        return;
    }
    for _ in 0..=draw() % 3 {
        let offset = draw() % (payload.len() as u64).min(if draw().is_multiple_of(2) { 8 } else { 60 });
        let kinds =
            [0x00, 0x01, 0x02, 0x03, 0x06, 0x09, 0x0a, 0x0c, 0x0d, 0x10, 0x12, 0x14, 0x15, 0x16, 0x26, 0x38, 0x3b];
        payload[offset as usize] = match draw() % 3 {
            0 => kinds[(draw() % 17) as usize],
            1 => [0, 1, 0x3f, 0x7f, 0xbf, 0xff][(draw() % 6) as usize],
            _ => draw() as u8,
        };
    }
}

struct WatchedKey {
    real: Box<dyn PacketKey>,
    name: u64,
}

impl WatchedKey {
    fn check_nonce(&self, path: u32, number: u64) {
        let is_new = NONCES.with_borrow_mut(|nonces| nonces.insert((self.name, path, number)));
        assert!(is_new, "packet {number} of path {path} was sealed twice");
    }
}

impl PacketKey for WatchedKey {
    fn encrypt_in_place(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Result<Tag, Error> {
        self.check_nonce(0, number);
        self.real.encrypt_in_place(number, header, payload)
    }

    fn encrypt_in_place_for_path(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        self.check_nonce(path, number);
        tamper(payload);
        self.real.encrypt_in_place_for_path(path, number, header, payload)
    }

    fn decrypt_in_place<'a>(&self, number: u64, header: &[u8], payload: &'a mut [u8]) -> Result<&'a [u8], Error> {
        self.real.decrypt_in_place(number, header, payload)
    }

    fn decrypt_in_place_for_path<'a>(
        &self,
        path: u32,
        number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        self.real.decrypt_in_place_for_path(path, number, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.real.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.real.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.real.integrity_limit()
    }
}
