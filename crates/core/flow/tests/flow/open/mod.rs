//! A law that permits everything at once, and flows under it.

use flow::{SendState, Sender};
use laws::{Ack, ControlLaw, LawActions, Loss, SendLimits};
use units::{Bytes, Time};

/// Permits everything at once, as credits would over time.
pub(crate) struct UnlimitedLaw;

impl ControlLaw for UnlimitedLaw {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn send_limits(&self) -> SendLimits {
        SendLimits::window(Bytes::MAX)
    }

    fn actions(&self) -> LawActions {
        LawActions::default()
    }
}

/// Sends all packets that may be sent now. Returns their numbers.
pub(crate) fn send(sender: &mut Sender<UnlimitedLaw>, now: Time) -> Vec<u32> {
    std::iter::from_fn(|| (sender.poll(now) == SendState::Now).then(|| sender.send(now).seq)).collect()
}
