//! A law that permits everything at once, and flows under it.

use flow::{SendState, Sender};
use laws::{Ack, Acted, ControlLaw, Loss, Permit};
use units::{Bytes, Time};

/// Permits everything at once, as credits would over time.
pub(crate) struct Open;

impl ControlLaw for Open {
    fn on_ack(&mut self, _: &Ack) {}

    fn on_loss(&mut self, _: &Loss) {}

    fn permit(&self) -> Permit {
        Permit::window(Bytes::MAX)
    }

    fn acted(&self) -> Acted {
        Acted::default()
    }
}

/// Sends all packets that may be sent now. Returns their numbers.
pub(crate) fn send(sender: &mut Sender<Open>, now: Time) -> Vec<u32> {
    std::iter::from_fn(|| (sender.poll(now) == SendState::Now).then(|| sender.send(now).seq)).collect()
}
