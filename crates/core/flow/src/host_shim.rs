//! Optional stages of a flow between its law and the NIC: holds based on one-way delay, a small queue, segments, and credits
//! ([`crate::credits`]).
//!
//! - **Hold** ([`OnRampHold`], On-Ramp): nothing is sent before it ends. Where the law paces, the next packet is sent at
//!   `max(t_NextTx, t_NextPkt)` (Liu et al., §4.1, "Behavior after a pause ends", (2)).
//! - **Small queue** (TCP small queues; the same section, (1)): a law that only has a window releases packets up to a
//!   limit into a queue of the flow, as soon as the window permits; they are in flight for the law from then on, and
//!   its round trips include the wait. Holds and round-robin turns apply to packets in the queue. A law that paces has its pacer
//!   below the queue, so none of its packets wait there: they are released as they are sent. Packets that are declared
//!   lost while they wait are not sent. With FQ ([`HostShimConfig::fq`]) the pacer is in the queue for a law that paces,
//!   too. The window releases packets, at most a millisecond's worth at the law's pacing rate (at least two segments;
//!   `tcp_small_queue_check`). The queue sends them at that rate. So the law's round trips include that wait and
//!   On-Ramp's hold. After a late packet the next gap is shortened by the delay, at most by half (`fq_dequeue`). The
//!   first ten packets of a flow, which `sch_fq` does not pace, are paced here.
//! - **Segment** (GSO): a flow keeps its round-robin turn for several packets, as many as its window, or the queue,
//!   permits at the beginning of the segment; neither its pacing nor a hold interrupts it. On-Ramp's time stamp is that
//!   of the segment. The NIC still gets one packet at a time, so a paused class stops in mid-segment, and
//!   acknowledgements go in between.
//!
//! A host calls the shim where it would call the [`Sender`]: [`HostShim::poll`], then [`HostShim::take`]. Before the latter it
//! reads its clock where the hold needs that ([`HostShim::reads_clock`]).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;

use laws::ControlLaw;
use units::{Bytes, Rate, Span, Time};

use crate::credits::{CreditSender, ScheduledPacket};
use crate::{NicHandoff, OnRampHold, Segment, SendState, Sender};

/// Configuration of the path from a host's flows to the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HostShimConfig {
    /// Payload of a segment. Packets are sent individually if a segment is no longer than a packet.
    pub segment: u32,
    /// Maximum payload that may wait between law and NIC; none where nothing waits there.
    pub small_queue: Option<Bytes>,
    /// The small queue paces.
    pub fq: bool,
}

impl HostShimConfig {
    /// Returns whether the configuration changes nothing for a flow of packets with a payload of `mss`.
    pub fn is_plain(&self, mss: u32) -> bool {
        self.segment <= mss && self.small_queue.is_none_or(Bytes::is_zero) && !self.fq
    }
}

/// State that a hold needs when a segment is handed to the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldInputs {
    /// The sender's clock, which wraps.
    pub clock_ns: u32,
    /// New base delay, which counts as no queueing, where it has changed with the routes.
    pub base: Option<Span>,
}

/// Stages of one flow between its law and the NIC.
#[derive(Debug)]
pub struct HostShim {
    hold: Option<HoldState>,
    /// Credit scheduler of a flow that may send only with credits.
    credit_sender: Option<CreditSender>,
    segment: SegmentState,
    queue: SmallQueue,
}

#[derive(Debug)]
struct HoldState {
    hold: OnRampHold,
    /// Hand-over record of the segment that is being sent to the NIC.
    handover: NicHandoff,
}

#[derive(Debug)]
struct SegmentState {
    /// Payload of a segment; 0 if packets are sent individually.
    payload: u32,
    /// Payload that may still follow in the current segment.
    left: u32,
}

#[derive(Debug)]
struct SmallQueue {
    /// Maximum payload that may wait; 0 if nothing does.
    limit: u64,
    /// Time at which the queue releases the next packet; none where the queue does not pace.
    next: Option<Time>,
    /// Packets that the law has released.
    waiting: VecDeque<Segment>,
    waiting_bytes: u64,
}

impl HostShim {
    /// Creates the shim of a new flow with `mss` bytes of payload per packet.
    pub fn new(
        config: &HostShimConfig,
        mss: u32,
        hold: Option<OnRampHold>,
        credit_sender: Option<CreditSender>,
    ) -> Self {
        let limit = config.small_queue.map_or(0, Bytes::get);
        Self {
            hold: hold.map(|hold| HoldState { hold, handover: NicHandoff::default() }),
            credit_sender,
            segment: SegmentState { payload: if config.segment > mss { config.segment } else { 0 }, left: 0 },
            queue: SmallQueue {
                limit,
                next: config.fq.then_some(Time::ZERO),
                waiting: VecDeque::new(),
                waiting_bytes: 0,
            },
        }
    }

    /// Returns the payload that the law has released and the NIC has not taken.
    pub fn queued_bytes(&self) -> Bytes {
        Bytes::new(self.queue.waiting_bytes)
    }

    /// Returns the flow's hold, if it has one.
    pub fn hold(&self) -> Option<&OnRampHold> {
        self.hold.as_ref().map(|holding| &holding.hold)
    }

    /// Returns the flow's hold, to be notified of OR-ACKs.
    pub fn hold_mut(&mut self) -> Option<&mut OnRampHold> {
        self.hold.as_mut().map(|holding| &mut holding.hold)
    }

    /// Returns the credit scheduler, if credits permit the flow's packets.
    pub fn credit_sender(&self) -> Option<&CreditSender> {
        self.credit_sender.as_ref()
    }

    /// Returns the credit scheduler, to pass credits to it and to take the signals that it sends.
    pub fn credit_sender_mut(&mut self) -> Option<&mut CreditSender> {
        self.credit_sender.as_mut()
    }

    /// Lets the law release packets while the queue has room.
    pub fn release<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) {
        self.queue.drop_lost(sender);
        if self.credit_sender.is_none() {
            self.queue.release(sender, now, self.segment.payload);
        }
    }

    /// Returns whether a packet may go to the NIC at `now`.
    #[inline(never)]
    pub fn poll<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> SendState {
        if self.segment.left > 0 && self.continues_segment(sender) {
            return SendState::Now;
        }
        self.release(sender, now);
        let state = if let Some(credit_sender) = &mut self.credit_sender {
            credit_sender.poll(sender, now)
        } else if self.queue.waiting.is_empty() {
            sender.poll(now)
        } else {
            SendState::Now
        };
        let until = self.hold().map_or(Time::ZERO, OnRampHold::until).max(self.queue.next.unwrap_or(Time::ZERO));
        match state {
            SendState::Now if until > now => SendState::At(until),
            SendState::At(time) => SendState::At(time.max(until)),
            state => state,
        }
    }

    /// Returns whether [`HostShim::take`] needs a reading of the host's clock: the packet begins a new record of the hold.
    pub fn reads_clock(&self) -> bool {
        self.hold.is_some() && self.segment.left == 0
    }

    /// Takes the packet that [`HostShim::poll`] allowed, with a reading where [`HostShim::reads_clock`] returns true.
    #[inline(never)]
    pub fn take<L: ControlLaw>(
        &mut self,
        sender: &mut Sender<L>,
        now: Time,
        reading: Option<HoldInputs>,
    ) -> ScheduledPacket {
        debug_assert!(
            reading.is_some() == self.reads_clock(),
            "a reading is needed exactly if the shim reads the clock"
        );
        let taken = match &mut self.credit_sender {
            Some(credit_sender) => credit_sender.take(sender, now),
            None => ScheduledPacket { segment: self.queue.take(sender, now), credit: None },
        };
        let segment = &taken.segment;
        self.queue.pace_next(sender, now, segment.bytes);
        if let Some(HoldState { hold, handover }) = &mut self.hold {
            if let Some(HoldInputs { clock_ns, base }) = reading {
                if let Some(base) = base {
                    hold.rebase(base);
                }
                *handover = hold.hand_over(now, clock_ns);
            }
            hold.on_sent(segment.seq, segment.attempt, *handover, sender.first_unsettled());
        }
        taken
    }

    /// Returns whether the flow keeps its turn after a packet of `bytes` payload, for more of the same segment.
    #[inline(never)]
    pub fn keeps_turn<L: ControlLaw>(&mut self, sender: &mut Sender<L>, bytes: u32) -> bool {
        if self.credit_sender.is_some() {
            return false;
        }
        let SegmentState { payload, left } = &mut self.segment;
        if *left == 0 {
            let window = || sender.send_limits().window.saturating_sub(sender.in_flight()).get();
            let released = if self.queue.waiting.is_empty() { window() } else { self.queue.waiting_bytes };
            *left = u64::from(payload.saturating_sub(bytes)).min(released) as u32;
        } else {
            *left = left.saturating_sub(bytes);
        }
        self.continues_segment(sender)
    }

    /// Checks that the small queue's count matches its content. Returns the number of entries examined.
    ///
    /// # Errors
    /// A description of the mismatch.
    pub fn check(&self) -> Result<usize, String> {
        let total: u64 = self.queue.waiting.iter().map(|segment| u64::from(segment.bytes)).sum();
        if total == self.queue.waiting_bytes {
            return Ok(self.queue.waiting.len());
        }
        Err(format!("{total} B wait in the small queue, but its counter is {} B", self.queue.waiting_bytes))
    }

    /// Returns whether there is a next packet for the segment; if not, ends the segment.
    fn continues_segment<L: ControlLaw>(&mut self, sender: &mut Sender<L>) -> bool {
        let next = self.queue.waiting.front().map(|segment| segment.bytes).or_else(|| sender.next_bytes());
        if next.is_none_or(|bytes| bytes > self.segment.left) {
            self.segment.left = 0;
        }
        self.segment.left > 0
    }
}

impl SmallQueue {
    /// Drops packets that were declared lost while they waited.
    fn drop_lost<L: ControlLaw>(&mut self, sender: &Sender<L>) {
        while let Some(segment) = self.waiting.front() {
            if sender.is_outstanding(segment.seq, segment.attempt) {
                break;
            }
            self.waiting_bytes -= u64::from(segment.bytes);
            self.waiting.pop_front();
        }
        debug_assert_eq!(self.waiting.is_empty(), self.waiting_bytes == 0, "{} bytes wait", self.waiting_bytes);
    }

    fn release<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time, segment: u32) {
        let pacing = sender.send_limits().pacing;
        if self.limit == 0 || (pacing != Rate::MAX && self.next.is_none()) {
            return;
        }
        // The amount sent in 2^-10 s, and at least two segments.
        let paced = || (pacing.bps() >> 13).max(2 * u64::from(segment.max(sender.mss())));
        let limit = if pacing == Rate::MAX { self.limit } else { self.limit.min(paced()) };
        while let Some(next) = sender.next_bytes() {
            let bytes = u64::from(next);
            let has_room = self.waiting_bytes + bytes <= limit || self.waiting.is_empty();
            if !has_room || sender.poll(now) != SendState::Now {
                break;
            }
            self.waiting.push_back(release(sender, now));
            self.waiting_bytes += bytes;
        }
    }

    /// Takes the next packet to send.
    fn take<L: ControlLaw>(&mut self, sender: &mut Sender<L>, now: Time) -> Segment {
        let segment = match self.waiting.pop_front() {
            Some(segment) => {
                self.waiting_bytes -= u64::from(segment.bytes);
                debug_assert_eq!(self.waiting.is_empty(), self.waiting_bytes == 0, "{} bytes wait", self.waiting_bytes);
                segment
            }
            None => release(sender, now),
        };
        sender.count_sent(&segment);
        segment
    }

    /// Sets the time of the next packet, after one of `bytes` payload sent now.
    fn pace_next<L: ControlLaw>(&mut self, sender: &Sender<L>, now: Time, bytes: u32) {
        let Some(next) = &mut self.next else { return };
        let gap = sender.gap_after(bytes);
        *next = if *next > now {
            // In mid-segment.
            *next + gap
        } else {
            let late = if *next == Time::ZERO { Span::ZERO } else { now.since(*next).min(gap.over(2)) };
            now + gap - late
        };
    }
}

/// Kept out of line so that only the plain path is inlined.
#[inline(never)]
fn release<L: ControlLaw>(sender: &mut Sender<L>, now: Time) -> Segment {
    sender.release(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AckHeader, FlowConfig};
    use laws::fixed::{Fixed, Params};
    use laws::on_ramp::{self, OnRamp};
    use proptest::prelude::*;
    use units::Frac;

    const MSS: u32 = 1_000;

    /// Creates a flow of 1,000 packets under a window of `window` packets.
    fn sender(window: u64, paced: bool) -> Sender<Fixed> {
        let base_rtt = Span::from_us(10);
        let path = laws::PathInfo {
            base_rtt,
            intra_rtt: base_rtt,
            line_rate: Rate::from_gbps(8),
            mss: Bytes::new(MSS.into()),
        };
        let law = Fixed::new(&path, Params { window: Bytes::new(window * u64::from(MSS)), paced });
        Sender::new(FlowConfig::new(Bytes::new(1_000_000), MSS, base_rtt), law, Time::ZERO)
    }

    fn acknowledge(sender: &mut Sender<Fixed>, now: Time, segment: &Segment) {
        let (seq, attempt) = (segment.seq, segment.attempt);
        sender.on_ack(now, &AckHeader { seq, covers: 1, cumulative: 0, marked: false, attempt }, &[]);
    }

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    #[test]
    fn a_small_queue_holds_up_to_its_limit() {
        let config = HostShimConfig { small_queue: Some(Bytes::new(4_000)), ..HostShimConfig::default() };
        let (mut sender, mut shim) = (sender(10, false), HostShim::new(&config, MSS, None, None));
        assert_eq!(shim.poll(&mut sender, us(0)), SendState::Now);
        assert_eq!((shim.queue.waiting.len(), sender.in_flight()), (4, Bytes::new(4_000)));
        let first = shim.take(&mut sender, us(0), None).segment;
        assert_eq!((first.seq, shim.queue.waiting_bytes), (0, 3_000));
        // Ten packets are in flight for the law; four of them still wait.
        let mut taken = alloc::vec![first];
        while shim.poll(&mut sender, us(1)) == SendState::Now {
            taken.push(shim.take(&mut sender, us(1), None).segment);
        }
        assert_eq!(
            taken.iter().map(|segment| segment.seq).collect::<alloc::vec::Vec<_>>(),
            (0..10).collect::<alloc::vec::Vec<_>>()
        );
        assert_eq!((shim.queue.waiting_bytes, shim.poll(&mut sender, us(2))), (0, SendState::Blocked));
        acknowledge(&mut sender, us(10), &taken[0]);
        assert_eq!(shim.poll(&mut sender, us(10)), SendState::Now);
    }

    /// A packet that is declared lost while it waits is never sent: only packets that the NIC takes count as sent.
    #[test]
    fn packets_lost_in_the_small_queue_are_not_sent() {
        let config = HostShimConfig { small_queue: Some(Bytes::new(4_000)), ..HostShimConfig::default() };
        let (mut sender, mut shim) = (sender(10, false), HostShim::new(&config, MSS, None, None));
        shim.poll(&mut sender, us(0));
        assert_eq!((shim.queue.waiting.len(), sender.stats().packets_sent), (4, 0));
        shim.take(&mut sender, us(0), None);
        assert_eq!((sender.in_flight(), sender.stats().packets_sent), (Bytes::new(4_000), 1));
        // The timeout declares all four lost; three of them were never sent. They are retransmitted, and six more are sent.
        let late = sender.next_timer();
        sender.on_timer(late);
        let (mut left, mut again) = (1, 0);
        while shim.poll(&mut sender, late) == SendState::Now {
            let segment = shim.take(&mut sender, late, None).segment;
            left += 1;
            again += u64::from(segment.attempt > 1);
        }
        let stats = sender.stats();
        assert_eq!((left, again, stats.timeouts), (11, 4, 1));
        assert_eq!((stats.packets_sent, stats.retransmits), (left, again));
    }

    /// A segment of 64 kB ends after ten packets of 1 kB, the window at its beginning, although an acknowledgement opens
    /// the window meanwhile.
    #[test]
    fn segment_length_is_limited_by_the_window_at_its_start() {
        for (payload, turn) in [(4_000, 4), (64_000, 10), (MSS, 1), (0, 1)] {
            let config = HostShimConfig { segment: payload, ..HostShimConfig::default() };
            assert_eq!(config.is_plain(MSS), turn == 1);
            let (mut sender, mut shim) = (sender(10, false), HostShim::new(&config, MSS, None, None));
            let mut packets = 0;
            loop {
                assert_eq!(shim.poll(&mut sender, us(packets)), SendState::Now);
                let segment = shim.take(&mut sender, us(packets), None).segment;
                packets += 1;
                if packets == 2 {
                    acknowledge(&mut sender, us(packets), &segment);
                }
                if !shim.keeps_turn(&mut sender, segment.bytes) {
                    break;
                }
            }
            assert_eq!(packets, turn, "{payload}");
        }
    }

    /// An OR-ACK reports a one-way delay of 15 us, and the threshold is 10 us: nothing is sent for 5 us.
    #[test]
    fn nothing_is_sent_during_a_hold() {
        let params = on_ramp::OnRampParams { threshold: Span::from_us(10), gain: Frac::ratio(1, 16), strawman: true };
        let hold = OnRampHold::new(OnRamp::new(params), Span::ZERO);
        let (mut sender, mut shim) =
            (sender(10, false), HostShim::new(&HostShimConfig::default(), MSS, Some(hold), None));
        assert_eq!(shim.poll(&mut sender, us(0)), SendState::Now);
        assert!(shim.reads_clock());
        let first = shim.take(&mut sender, us(0), Some(HoldInputs { clock_ns: 7, base: None })).segment;
        shim.hold_mut().unwrap().process_or_ack(us(20), first.seq, first.attempt, 15_007);
        assert_eq!(shim.poll(&mut sender, us(20)), SendState::At(us(25)));
        assert_eq!(shim.poll(&mut sender, us(25)), SendState::Now);
        // With a base delay of 6 us the same delay is below the threshold: no hold.
        let second =
            shim.take(&mut sender, us(25), Some(HoldInputs { clock_ns: 0, base: Some(Span::from_us(6)) })).segment;
        shim.hold_mut().unwrap().process_or_ack(us(45), second.seq, second.attempt, 15_000);
        assert_eq!(shim.poll(&mut sender, us(45)), SendState::Now);
    }

    #[test]
    fn a_pacing_queue_makes_up_for_half_a_packet_time() {
        let config = HostShimConfig { small_queue: Some(Bytes::new(4_000)), fq: true, ..HostShimConfig::default() };
        // Ten packets in a round trip of 10 us: one a microsecond.
        let (mut sender, mut shim) = (sender(10, true), HostShim::new(&config, MSS, None, None));
        let gap = sender.gap_after(MSS);
        let mut take_at = |shim: &mut HostShim, at: Time| {
            assert_eq!(shim.poll(&mut sender, at), SendState::Now);
            shim.take(&mut sender, at, None);
            match shim.poll(&mut sender, at) {
                SendState::At(time) => time,
                other => panic!("{other:?}"),
            }
        };
        let on_time = take_at(&mut shim, us(1));
        assert_eq!(on_time, us(1) + gap);
        let late = on_time + Span::from_us(9);
        assert_eq!(take_at(&mut shim, late), late + gap - gap.over(2));
    }

    #[test]
    fn check_finds_a_wrong_byte_count() {
        let config = HostShimConfig { small_queue: Some(Bytes::new(4_000)), ..HostShimConfig::default() };
        let (mut sender, mut shim) = (sender(10, false), HostShim::new(&config, MSS, None, None));
        shim.poll(&mut sender, us(0));
        assert_eq!((shim.check(), sender.check()), (Ok(4), Ok(5)));
        shim.queue.waiting_bytes -= 1;
        assert!(shim.check().unwrap_err().contains("4000 B wait"));
    }

    proptest! {
        /// Checks that a shim without stages changes nothing, for any sequence of calls and acknowledgements.
        #[test]
        fn a_shim_without_stages_changes_nothing(
            (window, paced) in (1..20u64, any::<bool>()),
            steps in proptest::collection::vec((0..3_000u64, any::<bool>()), 1..200),
        ) {
            let (mut plain, mut shimmed) = (sender(window, paced), sender(window, paced));
            let mut shim = HostShim::new(&HostShimConfig::default(), MSS, None, None);
            let (mut now, mut in_flight) = (Time::ZERO, VecDeque::new());
            for (ns, sends) in steps {
                now += Span::from_unsigned_ps(ns * 1_000);
                let polled = plain.poll(now);
                prop_assert_eq!(shim.poll(&mut shimmed, now), polled);
                if sends && polled == SendState::Now {
                    let segment = plain.send(now);
                    prop_assert_eq!(shim.take(&mut shimmed, now, None), ScheduledPacket { segment, credit: None });
                    prop_assert!(!shim.keeps_turn(&mut shimmed, segment.bytes));
                    in_flight.push_back(segment);
                } else if let Some(segment) = in_flight.pop_front() {
                    acknowledge(&mut plain, now, &segment);
                    acknowledge(&mut shimmed, now, &segment);
                }
            }
        }
    }
}
