//! What all connections of an endpoint share.

use alloc::sync::Arc;

use rustls::crypto::CryptoProvider;

use crate::closed::{Code, Fault};
use crate::secret::Key;
use crate::settings::Settings;
use crate::{Id, TOKEN_LEN};

#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) provider: Arc<CryptoProvider>,
    /// Makes reset tokens from IDs.
    pub(crate) reset: Key,
}

impl Shared {
    /// Bytes that nobody can guess.
    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        match self.provider.secure_random.fill(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(_) => Err(Fault::new(Code::INTERNAL, "this machine gives no random numbers")),
        }
    }

    /// What a stateless reset for this ID ends with.
    pub(crate) fn reset_token(&self, id: Id) -> [u8; TOKEN_LEN] {
        let tag = self.reset.tag(&[&id]);
        let mut token = [0; TOKEN_LEN];
        token.copy_from_slice(&tag[..TOKEN_LEN]);
        token
    }
}
