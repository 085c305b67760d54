//! Credit-scheduled flows: each packet needs a credit, and credits come from an emulation of the data. `FlashPass`
//! (Zeng et al., ICNP 2021, §III) and `ExpressPass` (Cho et al., SIGCOMM 2017, §3), with Aeolus's early start (Hu et
//! al., SIGCOMM 2020) where it is enabled.
//!
//! [`CreditSender`] is the sender's part: it keeps the credits in hand and takes a packet from the [`Sender`] only when one is
//! due. The sender keeps the sequence space, detects losses and ends the flow. Lost packets are sent first. They need credits
//! like all others. The receiver's part is [`EmulationReceiver`] (`FlashPass`) or [`CreditReceiver`] (`ExpressPass`).
//!
//! With the credits of a receiver's host (RCCC, receiver credits of Ultra Ethernet 1.0) a packet also needs the permission of
//! its law, and the host is the receiver's part.

mod credit_receiver;
mod credit_requester;
mod emulation_receiver;
mod emulation_sender;
mod pull_sender;
mod unscheduled_start;

use alloc::collections::VecDeque;

use laws::credits::CREDIT_SIZE;
use laws::credits::{Credits, Driver, Wait};
use laws::{ControlLaw, Notification};
use units::{Bytes, Frac, Rate, Span, Tick, Time, mix64, mul_div};

pub use credit_receiver::{CreditReceiver, CreditingConfig};
pub use emulation_receiver::{Echo, EmulationReceiver};

use crate::{Segment, SendState, Sender};
use credit_requester::{CreditRequester, StopRule};
use emulation_sender::{EmulationRound, EmulationSender};
use pull_sender::PullSender;
use unscheduled_start::UnscheduledStart;

/// Initial parameters of a credit-scheduled flow.
#[derive(Clone, Copy, Debug)]
pub struct CreditConfig {
    /// Credit settings of the flow's law.
    pub credits: Credits,
    /// Maximum time that an emulation packet and its echo take anywhere in the network.
    pub longest: Span,
    /// The flow's base round trip.
    pub base_rtt: Span,
    /// The narrowest link of its path.
    pub line_rate: Rate,
    /// Payload of a full packet.
    pub mss: u32,
    /// Header of a data packet.
    pub header: u32,
    /// The time between two credits, or two packets of the early start, is a whole multiple of this.
    pub tick: Tick,
    /// Seed of the flow's jitter, so that it differs from that of other flows.
    pub salt: u64,
}

impl CreditConfig {
    /// Full packets of a bandwidth-delay product of the path, rounded up.
    fn packets_of_a_bdp(&self) -> u32 {
        let bdp = self.line_rate.bytes_in(self.base_rtt).get();
        u32::try_from(bdp.div_ceil(u64::from(self.mss + self.header))).unwrap_or(u32::MAX)
    }

    /// Returns the delay of a packet after its emulation packet (`T_wait`); none: the packet is sent when its credit
    /// arrives.
    pub fn wait(&self) -> Option<Span> {
        match self.credits.driver {
            Driver::Sender { wait: Wait::Longest, .. } => Some(self.longest),
            Driver::Sender { wait: Wait::For(span), .. } => Some(span),
            Driver::Sender { wait: Wait::Nothing, .. } | Driver::Receiver { .. } | Driver::Host => None,
        }
    }
}

/// Number of base round trips without a credit after which a sender repeats its request to the receiver's host. Where many
/// flows wait for credits, a turn takes longer; the request costs a packet and changes nothing.
const RETRY: u32 = 8;

/// Credit spacing: uneven, so that flows of one rate do not synchronise and one of them finds every queue full.
#[derive(Clone, Copy, Debug)]
pub struct Spacing {
    /// Maximum deviation of one gap from an even pace, as a fraction.
    pub jitter: Frac,
    /// Gaps are whole multiples of this, rounded down, and at least one; one of a whole number of ticks keeps them all.
    pub tick: Tick,
    /// Seed of the flow's jitter, so that it differs from that of other flows.
    pub salt: u64,
}

impl Spacing {
    /// The time from credit `number` to the next one: that of an even pace times a number between 1 - jitter and 1 + jitter.
    fn gap(self, rate: Rate, number: u32) -> Span {
        let even = rate.tx_time(Bytes::new(CREDIT_SIZE.into()));
        let chance = Frac::from_bits(mix64(self.salt ^ u64::from(number)) >> 32);
        let factor = self.jitter.complement() + self.jitter * chance + self.jitter * chance;
        let gap = Span::from_ps(mul_div(even.unsigned_ps(), factor.bits(), Frac::ONE.bits()).cast_signed());
        self.tick.floor(gap).max(self.tick.span()).max(Span::from_ps(1))
    }
}

/// Credit counters of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CreditStats {
    /// Credits (`ExpressPass`), or emulation packets (`FlashPass`), that their source offered to its own credit queue.
    pub sent: u64,
    /// Over-provisioned emulation packets among `sent`: those that can be dropped first.
    pub over_provisioned: u64,
    /// Credits that arrived at the sender.
    pub received: u64,
    /// Received credits for which a packet was sent.
    pub used: u64,
    /// Received credits for which there was nothing to send. The rest was in hand when the run ended.
    pub wasted: u64,
    /// Received credits that arrived after their time.
    pub late: u64,
    /// Data packets sent without a credit.
    pub unscheduled: u64,
}

impl CreditStats {
    /// Counts of another part of the same flow, added.
    pub fn add(&mut self, other: &Self) {
        let Self { sent, over_provisioned, received, used, wasted, late, unscheduled } = other;
        self.sent += sent;
        self.over_provisioned += over_provisioned;
        self.received += received;
        self.used += used;
        self.wasted += wasted;
        self.late += late;
        self.unscheduled += unscheduled;
    }
}

/// Packet other than data that a sender sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Requests credits for this number of packets.
    Request {
        /// Number of packets.
        packets: u32,
    },
    /// Requests no more credits.
    Stop,
    /// An emulation packet, to be offered to the host's credit queue.
    Emulation {
        /// Its number.
        number: u32,
        /// The packet is over-provisioned: dropped first.
        expendable: bool,
    },
    /// The last packet of an early start: earlier packets that are not acknowledged when its acknowledgement arrives
    /// are lost.
    Probe,
}

/// A packet that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScheduledPacket {
    /// Its segment of the flow.
    pub segment: Segment,
    /// Number of the credit that permits it; none: it is sent without one.
    pub credit: Option<u32>,
}

/// A credit in hand.
#[derive(Clone, Copy, Debug)]
struct PendingCredit {
    due: Time,
    number: u32,
}

#[derive(Debug)]
enum CreditScheme {
    Emulation(EmulationSender),
    Requests(CreditRequester),
    Pull(PullSender),
}

/// The sender's part of a credit-scheduled flow.
#[derive(Debug)]
pub struct CreditSender {
    config: CreditConfig,
    /// By the time for which they are meant.
    pending: VecDeque<PendingCredit>,
    early: Option<UnscheduledStart>,
    /// Send time of the probe with an outstanding acknowledgement.
    probed: Option<Time>,
    scheme: CreditScheme,
    stats: CreditStats,
}

impl CreditSender {
    /// A flow that starts at `now`.
    pub fn new(config: CreditConfig, now: Time) -> Self {
        let scheme = match config.credits.driver {
            Driver::Sender { over_provisioning, jitter, .. } => CreditScheme::Emulation(EmulationSender::new(
                &config,
                over_provisioning,
                Spacing { jitter, tick: config.tick, salt: config.salt },
                now,
            )),
            Driver::Receiver { retry, stops_ahead, .. } => {
                let rule = if stops_ahead { StopRule::Ahead } else { StopRule::AtEnd };
                CreditScheme::Requests(CreditRequester::new(retry, rule, now))
            }
            Driver::Host => {
                CreditScheme::Pull(PullSender::new(config.base_rtt.times(RETRY), config.packets_of_a_bdp()))
            }
        };
        Self {
            early: config.credits.early_start.then(|| UnscheduledStart::new(now, &config)),
            config,
            pending: VecDeque::new(),
            probed: None,
            scheme,
            stats: CreditStats::default(),
        }
    }

    /// Returns which end emulates data.
    pub fn driver(&self) -> Driver {
        self.config.credits.driver
    }

    /// Returns the credit counters up to now.
    pub fn stats(&self) -> &CreditStats {
        &self.stats
    }

    /// Returns the counts of a complete flow: credits in hand are wasted.
    pub fn final_stats(&self) -> CreditStats {
        CreditStats { wasted: self.stats.wasted + self.pending.len() as u64, ..self.stats }
    }

    /// Returns the number of packets that wait to be sent: the remaining demand, as far as the send buffer holds it
    /// where there is one.
    fn demand<L: ControlLaw>(&self, sender: &mut Sender<L>) -> u32 {
        let waiting = sender.waiting();
        let Some(buffer) = self.config.credits.send_buffer else { return waiting };
        // The application keeps the buffer full; bytes in flight stay in it until they are acknowledged.
        let packets = buffer.saturating_sub(sender.in_flight().get()) / u64::from(self.config.mss);
        // A buffer under a packet holds one.
        let packets = packets.max(u64::from(sender.in_flight().is_zero()));
        waiting.min(u32::try_from(packets).unwrap_or(u32::MAX))
    }

    /// Returns the demand that no credit in hand covers.
    fn uncovered<L: ControlLaw>(&self, sender: &mut Sender<L>) -> u32 {
        self.demand(sender).saturating_sub(self.pending.len() as u32)
    }

    /// Returns whether a packet may be sent at `now`. Credits that become due while there is nothing to send are wasted.
    pub fn poll<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> SendState {
        let has_data = self.demand(sender) > 0;
        while !has_data && self.pending.front().is_some_and(|held| held.due <= now) {
            self.pending.pop_front();
            self.stats.wasted += 1;
        }
        let credit = self.pending.front().map_or(Time::NEVER, |held| held.due);
        if let CreditScheme::Pull(pulls) = &self.scheme {
            let may_send = has_data && (!self.pending.is_empty() || pulls.free() > 0);
            return if may_send { sender.poll(now) } else { SendState::Blocked };
        }
        let early =
            self.early.as_ref().filter(|_| has_data && !sender.has_lost()).map_or(Time::NEVER, UnscheduledStart::next);
        let next = credit.min(early);
        match (next <= now, next.is_set()) {
            (true, _) => SendState::Now,
            (false, true) => SendState::At(next),
            (false, false) => SendState::Blocked,
        }
    }

    /// Takes the packet that [`CreditSender::poll`] allowed.
    pub fn take<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> ScheduledPacket {
        let credit = match self.pending.front() {
            Some(held) if held.due <= now => {
                let number = held.number;
                self.pending.pop_front();
                self.stats.used += 1;
                Some(number)
            }
            _ => None,
        };
        debug_assert!(
            credit.is_some() || matches!(self.scheme, CreditScheme::Pull(_)) || self.early.is_some(),
            "no credit"
        );
        let segment = sender.send(now);
        if let (None, CreditScheme::Pull(pulls)) = (credit, &mut self.scheme) {
            pulls.spend_free();
            self.stats.unscheduled += 1;
        }
        if let (None, Some(early)) = (credit, &mut self.early) {
            early.on_sent(now, segment.bytes + self.config.header, &self.config);
            self.stats.unscheduled += 1;
        }
        ScheduledPacket { segment, credit }
    }

    /// Returns the next time at which [`CreditSender::act`] must be called, given the state at `now`.
    pub fn next_action<L: ControlLaw>(&self, sender: &mut Sender<L>, now: Time) -> Time {
        let uncovered = self.uncovered(sender);
        let own = match &self.scheme {
            CreditScheme::Emulation(emulation) => emulation.next(uncovered),
            CreditScheme::Requests(requests) => requests.next(uncovered, sender.smoothed_rtt()),
            CreditScheme::Pull(pulls) => pulls.next(uncovered),
        };
        let early = self.early.as_ref().map_or(Time::NEVER, |early| early.end_time(self.demand(sender), now));
        own.min(early).max(now)
    }

    /// Returns the next packet other than data to send at `now`; none once there is no more.
    pub fn act<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> Option<Signal> {
        let demand = self.demand(sender);
        if let Some(early) = &self.early
            && early.end_time(demand, now) <= now
        {
            let probes = early.has_sent() && self.config.credits.probe;
            self.early = None;
            if probes {
                self.probed = Some(now);
                return Some(Signal::Probe);
            }
        }
        let uncovered = demand.saturating_sub(self.pending.len() as u32);
        match &mut self.scheme {
            CreditScheme::Emulation(emulation) => {
                if emulation.next(uncovered) > now {
                    return None;
                }
                let (number, expendable) = emulation.send(now, sender.law().credit_rate(), uncovered);
                self.stats.sent += 1;
                self.stats.over_provisioned += u64::from(expendable);
                Some(Signal::Emulation { number, expendable })
            }
            CreditScheme::Requests(requests) => requests.act(now, uncovered, sender.smoothed_rtt()),
            CreditScheme::Pull(pulls) => pulls.act(now, uncovered),
        }
    }

    /// Records that an emulation packet leaves the host at `now`: the departure of its data packet counts from this time.
    pub fn on_left(&mut self, number: u32, now: Time) {
        if let CreditScheme::Emulation(emulation) = &mut self.scheme {
            emulation.on_left(number, now);
        }
    }

    /// Processes an echo of emulation packets from the receiver.
    pub fn on_echo<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time, echo: Echo) {
        self.end_unscheduled();
        let CreditScheme::Emulation(emulation) = &mut self.scheme else { return };
        let (pending, stats) = (&mut self.pending, &mut self.stats);
        let round = emulation.on_echo(now, echo, |number, due| {
            stats.received += 1;
            stats.late += u64::from(due < now);
            if due < now {
                pending.push_front(PendingCredit { due, number });
            } else {
                pending.push_back(PendingCredit { due, number });
            }
        });
        if let Some(EmulationRound { sent, returned, elapsed }) = round {
            let rtt = sender.smoothed_rtt();
            sender.on_notification(&Notification::Credits { sent, returned, elapsed, rtt });
        }
    }

    /// Processes a credit from the receiver.
    pub fn on_credit<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time, number: u32) {
        let uncovered = self.uncovered(sender);
        self.end_unscheduled();
        let is_valid = match &mut self.scheme {
            CreditScheme::Emulation(_) => return,
            CreditScheme::Requests(requests) => {
                requests.on_credit(now, uncovered.saturating_sub(1), sender.smoothed_rtt());
                true
            }
            CreditScheme::Pull(pulls) => pulls.on_credit(now, number),
        };
        self.stats.received += 1;
        if is_valid && uncovered > 0 {
            self.pending.push_back(PendingCredit { due: now, number });
        } else {
            self.stats.wasted += 1;
        }
    }

    /// Ends the early start: a credit has arrived, so every further packet needs one.
    fn end_unscheduled(&mut self) {
        if let Some(early) = &mut self.early {
            early.end();
        }
    }

    /// Processes the receiver's acknowledgement of the probe.
    pub fn on_probe_reply<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time, cumulative: u32) {
        if let Some(sent_at) = self.probed.take() {
            sender.on_probe_reply(now, sent_at, cumulative);
        }
    }
}

#[cfg(test)]
mod tests;
