//! The kernel's TCP as a host of a law: the inputs are fields of a socket in the kernel's own units, the outputs a window
//! in packets and a pacing rate.
//!
//! This file is compiled twice: for the kernel's BPF machine, where a thin C adapter fills [`SocketReport`] from the socket
//! and applies [`SocketSettings`], and natively, where tests hold the two against each other. It must need nothing that
//! BPF lacks: no allocation, no panic, no product of 128 bits.
//!
//! Differences from the simulator's host:
//! - the kernel counts packets, not bytes: a count times the current MSS approximates the payload;
//! - it reports an acknowledgement at a time, which may cover many packets, and all of them share one round trip;
//! - it reports losses by episode: when it enters recovery or a retransmission timer expires;
//! - the base RTT is that of the handshake, then the minimum seen, unless it is configured;
//! - a window is never under two packets: a receiver that delays ACKs would delay the ACK of one.

use laws::catalog::{MAX_PARAMS, Parameters};
use laws::{Ack, Configured, Cookie, Loss, LossCause, Notification, PathInfo, SendLimits, marked_share};
use units::{Bytes, Rate, Span, Time};

/// Maximum number of words of a law's [`KernelFlow`] in socket storage.
pub const FLOW_WORDS: usize = 64;
/// The smallest window, in packets.
pub const MIN_WINDOW_PACKETS: u64 = 2;

/// Socket state that the C adapter reads. Times are the kernel's monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct SocketReport {
    /// Now, in microseconds (`tcp_mstamp`).
    pub now_us: u64,
    /// Last departure time of the newest delivered packet (`first_tx_mstamp`).
    pub sent_us: u64,
    /// Time of the last increase of the count of delivered packets before that packet left (`rs->prior_mstamp`).
    pub delivered_us: u64,
    /// Departure time of the newest packet known to have arrived (`rack.mstamp`).
    pub newest_us: u64,
    /// The round trip of the newest packet (`rs->rtt_us`), from time stamps where it was sent twice; zero or less is
    /// none.
    pub rtt_us: i64,
    /// The smoothed round trip (`srtt_us`, in eighths of a microsecond).
    pub srtt_eighths_us: u64,
    /// Time from the departure of the first packet of its flight to that of the packet (`rs->snd_interval_us`).
    pub send_interval_us: u64,
    /// Payload of a full packet (`mss_cache`).
    pub mss: u64,
    /// Packets delivered since the flow began (`delivered`), modulo 2^32.
    pub delivered: u64,
    /// Part of these with an acknowledgement that carried a mark (`delivered_ce`), modulo 2^32.
    pub delivered_ce: u64,
    /// `delivered` when the newest delivered packet left (`rs->prior_delivered`).
    pub prior_delivered: u64,
    /// Packets in flight.
    pub in_flight: u64,
    /// Packets declared lost (`lost_out`).
    pub lost: u64,
    /// The window until now (`snd_cwnd`).
    pub window: u64,
    /// The most packets that were out at once in the last round trip (`max_packets_out`).
    pub max_packets_out: u64,
    /// Not 0 if the sender had less to send than permitted (`rs->is_app_limited`).
    pub app_limited: u64,
    /// Not 0 if the loss is a timeout.
    pub timeout: u64,
    /// Not 0 if recovery was under way already.
    pub in_recovery: u64,
}

/// Values that the C adapter applies to a socket.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct SocketSettings {
    /// `snd_cwnd`, in packets.
    pub window_packets: u64,
    /// `sk_pacing_rate` in bytes per second; `u64::MAX` is not paced.
    pub pacing_bytes_per_s: u64,
}

/// Configuration of the flows of one law when they begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Config {
    /// Rate of the narrowest link that flows are expected to cross.
    pub line_rate: Rate,
    /// The base round trip; zero means the handshake's RTT, then the minimum seen.
    pub base_rtt: Span,
    /// The base round trip inside a datacenter.
    pub intra_rtt: Span,
    /// Set of parameters that are given, by their indices in the law's table.
    pub given: u64,
    /// Their values, by the same indices.
    pub params: [u64; MAX_PARAMS],
    /// Build number: the loader refuses to read flows of another build. The kernel's side ignores it.
    pub build: u64,
}

/// A law and its host's state of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct KernelFlow<L> {
    /// The law.
    pub law: L,
    /// Start time of the flow, on the kernel's clock.
    pub start_us: u64,
    /// Payload delivered.
    pub delivered: Bytes,
    /// Part of that payload with an acknowledgement that carried a mark.
    pub marked: Bytes,
    /// The minimum RTT seen, or the one configured.
    pub base_rtt: Span,
    /// Time of the last episode of loss reported to the law.
    pub episode_us: u64,
    /// Acknowledgements of new data.
    pub acks: u64,
    /// Episodes of loss, timeouts included.
    pub episodes: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Payload of a full packet.
    pub mss: u64,
    last_delivered: u32,
    last_delivered_ce: u32,
    base_rtt_is_given: u64,
}

const fn span_us(us: u64) -> Span {
    // 2^43 us are 101 days; a longer time is a clock error.
    let max_us = 1 << 43;
    Span::from_ps((if us < max_us { us } else { max_us } * 1_000_000) as i64)
}

impl<L: Configured> KernelFlow<L> {
    /// Begins in place: on BPF a whole flow does not fit the stack.
    ///
    /// # Safety
    /// `target` is writable for the size of a flow.
    #[inline(always)]
    #[allow(unsafe_code, reason = "the flow lies in socket storage")]
    pub unsafe fn begin(target: *mut Self, config: &Config, report: &SocketReport) {
        let given = !config.base_rtt.is_zero();
        let base_rtt = if given { config.base_rtt } else { handshake_rtt(report) };
        let path = PathInfo {
            base_rtt,
            intra_rtt: config.intra_rtt,
            line_rate: config.line_rate,
            mss: Bytes::new(report.mss),
        };
        let params = L::Params::for_path(&path).overridden(&config.params, config.given);
        // SAFETY: the caller's.
        unsafe {
            (&raw mut (*target).law).write(L::configured(&path, params));
            (&raw mut (*target).start_us).write(report.now_us);
            (&raw mut (*target).delivered).write(Bytes::ZERO);
            (&raw mut (*target).marked).write(Bytes::ZERO);
            (&raw mut (*target).base_rtt).write(base_rtt);
            (&raw mut (*target).episode_us).write(0);
            (&raw mut (*target).acks).write(0);
            (&raw mut (*target).episodes).write(0);
            (&raw mut (*target).timeouts).write(0);
            (&raw mut (*target).mss).write(report.mss);
            (&raw mut (*target).last_delivered).write(report.delivered as u32);
            (&raw mut (*target).last_delivered_ce).write(report.delivered_ce as u32);
            (&raw mut (*target).base_rtt_is_given).write(u64::from(given));
        }
    }

    /// Begins by value, where the stack is large.
    #[cfg(not(target_arch = "bpf"))]
    #[allow(unsafe_code, reason = "as the kernel's side begins")]
    pub fn new(config: &Config, report: &SocketReport) -> Self {
        let mut flow = core::mem::MaybeUninit::uninit();
        // SAFETY: the memory is as large as a flow, and `begin` writes all fields of it.
        unsafe {
            Self::begin(flow.as_mut_ptr(), config, report);
            flow.assume_init()
        }
    }

    /// A time of the kernel's clock as the law sees it: since the flow began.
    #[inline(always)]
    fn time(&self, us: u64) -> Time {
        Time::ZERO + span_us(us.saturating_sub(self.start_us))
    }

    /// An acknowledgement was processed.
    #[inline(always)]
    pub fn acked(&mut self, report: &SocketReport) {
        let mss = report.mss;
        let newly = (report.delivered as u32).wrapping_sub(self.last_delivered);
        let newly_marked = (report.delivered_ce as u32).wrapping_sub(self.last_delivered_ce);
        if newly == 0 {
            return;
        }
        self.last_delivered = report.delivered as u32;
        self.last_delivered_ce = report.delivered_ce as u32;
        let acked = packets(newly.into(), mss);
        let marked = marked_share(acked, newly.into(), newly_marked.into());
        if mss != self.mss {
            self.mss = mss;
            self.law.on_notification(&Notification::Mss(Bytes::new(mss)));
        }
        self.acks += 1;
        self.delivered = self.delivered.saturating_add(acked);
        self.marked = self.marked.saturating_add(marked);
        // Between the departure of the newest packet and now, this much was delivered.
        let since = (report.delivered as u32).wrapping_sub(report.prior_delivered as u32);
        // A sample of the clock is no shorter than the time since the newest packet left. A sample of time stamps, which
        // the kernel uses after retransmissions, may be shorter: it counts milliseconds, and a base round trip that is too
        // short is never corrected. Without a sample (Karn's rule) the smoothed round trip is used.
        let rtt_us = if report.rtt_us > 0 {
            let since_sent = report.now_us.saturating_sub(report.sent_us);
            let sample = report.rtt_us as u64;
            if sample > since_sent { sample } else { since_sent }
        } else {
            report.srtt_eighths_us >> 3
        };
        let rtt = span_us(rtt_us);
        if self.base_rtt_is_given == 0 && report.rtt_us > 0 && rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.law.on_notification(&Notification::BaseRtt(rtt));
        }
        self.law.on_ack(&Ack {
            now: self.time(report.now_us),
            sent_at: self.time(report.sent_us),
            rtt,
            acked,
            marked,
            in_flight: packets(report.in_flight, mss),
            delivered: self.delivered,
            bytes_remaining: Bytes::MAX,
            delivered_at_send: self.delivered.saturating_sub(packets(since.into(), mss)),
            delivered_time_at_send: self.time(report.delivered_us),
            send_elapsed: span_us(report.send_interval_us),
            // If less than half of the window is used, the window is not the limit: the application is, or the receiver's
            // window, or the send buffer.
            app_limited: report.app_limited != 0 || report.window >> 1 >= report.max_packets_out,
            sample_limited: report.app_limited != 0,
            cookie: Cookie::NONE,
            hops: &[],
        });
    }

    /// Handles the start of the kernel's recovery, or a retransmission timeout.
    #[inline(always)]
    pub fn lost(&mut self, report: &SocketReport) {
        let timeout = report.timeout != 0;
        self.episodes += 1;
        self.timeouts += u64::from(timeout);
        // The kernel keeps no departure time of the newest lost packet. When recovery begins, it left before the newest
        // packet that arrived; at a timeout, after it, and that packet's departure time is used. A timeout inside an
        // episode belongs to it: its packets left before the law was notified.
        let sent_us = if report.in_recovery != 0 { self.episode_us.saturating_sub(1) } else { report.newest_us };
        self.episode_us = report.now_us;
        self.law.on_loss(&Loss {
            now: self.time(report.now_us),
            sent_at: self.time(sent_us),
            lost: packets(report.lost, report.mss),
            in_flight: packets(report.in_flight, report.mss),
            cause: if timeout { LossCause::Timeout } else { LossCause::Reordered },
        });
    }

    /// Returns the current values for the socket.
    #[inline(always)]
    pub fn socket_settings(&self) -> SocketSettings {
        socket_settings(&self.law.send_limits(), self.mss)
    }
}

/// A permit in the kernel's units.
#[inline(always)]
pub fn socket_settings(send_limits: &SendLimits, mss: u64) -> SocketSettings {
    let packets = send_limits.window.get().checked_div(mss).unwrap_or(0);
    let max_packets = u64::from(u32::MAX >> 1);
    let window_packets = if packets < MIN_WINDOW_PACKETS {
        MIN_WINDOW_PACKETS
    } else if packets > max_packets {
        max_packets
    } else {
        packets
    };
    let pacing = send_limits.pacing;
    let pacing_bytes_per_s = if pacing == Rate::MAX { u64::MAX } else { pacing.bps() >> 3 };
    SocketSettings { window_packets, pacing_bytes_per_s }
}

#[inline(always)]
fn packets(count: u64, mss: u64) -> Bytes {
    Bytes::new(mss).times(count)
}

/// Returns the handshake's RTT; a millisecond if it left no sample.
#[inline(always)]
fn handshake_rtt(report: &SocketReport) -> Span {
    let us = report.srtt_eighths_us >> 3;
    span_us(if us == 0 { 1_000 } else { us })
}
