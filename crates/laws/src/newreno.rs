//! `NewReno`: slow start, one packet of increase a round trip, half the window at a loss.
//! RFC 5681 and RFC 6582 (its recovery from several losses in one flight is [`Episode`]'s and the host's).
//! Marks count as loss once an episode (RFC 3168) with a cut of their own (RFC 8511) where `ecn` is on.
//! No pacing. State fits 104 bytes without the counters of [`Acted`].

use units::Frac;

use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Episode, Loss, Path, Permit, Response, SlowStart, Window};

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Share of the window that is left after a loss (beta).
    beta: Fraction = Frac::HALF, "0.5", Frac::ZERO, Frac::ONE;
    /// Whether marks cut the window.
    ecn: Switch = false, "off", false, true;
    /// Share of the window that is left after a mark (beta of RFC 8511).
    ecn_beta: Fraction = Frac::millionths(800_000), "0.8", Frac::ZERO, Frac::ONE;
}

/// The law.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: Window,
    slow_start: SlowStart,
    episode: Episode,
    beta: Frac,
    ecn_beta: Option<Frac>,
    acted: Acted,
}

impl NewReno {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
        Self {
            window: Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp)),
            slow_start: SlowStart::new(),
            episode: Episode::new(),
            beta: params.beta,
            ecn_beta: if params.ecn { Some(params.ecn_beta) } else { None },
            acted: Acted::default(),
        }
    }
}

impl ControlLaw for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(kept) = self.ecn_beta
            && !ack.marked.is_zero()
            && self.episode.begins(ack.sent_at, ack.now)
        {
            Response::Cut.apply(&mut self.window, &mut self.slow_start, kept);
            self.acted.cuts += 1;
            return;
        }
        if ack.app_limited {
            return;
        }
        // cwnd <- cwnd + MSS * acked / cwnd          (RFC 5681 eq. 3, counting bytes)
        let before = self.window.bytes();
        let rest = self.slow_start.grow(&mut self.window, ack.acked);
        self.window.increase(self.window.floor(), rest);
        self.acted.increases += u64::from(self.window.bytes() > before);
    }

    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        self.acted.loss_cuts += u64::from(response.apply(&mut self.window, &mut self.slow_start, self.beta));
    }

    fn permit(&self) -> Permit {
        Permit::window(self.window.bytes())
    }

    fn acted(&self) -> Acted {
        self.acted
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("threshold_bytes", self.slow_start.threshold().min(Window::LIMIT).get() as i64);
    }
}
