//! Report of a router on its work.

use experiment::{LinkOutcome, PortSample, SwitchOutcome};
use router::RefusedPackets;
use units::Span;

use crate::lateness::Lateness;

/// Result of a router, returned when it is stopped.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct RouterOutcome {
    /// By [`fabric::LinkId`].
    pub links: Vec<LinkOutcome>,
    /// In order of time, then link.
    pub port_samples: Vec<PortSample>,
    /// Switches that share their buffer, in order.
    pub switches: Vec<SwitchOutcome>,
    /// Lateness of packets written, relative to their due times.
    pub lateness: Lateness,
    /// Time for which the router was busy before it could read again: the possible lateness of a packet that it read.
    pub reading: Lateness,
    /// Time of the run in which the router was stopped, in periods of over 1 ms.
    pub stalled: Span,
    /// Processor time of the router's thread.
    pub cpu: Span,
    /// The most processor time that it took in any second.
    pub busiest_second: Span,
    /// Wall-clock time of the router.
    pub wall: Span,
    /// True if it got real-time scheduling.
    pub real_time: bool,
    /// Packets read from hosts.
    pub packets_read: u64,
    /// Packets written to hosts; several segments of one packet may be one.
    pub packets_written: u64,
    /// Packets not passed on.
    pub refused: RefusedPackets,
    /// Packets that hosts' devices dropped because the router did not read them in time.
    pub device_drops: u64,
    /// Number of packets missing from captures because the disk was too slow or full.
    pub capture_missed: u64,
    /// Captures that ended before the run did, and why.
    pub captures_ended: Vec<String>,
    /// Captures that do not have their name, why, and where they are.
    pub captures_unnamed: Vec<String>,
    /// Evidence that the router and not the network was the bottleneck, if it was.
    pub bottleneck: Option<String>,
}

/// Lateness above which the results measure the router, not the network.
pub(super) const TOO_LATE: Span = Span::from_ms(1);
/// Processor time in a second above which the router is overloaded.
const TOO_BUSY: Span = Span::from_ms(900);

/// Returns evidence that the router was the bottleneck, if it was: it wrote or could read late (over 1 ms, in 1 % of
/// cases or more), it was busy for over 90 % of some second, or devices dropped packets that it did not read.
pub(super) fn bottleneck(outcome: &RouterOutcome) -> Option<String> {
    let mut signs = Vec::new();
    if outcome.lateness.p99 > TOO_LATE {
        signs.push(format!("1 % of packets were written over {} late", outcome.lateness.p99));
    }
    if outcome.reading.p99 > TOO_LATE {
        signs.push(format!("1 % of the time it could read only after {}", outcome.reading.p99));
    }
    if outcome.busiest_second > TOO_BUSY {
        signs.push(format!("its thread was busy for {} of a second", outcome.busiest_second));
    }
    if outcome.device_drops > 0 {
        signs.push(format!("hosts' devices dropped {} packets that it did not read in time", outcome.device_drops));
    }
    (!signs.is_empty()).then(|| format!("the emulator was the bottleneck: {}", signs.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_router_is_no_bottleneck() {
        assert_eq!(bottleneck(&RouterOutcome::default()), None);
    }

    #[test]
    fn each_sign_is_named() {
        let late = Lateness { p99: Span::from_ms(2), ..Lateness::default() };
        let outcome = RouterOutcome {
            lateness: late,
            reading: late,
            busiest_second: Span::from_ms(950),
            device_drops: 7,
            ..RouterOutcome::default()
        };
        let message = bottleneck(&outcome).unwrap();
        for sign in ["written over 2.000 ms", "read only after 2.000 ms", "950.000 ms of a second", "7 packets"] {
            assert!(message.contains(sign), "{message}");
        }
    }
}
