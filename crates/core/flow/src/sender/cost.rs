//! Cost of an acknowledgement, in records looked at: independent of the number of packets in flight.

extern crate std;

use laws::ControlLaw;
use laws::Fixed;
use laws::PathInfo;
use laws::fixed::Params;
use std::collections::VecDeque;
use std::println;
use units::{Bytes, Rate, Span, Time, mix64};

use super::{AckHeader, FlowConfig, Recovery, SendState, Sender};
use crate::{DataHeader, Pacing, Receiver};

const MSS: u32 = 1_000;

impl<L: ControlLaw> Sender<L> {
    /// Returns the number of record accesses.
    fn record_accesses(&self) -> u64 {
        self.subflows.iter().map(|subflow| subflow.out.sent_packets.record_accesses()).sum()
    }
}

/// Cost of a transfer.
struct TransferCost {
    /// Mean over all acknowledgements.
    mean: f64,
    /// Mean over the hundred most expensive acknowledgements.
    slowest_path: f64,
    retransmits: u64,
}

/// Sends four windows of `window` packets over a pipe that delivers a packet each microsecond a round trip later, and
/// loses `loss` in a million by chance, retransmissions too. `late` in a million are 20 us late, so that packets
/// declared lost may arrive after all.
fn transfer(window: u32, loss: u64, late: u64) -> TransferCost {
    let base_rtt = Span::from_us(i64::from(window));
    let path = PathInfo { base_rtt, intra_rtt: base_rtt, line_rate: Rate::from_gbps(8), mss: Bytes::new(MSS.into()) };
    let size = Bytes::new(u64::from(MSS) * u64::from(window)).times(4);
    let law = Fixed::new(&path, Params { window: Bytes::new(u64::from(MSS) * u64::from(window)), paced: false });
    let config = FlowConfig {
        reordering: Span::from_us(10),
        law_sees_timeouts: false,
        pacing: Pacing { catches_up: false, ..Pacing::PLAIN },
        ..FlowConfig::new(size, MSS, base_rtt)
    };
    let mut sender = Sender::new(config, law, Time::ZERO);
    let mut receiver = Receiver::new(config.packets(), 1, Recovery::Selective);
    // (time, acknowledgement) in order of arrival at the sender; late ones in a separate list.
    let (mut acks, mut late_acks) = (VecDeque::new(), VecDeque::new());
    let (mut now, mut link_idle, mut count) = (Time::ZERO, Time::ZERO, 0u64);
    let (mut costs, mut record_accesses) = (std::vec::Vec::new(), 0);
    while !sender.is_complete() {
        while sender.poll(now) == SendState::Now {
            let segment = sender.send(now);
            link_idle = link_idle.max(now) + Span::from_us(1);
            count += 1;
            let chance = mix64(count) % 1_000_000;
            if chance < loss {
                continue;
            }
            let is_late = chance < loss + late;
            let at = link_idle + base_rtt + if is_late { Span::from_us(20) } else { Span::ZERO };
            let queue = if is_late { &mut late_acks } else { &mut acks };
            queue.push_back((at, segment));
        }
        let next_time = |queue: &VecDeque<(Time, _)>| queue.front().map_or(Time::NEVER, |arrival| arrival.0);
        let (soon, later) = (next_time(&acks), next_time(&late_acks));
        let timer = sender.next_timer();
        now = soon.min(later).min(timer).max(now);
        if timer <= now && timer < soon.min(later) {
            sender.on_timer(now);
            continue;
        }
        let queue = if soon <= later { &mut acks } else { &mut late_acks };
        let Some((_, segment)) = queue.pop_front() else { continue };
        for reply in receiver
            .on_data(now, DataHeader { seq: segment.seq, marked: false, requests_ack: segment.requests_ack() })
            .into_iter()
            .flatten()
        {
            let (seq, covers, cumulative, marked) = (reply.seq, reply.covers, reply.cumulative, reply.marked);
            sender.on_ack(now, &AckHeader { seq, covers, cumulative, marked, attempt: segment.attempt }, &[]);
            costs.push(sender.record_accesses() - record_accesses);
            record_accesses = sender.record_accesses();
        }
    }
    let mean = costs.iter().sum::<u64>() as f64 / costs.len() as f64;
    costs.sort_unstable();
    let slowest_path = costs[costs.len() - 100..].iter().sum::<u64>() as f64 / 100.0;
    TransferCost { mean, slowest_path, retransmits: sender.stats().retransmits }
}

/// Checks that a hundred times as much in flight costs at most half a record access more per acknowledgement, with losses and
/// with late packets. One acknowledgement may find many settled packets, but all together access each record a few times.
#[test]
fn ack_cost_is_independent_of_flight_size() {
    for (loss, late) in [(0, 0), (1_000, 0), (20_000, 5_000), (200_000, 20_000)] {
        let [few, many] = [500, 50_000].map(|window| transfer(window, loss, late));
        println!(
            "{loss} and {late} ppm: {:.2} record accesses per acknowledgement with 500 in flight, {:.2} with 50,000 ({} sent again)",
            few.mean, many.mean, many.retransmits
        );
        assert!(many.retransmits >= loss * 200_000 / 1_000_000, "{}", many.retransmits);
        assert!(many.mean < few.mean + 0.5, "{} against {}", many.mean, few.mean);
        assert!(many.mean < 6.0, "{}", many.mean);
        println!("dearest hundred: {:.0} and {:.0}", few.slowest_path, many.slowest_path);
    }
}
