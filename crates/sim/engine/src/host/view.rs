//! A sender as the recorder sees it, from outside.

use experiment::{SenderView, SenderWait};
use laws::ControlLaw;
use units::{Bytes, Time};

use super::PartitionHosts;
use super::sending::{Active, SendQueue};

impl<L: ControlLaw> PartitionHosts<L> {
    /// The state of a flow's sender, if it is open here.
    pub(crate) fn view(&mut self, flow: u32, now: Time) -> Option<SenderView> {
        let slot = *self.sender_of.get(flow as usize)?;
        let active = self.senders.get_mut(slot.position())?.as_mut()?;
        let stats = active.sender.stats();
        let (timeouts, retransmits) = (stats.timeouts, stats.retransmits);
        Some(SenderView {
            waits: active.waits(now),
            window: active.sender.send_limits().window,
            delivered: active.sender.delivered(),
            timeouts,
            retransmits,
            actions: active.sender.actions(),
        })
    }
}

impl<L: ControlLaw> Active<L> {
    /// Returns the condition that the next packet waits for. Polls nothing, so recording does not change the run.
    fn waits(&mut self, now: Time) -> SenderWait {
        match self.queued {
            SendQueue::Runnable | SendQueue::Confirmed => SenderWait::Nic,
            SendQueue::PfcPaused => SenderWait::Pause,
            SendQueue::Paced => {
                let until = self.shim.as_ref().map_or_else(|| self.sender.next_send(), |shim| shim.paced_at);
                let held = self.hold().is_some_and(|hold| hold.until() > now && hold.until() >= until);
                if held { SenderWait::Hold { until } } else { SenderWait::Pacer { until } }
            }
            SendQueue::Idle if self.credit_sender().is_some() => SenderWait::Credit,
            SendQueue::Idle => {
                let in_shim = self.shim.as_ref().and_then(|at| at.host_shim.as_ref());
                let has_packet = in_shim.is_some_and(|shim| shim.queued_bytes() > Bytes::ZERO);
                let has_data = has_packet || self.sender.next_bytes().is_some();
                if has_data { SenderWait::Window } else { SenderWait::Acks }
            }
        }
    }
}
