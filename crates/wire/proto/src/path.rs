//! One path of a connection: its four-tuple, received packets and address validation.

use alloc::collections::VecDeque;

use flow::{AckPolicy, ReceivedPackets};
use units::{Bytes, Span, Time};

use crate::dplpmtud::Dplpmtud;
use crate::four_tuple::FourTuple;
use crate::keys::SeenPhase;
use crate::narrow::to_usize;
use crate::{ConnectionId, TOKEN_LEN};

/// The value of a `PATH_CHALLENGE`.
pub(crate) type ChallengeValue = [u8; 8];

/// Maximum number of challenges that wait for their responses, and of responses that wait to be sent.
const MAX_CHALLENGES: usize = 4;
/// Maximum length of a packet that acknowledges one range, in bytes, without receive times.
pub(crate) const MIN_ACK_PACKET: usize = 120;
/// Bytes that may be sent to an address that is not validated, per byte received from it (RFC 9000 §8.1).
const AMPLIFICATION: u64 = 3;

/// Amplification limit of an address.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct AmplificationLimit {
    is_validated: bool,
    received: u64,
    sent: u64,
}

impl AmplificationLimit {
    /// Limit of an address that is known to be the peer's: none.
    pub(crate) const VALIDATED: Self = Self { is_validated: true, received: 0, sent: 0 };

    pub(crate) fn validate(&mut self) {
        self.is_validated = true;
    }

    pub(crate) fn is_validated(self) -> bool {
        self.is_validated
    }

    /// Counts a datagram received from the address.
    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes as u64);
    }

    /// Counts a datagram sent to it.
    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// Returns the bytes that may be sent now.
    pub(crate) fn room(self) -> u64 {
        if self.is_validated { u64::MAX } else { (self.received * AMPLIFICATION).saturating_sub(self.sent) }
    }
}

/// State of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The path carries nothing until the peer has answered a challenge.
    Opening,
    /// The path carries data.
    Open,
    /// The path is retired. Late packets are still read until this time.
    Retired(Time),
}

/// Validation of the peer's address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Challenge {
    pub(crate) four_tuple: FourTuple,
    /// Previous address of the peer: it is challenged, too.
    pub(crate) before: Option<FourTuple>,
    /// The value that is still due for `before`.
    pub(crate) previous_due: Option<ChallengeValue>,
    /// Values that a response may contain, the newest last.
    pub(crate) values: VecDeque<ChallengeValue>,
    /// Time of the next challenge.
    pub(crate) again_at: Time,
    /// Time at which the challenge is given up.
    pub(crate) until: Time,
}

impl Challenge {
    pub(crate) fn new(four_tuple: FourTuple, before: Option<FourTuple>, now: Time, until: Time) -> Self {
        Self { four_tuple, before, previous_due: None, values: VecDeque::new(), again_at: now, until }
    }

    /// Returns the time at which a value is due.
    pub(crate) fn due(&self) -> Time {
        if self.previous_due.is_some() { Time::ZERO } else { self.again_at }
    }

    /// Records that this value was sent; the next one follows after `wait`.
    pub(crate) fn on_sent(&mut self, value: ChallengeValue, now: Time, wait: Span) {
        if self.values.len() == MAX_CHALLENGES {
            self.values.pop_front();
        }
        self.values.push_back(value);
        debug_assert!(self.values.len() <= MAX_CHALLENGES, "{} challenges", self.values.len());
        self.previous_due = self.before.map(|_| value);
        // Ever more slowly, as other probes.
        self.again_at = now.saturating_add(wait.times(1 << (self.values.len() - 1)));
    }
}

/// The answer to a challenge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    pub(crate) value: ChallengeValue,
    /// Four-tuple of the challenge.
    pub(crate) four_tuple: FourTuple,
    /// The maximum length of a datagram with the response.
    pub(crate) max_len: usize,
}

/// An acknowledgement that was sent, until it is known to have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SentAck {
    /// Its packet number on this path.
    pub(crate) number: u64,
    /// The highest number that it acknowledged.
    pub(crate) newest: u64,
}

/// An ID as its issuer offers it to the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IssuedId {
    pub(crate) id: ConnectionId,
    /// The token at the end of a reset for it.
    pub(crate) token: [u8; TOKEN_LEN],
}

/// The IDs of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PathIds {
    /// The ID to which the peer sends.
    pub(crate) ours: ConnectionId,
    /// The ID to which this end sends.
    pub(crate) theirs: IssuedId,
}

/// One path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) number: u32,
    /// The subflow that is on it, unless it is retired.
    pub(crate) subflow: Option<u8>,
    /// The ID to which the peer sends.
    pub(crate) ours: ConnectionId,
    /// The ID to which this end sends.
    pub(crate) theirs: IssuedId,
    pub(crate) four_tuple: FourTuple,
    pub(crate) amplification_limit: AmplificationLimit,
    pub(crate) state: State,
    /// Until then the peer may still give up the path, because it has not received an answer to its challenge.
    pub(crate) confirmed_at: Time,
    /// Set once the peer has retired the path, too. Before, it may still send to it.
    pub(crate) peer_retired: bool,
    pub(crate) arrivals: ReceivedPackets,
    pub(crate) seen: SeenPhase,
    pub(crate) challenge: Option<Challenge>,
    /// Previous address of the peer, while its migration is not validated, and the amplification limit of that address.
    pub(crate) before: Option<(FourTuple, AmplificationLimit)>,
    responses: VecDeque<Response>,
    pub(crate) search: Dplpmtud,
    /// The number that the next packet gets, and the first one under the present key.
    pub(crate) next: u64,
    pub(crate) phase_from: u64,
    /// The next number to skip.
    pub(crate) skip_at: u64,
    pub(crate) last_ack: Option<SentAck>,
    /// Packets in a row that only acknowledged.
    pub(crate) ack_only_count: u32,
    /// Time of the last acknowledgement.
    pub(crate) acked_at: Time,
    /// Set while packets are sent ECN-capable.
    pub(crate) ecn: bool,
    /// The shortest round trip that was measured.
    pub(crate) min_rtt: Option<Span>,
    /// Probe timeout without backoff, as of the last acknowledgement; none before the first.
    pub(crate) pto: Option<Span>,
    /// Set until the PING of a liveness probe is sent.
    pub(crate) is_ping_due: bool,
    /// Bytes of frames that the peer has acknowledged, and those that arrived CE-marked.
    pub(crate) acked: Bytes,
    pub(crate) marked: Bytes,
}

impl Path {
    pub(crate) fn new(
        number: u32,
        ids: PathIds,
        four_tuple: FourTuple,
        state: State,
        ack_policy: AckPolicy,
        max_packet_size: u16,
    ) -> Self {
        let PathIds { ours, theirs } = ids;
        Self {
            number,
            subflow: None,
            ours,
            theirs,
            four_tuple,
            amplification_limit: AmplificationLimit::default(),
            state,
            confirmed_at: Time::ZERO,
            peer_retired: false,
            arrivals: ReceivedPackets::new(ack_policy),
            seen: SeenPhase::default(),
            challenge: None,
            before: None,
            responses: VecDeque::new(),
            search: Dplpmtud::new(max_packet_size),
            next: 0,
            phase_from: 0,
            skip_at: 0,
            last_ack: None,
            ack_only_count: 0,
            acked_at: Time::ZERO,
            ecn: true,
            min_rtt: None,
            pto: None,
            is_ping_due: false,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
        }
    }

    /// Returns whether packets of any kind may be sent on it.
    pub(crate) fn is_used(&self) -> bool {
        !matches!(self.state, State::Retired(_))
    }

    /// Returns whether an acknowledgement may be sent on it.
    pub(crate) fn can_ack(&self) -> bool {
        self.is_used() && self.amplification_limit.room() >= 2 * MIN_ACK_PACKET as u64
    }

    /// Queues a response to a challenge that arrived in a datagram of `len` bytes. Drops the oldest if too many wait:
    /// its challenge will be repeated.
    pub(crate) fn respond(&mut self, value: ChallengeValue, four_tuple: FourTuple, len: usize) {
        if self.responses.len() == MAX_CHALLENGES {
            self.responses.pop_front();
        }
        self.responses.push_back(Response { value, four_tuple, max_len: len.saturating_mul(to_usize(AMPLIFICATION)) });
        debug_assert!(self.responses.len() <= MAX_CHALLENGES, "{} responses", self.responses.len());
    }

    pub(crate) fn next_response(&mut self) -> Option<Response> {
        self.responses.pop_front()
    }

    /// Returns the time of its next timer.
    pub(crate) fn next_timer(&self) -> Time {
        let challenge = self.challenge.as_ref().map_or(Time::NEVER, |challenge| challenge.until.min(challenge.due()));
        let ack = if self.can_ack() { self.arrivals.ack_due_at() } else { Time::NEVER };
        let retired = match self.state {
            State::Retired(until) if self.peer_retired => until,
            _ => Time::NEVER,
        };
        let search = if self.state == State::Open { self.search.next_timer() } else { Time::NEVER };
        challenge.min(retired).min(search).min(ack)
    }
}
