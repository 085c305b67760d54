//! What the sending end of a flow keeps where credits schedule it.

use flow::credits::Scheduled;
use flow::{Segment, Sender};
use laws::ControlLaw;
use laws::credits::Driver;
use units::Time;

/// The sending end.
pub(super) struct Credited {
    pub(super) scheduled: Scheduled,
    /// When it acts; [`Time::NEVER`] if nothing calls for it.
    pub(super) called_at: Time,
    /// The credit of the packet that was taken last, and whether credits are the receiver's.
    pub(super) credit: Option<u32>,
    pub(super) by_receiver: bool,
}

impl Credited {
    pub(super) fn new(scheduled: Scheduled) -> Self {
        let by_receiver = matches!(scheduled.driver(), Driver::Receiver { .. });
        Self { scheduled, called_at: Time::NEVER, credit: None, by_receiver }
    }

    /// Takes the packet that was allowed.
    pub(super) fn take<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> Segment {
        let taken = self.scheduled.take(sender, now);
        self.credit = taken.credit;
        taken.segment
    }
}
