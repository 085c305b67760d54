//! Consistency checks of a sender.

use alloc::format;
use alloc::string::String;

use laws::ControlLaw;
use units::Bytes;

use super::{FlowStats, Sender};

impl<L: ControlLaw> Sender<L> {
    /// Checks that counts match the records, and that no more is delivered than there is. Returns the number of entries
    /// examined.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub fn check(&self) -> Result<usize, String> {
        let mut examined = 1;
        for (index, subflow) in self.subflows.iter().enumerate() {
            examined += subflow.check().map_err(|error| format!("subflow {index}: {error}"))?;
        }
        let (first, end, total) = (self.numbers.first(), self.numbers.end(), self.numbers.total());
        if first > end || end > total {
            return Err(format!("packets {first} to {end} of {total} are open"));
        }
        if self.delivered() > self.config.size {
            return Err(format!("{} of {} are delivered", self.delivered(), self.config.size));
        }
        self.stats.check(self.delivered())?;
        Ok(examined)
    }
}

impl FlowStats {
    /// Checks the counters of a flow against each other; `delivered` is its delivered payload.
    ///
    /// # Errors
    /// The first two counters that contradict each other.
    pub fn check(&self, delivered: Bytes) -> Result<(), String> {
        let Self { packets_sent, retransmits, parity, marked, .. } = *self;
        if marked > delivered {
            return Err(format!("{marked} were marked of {delivered} delivered"));
        }
        if retransmits > packets_sent || parity > packets_sent {
            return Err(format!(
                "of {packets_sent} packets sent {retransmits} are retransmissions and {parity} parity"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use laws::fixed::{Fixed, Params};
    use units::{Rate, Span, Time};

    use super::*;
    use crate::FlowConfig;

    #[test]
    fn check_finds_each_inconsistency() {
        let base_rtt = Span::from_us(10);
        let path =
            laws::PathInfo { base_rtt, intra_rtt: base_rtt, line_rate: Rate::from_gbps(8), mss: Bytes::new(1_000) };
        let law = Fixed::new(&path, Params { window: Bytes::new(9_000), paced: false });
        let mut sender = Sender::new(FlowConfig::new(Bytes::new(100_000), 1_000, base_rtt), law, Time::ZERO);
        for at in 1..4 {
            sender.send(Time::from_us(at));
        }
        assert_eq!(sender.check(), Ok(4));
        let subflow = sender.subflows.get_mut(0);
        subflow.law_state.in_flight += Bytes::new(1);
        assert!(sender.check().unwrap_err().contains("in flight by the records"));
        let subflow = sender.subflows.get_mut(0);
        subflow.law_state.in_flight -= Bytes::new(1);
        subflow.out.sent_packets.get_mut(2).sent_at = Time::ZERO;
        assert!(sender.check().unwrap_err().contains("packet 2 has an earlier send time"));
        sender.subflows.get_mut(0).out.sent_packets.get_mut(2).sent_at = Time::from_us(3);
        sender.stats.marked = Bytes::new(1);
        assert!(sender.check().unwrap_err().contains("were marked of"));
        sender.stats.marked = Bytes::ZERO;
        for (sent, retransmits, parity) in [(1, 2, 0), (1, 0, 2)] {
            let stats = FlowStats { packets_sent: sent, retransmits, parity, ..FlowStats::default() };
            assert!(stats.check(Bytes::ZERO).unwrap_err().contains("of 1 packets sent"), "{stats:?}");
        }
        sender.config.size = Bytes::ZERO;
        sender.subflows.get_mut(0).law_state.delivered = Bytes::new(1);
        assert!(sender.check().unwrap_err().contains("are delivered"));
    }
}
