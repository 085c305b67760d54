//! Hosts on their own: a NIC that keeps its packets, and a law that records its feedback.
#![allow(dead_code)]

use std::cell::RefCell;
use std::rc::Rc;

use engine::host::Wire;
use engine::{Body, Packet, Report};
use laws::{Ack, Acted, ControlLaw, Hop, Loss, LossCause, Notification, Permit};
use units::{Bytes, Rate, Span, Time};

/// A NIC that keeps its packets, and sends a packet in 100 ns.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) packets: Vec<Packet>,
    pub(crate) reports: Vec<Report>,
    pub(crate) forgotten: Vec<Report>,
    pub(crate) hops: Vec<Hop>,
    pub(crate) idle_at: Time,
}

impl Wire for Kept {
    fn idle_at(&self) -> Time {
        self.idle_at
    }

    fn transmit(&mut self, packet: Packet) {
        self.transmit_with(packet, Report::NONE);
    }

    fn transmit_with(&mut self, packet: Packet, report: Report) {
        self.idle_at = self.idle_at.max(packet.time) + Span::from_ns(100);
        self.packets.push(packet);
        self.reports.push(report);
    }

    fn hops(&self, _: Report) -> &[Hop] {
        &self.hops
    }

    fn forget(&mut self, report: Report) {
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
pub(crate) enum Told {
    Ack { now: Time, rtt: Span, acked: u64, marked: u64, hops: usize },
    Loss { now: Time, lost: u64, cause: LossCause },
    Cnp(Time),
    DirectCnp(Time),
    DirectInt { now: Time, sent_at: Time, hops: usize },
    Timer(Time),
}

/// A law with settable limits that records its feedback, and sets a timer when it receives marks.
#[derive(Clone, Default, Debug)]
pub(crate) struct Witness {
    pub(crate) told: Rc<RefCell<Vec<Told>>>,
    pub(crate) window: u64,
    /// The rate at first, and from the first acknowledgement on.
    pub(crate) rates: Option<(Rate, Rate)>,
    pub(crate) retimes: bool,
    pub(crate) timer_after: Option<Span>,
    pub(crate) timer: Option<Time>,
    pub(crate) heard: bool,
}

impl Witness {
    pub(crate) fn new(window: u64) -> Self {
        Self { window, ..Self::default() }
    }

    fn say(&self, told: Told) {
        self.told.borrow_mut().push(told);
    }
}

impl ControlLaw for Witness {
    fn on_ack(&mut self, ack: &Ack) {
        self.heard = true;
        self.say(Told::Ack {
            now: ack.now,
            rtt: ack.rtt,
            acked: ack.acked.get(),
            marked: ack.marked.get(),
            hops: ack.hops.len(),
        });
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.say(Told::Loss { now: loss.now, lost: loss.lost.get(), cause: loss.cause });
    }

    fn on_notification(&mut self, notification: &Notification) {
        match *notification {
            Notification::Cnp { now } => {
                self.say(Told::Cnp(now));
                self.timer = self.timer_after.map(|after| now + after);
            }
            Notification::DirectCnp { now } => self.say(Told::DirectCnp(now)),
            Notification::DirectInt { now, sent_at, hops } => {
                self.say(Told::DirectInt { now, sent_at, hops: hops.len() });
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, now: Time) {
        self.say(Told::Timer(now));
        self.timer = None;
    }

    fn next_timer(&self) -> Time {
        self.timer.unwrap_or(Time::NEVER)
    }

    fn retimes(&self) -> bool {
        self.retimes
    }

    fn permit(&self) -> Permit {
        let rate = self.rates.map_or(Rate::MAX, |(first, then)| if self.heard { then } else { first });
        Permit { window: Bytes::new(self.window), pacing: rate }
    }

    fn acted(&self) -> Acted {
        Acted::default()
    }
}
