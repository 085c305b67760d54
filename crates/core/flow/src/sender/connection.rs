//! State of a connection that persists between its messages: its laws with their windows, its RTT estimates, its pacing
//! and its paths. A message is a flow of its own: its packets, losses and counters are not shared with the next one.
//!
//! Where connections are not kept, a host may still remember the window at which slow start ended (ssthresh), as Linux
//! does with its TCP metrics (`tcp_update_metrics` and `tcp_init_metrics` in `net/ipv4/tcp_metrics.c`, Linux 4.9; since
//! Linux 5.6 that is off, `tcp_no_ssthresh_metrics_save`).

use alloc::boxed::Box;

use laws::{ControlLaw, LawActions, Notification};
use units::{Bytes, Time};

use super::send_sequence::SendSequence;
use super::sender_blocks::SenderBlocks;
use super::tcp::Tcp;
use super::{FlowConfig, FlowStats, Recovery, Sender, Subflow, Subflows, TcpConfig};
use crate::law_state::RateChange;
use crate::outstanding::LossTimer;
use crate::paths::PathSelector;

/// A connection that has nothing to send.
#[derive(Debug)]
pub struct IdleConnection<L> {
    subflows: Subflows<L>,
    paths: PathSelector,
    tcp: Option<Box<Tcp>>,
}

impl<L: ControlLaw> IdleConnection<L> {
    /// Creates a connection. Its first packet may be sent at `now`. Its base round trip, timeout bounds and paths are those
    /// of `config`, regardless of its messages.
    pub fn new(config: &FlowConfig, law: L, now: Time) -> Self {
        let initial = law.send_limits().window;
        Self {
            subflows: Subflows::new(Subflow::new(law, &config.timing(), now)),
            paths: PathSelector::new(config.paths, config.seed, config.number, config.base_rtt, now),
            tcp: Tcp::new(config.tcp, initial, now).map(Box::new),
        }
    }

    /// Sends a message: the flow described by `config`. Except for size, number and values that follow from them, `config`
    /// must agree with the one that the connection was created with.
    pub fn send(mut self, config: FlowConfig) -> Sender<L> {
        let total = config.packets();
        let blocks = config.blocks();
        let short = blocks.map_or(total - 1..total, |blocks| blocks.short());
        let last_bytes = ((config.size.get() - 1) % u64::from(config.mss) + 1) as u32;
        let sender_blocks =
            blocks.zip(config.coding).map(|(blocks, coding)| Box::new(SenderBlocks::new(blocks, coding)));
        let selects =
            sender_blocks.is_some() || config.loss_timer != LossTimer::Flow || config.tcp != TcpConfig::default();
        debug_assert!(!selects || config.recovery == Recovery::Selective);
        self.paths.begin(config.seed, config.number);
        let mut numbers = SendSequence::new(total, config.mss, short, last_bytes);
        if self.subflows.are_several() {
            numbers.spread();
        } else {
            numbers.begin_at(self.subflows.get(0).out.sent_packets.end());
        }
        Sender {
            rate_change: RateChange::of(&self.subflows.get(0).law_state.law),
            in_order: config.recovery != Recovery::Selective,
            before: Before::of(&self.subflows),
            subflows: self.subflows,
            numbers,
            cumulative: 0,
            stats: FlowStats::default(),
            paths: self.paths,
            coded_blocks: sender_blocks,
            tcp: self.tcp,
            config,
        }
    }
}

impl<L: ControlLaw> Sender<L> {
    /// Returns the connection once the flow is complete. Packets that may still be on their way, parity and those that
    /// were sent twice, no longer count as in flight.
    pub fn into_connection(mut self) -> IdleConnection<L> {
        debug_assert!(self.is_complete(), "the flow is incomplete");
        self.subflows.iter_mut().for_each(Subflow::abandon);
        if let Some(tcp) = &mut self.tcp {
            tcp.end_message();
        }
        let mut connection = IdleConnection { subflows: self.subflows, paths: self.paths, tcp: self.tcp };
        for subflow in connection.subflows.iter_mut() {
            subflow.law_state.read_permit(self.rate_change, &self.config.pacing);
        }
        connection
    }

    /// Applies the metrics that the host remembers of the destination. Call it before the first packet.
    pub fn remember(&mut self, remembered: DestinationMetrics) {
        if let Some(ssthresh) = remembered.ssthresh {
            self.notify_all(&Notification::Remembered { ssthresh });
        }
    }
}

/// Counts of a connection before the current flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) delivered: Bytes,
    pub(super) actions: LawActions,
}

impl Before {
    fn of<L: ControlLaw>(subflows: &Subflows<L>) -> Self {
        Self { delivered: subflows.sum(|subflow| subflow.law_state.delivered), actions: subflows.actions() }
    }
}

/// Metrics of a destination that a host remembers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DestinationMetrics {
    ssthresh: Option<Bytes>,
}

impl DestinationMetrics {
    /// Records that a flow to that destination is complete, and that its connection ends.
    ///
    /// In congestion avoidance the threshold becomes the flow's own, or half the window if that is more. While slow
    /// start, or recovery from a loss, is not over, it only grows, and only where there is one already: to half the
    /// window in the first slow start, to the flow's own threshold later.
    pub fn learn<L: ControlLaw>(&mut self, flow: &Sender<L>) {
        let window = flow.law().send_limits().window;
        let half = Bytes::new(window.get() / 2);
        self.ssthresh = match flow.law().ssthresh() {
            None => self.ssthresh.map(|kept| kept.max(half)),
            Some(ssthresh) if window >= ssthresh && !flow.is_reducing() => Some(ssthresh.max(half)),
            Some(ssthresh) => self.ssthresh.map(|kept| kept.max(ssthresh)),
        };
    }
}
