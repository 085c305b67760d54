//! The token of a Retry: it proves that a caller gets what is sent to its address. RFC 9000 §8.1.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use units::{Span, Time};

use crate::Id;
use crate::closed::Fault;
use crate::parameters::FirstId;
use crate::secret::Key;
use crate::shared::Shared;
use crate::varint::Reader;

/// A token is valid for so long.
const VALID: Span = Span::from_s(10);
/// A key makes tokens for so long.
const KEY_AGE: Span = Span::from_s(300);
const TAG_LEN: usize = 32;

/// Makes tokens, and takes each once.
pub(crate) struct Tokens {
    key: Key,
    since: Time,
    /// The key before, whose tokens may still be valid.
    before: Option<Key>,
    /// Tokens that were taken, by the ID that their Retry gave, and when they end.
    taken: BTreeMap<Id, Time>,
}

impl Tokens {
    pub(crate) fn new(now: Time, shared: &Shared) -> Result<Self, Fault> {
        Ok(Self { key: Key::new(&shared.random::<32>()?), since: now, before: None, taken: BTreeMap::new() })
    }

    /// A token for a caller at this address, which sent its first packet to `first_id` and is to go on with `retry_id`.
    pub(crate) fn make(
        &mut self,
        now: Time,
        shared: &Shared,
        remote: SocketAddr,
        first_id: FirstId,
        retry_id: Id,
    ) -> Result<Vec<u8>, Fault> {
        if now.saturating_since(self.since) >= KEY_AGE {
            let new = Key::new(&shared.random::<32>()?);
            (self.before, self.since) = (Some(core::mem::replace(&mut self.key, new)), now);
        }
        let mut token = now.ps().to_be_bytes().to_vec();
        token.push(first_id.as_bytes().len() as u8);
        token.extend(first_id.as_bytes());
        let tag = self.key.tag(&[&token, &retry_id, &address(remote)]);
        token.extend(tag);
        Ok(token)
    }

    /// Takes a token. Gives the ID to which its caller sent its first packet; none if the token is not valid, or was taken.
    pub(crate) fn redeem(&mut self, now: Time, remote: SocketAddr, retry_id: Id, token: &[u8]) -> Option<FirstId> {
        let (body, tag) = token.split_last_chunk::<TAG_LEN>()?;
        let parts: [&[u8]; 3] = [body, &retry_id, &address(remote)];
        let keys = [Some(&self.key), self.before.as_ref()];
        if !keys.into_iter().flatten().any(|key| key.verifies(&parts, tag)) {
            return None;
        }
        let mut reader = Reader::new(body);
        let made = Time::from_ps(u64::from_be_bytes(reader.array().ok()?));
        let len = reader.byte().ok()?;
        let first_id = FirstId::new(reader.bytes(len.into()).ok()?)?;
        let ends = made.saturating_add(VALID);
        self.taken.retain(|_, ends| *ends > now);
        if ends <= now || self.taken.insert(retry_id, ends).is_some() {
            return None;
        }
        Some(first_id)
    }
}

/// An address and a port in bytes.
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
