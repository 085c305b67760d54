//! Random losses on a link: each packet alone, or several of a group of packets at once.

use units::mix64;

use crate::arrival::Arrival;
use crate::port::PortParams;

/// Random-loss state of one link: the count of losses, and of the packets before.
#[derive(Clone, Copy, Default, Debug)]
pub struct Losses {
    count: u64,
    /// Data packets so far, where losses come in bursts.
    passed: u64,
}

impl Losses {
    /// Packets lost so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns whether the link loses this packet; called once per packet, in the order in which they pass.
    #[inline]
    pub fn loses(&mut self, params: &PortParams, salt: u64, packet: &Arrival) -> bool {
        let mut lost = params.loses(salt, packet);
        if let Some(bursts) = &params.config().bursts
            && !packet.control
        {
            let (group, index) = (self.passed / u64::from(bursts.group), self.passed % u64::from(bursts.group));
            self.passed += 1;
            lost |= bursts.loses(mix64(salt ^ mix64(group ^ 0x4255_5253_5453)), index as u32);
        }
        self.count += u64::from(lost);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bursts, MAX_IN_GROUP, PortConfig};
    use units::{Frac, Rate, Span, Time};

    /// Uno's Table 1: losses in chunks of 10 packets, of 320 million chunks each.
    const SETUP_1: [u64; 4] = [97_403, 23_984, 5_007, 0];
    /// The average loss rate in the text, 1.22e-5, leaves some 7,000 losses for chunks of four and more.
    const SETUP_2: [u64; 4] = [12_785, 7_262, 1_560, 1_763];

    fn of_table(counts: [u64; 4]) -> Bursts {
        let mut losses = [Frac::ZERO; MAX_IN_GROUP];
        for (probability, count) in losses.iter_mut().zip(counts) {
            *probability = Frac::ratio(count, 320_000_000);
        }
        Bursts { group: 10, losses }
    }

    fn packet(nth: u64, control: bool) -> Arrival {
        Arrival {
            now: Time::from_ns(nth),
            size: 2_048,
            ecn_capable: true,
            control,
            credit: false,
            expendable: false,
            identity: nth,
        }
    }

    /// Returns how many of `groups` groups lose one packet, two, ..., and how many packets are lost.
    fn survey(bursts: Bursts, groups: u64) -> ([u64; 5], u64) {
        let config = PortConfig { bursts: Some(bursts), ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1)) };
        let params = PortParams::new(&config).unwrap();
        let mut losses = Losses::default();
        let mut of = [0; 5];
        for group in 0..groups {
            let lost = (0..10).filter(|index| losses.loses(&params, 7, &packet(group * 10 + index, false))).count();
            of[lost] += 1;
        }
        (of, losses.count())
    }

    /// Both setups of the table, a hundred times as likely, over four million chunks: each count within four standard
    /// deviations, and so is the loss rate.
    #[test]
    fn bursts_are_as_likely_as_in_the_table() {
        for counts in [SETUP_1, SETUP_2] {
            let groups = 4_000_000;
            let (of, lost) = survey(of_table(counts.map(|count| count * 100)), groups);
            let mut losses = 0;
            for (lost, count) in (1..).zip(counts) {
                let expected = count * 100 * groups / 320_000_000;
                losses += lost * expected;
                assert!(
                    of[lost as usize].abs_diff(expected).pow(2) <= 16 * (expected + 1),
                    "{lost}: {of:?}, not {expected}"
                );
            }
            assert_eq!(of.iter().sum::<u64>(), groups);
            assert!(lost.abs_diff(losses) * 50 <= losses, "{lost} losses, not {losses}");
        }
    }

    /// Any packets of a group may be those that are lost, and control does not count.
    #[test]
    fn loss_positions_are_uniform() {
        let mut losses = [Frac::ZERO; MAX_IN_GROUP];
        losses[1] = Frac::ONE;
        let config = PortConfig {
            bursts: Some(Bursts { group: 5, losses }),
            ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1))
        };
        let params = PortParams::new(&config).unwrap();
        let mut losses = Losses::default();
        let mut at = [0u64; 5];
        for group in 0..20_000 {
            let mut lost = 0;
            for index in 0..5 {
                assert!(!losses.loses(&params, 3, &packet(group, true)));
                if losses.loses(&params, 3, &packet(group * 5 + index, false)) {
                    at[index as usize] += 1;
                    lost += 1;
                }
            }
            assert_eq!(lost, 2);
        }
        assert!(at.iter().all(|count| count.abs_diff(8_000) < 300), "{at:?}");
    }
}
