//! Support code of the analytic checks: pipes of a given round trip, and statistics of a sampled queue or flow.
#![allow(dead_code, clippy::unwrap_used)]

use experiment::{FlowId, Outcome, Setup};
use fabric::topology::{Dumbbell, dumbbell};
use fabric::{Ecn, LinkClass, LinkId, Network, PortConfig};
use units::{Bytes, Frac, Rate, Span, Time};

/// Payload and wire size of a full packet under the default host.
pub(crate) const PAYLOAD: f64 = 4096.0;
/// See [`PAYLOAD`].
pub(crate) const PACKET: f64 = 4160.0;

/// Marks everything from `packets` full packets on (a step, as DCTCP's paper has it).
pub(crate) fn step(packets: u64) -> Ecn {
    let k = Bytes::new(packets * PACKET as u64);
    Ecn { min: k, max: k, max_probability: Frac::ONE }
}

/// Two switches, one link of `bottleneck`'s kind between them, and a pair of hosts for each of `rtts`: its base round trip
/// with packets of `data` bytes on the wire and acknowledgements of 64. The bottleneck's own delay is ignored.
pub(crate) fn pipes(bottleneck: &PortConfig, edge_rate: Rate, data: u64, rtts: &[Span]) -> Network {
    let service = |rate: Rate| rate.tx_time(Bytes::new(data)) + rate.tx_time(Bytes::new(64));
    let fixed = service(edge_rate).times(2) + service(bottleneck.rate);
    let one_way = |rtt: Span| (rtt - fixed).over(2);
    let shortest = rtts.iter().copied().map(one_way).min().unwrap();
    assert!(shortest > Span::ZERO, "the round trip is shorter than the service times");
    let near = shortest.over(8).min(Span::from_us(100));
    let edge = |delay| PortConfig::new(edge_rate, delay);
    let far_side = |rtt| edge(one_way(rtt) - near.times(2));
    let left = rtts.iter().map(|&rtt| (far_side(rtt), far_side(rtt))).collect();
    let right = rtts.iter().map(|_| (edge(near), edge(near))).collect();
    let bottleneck = PortConfig { delay: near, ..*bottleneck };
    dumbbell(&Dumbbell { left, right, bottleneck, two_datacenters: false }).unwrap()
}

/// The link from the left switch of a dumbbell to the right one.
pub(crate) fn bottleneck(network: &Network) -> LinkId {
    let class = |class| class == LinkClass::Other || class == LinkClass::Inter;
    LinkId(network.links().iter().position(|link| class(link.class)).unwrap() as u32)
}

/// Payload acknowledged between two sampled times, as a rate in bits per second. Both must have been sampled.
pub(crate) fn goodput(outcome: &Outcome, flow: u32, from: Time, to: Time) -> f64 {
    let at = |time| {
        let sample = outcome.flow_samples.iter().find(|s| s.flow == FlowId(flow) && s.time == time);
        sample.unwrap_or_else(|| panic!("flow {flow} has no sample at {time}")).delivered.get() as f64
    };
    (at(to) - at(from)) * 8.0 / seconds(to.since(from))
}

/// In seconds.
pub(crate) fn seconds(span: Span) -> f64 {
    span.ps() as f64 / 1e12
}

/// Jain's index: 1 where all are equal, 1/n where one has all.
pub(crate) fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
}

/// Returns the relative deviation from `theory`.
pub(crate) fn off(measured: f64, theory: f64) -> f64 {
    (measured - theory).abs() / theory.abs()
}

/// C x RTT in full packets on the wire.
pub(crate) fn pipe_packets(setup: &Setup, flow: usize) -> f64 {
    let spec = &setup.flows[flow];
    let paths = setup.paths(spec.src, spec.dst, setup.host.mss);
    paths.line_rate.bps() as f64 * seconds(paths.base_rtt) / 8.0 / f64::from(setup.host.mss + setup.host.header)
}

/// A queue over time, in full packets.
pub(crate) struct QueueSamples {
    /// (seconds, packets).
    pub(crate) samples: Vec<(f64, f64)>,
}

impl QueueSamples {
    /// The samples of a port from a time on.
    pub(crate) fn of(outcome: &Outcome, link: LinkId, from: Time) -> Self {
        let of_link = outcome.port_samples.iter().filter(|s| s.link == link && s.time >= from);
        let samples: Vec<_> = of_link.map(|s| (s.time.ps() as f64 / 1e12, s.queue.get() as f64 / PACKET)).collect();
        assert!(samples.len() > 100, "too few samples of the queue");
        Self { samples }
    }

    /// Its mean.
    pub(crate) fn mean(&self) -> f64 {
        self.samples.iter().map(|s| s.1).sum::<f64>() / self.samples.len() as f64
    }

    /// The part of the samples at which its port sends: the link's utilisation, for a port rests only when empty.
    pub(crate) fn busy(&self) -> f64 {
        self.samples.iter().filter(|s| s.1 > 0.0).count() as f64 / self.samples.len() as f64
    }

    /// The level that it is under for a part `p` of the time.
    pub(crate) fn quantile(&self, p: f64) -> f64 {
        let mut levels: Vec<f64> = self.samples.iter().map(|s| s.1).collect();
        levels.sort_by(f64::total_cmp);
        levels[((levels.len() - 1) as f64 * p) as usize]
    }

    /// The teeth of its saw: a tooth begins where the queue climbs over its upper quartile after it was under
    /// its lower one.
    pub(crate) fn sawtooth(&self) -> Sawtooth {
        let (low, high) = (self.quantile(0.25), self.quantile(0.75));
        let mut starts = Vec::new();
        let mut was_low = false;
        for (index, &(_, level)) in self.samples.iter().enumerate() {
            if level < low {
                was_low = true;
            } else if level > high && was_low {
                was_low = false;
                starts.push(index);
            }
        }
        assert!(starts.len() > 10, "only {} teeth", starts.len());
        let (mut peak, mut valley) = (0.0, 0.0);
        for tooth in starts.windows(2) {
            let levels = self.samples[tooth[0]..tooth[1]].iter().map(|s| s.1);
            peak += levels.clone().fold(f64::MIN, f64::max);
            valley += levels.fold(f64::MAX, f64::min);
        }
        let teeth = (starts.len() - 1) as f64;
        let (first, last) = (self.samples[starts[0]].0, self.samples[*starts.last().unwrap()].0);
        Sawtooth { peak: peak / teeth, valley: valley / teeth, period: (last - first) / teeth, teeth }
    }
}

/// Means over the teeth of a saw.
#[derive(Debug)]
pub(crate) struct Sawtooth {
    /// Largest queue, in packets.
    pub(crate) peak: f64,
    /// Smallest.
    pub(crate) valley: f64,
    /// Seconds from tooth to tooth.
    pub(crate) period: f64,
    /// Number of teeth.
    pub(crate) teeth: f64,
}
