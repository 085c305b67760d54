//! DCTCP: cut the window in proportion to the fraction of marked bytes.
//! Alizadeh et al., SIGCOMM 2010, §3; RFC 8257. The cut comes at the end of the round trip that saw marks, from an
//! `alpha` that already holds that round. Sending is not paced.
//! With its parameters it is over 104 bytes; what changes per flow is not.

use units::{Bytes, Frac};

use crate::params::{parameters, range};
use crate::{Ack, Acted, ControlLaw, Episode, Loss, Path, Permit, Round, SlowStart, Window};

parameters! { path;
    /// Initial window.
    initial_window: Bytes = range::ten_packets(path), "10 packets", range::BYTE, range::WINDOW;
    /// Largest window, in own BDPs.
    max_bdp: Fraction = range::UNLIMITED, "no limit", range::TINY, range::UNLIMITED;
    /// Weight of the newest round in the average marked fraction (g).
    ewma_gain: Fraction = Frac::ratio(1, 16), "1/16", Frac::ZERO, Frac::ONE;
}

/// The law.
#[derive(Clone, Debug)]
pub struct Dctcp {
    window: Window,
    slow_start: SlowStart,
    step: Bytes, // additive increase a round trip: one packet
    gain: Frac,
    alpha: Frac, // EWMA of the marked fraction, starts at 1 (RFC 8257 §3.3)
    round: Round,
    episode: Episode,
    acted: Acted,
}

impl Dctcp {
    /// A flow on `path`.
    pub fn new(path: &Path, params: Params) -> Self {
        Self {
            window: Window::new(params.initial_window, path.mss, path.bdp().scaled(params.max_bdp)),
            slow_start: SlowStart::new(),
            step: path.mss,
            gain: params.ewma_gain,
            alpha: Frac::ONE,
            round: Round::new(),
            episode: Episode::new(),
            acted: Acted::default(),
        }
    }
}

impl ControlLaw for Dctcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.round.count(ack);
        if !ack.marked.is_zero() {
            self.slow_start.leave(&self.window);
        }
        if !ack.app_limited {
            let before = self.window.bytes();
            let rest = self.slow_start.grow(&mut self.window, ack.acked);
            self.window.increase(self.step, rest);
            self.acted.increases += u64::from(self.window.bytes() > before);
        }
        if !self.round.is_over(ack) {
            return;
        }
        // alpha <- (1 - g) * alpha + g * F          (eq. 1)
        self.alpha = self.alpha.ewma(self.round.marked_fraction(), self.gain);
        if self.round.saw_marks() {
            // cwnd <- cwnd * (1 - alpha / 2)        (eq. 2)
            self.acted.cuts += u64::from(self.window.cut(self.alpha.half()));
            self.slow_start.leave(&self.window);
        }
        self.round.restart(ack);
    }

    /// A loss halves the window once an episode, whatever `alpha` says (RFC 8257 §3.5); a timeout collapses it.
    fn on_loss(&mut self, loss: &Loss) {
        let response = self.episode.respond(loss);
        self.acted.loss_cuts += u64::from(response.apply(&mut self.window, &mut self.slow_start, Frac::HALF));
    }

    fn permit(&self) -> Permit {
        Permit::window(self.window.bytes())
    }

    fn acted(&self) -> Acted {
        self.acted
    }

    fn trace(&self, emit: &mut dyn FnMut(&'static str, i64)) {
        emit("alpha_ppm", self.alpha.ppm() as i64);
    }
}
