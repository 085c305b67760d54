//! Tokens of Retry packets, which validate a client's address (RFC 9000 §8.1).

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use units::{Span, Time};

use crate::ConnectionId;
use crate::closed::CloseReason;
use crate::endpoint_state::EndpointState;
use crate::narrow::to_u8;
use crate::parameters::OriginalDestinationId;
use crate::secret::MacKey;
use crate::varint::Reader;

/// Lifetime of a token.
const TOKEN_LIFETIME: Span = Span::from_s(10);
/// Time after which a new key replaces the one that authenticates new tokens.
const KEY_ROTATION_INTERVAL: Span = Span::from_s(300);
const TAG_LEN: usize = 32;

/// Creates tokens, and accepts each once.
pub(crate) struct Tokens {
    key: MacKey,
    key_since: Time,
    /// Previous key; its tokens may still be valid.
    previous_key: Option<MacKey>,
    /// Redeemed tokens that have not expired, by the source connection ID of their Retry.
    redeemed: BTreeSet<ConnectionId>,
    /// Expiry times of redeemed tokens, the earliest first.
    expiries: VecDeque<TokenExpiry>,
}

/// Expiry of a redeemed token.
struct TokenExpiry {
    at: Time,
    retry_id: ConnectionId,
}

/// A valid token that was not redeemed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// Original destination connection ID: the one in the client's first packet.
    pub(crate) original_destination_id: OriginalDestinationId,
    /// Source connection ID of the Retry that carried the token.
    pub(crate) retry_id: ConnectionId,
}

impl Tokens {
    pub(crate) fn new(now: Time, shared: &EndpointState) -> Result<Self, CloseReason> {
        Ok(Self {
            key: MacKey::new(&shared.random::<32>()?),
            key_since: now,
            previous_key: None,
            redeemed: BTreeSet::new(),
            expiries: VecDeque::new(),
        })
    }

    /// Makes a token for a client at this address, which sent its first packet to `original_destination_id` and must
    /// continue with `retry_id`.
    pub(crate) fn make(
        &mut self,
        now: Time,
        shared: &EndpointState,
        remote: SocketAddr,
        original_destination_id: OriginalDestinationId,
        retry_id: ConnectionId,
    ) -> Result<Vec<u8>, CloseReason> {
        if now.saturating_since(self.key_since) >= KEY_ROTATION_INTERVAL {
            let new = MacKey::new(&shared.random::<32>()?);
            (self.previous_key, self.key_since) = (Some(core::mem::replace(&mut self.key, new)), now);
        }
        let mut token = now.ps().to_be_bytes().to_vec();
        token.push(to_u8(original_destination_id.as_bytes().len() as u64));
        token.extend(original_destination_id.as_bytes());
        let tag = self.key.tag(&[&token, &retry_id, &address(remote)]);
        token.extend(tag);
        Ok(token)
    }

    /// Reads a token that was sent to `retry_id`. None if it is not valid, or was redeemed.
    pub(crate) fn read(&self, now: Time, remote: SocketAddr, retry_id: ConnectionId, token: &[u8]) -> Option<Token> {
        let (body, tag) = token.split_last_chunk::<TAG_LEN>()?;
        let parts: [&[u8]; 3] = [body, &retry_id, &address(remote)];
        let keys = [Some(&self.key), self.previous_key.as_ref()];
        if !keys.into_iter().flatten().any(|key| key.verifies(&parts, tag)) {
            return None;
        }
        let mut reader = Reader::new(body);
        let issued_at = Time::from_ps(u64::from_be_bytes(reader.array().ok()?));
        let len = reader.byte().ok()?;
        let original_destination_id = OriginalDestinationId::new(reader.bytes(len.into()).ok()?)?;
        let is_valid = issued_at.saturating_add(TOKEN_LIFETIME) > now && !self.redeemed.contains(&retry_id);
        is_valid.then_some(Token { original_destination_id, retry_id })
    }

    /// Redeems a token: it is not valid for another handshake.
    pub(crate) fn redeem(&mut self, now: Time, token: Token) {
        while let Some(TokenExpiry { retry_id, .. }) = self.expiries.pop_front_if(|end| end.at <= now) {
            self.redeemed.remove(&retry_id);
        }
        if self.redeemed.insert(token.retry_id) {
            self.expiries.push_back(TokenExpiry { at: now.saturating_add(TOKEN_LIFETIME), retry_id: token.retry_id });
        }
    }
}

/// Returns an address and a port in bytes.
fn address(remote: SocketAddr) -> [u8; 18] {
    let mut bytes = [0; 18];
    let ip = match remote.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&remote.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use laws::{Fixed, Law, PathInfo, fixed};

    use super::*;
    use crate::listener_group::GroupMember;
    use crate::service::Service;
    use crate::settings::Settings;

    /// Redeemed tokens are remembered until they expire, and no longer.
    #[test]
    fn a_token_is_redeemed_once() {
        let law = |path: &PathInfo| Law::Fixed(Fixed::new(path, fixed::Params::for_path(path)));
        let settings = Settings::new(Service::named("test"), Arc::new(law));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let shared = EndpointState::new(settings, provider, GroupMember::alone()).unwrap();
        let mut tokens = Tokens::new(Time::ZERO, &shared).unwrap();
        let (remote, original_destination_id) =
            (SocketAddr::from(([10, 0, 0, 1], 1)), OriginalDestinationId::from([1; 8]));
        // One token is issued every second and redeemed 4 s later.
        for second in 0..100u64 {
            let (issued_at, redeemed_at) = (Time::from_ms(1_000 * second), Time::from_ms(1_000 * (second + 4)));
            let id = second.to_be_bytes();
            let bytes = tokens.make(issued_at, &shared, remote, original_destination_id, id).unwrap();
            let token = tokens.read(redeemed_at, remote, id, &bytes).unwrap();
            assert_eq!(token.original_destination_id, original_destination_id);
            assert!(tokens.read(redeemed_at, remote, id, &bytes).is_some(), "reading a token redeemed it");
            tokens.redeem(redeemed_at, token);
            for late in [4_000, 9_999, 10_000] {
                assert!(tokens.read(issued_at + Span::from_ms(late), remote, id, &bytes).is_none());
            }
            let known = second.min(9) as usize + 1;
            assert_eq!((tokens.redeemed.len(), tokens.expiries.len()), (known, known));
        }
    }
}
