//! MPRDMA: one packet of increase a round trip for unmarked packets, half a packet of decrease for each marked one.
//! Lu et al., "Multi-Path Transport for RDMA in Datacenters", NSDI 2018, §3.1 (the window only: paths are the
//! host's). A loss halves the window once an episode; a timeout collapses it to one packet, without slow start.
//! No pacing. State fits 104 bytes without the counters of [`Acted`].

use units::Frac;

use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Episode, Loss, Path, Permit, Response, Window};

parameters! { path;
    /// Initial window, in own BDPs.
    initial_bdp: Fraction = Frac::ONE, "1", range::TINY, range::UNLIMITED;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// What a marked packet takes off the window, in packets.
    mark_cut: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::from_bits(16 << 32);
    /// Share of the window that is left after a loss.
    beta: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
}

/// The law.
#[derive(Clone, Debug)]
pub struct MpRdma {
    window: Window,
    mark_cut: Frac,
    beta: Frac,
    episode: Episode,
    acted: Acted,
}

impl MpRdma {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
        let bdp = path.bdp();
        Self {
            window: Window::new(bdp.scaled(params.initial_bdp), path.mss, bdp.scaled(params.max_bdp)),
            mark_cut: params.mark_cut,
            beta: params.beta,
            episode: Episode::new(),
            acted: Acted::default(),
        }
    }
}

impl ControlLaw for MpRdma {
    /// cwnd <- cwnd + 1/cwnd for an unmarked packet, cwnd - 1/2 for a marked one (§3.1), in bytes: an
    /// acknowledgement of several packets counts for as many.
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.marked.is_zero() {
            self.acted.cuts += u64::from(self.window.shrink(ack.marked.scaled(self.mark_cut)));
        } else if !ack.app_limited {
            self.acted.increases += u64::from(self.window.increase(self.window.floor(), ack.acked));
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match self.episode.respond(loss) {
            Response::Ignore => return,
            Response::Cut => drop(self.window.cut(self.beta.complement())),
            Response::Collapse | Response::CollapseAgain => self.window.collapse(),
        }
        self.acted.loss_cuts += 1;
    }

    fn permit(&self) -> Permit {
        Permit::window(self.window.bytes())
    }

    fn acted(&self) -> Acted {
        self.acted
    }
}
