//! Messages of the mesh. Integers are big-endian. The host seals each message as a whole.
//!
//! | offset | field |
//! |---|---|
//! | 0 | version, 1 |
//! | 1 | kind: 1 probe, 2 reply, 3 reports |
//! | 2 | sender, u16 |
//! | 4 | receiver, u16 |
//! | 6 | sender's session, u64 |
//! | 14 | receiver's session, u64; 0 if unknown |
//! | 22 | sender's era, u16 |
//!
//! Probes and replies have the same length, so that replies do not amplify. A report has the estimates of the pairs that its
//! origin probes; reports are forwarded unchanged.

use alloc::vec::Vec;

use crate::line::{OffsetLine, Reading, Skew};
use crate::mesh::{Member, Neighbours};
use crate::network::PairInterval;

/// Version of the messages.
const VERSION: u8 = 1;

/// Length of a probe and of a reply without the seal.
pub const PROBE_LENGTH: usize = 68;

/// Maximum length of a message without the seal.
pub const MAX_LENGTH: usize = 1_152;

/// Maximum number of pairs in a report.
pub const MAX_PAIRS: usize = 16;

/// Random number of a member's run: a member that restarts has another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Session(pub u64);

/// Number of steps that a member has noticed of its own clock, modulo 2^16. Estimates of another era are void.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Era(pub u16);

/// Sender and receiver of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The sender.
    pub sender: Member,
    /// The receiver.
    pub receiver: Member,
    /// The sender's session.
    pub sender_session: Session,
    /// The receiver's session, as the sender knows it; none if it does not.
    pub receiver_session: Option<Session>,
    /// The era of the sender's clock.
    pub era: Era,
}

/// Index of a packet in a coded pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PairIndex {
    /// The packet that is sent first.
    First,
    /// The packet that is sent next.
    Second,
}

impl PairIndex {
    /// Returns 0 or 1.
    pub const fn index(self) -> usize {
        self as usize
    }

    fn parse(byte: u8) -> Self {
        if byte & 1 == 0 { Self::First } else { Self::Second }
    }
}

/// A packet of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Random number of the pair, never 0.
    pub nonce: u64,
    /// The packet's index.
    pub index: PairIndex,
    /// Agreement of the pair with the prober's last estimate.
    pub agreement: Agreement,
}

/// Agreement of a coded pair with the last estimate of its prober.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Agreement {
    /// Within its interval, or nothing to compare.
    #[default]
    Agrees,
    /// Outside, as were the coded pairs before: one of the two clocks has stepped.
    Steps,
}

/// The answer to a packet of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The probe.
    pub probe: Probe,
    /// Receive timestamp of the packet that it answers.
    pub received: Reading,
    /// Departures of the last pair of replies, known only after they left.
    pub previous: Option<Departures>,
}

/// Transmit timestamps of a pair of replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departures {
    /// The nonce of their pair.
    pub nonce: u64,
    /// The timestamps.
    pub sent: [Reading; 2],
}

/// Mesh time by a member's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeshLine {
    /// Mesh time less the member's clock.
    pub line: OffsetLine,
    /// Largest error at the anchor, in nanoseconds.
    pub error: i64,
    /// Largest error of the skew, from the anchor on.
    pub skew_error: Skew,
}

/// Estimates and state of a member, which all members receive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The member.
    pub origin: Member,
    /// The member's session.
    pub session: Session,
    /// Number of the report, ascending within a session.
    pub number: u32,
    /// Era of the member's clock.
    pub era: Era,
    /// Mesh time by the member's clock, if it knows it.
    pub mesh: Option<MeshLine>,
    /// Pairs that the member probes, and the eras of the responders' clocks.
    pub pairs: Vec<ReportedPair>,
}

/// Estimate of a pair in a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportedPair {
    /// The estimate.
    pub interval: PairInterval,
    /// Era of the responder's clock.
    pub era: Era,
}

/// Content of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// A packet of a probe.
    Probe(Probe),
    /// An answer to one.
    Reply(Reply),
    /// Reports of members.
    Reports(Vec<Report>),
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its sender and receiver.
    pub header: Header,
    /// Its content.
    pub body: Body,
}

/// Length of a report with this many pairs.
pub fn report_length(pairs: usize) -> usize {
    18 + 41 + 48 * pairs
}

/// Length of the header and the number of reports.
pub const REPORTS_OVERHEAD: usize = 26;

impl Message {
    /// Returns the message's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Writer(Vec::with_capacity(MAX_LENGTH));
        let kind = match self.body {
            Body::Probe(_) => 1,
            Body::Reply(_) => 2,
            Body::Reports(_) => 3,
        };
        bytes.0.extend([VERSION, kind]);
        bytes.u16(self.header.sender.0);
        bytes.u16(self.header.receiver.0);
        bytes.u64(self.header.sender_session.0);
        bytes.u64(self.header.receiver_session.map_or(0, |session| session.0));
        bytes.u16(self.header.era.0);
        match &self.body {
            Body::Probe(probe) => bytes.probe(probe),
            Body::Reply(reply) => {
                bytes.probe(&reply.probe);
                bytes.i64(reply.received.0);
                bytes.u64(reply.previous.map_or(0, |previous| previous.nonce));
                let sent = reply.previous.map_or([Reading(0); 2], |previous| previous.sent);
                for at in sent {
                    bytes.i64(at.0);
                }
            }
            Body::Reports(reports) => {
                bytes.u16(reports.len() as u16);
                for report in reports {
                    bytes.report(report);
                }
            }
        }
        let length = if kind == 3 { bytes.0.len() } else { PROBE_LENGTH };
        debug_assert!(bytes.0.len() <= length, "a probe or reply of {} bytes", bytes.0.len());
        bytes.0.resize(length, 0);
        bytes.0
    }

    /// Returns the message in these bytes; none if they are not exactly one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Reader(bytes);
        let ([VERSION], [kind]) = (bytes.take()?, bytes.take()?) else { return None };
        let header = Header {
            sender: Member(bytes.u16()?),
            receiver: Member(bytes.u16()?),
            sender_session: Session(bytes.u64()?),
            receiver_session: Some(bytes.u64()?).filter(|&session| session != 0).map(Session),
            era: Era(bytes.u16()?),
        };
        let body = match kind {
            1 => Body::Probe(bytes.probe()?),
            2 => {
                let (probe, received, nonce) = (bytes.probe()?, Reading(bytes.i64()?), bytes.u64()?);
                let sent = [Reading(bytes.i64()?), Reading(bytes.i64()?)];
                let previous = (nonce != 0).then_some(Departures { nonce, sent });
                Body::Reply(Reply { probe, received, previous })
            }
            3 => {
                let count = bytes.u16()?;
                let reports = (0..count).map(|_| bytes.report()).collect::<Option<_>>()?;
                return bytes.0.is_empty().then_some(Self { header, body: Body::Reports(reports) });
            }
            _ => return None,
        };
        let padding = bytes.0;
        let is_whole = HEADER_LENGTH + body_length(&body) + padding.len() == PROBE_LENGTH;
        (is_whole && padding.iter().all(|&byte| byte == 0)).then_some(Self { header, body })
    }
}

const HEADER_LENGTH: usize = 24;

fn body_length(body: &Body) -> usize {
    if matches!(body, Body::Probe(_)) { 9 } else { 9 + 8 + 8 + 16 }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u16(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.0.extend(value.to_be_bytes());
    }

    fn probe(&mut self, probe: &Probe) {
        self.u64(probe.nonce);
        self.0.push(probe.index as u8 | (probe.agreement as u8) << 1);
    }

    fn line(&mut self, line: &OffsetLine) {
        for value in [line.at.0, line.offset, line.skew.0] {
            self.i64(value);
        }
    }

    fn report(&mut self, report: &Report) {
        debug_assert!(report.pairs.len() <= MAX_PAIRS, "a report of {} pairs", report.pairs.len());
        self.u16(report.origin.0);
        self.u64(report.session.0);
        self.0.extend(report.number.to_be_bytes());
        self.u16(report.era.0);
        self.u16(report.pairs.len() as u16);
        self.0.push(report.mesh.is_some().into());
        let none = MeshLine { line: OffsetLine::default(), error: 0, skew_error: Skew::ZERO };
        let mesh = report.mesh.unwrap_or(none);
        self.line(&mesh.line);
        self.i64(mesh.error);
        self.i64(mesh.skew_error.0);
        for ReportedPair { interval: pair, era } in &report.pairs {
            self.u16(pair.pair.responder.0);
            self.u16(era.0);
            self.line(&pair.line);
            self.i64(pair.error);
            self.i64(pair.skew_error.0);
            self.0.extend(pair.deviation.to_be_bytes());
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.take().map(i64::from_be_bytes)
    }

    fn probe(&mut self) -> Option<Probe> {
        let nonce = self.u64().filter(|&nonce| nonce != 0)?;
        let [byte] = self.take()?;
        let agreement = if byte & 2 == 0 { Agreement::Agrees } else { Agreement::Steps };
        (byte < 4).then_some(Probe { nonce, index: PairIndex::parse(byte), agreement })
    }

    fn line(&mut self) -> Option<OffsetLine> {
        Some(OffsetLine { at: Reading(self.i64()?), offset: self.i64()?, skew: Skew(self.i64()?) })
    }

    fn report(&mut self) -> Option<Report> {
        let (origin, session) = (Member(self.u16()?), Session(self.u64()?));
        let (number, era) = (u32::from_be_bytes(self.take()?), Era(self.u16()?));
        let count = usize::from(self.u16()?);
        let [has_mesh] = self.take()?;
        let mesh = MeshLine { line: self.line()?, error: self.i64()?, skew_error: Skew(self.i64()?) };
        if has_mesh > 1 || count > MAX_PAIRS {
            return None;
        }
        let pair = |bytes: &mut Self| {
            let pair = Neighbours { prober: origin, responder: Member(bytes.u16()?) };
            let era = Era(bytes.u16()?);
            let (line, error, skew_error) = (bytes.line()?, bytes.i64()?, Skew(bytes.i64()?));
            let deviation = u32::from_be_bytes(bytes.take()?);
            Some(ReportedPair { interval: PairInterval { pair, line, error, skew_error, deviation }, era })
        };
        let pairs = (0..count).map(|_| pair(self)).collect::<Option<_>>()?;
        Some(Report { origin, session, number, era, mesh: (has_mesh == 1).then_some(mesh), pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    fn line() -> impl Strategy<Value = OffsetLine> {
        any::<[i64; 3]>().prop_map(|[at, offset, skew]| OffsetLine { at: Reading(at), offset, skew: Skew(skew) })
    }

    fn report() -> impl Strategy<Value = Report> {
        let mesh =
            proptest::option::of((line(), any::<i64>(), any::<i64>()).prop_map(|(line, error, skew)| MeshLine {
                line,
                error,
                skew_error: Skew(skew),
            }));
        let pairs =
            proptest::collection::vec((any::<u16>(), line(), any::<i64>(), any::<i64>(), any::<u32>()), 0..=MAX_PAIRS);
        (any::<u16>(), any::<u64>(), any::<u32>(), mesh, pairs).prop_map(|(origin, session, number, mesh, pairs)| {
            let origin = Member(origin);
            let pair = |(responder, line, error, skew, deviation)| {
                let pair = Neighbours { prober: origin, responder: Member(responder) };
                let interval = PairInterval { pair, line, error, skew_error: Skew(skew), deviation };
                ReportedPair { interval, era: Era(responder ^ 1) }
            };
            let pairs = pairs.into_iter().map(pair).collect();
            Report { origin, session: Session(session), number, era: Era(7), mesh, pairs }
        })
    }

    fn body() -> impl Strategy<Value = Body> {
        let index = prop_oneof![Just(PairIndex::First), Just(PairIndex::Second)];
        let agreement = prop_oneof![Just(Agreement::Agrees), Just(Agreement::Steps)];
        let probe = (1u64.., index, agreement).prop_map(|(nonce, index, agreement)| Probe { nonce, index, agreement });
        let previous = proptest::option::of((1u64.., any::<[i64; 2]>()));
        let reply = (probe.clone(), any::<i64>(), previous).prop_map(|(probe, received, previous)| {
            let previous = previous.map(|(nonce, sent)| Departures { nonce, sent: sent.map(Reading) });
            Reply { probe, received: Reading(received), previous }
        });
        prop_oneof![
            probe.prop_map(Body::Probe),
            reply.prop_map(Body::Reply),
            proptest::collection::vec(report(), 0..3).prop_map(Body::Reports),
        ]
    }

    proptest! {
        #[test]
        fn messages_survive_encoding(
            members: [u16; 2],
            session: u64,
            known in proptest::option::of(1u64..),
            body in body(),
        ) {
            let [sender, receiver] = members.map(Member);
            let header = Header {
                sender,
                receiver,
                sender_session: Session(session),
                receiver_session: known.map(Session),
                era: Era(members[0] ^ 3),
            };
            let message = Message { header, body };
            let bytes = message.encode();
            prop_assert_eq!(Message::decode(&bytes), Some(message.clone()));
            if let Body::Reports(reports) = &message.body {
                let length: usize = reports.iter().map(|report| report_length(report.pairs.len())).sum();
                prop_assert_eq!(bytes.len(), REPORTS_OVERHEAD + length, "{}", reports.len().to_string());
            } else {
                prop_assert_eq!(bytes.len(), PROBE_LENGTH);
            }
            // A shorter or longer one is none.
            prop_assert_eq!(Message::decode(&bytes[..bytes.len() - 1]), None);
            let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
            prop_assert_eq!(Message::decode(&longer), None);
        }

        /// Any bytes are a message that is encoded as these bytes, or none.
        #[test]
        fn any_bytes_are_handled(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 1u8..5) {
            let mut bytes = bytes;
            if let [version, second, ..] = &mut bytes[..] {
                (*version, *second) = (VERSION, kind);
            }
            if let Some(message) = Message::decode(&bytes) {
                let again = message.encode();
                prop_assert_eq!(again.len(), bytes.len());
            }
        }
    }
}
