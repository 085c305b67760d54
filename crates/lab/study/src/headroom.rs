//! Headroom that a cable needs, measured in simulation: its switch pauses a sender at full rate while nothing drains.

use scenario::{Overrides, parse};
use units::{Bytes, Rate, Span};

use crate::error::Error;

/// A cable into a switch with PFC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PfcCable {
    /// The cable's rate.
    pub rate: Rate,
    /// Its propagation delay.
    pub delay: Span,
    /// Payload of a packet, 1 to 65,000 bytes.
    pub payload: u16,
}

/// Step size of the headroom search, in bytes.
const STEP: u64 = 1_024;

impl PfcCable {
    /// Returns the scenario. A sender fills the cable. The port that forwards its packets is four thousand times
    /// slower, so nearly all of them stay. The pause begins at 64 packets. The run ends when everything that was on its
    /// way by then has arrived.
    fn text(&self, headroom: Bytes) -> String {
        let packet = u64::from(self.payload) + 64;
        let xoff = 64 * packet;
        let total = headroom.get().saturating_mul(4).saturating_add(64 * xoff).saturating_add(1 << 20);
        // Bytes that the sender sends until the pause takes effect: those that fill the threshold, twice the cable, and a
        // margin.
        let needed = xoff + self.rate.bytes_in(self.delay).get().saturating_mul(2) + headroom.get() + 256 * packet;
        let fills = self.rate.tx_time(Bytes::new(needed));
        let stop = fills.ps().saturating_add(self.delay.ps().saturating_mul(4)).saturating_add(1_000_000_000);
        format!(
            r#"
            schema = 1
            name = "headroom"
            stop = "{stop}ps"
            topology = {{ kind = "custom", nodes = [
                {{ name = "sender", kind = "host" }}, {{ name = "receiver", kind = "host" }}, {{ name = "switch", kind = "switch" }},
            ], links = [
                {{ between = ["sender", "switch"], rate = "{rate}bps", delay = "{delay}ps" }},
                {{ between = ["receiver", "switch"], rate = "{slow}bps", delay = "1us" }},
            ] }}
            switch = {{ buffer = "{total}B", reserved = "0B", pfc = true }}
            port = {{ ecn = "off", xoff = "{xoff}B", xon = "0B", headroom = "{headroom}B" }}
            host = {{ mss = {payload}, header = 64, recovery = "go-back-n" }}
            schemes.all = {{ law = "fixed", params.fixed = {{ window = "{size}B" }} }}
            traffic = [{{ kind = "list", flows = [{{ src = 0, dst = 1, size = "{size}B", start = "0s" }}] }}]
            "#,
            rate = self.rate.bps(),
            delay = self.delay.ps(),
            slow = (self.rate.bps() / 4_000).max(1_000_000),
            headroom = headroom.get(),
            payload = self.payload,
            size = needed.saturating_mul(2),
        )
    }

    /// Returns the number of packets dropped with this headroom.
    ///
    /// # Errors
    /// If the cable cannot be simulated.
    pub fn drops(&self, headroom: Bytes) -> Result<u64, Error> {
        let scenario = parse(&self.text(headroom), "headroom", &Overrides::default())?;
        let Some(run) = scenario.runs().into_iter().next() else { return Ok(0) };
        let built = run.build()?;
        let outcome = engine::run(&built.setup, 1, |flow, path| built.laws.make(flow, path), &mut |_| true);
        Ok(outcome.switches.iter().map(|switch| switch.headroom_drops).sum())
    }

    /// Returns the minimum headroom, in whole KiB, with which no packet is dropped; at most `max`, which must suffice.
    ///
    /// # Errors
    /// See [`PfcCable::drops`].
    pub fn minimum(&self, max: Bytes) -> Result<Bytes, Error> {
        let (mut fails, mut holds) = (0, max.get().div_ceil(STEP));
        while fails + 1 < holds {
            let middle = fails.midpoint(holds);
            if self.drops(Bytes::new(middle * STEP))? == 0 { holds = middle } else { fails = middle }
        }
        Ok(Bytes::new(holds * STEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_headroom_is_about_twice_the_cable_bdp() {
        let trial = PfcCable { rate: Rate::from_gbps(100), delay: Span::from_us(50), payload: 1_000 };
        let twice = 2 * trial.rate.bytes_in(trial.delay).get();
        let most = Bytes::new(twice + (64 << 10));
        assert_eq!(trial.drops(most).unwrap(), 0);
        let least = trial.minimum(most).unwrap().get();
        assert!((twice..twice + 6 * 1_064 + STEP).contains(&least), "{least} for {twice} on the cable");
        assert!(trial.drops(Bytes::new(least - STEP)).unwrap() > 0);
    }
}
