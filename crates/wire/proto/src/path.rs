//! One path of a connection: where it goes, what has come on it, and whether its address is proved.

use alloc::collections::VecDeque;

use flow::{Answering, Arrivals};
use units::{Bytes, Span, Time};

use crate::keys::SeenPhase;
use crate::search::Search;
use crate::via::Via;
use crate::{Id, TOKEN_LEN};

/// The value of a `PATH_CHALLENGE`.
pub(crate) type Value = [u8; 8];

/// Challenges that wait for their responses, and responses that wait to leave.
const MOST_CHALLENGES: usize = 4;
/// What a packet that acknowledges one range takes at most, without receive times.
pub(crate) const SHORTEST_ANSWER: usize = 120;
/// Bytes that may leave to an address that is not proved, for each that came from there.
const AMPLIFICATION: u64 = 3;

/// Whether what came from an address allows to send there.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Budget {
    is_proved: bool,
    came: u64,
    left: u64,
}

impl Budget {
    /// Of an address that is known to be the peer's.
    pub(crate) const PROVED: Self = Self { is_proved: true, came: 0, left: 0 };

    pub(crate) fn prove(&mut self) {
        self.is_proved = true;
    }

    pub(crate) fn is_proved(self) -> bool {
        self.is_proved
    }

    /// A datagram came from the address.
    pub(crate) fn came(&mut self, bytes: usize) {
        self.came = self.came.saturating_add(bytes as u64);
    }

    /// A datagram leaves to it.
    pub(crate) fn left(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes as u64);
    }

    /// Bytes that may leave now.
    pub(crate) fn room(self) -> u64 {
        if self.is_proved { u64::MAX } else { (self.came * AMPLIFICATION).saturating_sub(self.left) }
    }
}

/// What a path is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It carries nothing until the peer has answered a challenge.
    Opening,
    /// It carries data.
    Open,
    /// It is retired. What comes late is still read, until then.
    Retired(Time),
}

/// The proof that a peer is where its packets come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Challenge {
    pub(crate) via: Via,
    /// Where the peer was before: it is asked there, too.
    pub(crate) before: Option<Via>,
    /// The value that is still to leave to there.
    pub(crate) owed: Option<Value>,
    /// The values that it may answer with, the newest last.
    pub(crate) values: VecDeque<Value>,
    /// When the next one leaves.
    pub(crate) again_at: Time,
    /// When it is given up.
    pub(crate) until: Time,
}

impl Challenge {
    pub(crate) fn new(via: Via, before: Option<Via>, now: Time, until: Time) -> Self {
        Self { via, before, owed: None, values: VecDeque::new(), again_at: now, until }
    }

    /// When a value is to leave.
    pub(crate) fn due(&self) -> Time {
        if self.owed.is_some() { Time::ZERO } else { self.again_at }
    }

    /// This value leaves; the next one after `wait`.
    pub(crate) fn left(&mut self, value: Value, now: Time, wait: Span) {
        if self.values.len() == MOST_CHALLENGES {
            self.values.pop_front();
        }
        self.values.push_back(value);
        self.owed = self.before.map(|_| value);
        // Ever more slowly, as other probes.
        self.again_at = now.saturating_add(wait.times(1 << (self.values.len() - 1)));
    }
}

/// The answer to a challenge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Response {
    pub(crate) value: Value,
    /// Where the challenge came from.
    pub(crate) via: Via,
    /// The most bytes of a datagram that answers it.
    pub(crate) most: usize,
}

/// An acknowledgement that left, until it is known to have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Told {
    /// The path that it left on is this one, and this the packet.
    pub(crate) number: u64,
    /// The highest number that it acknowledged.
    pub(crate) newest: u64,
}

/// One path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) number: u32,
    /// The subflow that is on it, unless it is retired.
    pub(crate) subflow: Option<u8>,
    /// What the peer sends to.
    pub(crate) ours: Id,
    /// What this end sends to, and what a reset for that ends with.
    pub(crate) theirs: (Id, [u8; TOKEN_LEN]),
    pub(crate) via: Via,
    pub(crate) budget: Budget,
    pub(crate) state: State,
    /// Until then the peer may still give it up, because it has not seen an answer to its challenge.
    pub(crate) settles_at: Time,
    /// Whether the peer has retired it, too. Before, it may still send to it.
    pub(crate) peer_let_go: bool,
    pub(crate) arrivals: Arrivals,
    pub(crate) seen: SeenPhase,
    pub(crate) challenge: Option<Challenge>,
    /// Where the peer was before, while it is not proved that it moved, and whether that is proved.
    pub(crate) before: Option<(Via, Budget)>,
    responses: VecDeque<Response>,
    pub(crate) search: Search,
    /// The number that the next packet gets, and the first one under the present key.
    pub(crate) next: u64,
    pub(crate) phase_from: u64,
    /// The number that is to be left out next.
    pub(crate) skip_at: u64,
    pub(crate) told: Option<Told>,
    /// Packets in a row that only acknowledged.
    pub(crate) silent: u32,
    /// When something was last acknowledged.
    pub(crate) acked_at: Time,
    /// Whether packets leave ECN-capable.
    pub(crate) ecn: bool,
    /// The shortest round trip that was measured.
    pub(crate) least_rtt: Span,
    /// Probe timeout without backoff, as of the last acknowledgement; zero before the first.
    pub(crate) pto: Span,
    /// Set until the PING of a liveness probe leaves.
    pub(crate) owes_ping: bool,
    /// What the peer has acknowledged of frames, and what of that came marked.
    pub(crate) acked: Bytes,
    pub(crate) marked: Bytes,
}

impl Path {
    pub(crate) fn new(
        number: u32,
        (ours, theirs): (Id, (Id, [u8; TOKEN_LEN])),
        via: Via,
        state: State,
        answering: Answering,
        most_packet: u16,
    ) -> Self {
        Self {
            number,
            subflow: None,
            ours,
            theirs,
            via,
            budget: Budget::default(),
            state,
            settles_at: Time::ZERO,
            peer_let_go: false,
            arrivals: Arrivals::new(answering),
            seen: SeenPhase::default(),
            challenge: None,
            before: None,
            responses: VecDeque::new(),
            search: Search::new(most_packet),
            next: 0,
            phase_from: 0,
            skip_at: 0,
            told: None,
            silent: 0,
            acked_at: Time::ZERO,
            ecn: true,
            least_rtt: Span::MAX,
            pto: Span::ZERO,
            owes_ping: false,
            acked: Bytes::ZERO,
            marked: Bytes::ZERO,
        }
    }

    /// Whether packets of any kind may leave on it.
    pub(crate) fn is_used(&self) -> bool {
        !matches!(self.state, State::Retired(_))
    }

    /// Whether an acknowledgement may leave on it.
    pub(crate) fn can_answer(&self) -> bool {
        self.is_used() && self.budget.room() >= 2 * SHORTEST_ANSWER as u64
    }

    /// A challenge came in a datagram of `len` bytes, and a response is to be sent. Where too many wait, the oldest is given up: its
    /// challenge will come again.
    pub(crate) fn respond(&mut self, value: Value, via: Via, len: usize) {
        if self.responses.len() == MOST_CHALLENGES {
            self.responses.pop_front();
        }
        self.responses.push_back(Response { value, via, most: len.saturating_mul(AMPLIFICATION as usize) });
    }

    pub(crate) fn next_response(&mut self) -> Option<Response> {
        self.responses.pop_front()
    }

    /// When something of its own is due.
    pub(crate) fn next_timer(&self) -> Time {
        let challenge = self.challenge.as_ref().map_or(Time::NEVER, |challenge| challenge.until.min(challenge.due()));
        let answer = if self.can_answer() { self.arrivals.answer_at() } else { Time::NEVER };
        let retired = match self.state {
            State::Retired(until) if self.peer_let_go => until,
            _ => Time::NEVER,
        };
        let search = if self.state == State::Open { self.search.next_timer() } else { Time::NEVER };
        challenge.min(retired).min(search).min(answer)
    }
}
