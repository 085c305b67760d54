//! Faults on links: `[[failure]]`, and `loss_bursts` of `[port]`.

use std::num::NonZeroU32;

use fabric::{Bursts, MAX_IN_GROUP};
use units::{Frac, Span};

use crate::decode::{Located, table};
use crate::error::SpannedError;
use crate::quantity::Share;

table! {
    /// `[[failure]]`: links that are down for some time. Packets on such a link, and those sent over it, are lost; ports and routes do not react to it, except with `reroute`.
    Failure {
        /// Links, each in one direction: named as in results, such as `dc0.border>dc1.border#3`, or by class:
        /// `class:inter`.
        ports: Located<Vec<Located<String>>>;
        /// Number of them that fail, drawn by the seed; all if not given.
        count: Option<Located<NonZeroU32>> = None;
        /// Takes the reverse direction of the same cables down, too.
        both: bool = true;
        /// Time at which they go down.
        at: Span = Span::ZERO;
        /// Time at which they come up again; never if not given.
        until: Option<Located<Span>> = None;
        /// Period after which they go down again: flapping.
        every: Option<Located<Span>> = None;
        /// Time after which routes avoid a link that went down, and use a link again that came up. If not given, routes
        /// never change.
        reroute: Option<Located<Span>> = None;
    }
}

impl Failure {
    /// Refuses combinations that single values cannot show.
    pub(crate) fn check(&self) -> Result<(), SpannedError> {
        if let Some(until) = self.until
            && *until <= self.at
        {
            return Err(SpannedError::new(
                until.origin,
                format!("links would come up at {} and go down at {}", *until, self.at),
            )
            .label("expected a time after `at`"));
        }
        let Some(every) = self.every else { return Ok(()) };
        match self.until {
            None => Err(SpannedError::new(every.origin, "links that never come up do not go down again")
                .label("needs `until`, the first time that they come up")),
            Some(until) if until.ps() - self.at.ps() >= every.ps() => {
                let down = Span::from_ps(until.ps() - self.at.ps());
                Err(SpannedError::new(every.origin, format!("links down for {down} every {} never come up", *every))
                    .label(format!("expected over {down}")))
            }
            Some(_) => Ok(()),
        }
    }
}

table! {
    /// Burst losses: each group of consecutive data packets at a port loses one, two, ..., with these probabilities.
    LossBursts {
        /// Data packets of a group, from 1 to 64.
        group: Located<NonZeroU32> = Located::default_of(TEN);
        /// Probabilities that exactly one packet of a group is lost, exactly two, and so on; up to 8 numbers, with a
        /// sum of at most 1.
        rates: Located<Vec<Located<Share>>>;
    }
}

const TEN: NonZeroU32 = match NonZeroU32::new(10) {
    Some(ten) => ten,
    None => NonZeroU32::MIN,
};

impl LossBursts {
    /// Returns the simulator's settings.
    pub(crate) fn bursts(&self) -> Result<Bursts, SpannedError> {
        let group = self.group.get();
        if group > 64 {
            return Err(
                SpannedError::new(self.group.origin, format!("a group of {group} packets")).label("expected 1 to 64")
            );
        }
        let max_rates = (group as usize).min(MAX_IN_GROUP);
        if self.rates.len() > max_rates {
            let message = format!("{} probabilities for groups of {group} packets", self.rates.len());
            return Err(SpannedError::new(self.rates.origin, message).label(format!("expected at most {max_rates}")));
        }
        let mut losses = [Frac::ZERO; MAX_IN_GROUP];
        for (loss, share) in losses.iter_mut().zip(self.rates.iter()) {
            *loss = share.0.frac();
        }
        let sum = Frac::from_bits(losses.iter().map(|loss| loss.bits()).sum());
        if sum > Frac::ONE {
            // Millionths are shown, and rounded down.
            let message = format!("these probabilities sum up to {}", sum + Frac::ratio(1, 2_000_000));
            return Err(SpannedError::new(self.rates.origin, message).label("expected at most 1 together"));
        }
        Ok(Bursts { group, losses })
    }
}
