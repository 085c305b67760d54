//! State shared by all connections of an endpoint.

use alloc::sync::Arc;

use rustls::crypto::CryptoProvider;

use crate::closed::{CloseCode, CloseReason};
use crate::listener_group::GroupMember;
use crate::receive_memory::ReceiveMemory;
use crate::secret::MacKey;
use crate::settings::Settings;
use crate::{ConnectionId, TOKEN_LEN};

#[derive(Clone, Debug)]
pub(crate) struct EndpointState {
    pub(crate) settings: Arc<Settings>,
    pub(crate) provider: Arc<CryptoProvider>,
    /// Derives reset tokens from IDs.
    pub(crate) reset: MacKey,
    /// Counter of receive buffer memory.
    pub(crate) memory: ReceiveMemory,
    /// Membership of this endpoint in its listener group.
    pub(crate) member: GroupMember,
}

impl EndpointState {
    /// Creates the state of an endpoint that is `member` of its group.
    pub(crate) fn new(
        settings: Settings,
        provider: Arc<CryptoProvider>,
        member: GroupMember,
    ) -> Result<Self, CloseReason> {
        let mut shared = Self {
            settings: Arc::new(settings),
            provider,
            reset: MacKey::new(&[]),
            memory: ReceiveMemory::default(),
            member,
        };
        shared.reset = MacKey::new(&shared.random::<32>()?);
        Ok(shared)
    }

    /// Returns unpredictable bytes.
    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N], CloseReason> {
        let mut bytes = [0; N];
        match self.provider.secure_random.fill(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(_) => Err(CloseReason::new(CloseCode::INTERNAL, "this machine provides no random numbers")),
        }
    }

    /// Creates an ID that no connection has.
    pub(crate) fn new_id(&self) -> Result<ConnectionId, CloseReason> {
        Ok(self.member.tag_id(self.random()?))
    }

    /// Returns the stateless reset token of this ID.
    pub(crate) fn reset_token(&self, id: ConnectionId) -> [u8; TOKEN_LEN] {
        let tag = self.reset.tag(&[&id]);
        let mut token = [0; TOKEN_LEN];
        token.copy_from_slice(&tag[..TOKEN_LEN]);
        token
    }
}
