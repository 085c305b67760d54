//! State shared by all connections of an endpoint.

use alloc::sync::Arc;

use rustls::crypto::CryptoProvider;

use crate::closed::{Code, Fault};
use crate::receive_memory::ReceiveMemory;
use crate::secret::Key;
use crate::settings::Settings;
use crate::team::Member;
use crate::{Id, TOKEN_LEN};

#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) provider: Arc<CryptoProvider>,
    /// Derives reset tokens from IDs.
    pub(crate) reset: Key,
    /// Counter of receive buffer memory.
    pub(crate) memory: ReceiveMemory,
    /// Membership of this endpoint in its listener group.
    pub(crate) member: Member,
}

impl Shared {
    /// Creates the state of an endpoint that is `member` of its group.
    pub(crate) fn new(settings: Settings, provider: Arc<CryptoProvider>, member: Member) -> Result<Self, Fault> {
        let mut shared = Self {
            settings: Arc::new(settings),
            provider,
            reset: Key::new(&[]),
            memory: ReceiveMemory::default(),
            member,
        };
        shared.reset = Key::new(&shared.random::<32>()?);
        Ok(shared)
    }

    /// Returns unpredictable bytes.
    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        match self.provider.secure_random.fill(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(_) => Err(Fault::new(Code::INTERNAL, "this machine gives no random numbers")),
        }
    }

    /// Creates an ID that no connection has.
    pub(crate) fn new_id(&self) -> Result<Id, Fault> {
        Ok(self.member.mark(self.random()?))
    }

    /// Returns the stateless reset token of this ID.
    pub(crate) fn reset_token(&self, id: Id) -> [u8; TOKEN_LEN] {
        let tag = self.reset.tag(&[&id]);
        let mut token = [0; TOKEN_LEN];
        token.copy_from_slice(&tag[..TOKEN_LEN]);
        token
    }
}
