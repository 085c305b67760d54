//! Hosts on their own: a NIC that keeps its packets, and a law that records its feedback.
#![allow(dead_code)]

use std::cell::RefCell;
use std::rc::Rc;

use engine::host::Nic;
use engine::{Body, Packet, TelemetrySlot};
use laws::{Ack, ControlLaw, Hop, LawActions, Loss, LossCause, Notification, SendLimits};
use units::{Bytes, Rate, Span, Time};

/// A NIC that keeps its packets, and sends a packet in 100 ns.
#[derive(Default)]
pub(crate) struct RecordingNic {
    pub(crate) packets: Vec<Packet>,
    pub(crate) reports: Vec<TelemetrySlot>,
    pub(crate) forgotten: Vec<TelemetrySlot>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) idle_at: Time,
}

impl Nic for RecordingNic {
    fn idle_at(&self) -> Time {
        self.idle_at
    }

    fn transmit(&mut self, packet: Packet) {
        self.transmit_with(packet, TelemetrySlot::NONE);
    }

    fn transmit_with(&mut self, packet: Packet, report: TelemetrySlot) {
        self.idle_at = self.idle_at.max(packet.time) + Span::from_ns(100);
        self.packets.push(packet);
        self.reports.push(report);
    }

    fn hops(&self, _: TelemetrySlot) -> &[Hop] {
        &self.hops
    }

    fn forget(&mut self, report: TelemetrySlot) {
        self.forgotten.push(report);
    }
}

/// The number in its flow of a packet of data, or of the newest one that an acknowledgement is about; else 0.
pub(crate) fn number(packet: &Packet) -> u32 {
    match packet.body() {
        Body::Data { seq, .. } => seq,
        Body::Ack(header) | Body::Nack(header) => header.seq,
        _ => 0,
    }
}

/// Feedback that a law received.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum LawFeedback {
    Ack { now: Time, rtt: Span, acked: u64, marked: u64, hops: usize },
    Loss { now: Time, lost: u64, cause: LossCause },
    Cnp(Time),
    DirectCnp(Time),
    DirectInt { now: Time, sent_at: Time, hops: usize },
    Timer(Time),
}

/// A law with settable limits that records its feedback, and sets a timer when it receives marks.
#[derive(Clone, Default, Debug)]
pub(crate) struct WitnessLaw {
    pub(crate) feedback: Rc<RefCell<Vec<LawFeedback>>>,
    pub(crate) window: u64,
    /// The rate at first, and from the first acknowledgement on.
    pub(crate) rates: Option<(Rate, Rate)>,
    pub(crate) reschedules: bool,
    pub(crate) timer_after: Option<Span>,
    pub(crate) timer: Option<Time>,
    pub(crate) has_acks: bool,
}

impl WitnessLaw {
    pub(crate) fn new(window: u64) -> Self {
        Self { window, ..Self::default() }
    }

    fn record(&self, feedback: LawFeedback) {
        self.feedback.borrow_mut().push(feedback);
    }
}

impl ControlLaw for WitnessLaw {
    fn on_ack(&mut self, ack: &Ack) {
        self.has_acks = true;
        self.record(LawFeedback::Ack {
            now: ack.now,
            rtt: ack.rtt,
            acked: ack.acked.get(),
            marked: ack.marked.get(),
            hops: ack.hops.len(),
        });
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.record(LawFeedback::Loss { now: loss.now, lost: loss.lost.get(), cause: loss.cause });
    }

    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::Cnp { now } => {
                self.record(LawFeedback::Cnp(now));
                self.timer = self.timer_after.map(|after| now + after);
            }
            Notification::DirectCnp { now } => self.record(LawFeedback::DirectCnp(now)),
            Notification::DirectInt { now, sent_at, hops } => {
                self.record(LawFeedback::DirectInt { now, sent_at, hops: hops.len() });
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.record(LawFeedback::Timer(now));
        self.timer = None;
    }

    fn next_timer(&self) -> Time {
        self.timer.unwrap_or(Time::NEVER)
    }

    fn rate_change_is_immediate(&self) -> bool {
        self.reschedules
    }

    fn send_limits(&self) -> SendLimits {
        let rate = self.rates.map_or(Rate::MAX, |(first, then)| if self.has_acks { then } else { first });
        SendLimits { window: Bytes::new(self.window), pacing: rate }
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}
