//! `[host]`: how all hosts behave.

use std::num::{NonZeroU8, NonZeroU16, NonZeroU32};

use experiment::{Clocks, Cnp, HostConfig, InitialQuantum, Jitter, JitterShape, OnRampConfig};
use fabric::PortConfig;
use flow::{CwndValidationConfig, LossTimer, Recovery, TcpConfig, Validation};
use units::{Bytes, Span, Tick};

use super::layered::layered;
use super::{Auto, CodingTable, LoadBalancingConfig, OffOr, WindowOr};
use crate::decode::{Located, table, words};
use crate::error::SpannedError;
use crate::quantity::{Decimal, Drift, Share};

/// Payload of a full packet in bytes, if the scenario has none.
pub(crate) const PAYLOAD: NonZeroU16 = match NonZeroU16::new(4096) {
    Some(payload) => payload,
    None => NonZeroU16::MIN,
};
const ACK_SIZE: NonZeroU16 = match NonZeroU16::new(64) {
    Some(size) => size,
    None => NonZeroU16::MIN,
};
/// Bytes of the transport in each packet: 12 of its header, 16 of the AEAD tag, and 6 of the STREAM frame's head in streams under
/// a gigabyte (`docs/src/transport.md`).
pub const TRANSPORT_HEADER: u32 = 12 + 16 + 6;
/// More than any network takes; 44 times as long still is a time.
const MAX_JITTER: Span = Span::from_s(1);
const ENTROPIES: NonZeroU16 = match NonZeroU16::new(256) {
    Some(entropies) => entropies,
    None => NonZeroU16::MIN,
};

words! {
    /// Loss recovery.
    RecoveryWord, "\"selective\" or \"go-back-n\"" {
        /// Retransmits missing packets.
        Selective = "selective",
        /// Retransmits all packets from the first missing one on.
        GoBackN = "go-back-n",
    }
}

words! {
    /// Packets that receivers acknowledge.
    AcksWord, "\"all\" or \"nack-only\"" {
        /// Every packet.
        All = "all",
        /// None: receivers send NACKs, and an acknowledgement of the complete flow.
        NackOnly = "nack-only",
    }
}

words! {
    /// Start of the retransmission timer.
    LossTimerWord, "\"flow\", \"packet\" or \"probe\"" {
        /// The flow's last acknowledgement.
        Flow = "flow",
        /// Each packet's departure.
        Packet = "packet",
        /// The flow's last acknowledgement, with probes.
        Probe = "probe",
    }
}

words! {
    /// Treatment of a window that is not used (congestion window validation).
    ValidationWord, "\"off\", \"linux\" or \"rfc7661\"" {
        /// None.
        Off = "off",
        /// RFC 2861, as in Linux.
        Linux = "linux",
        /// RFC 7661.
        Rfc7661 = "rfc7661",
    }
}

words! {
    /// Condition under which a window is full.
    WindowWord, "\"strict\" or \"overshoot\"" {
        /// The next packet does not fit.
        Strict = "strict",
        /// No byte fits.
        Overshoot = "overshoot",
    }
}

words! {
    /// Bytes that a pacing rate counts.
    PaceWord, "\"payload\", \"wire\" or \"transport\"" {
        /// Payload only.
        Payload = "payload",
        /// Headers too.
        Wire = "wire",
        /// Headers of the transport, too.
        Transport = "transport",
    }
}

const OR_ACK: NonZeroU16 = match NonZeroU16::new(78) {
    Some(size) => size,
    None => NonZeroU16::MIN,
};

table! {
    /// On-Ramp: holds a flow at its host while the one-way delay of its packets is over a threshold, under any law.
    OnRampTable {
        /// One-way delay over which the flow is held (T). `auto`: twice `clock_sigma` over the base one-way delay of a
        /// flow's own path.
        threshold: Located<Auto<Span>>;
        /// Applies `threshold` to the queueing delay: to the one-way delay over the base one-way delay of a flow's own
        /// path, over the routes that hold when a packet leaves. For paths as different as those inside and between
        /// datacenters.
        on_queueing_delay: bool = false;
        /// Weight of the newest measurement in the correction for the lag of feedback (g), over 0.
        gain: Located<Share> = Located::default_of(Share(Decimal::new(625, 4)));
        /// Strawman: holds are not corrected for the lag of feedback (the paper's equation 2).
        strawman: bool = false;
        /// Packets per OR-ACK.
        ack_every: NonZeroU32 = NonZeroU32::MIN;
        /// Size of an OR-ACK on the wire, in bytes.
        ack_size: NonZeroU16 = OR_ACK;
        /// Starts a flow with the state that the last OR-ACK from its receiver left at its host.
        reuse_last_or_ack: bool = false;
    }
}

words! {
    /// A distribution of processing delays.
    JitterWord, "\"exponential\" or \"uniform\"" {
        /// Exponential.
        Exponential = "exponential",
        /// From nothing to twice the mean.
        Uniform = "uniform",
    }
}

table! {
    /// Processing delay of arriving packets in a host, before its transport receives them, in order within a flow.
    JitterTable {
        /// The mean, over 0 and at most 1 s.
        mean: Located<Span>;
        /// `exponential`, or `uniform`: evenly from 0 to twice the mean.
        distribution: JitterWord = JitterWord::Exponential;
    }
}

impl JitterTable {
    fn config(&self) -> Jitter {
        let shape = match self.distribution {
            JitterWord::Exponential => JitterShape::Exponential,
            JitterWord::Uniform => JitterShape::Uniform,
        };
        Jitter { mean: *self.mean, shape }
    }
}

table! {
    /// Behaviour of Linux's TCP in addition to its law. `"linux"` is a table of defaults.
    TcpTable {
        /// Linux's `HyStart`: `hystart_train` and `hystart_delay` of Cubic are on where the scheme does not set them.
        hystart: bool = true;
        /// Spreads a cut, for a loss or marks, over the round trip (PRR).
        prr: bool = true;
        /// Shrinks the window after a flow was idle: `tcp_slow_start_after_idle`. For TCP's laws: `cubic`, `newreno`,
        /// `dctcp`, `vegas`, `gemini`.
        idle_restart: bool = true;
        /// Treatment of a window that a flow does not use, beyond not growing it. `linux`: after one retransmission
        /// timeout in which it was never full, it falls half of the way to what was used. `rfc7661`: a loss or mark
        /// cuts what was in use, and the window is halved after five minutes; a window that a slower NIC leaves unfilled
        /// does not grow, either. The cuts are for the same laws.
        validation: ValidationWord = ValidationWord::Off;
        /// Remembers for each destination the window at which slow start ended (ssthresh), and starts new connections
        /// there with it: `tcp_no_metrics_save` is off, and since Linux 5.6 `tcp_no_ssthresh_metrics_save` too.
        remember_ssthresh: bool = false;
    }
}

layered! {
    /// Settings of all hosts.
    Host {
        /// Payload of a full packet, in bytes; with the header at most 65535.
        mss: Located<NonZeroU16> = Located::default_of(PAYLOAD);
        /// Header of a data packet, in bytes.
        header: Located<u16> = Located::default_of(64);
        /// Size of an acknowledgement on the wire, in bytes, 1 to 65535.
        ack_size: Located<NonZeroU16> = Located::default_of(ACK_SIZE);
        /// Packets per acknowledgement.
        ack_every: NonZeroU8 = NonZeroU8::MIN;
        /// Maximum delay of an acknowledgement where `ack_every` is over 1. `auto`: a quarter of the base RTT.
        ack_delay: Auto<Span> = Auto::Auto;
        /// `ecmp`: one path per flow. `repath`: one path per flow, another one after each of its timeouts. `spray`: a
        /// path drawn for each packet (RPS). `unolb`: subflows in turn, each on a path that it leaves after losses.
        /// `plb`: one path per flow, another one on congestion. `reps`: each packet takes the entropy of a packet that
        /// was acknowledged without a mark, or draws one. The last three also as tables with a `kind`.
        load_balancing: LoadBalancingConfig = LoadBalancingConfig::Ecmp;
        /// Number of paths from which `spray` and `reps` draw.
        entropies: NonZeroU16 = ENTROPIES;
        /// Erasure coding of flows: `true` for 8 data and 2 parity packets a block between datacenters, `false`, or a table.
        coding: Located<OffOr<CodingTable>> = Located::default_of(OffOr::Off), "Replaces it whole.";
        /// Reordering tolerance before a packet counts as lost. `auto`: a quarter of the base RTT, and with `spray`, and with `unolb` under one law, at least the longest wait in all queues of the path.
        reorder_window: Auto<Span> = Auto::Auto;
        /// Minimum retransmission timeout. `auto`: the base RTT with every queue full, over the slowest of the equal
        /// paths, or 5/4 of the base RTT if that is more; with `go-back-n` at least the base RTT and 4 ms.
        rto_min: Auto<Span> = Auto::Auto;
        /// Maximum retransmission timeout.
        rto_max: Span = Span::from_s(4);
        /// Notifies laws of timeouts.
        law_sees_timeouts: bool = true;
        /// `flow`: one retransmission timer per flow, which each ACK restarts; it follows the RTT and backs off.
        /// `packet`: one timer per packet, which expires `rto_min` after the packet left (at least 5/4 of the base
        /// RTT), declares that packet alone lost and does not back off. Its automatic length counts queues of the
        /// reverse path only where ACKs wait in them (no `control_priority`). `probe`: as `flow`, with the timers of the
        /// transport (RACK-TLP): packets sent before an acknowledged one are lost after a round trip and `reorder_window`,
        /// and at the first two timeouts in a row only the oldest packet is sent again, without a notification of the law.
        /// Its automatic length is the base RTT, `ack_delay` and 2 ms.
        rto_per: Located<LossTimerWord> = Located::default_of(LossTimerWord::Flow);
        /// `selective`: missing packets are retransmitted. `go-back-n`: receivers accept packets in order only and
        /// request all from the first missing one on.
        recovery: RecoveryWord = RecoveryWord::Selective;
        /// With `go-back-n`: minimum time between two NACKs of a receiver for the same packet. If it is under a round
        /// trip, a receiver repeats the NACK before the packet can arrive, and all packets from it on are retransmitted
        /// each time: `narrows check` warns of that.
        nack_interval: Span = Span::from_us(500);
        /// `all`: receivers acknowledge every packet, `ack_every` at a time. `nack-only`: receivers only send NACKs
        /// and, at the end, an acknowledgement of the complete flow, as in ExpressPass's simulator. Only for laws whose
        /// credits let flows send. Needs `recovery = "go-back-n"`, and refuses `ack_every` over 1. Where a scheme sets
        /// `acks` and not `ack_every`, the `ack_every` of `[host]` is for the other schemes.
        acks: Located<AcksWord> = Located::default_of(AcksWord::All);
        /// Bytes that a law's pacing rate counts. `payload`: payload only. `wire`: headers too, as in NICs that pace.
        /// `transport`: the transport's headers and its AEAD tag, 34 bytes a packet, but not those of UDP and IP.
        pace: PaceWord = PaceWord::Payload;
        /// Lets pacing catch up on packets that a full window or a busy NIC held back.
        catch_up: bool = true;
        /// `strict`: a packet leaves if it fits the window. `overshoot`: a packet leaves unless the window is full, as
        /// in HPCC's simulator.
        window_check: WindowWord = WindowWord::Strict;
        /// Minimum time between two congestion notification packets (CNPs) of a flow, which receivers send on marks, or
        /// `off`.
        cnp_interval: Located<OffOr<Span>> = Located::default_of(OffOr::Off);
        /// Size of a CNP on the wire, in bytes.
        cnp_size: NonZeroU16 = ACK_SIZE;
        /// GSO size: payload that a flow passes to the NIC at once and that is held as one; at least one packet.
        gso_size: Located<Bytes> = Located::default_of(Bytes::ZERO);
        /// Payload of one flow that may wait between law and NIC (TCP small queues). `off`: the NIC polls flows in
        /// turn.
        tsq_limit: OffOr<Bytes> = OffOr::Off;
        /// Paces in the small queue, as Linux's FQ does. The law's RTTs then include the wait there, and On-Ramp's hold
        /// with it. Needs `tsq_limit`.
        fq: Located<bool> = Located::default_of(false);
        /// Payload sent below which a flow has its turns at the NIC before the others, as new flows have in Linux's FQ
        /// (`initial_quantum` in tc-fq(8)). `window`: the initial window of the flow's law, or its own BDP if that is
        /// less. Zero: all flows have turns alike.
        initial_quantum: WindowOr<Bytes> = WindowOr::Set(Bytes::ZERO);
        /// Lets hosts know the size of flows, as where applications state the length of their messages. Laws that use
        /// it receive the bytes left (Strait does). `initial_quantum` then gives precedence to flows that have less
        /// than that left to send, in full packets, however much they have sent.
        size_aware: bool = false;
        /// Lets hosts send credits for the data that they are to receive, at their link's rate, in turn to all flows
        /// that request them (RCCC, the receiver's credits of Ultra Ethernet). Not with laws that have credits of their
        /// own, nor coding.
        receiver_credits: Located<bool> = Located::default_of(false);
        /// Standard deviation of hosts' clocks right after a synchronisation.
        clock_sigma: Span = Span::ZERO;
        /// Standard deviation of the clocks' drift.
        clock_drift: Drift = Drift(0);
        /// Time between synchronisations; `off`: never after the first, at time zero.
        clock_resync: Located<OffOr<Span>> = Located::default_of(OffOr::Off);
        /// On-Ramp, which holds flows at the edge, or `off`.
        on_ramp: OffOr<OnRampTable> = OffOr::Off, "Replaces it whole.";
        /// Bytes that reports of ports (INT) add to each data packet and each acknowledgement where a law reads them.
        int_header: Located<u16> = Located::default_of(42);
        /// Units of reports of ports as in HPCC's simulator: this many times 128 bytes sent and 80 bytes that wait, and
        /// whole nanoseconds; 0: exact.
        int_multi: u32 = 0;
        /// Measurement error of RTTs: a time from 0 to this, evenly distributed, is added to each RTT that a law
        /// receives.
        rtt_noise: Span = Span::ZERO;
        /// Processing delay of hosts: the time of an arriving packet between the NIC and the transport, such as
        /// `{ mean = "1us" }`, or `off`. Packets of one flow stay in order. Not with `tie_break = "scheduled"`.
        jitter: Located<OffOr<JitterTable>> = Located::default_of(OffOr::Off), "Replaces it whole.";
        /// Behaviour of Linux's TCP in addition to its law. `linux`: all of it. A table switches parts off, such as
        /// `{ hystart = false }`. `off`: none of it. Not for laws that set their own windows in Linux, such as BBR.
        /// Needs `recovery = "selective"`.
        tcp: Located<OffOr<TcpTable>> = Located::default_of(OffOr::Off), "Replaces it whole.";
    }    as "As in `[host]`.";
    /// Changes of a scheme to `[host]`: the same keys, without defaults.
    over HostOverrides;
}

impl OnRampTable {
    /// Returns the simulator's settings.
    fn config(&self, clock_sigma: Span) -> OnRampConfig {
        let (threshold, on_queueing_delay) = match *self.threshold {
            Auto::Auto => (laws::on_ramp::threshold(clock_sigma, Span::ZERO), true),
            Auto::Set(span) => (span, self.on_queueing_delay),
        };
        OnRampConfig {
            params: laws::on_ramp::OnRampParams { threshold, gain: self.gain.0.frac(), strawman: self.strawman },
            on_queueing_delay,
            ack_every: self.ack_every.get(),
            ack_size: self.ack_size.get().into(),
            memory: self.reuse_last_or_ack,
        }
    }
}

impl TcpTable {
    /// Returns whether this is the behaviour of the transport.
    pub(crate) fn is_of_transport(&self) -> bool {
        let Self { hystart, prr, idle_restart, validation, remember_ssthresh } = self;
        !hystart && !prr && *idle_restart && *validation == ValidationWord::Rfc7661 && !remember_ssthresh
    }

    fn config(&self) -> TcpConfig {
        let validation = match self.validation {
            ValidationWord::Off => Validation::Off,
            ValidationWord::Linux => Validation::Linux,
            ValidationWord::Rfc7661 => Validation::Rfc7661,
        };
        let usage = CwndValidationConfig { restart: self.idle_restart, validation };
        TcpConfig { prr: self.prr, usage, remembers: self.remember_ssthresh }
    }
}

/// Reports of ports (INT) in packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PortReports {
    Carried,
    Absent,
}

impl Host {
    /// Refuses combinations that single values cannot show.
    pub(crate) fn check(&self, int: PortReports) -> Result<(), SpannedError> {
        let carries_reports = int == PortReports::Carried;
        let reports = if carries_reports { *self.int_header } else { 0 };
        let wire = u64::from(self.mss.get()) + u64::from(*self.header) + u64::from(reports);
        if wire > 65_535 {
            let error = SpannedError::new(self.mss.origin, format!("a packet of {wire} B on the wire is over 65535 B"));
            let keys = if carries_reports { "payload, header and int_header" } else { "payload and header" };
            let error = error.label(format!("{keys} are at most 65535 together"));
            return Err(error.at_least(self.header.origin).at_least(self.int_header.origin));
        }
        if u64::from(self.ack_size.get()) + u64::from(reports) > 65_535 {
            return Err(SpannedError::new(self.ack_size.origin, "an acknowledgement with its reports is over 65535 B")
                .label("ack_size and int_header are at most 65535 together")
                .at_least(self.int_header.origin));
        }
        if u32::try_from(self.gso_size.get()).is_err() {
            return Err(SpannedError::new(self.gso_size.origin, format!("a segment of {}", *self.gso_size))
                .label("expected at most 4294967295 bytes"));
        }
        if let Some(on_ramp) = self.on_ramp.as_ref()
            && on_ramp.gain.0.is_zero()
        {
            return Err(
                SpannedError::new(on_ramp.gain.origin, "a gain of 0 never learns").label("expected over 0, up to 1")
            );
        }
        if *self.rto_per != LossTimerWord::Flow && self.recovery != RecoveryWord::Selective {
            return Err(SpannedError::new(
                self.rto_per.origin,
                "go-back-n sends everything again, so no packet has a timer alone",
            )
            .label("needs recovery = \"selective\""));
        }
        if *self.acks == AcksWord::NackOnly && self.recovery == RecoveryWord::Selective {
            let message = "a receiver that reports only the first missing packet accepts packets in order only";
            return Err(SpannedError::new(self.acks.origin, message).label("needs recovery = \"go-back-n\""));
        }
        self.load_balancing.check(self.unfit_for_own_laws())?;
        if let Some(coding) = self.coding.as_ref() {
            let path = self.load_balancing.choice(self.entropies);
            coding.check(self.coding.origin, self.recovery(), path, self.ack_every.get())?;
        }
        if *self.fq && self.tsq_limit.value().is_none() {
            return Err(SpannedError::new(
                self.fq.origin,
                "FQ holds packets back in the small queue, and there is none",
            )
            .label("needs tsq_limit, such as \"256KB\""));
        }
        if self.tcp.as_ref().is_some() {
            let error = |needed: String| {
                SpannedError::new(self.tcp.origin, "Linux's TCP knows which packets came, and has one law a flow")
                    .label(format!("needs {needed}"))
            };
            if self.recovery != RecoveryWord::Selective {
                return Err(error("recovery = \"selective\"".to_owned()));
            }
            if self.load_balancing.choice(self.entropies).laws() > 1 {
                return Err(error("law_per = \"flow\" in load_balancing".to_owned()));
            }
        }
        if let Some(jitter) = self.jitter.as_ref()
            && !(Span::from_ps(1)..=MAX_JITTER).contains(&*jitter.mean)
        {
            let message = if *jitter.mean <= Span::ZERO {
                "delays with a mean of nothing are none"
            } else {
                "hosts that take longer than any network are not simulated"
            };
            return Err(SpannedError::new(jitter.mean.origin, message)
                .label("expected a time over zero and at most 1s, or jitter = \"off\""));
        }
        for time in [self.cnp_interval, self.clock_resync] {
            if time.value().is_some_and(Span::is_zero) {
                return Err(SpannedError::new(time.origin, "once in no time at all is endlessly often")
                    .label("expected a time over zero, or \"off\""));
            }
        }
        Ok(())
    }

    /// With a scheme's changes.
    pub(crate) fn with(&self, patch: Option<&HostOverrides>) -> Self {
        let mut host = self.clone();
        if let Some(patch) = patch {
            host.take(patch);
        }
        host
    }

    /// Returns the simulator's settings.
    pub(crate) fn config(&self, int: PortReports) -> HostConfig {
        let int = int == PortReports::Carried;
        let reports = if int { u32::from(*self.int_header) } else { 0 };
        HostConfig {
            mss: self.mss.get().into(),
            header: u32::from(*self.header) + reports,
            ack_size: u32::from(self.ack_size.get()) + reports,
            ack_every: self.ack_every.get(),
            ack_delay: self.ack_delay.value(),
            path: self.load_balancing.choice(self.entropies),
            coding: self.coding.as_ref().map(CodingTable::config),
            reordering: self.reorder_window.value(),
            rto_min: self.rto_min.value(),
            rto_max: self.rto_max,
            tick: Tick::NONE,
            law_sees_timeouts: self.law_sees_timeouts,
            loss_timer: match *self.rto_per {
                LossTimerWord::Flow => LossTimer::Flow,
                LossTimerWord::Packet => LossTimer::Packet,
                LossTimerWord::Probe => LossTimer::Probe,
            },
            recovery: self.recovery(),
            pace_header: match self.pace {
                PaceWord::Payload => 0,
                PaceWord::Wire => u32::from(*self.header) + reports,
                PaceWord::Transport => TRANSPORT_HEADER,
            },
            catches_up: self.catch_up,
            overshoots: self.window_check == WindowWord::Overshoot,
            int_multi: self.int_multi,
            initial_quantum: match self.initial_quantum {
                WindowOr::Window => InitialQuantum::Window,
                WindowOr::Set(bytes) => InitialQuantum::Bytes(bytes),
            },
            size_aware: self.size_aware,
            receiver_credits: *self.receiver_credits,
            cnp: self.cnp_interval.value().map(|interval| Cnp { interval, size: self.cnp_size.get().into() }),
            on_ramp: self.on_ramp.as_ref().map(|table| table.config(self.clock_sigma)),
            clocks: Clocks {
                sigma: self.clock_sigma,
                drift_ppb: self.clock_drift.0,
                resync: self.clock_resync.value(),
            },
            segment: u32::try_from(self.gso_size.get()).unwrap_or(u32::MAX),
            small_queue: self.tsq_limit.value(),
            fq: *self.fq,
            int,
            rtt_noise: self.rtt_noise,
            jitter: self.jitter.as_ref().map(JitterTable::config),
            tcp: self.tcp.as_ref().map(TcpTable::config).unwrap_or_default(),
            max_emulation_rtt: None,
        }
    }

    /// Returns the setting that is needed if each subflow has a law of its own; none if all settings fit.
    fn unfit_for_own_laws(&self) -> Option<&'static str> {
        let incompatible = [
            (self.ack_every.get() > 1, "ack_every = 1"),
            (self.recovery != RecoveryWord::Selective, "recovery = \"selective\""),
            (self.gso_size.get() > self.mss.get().into(), "gso_size = \"0B\""),
            (*self.receiver_credits, "receiver_credits = false"),
        ];
        incompatible.into_iter().find_map(|(is_unfit, needed)| is_unfit.then_some(needed))
    }

    fn recovery(&self) -> Recovery {
        match self.recovery {
            RecoveryWord::Selective => Recovery::Selective,
            RecoveryWord::GoBackN => {
                Recovery::GoBackN { nack_interval: self.nack_interval, acks: *self.acks == AcksWord::All }
            }
        }
    }

    /// A host's own port: no limit, no marks.
    pub(crate) fn nic(rate: units::Rate, delay: Span) -> PortConfig {
        PortConfig::new(rate, delay)
    }
}
