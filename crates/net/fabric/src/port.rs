//! Configuration of a port, and the form in which the hot path reads it.

use thiserror::Error;
use units::{Bytes, Frac, PrecomputedRate, Rate, Span, Tick, Time};

use crate::arrival::{Arrival, draw};
use crate::bursts::{BurstError, Bursts};
use crate::codel::MAX_INTERVAL;
use crate::credit::{CreditError, CreditParams, CreditQueue};
use crate::discipline::Discipline;
use crate::fq_codel::{MAX_QUEUES, MIN_QUANTUM};
use crate::impairments::ImpairmentId;
use crate::ingress_limit::{IngressLimit, Limit};
use crate::mark::Marker;
use crate::service::{MAX, SLOWEST, long_service, service};

/// ECN thresholds of a queue: RED's two thresholds. Equal thresholds are a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ecn {
    /// No mark below.
    pub min: Bytes,
    /// Always marked from here on.
    pub max: Bytes,
    /// The probability just below `max`.
    pub max_probability: Frac,
}

/// A phantom (virtual) queue in addition to the real one: filled by every packet queued, drained at a part of the line
/// rate, never holding a packet (HULL, NSDI 2012; Uno §4.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Phantom {
    /// Its occupancy never exceeds this.
    pub size: Bytes,
    /// Its drain rate as a part of the line rate, over 0 and at most 1.
    pub drain: Frac,
    /// Its marking thresholds.
    pub ecn: Ecn,
}

/// Time of the marking decision.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum MarkAt {
    /// On the queue that the packet finds.
    #[default]
    Enqueue,
    /// On the queue that the packet leaves behind.
    Dequeue,
}

/// Contribution of the packet in service to the backlog.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum InService {
    /// The remainder of the packet: the fluid backlog.
    #[default]
    Remaining,
    /// The whole packet (htsim).
    All,
    /// No part of the packet (ns-3).
    None,
}

/// Packet trimming: data that finds no room loses its payload, and its header is forwarded as a control packet.
///
/// Data and control then have separate buffers, and neither takes room from the other. Marks are of the data that waits, as
/// in htsim's composite queue. Arriving packets are trimmed, not waiting ones. A header is dropped only where the buffer of
/// control is full.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Trim {
    /// Size of a trimmed packet on the wire, in bytes, at least 1; a packet that is smaller keeps its size.
    pub header: u16,
    /// Bytes of control packets that may wait, the one in service included; [`Bytes::MAX`] is unlimited.
    pub control: Bytes,
}

/// A port and the link behind it, in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PortConfig {
    /// Line rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Span,
    /// Bytes that may wait, the packet in service included; [`Bytes::MAX`] is unlimited. Where ports share a buffer this is
    /// a limit of its own, for data classes: packets above it are dropped, with or without PFC.
    pub buffer: Bytes,
    /// Marking on the real queue.
    pub ecn: Option<Ecn>,
    /// A phantom queue; a packet is marked if either queue requires it.
    pub phantom: Option<Phantom>,
    /// Control packets (acknowledgements) go before all data.
    pub control_priority: bool,
    /// Queue discipline. CoDel and FQ-CoDel mark by themselves, so they go with no other marking, no priority, no trimming
    /// and no credits. Ports of switches that share a buffer, and hosts' NICs, have FIFOs.
    pub discipline: Discipline,
    /// Time of the marking decision.
    pub mark_at: MarkAt,
    /// Contribution of the packet in service to the backlog.
    pub in_service: InService,
    /// The part of packets lost at random on the link.
    pub loss: Frac,
    /// Packets lost at random on the link, several of a group at once.
    pub bursts: Option<Bursts>,
    /// Ingress limit, in the shared buffer of the switch if there is one, for packets that arrive at this port.
    pub ingress_limit: IngressLimit,
    /// A queue of their own for credits, let out at a rate; without it they are control packets like others. A port of a
    /// switch that shares its buffer has none.
    pub credits: Option<CreditQueue>,
    /// Trimming; only with `control_priority`. `buffer` is then of data alone. Ports of switches that share a buffer do
    /// not trim, nor do hosts' NICs.
    pub trim: Option<Trim>,
    /// The services of packets last whole multiples of this. The backlog is still counted in bytes.
    pub tick: Tick,
    /// Impairments, by their index in the network. Not of ports of switches that share a buffer, nor of hosts' NICs, nor
    /// together with a credit queue.
    pub impairments: Option<ImpairmentId>,
}

impl PortConfig {
    /// A port that queues without limit and never marks.
    pub const fn new(rate: Rate, delay: Span) -> Self {
        Self {
            rate,
            delay,
            buffer: Bytes::MAX,
            ecn: None,
            phantom: None,
            control_priority: false,
            discipline: Discipline::Fifo,
            mark_at: MarkAt::Enqueue,
            in_service: InService::Remaining,
            loss: Frac::ZERO,
            bursts: None,
            ingress_limit: IngressLimit {
                xoff: Limit::Alpha(Frac::ratio(1, 8)),
                xon_offset: Bytes::new(3_072),
                headroom: Bytes::ZERO,
            },
            credits: None,
            trim: None,
            tick: Tick::NONE,
            impairments: None,
        }
    }

    /// Returns whether departures are known at enqueue, so that one number is the whole queue.
    pub fn is_plain(&self) -> bool {
        !self.control_priority && self.decides_at_once()
    }

    /// Returns whether the link has random losses.
    pub fn loses(&self) -> bool {
        !self.loss.is_zero() || self.bursts.is_some()
    }

    /// Returns whether the port is plain except for order: its queue, marks and drops do not depend on which packet
    /// goes first.
    pub fn is_plain_but_for_order(&self) -> bool {
        self.control_priority && self.decides_at_once()
    }

    /// Returns whether queueing, marking and drops are decided when a packet arrives. Where services are rounded, the
    /// time until the port becomes idle does not determine how many bytes wait.
    fn decides_at_once(&self) -> bool {
        self.discipline == Discipline::Fifo
            && self.mark_at == MarkAt::Enqueue
            && self.in_service == InService::Remaining
            && self.credits.is_none()
            && self.trim.is_none()
            && self.tick.is_none()
    }

    fn check_discipline(&self) -> Result<(), PortError> {
        let is_valid = match self.discipline {
            Discipline::Fifo => return Ok(()),
            Discipline::CoDel(codel) => codel.is_valid(),
            Discipline::FqCoDel(fq_codel) => fq_codel.is_valid(),
        };
        let alone = self.ecn.is_none()
            && self.phantom.is_none()
            && self.mark_at == MarkAt::Enqueue
            && !self.control_priority
            && self.trim.is_none()
            && self.credits.is_none();
        match (is_valid, alone) {
            (true, true) => Ok(()),
            (false, _) => Err(PortError::Discipline),
            (true, false) => Err(PortError::DisciplineBeside),
        }
    }

    /// Returns the maximum that may wait here, data and control; [`Bytes::MAX`] is unlimited.
    pub fn room(&self) -> Bytes {
        self.buffer.saturating_add(self.trim.map_or(Bytes::ZERO, |trim| trim.control))
    }

    /// Returns the maximum time that a packet can wait here; none where the buffer is unlimited, or where other flows may be
    /// served first for as long as they send.
    pub fn longest_wait(&self) -> Option<Span> {
        let room = self.room();
        let in_order = !matches!(self.discipline, Discipline::FqCoDel(_));
        (in_order && room != Bytes::MAX).then(|| self.rate.tx_time(room))
    }
}

/// Reasons to reject a port.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum PortError {
    #[error("a rate of {rate}, under {SLOWEST}: packets would last longer than the arithmetic holds")]
    TooSlow { rate: Rate },
    #[error("a link needs a propagation delay above zero: it is the lookahead that lets nodes be simulated apart")]
    NoDelay,
    #[error("ECN's lower threshold ({min}) is above the upper one ({max})")]
    ThresholdsCrossed { min: Bytes, max: Bytes },
    #[error("a phantom queue drains at more than 0 and at most 1 of the line rate, not at {drain}")]
    Drain { drain: Frac },
    #[error("a queue of {bytes} at {rate} lasts over a second")]
    TooLong { bytes: Bytes, rate: Rate },
    #[error("a link cannot lose every packet")]
    LosesAll,
    #[error(transparent)]
    Bursts(#[from] BurstError),
    #[error(transparent)]
    Credits(#[from] CreditError),
    #[error("a port that trims leaves at least a byte of a packet, and lets control go first")]
    Trim,
    #[error(
        "CoDel needs a target over 0 and at most the interval, and an interval of at most {MAX_INTERVAL}; FQ-CoDel 1 to \
         {MAX_QUEUES} queues and a quantum of at least {MIN_QUANTUM} bytes"
    )]
    Discipline,
    #[error("CoDel and FQ-CoDel go with no other marking, no priority of control, no trimming and no credit queue")]
    DisciplineBeside,
}

/// A [`PortConfig`] in time of service, for the hot path. Ports of one kind share it.
#[derive(Clone, Hash, Debug)]
pub struct PortParams {
    pub(crate) serializer: PrecomputedRate,
    pub(crate) delay: Span,
    /// Service time of a full buffer; [`Span::MAX`] where it is unlimited.
    pub(crate) buffer: Span,
    pub(crate) ecn: Marker,
    pub(crate) phantom: Option<PhantomParams>,
    pub(crate) loss: u64,
    loses: bool,
    pub(crate) credits: Option<CreditParams>,
    /// Service time of a full control buffer, where the port trims; [`Span::MAX`] without limit.
    pub(crate) control: Option<Span>,
    pub(crate) config: PortConfig,
}

#[derive(Clone, Hash, Debug)]
pub(crate) struct PhantomParams {
    serializer: PrecomputedRate,
    size: Span,
    ecn: Marker,
}

impl PortParams {
    /// Prepares a configuration.
    ///
    /// # Errors
    /// When a value is out of its range; see [`PortError`].
    pub fn new(config: &PortConfig) -> Result<Self, PortError> {
        if config.rate < SLOWEST {
            return Err(PortError::TooSlow { rate: config.rate });
        }
        if config.delay <= Span::ZERO {
            return Err(PortError::NoDelay);
        }
        if config.loss >= Frac::ONE {
            return Err(PortError::LosesAll);
        }
        if let Some(bursts) = &config.bursts {
            bursts.check()?;
        }
        if config.trim.is_some_and(|trim| trim.header == 0 || !config.control_priority) {
            return Err(PortError::Trim);
        }
        config.check_discipline()?;
        let serializer = PrecomputedRate::new(config.rate);
        let room = |bytes| if bytes == Bytes::MAX { Span::MAX } else { long_service(serializer, bytes) };
        let phantom = config.phantom.as_ref().map(|phantom| PhantomParams::new(phantom, config.rate)).transpose()?;
        Ok(Self {
            serializer,
            delay: config.delay,
            buffer: room(config.buffer),
            ecn: config.ecn.map_or(Ok(Marker::NEVER), |ecn| marker(&ecn, config.rate, serializer))?,
            phantom,
            loss: config.loss.bits(),
            loses: config.loses(),
            credits: config.credits.map(|credits| CreditParams::new(&credits, serializer)).transpose()?,
            control: config.trim.map(|trim| room(trim.control)),
            config: *config,
        })
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &PortConfig {
        &self.config
    }

    /// Its credit queue, if it has one.
    pub fn credits(&self) -> Option<&CreditParams> {
        self.credits.as_ref()
    }

    /// Returns the service time of a packet.
    #[inline(always)]
    pub fn service(&self, size: u32) -> Span {
        // It fits: 64 KiB at `SLOWEST` last half a second.
        Span::from_ps(self.config.tick.service_ps(self.config.rate, self.serializer, size) as i64)
    }

    /// Returns the service time of a packet where services are not rounded; it is also its contribution to the backlog
    /// while it waits.
    #[inline(always)]
    pub(crate) fn exact_service(&self, size: u32) -> Span {
        service(self.serializer, size)
    }

    /// Returns the link's delay.
    #[inline(always)]
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// Returns the bytes that last this long at the line rate.
    pub fn bytes_in(&self, span: Span) -> Bytes {
        self.serializer.bytes_in(span.unsigned_ps())
    }

    /// Returns whether the link has random losses.
    #[inline(always)]
    pub fn loses_some(&self) -> bool {
        self.loses
    }

    /// Returns whether the link loses this packet, by a random decision of its own. [`crate::Losses`] includes bursts.
    #[inline]
    pub(crate) fn loses(&self, salt: u64, packet: &Arrival) -> bool {
        self.loss != 0 && (draw(!salt, packet) >> 32) < self.loss
    }
}

impl PhantomParams {
    fn new(phantom: &Phantom, rate: Rate) -> Result<Self, PortError> {
        if phantom.drain.is_zero() || phantom.drain > Frac::ONE {
            return Err(PortError::Drain { drain: phantom.drain });
        }
        let drain = rate.scaled(phantom.drain);
        if drain < SLOWEST {
            return Err(PortError::TooSlow { rate: drain });
        }
        let serializer = PrecomputedRate::new(drain);
        let size = long_service(serializer, phantom.size);
        if size > MAX {
            return Err(PortError::TooLong { bytes: phantom.size, rate: drain });
        }
        Ok(Self { serializer, size, ecn: marker(&phantom.ecn, drain, serializer)? })
    }
}

fn marker(ecn: &Ecn, rate: Rate, serializer: PrecomputedRate) -> Result<Marker, PortError> {
    if ecn.min > ecn.max {
        return Err(PortError::ThresholdsCrossed { min: ecn.min, max: ecn.max });
    }
    let max = long_service(serializer, ecn.max);
    if max > MAX {
        return Err(PortError::TooLong { bytes: ecn.max, rate });
    }
    Ok(Marker::new(long_service(serializer, ecn.min), max, ecn.max_probability))
}

/// The state of a phantom queue: the time at which it would be empty. Drained lazily, no timer.
#[derive(Clone, Copy, Default, Debug)]
pub struct PhantomQueue {
    empty_at: Time,
}

impl PhantomQueue {
    /// Adds a packet. Returns whether the occupancy that it found requires a mark.
    #[inline]
    pub(crate) fn add(&mut self, params: &PhantomParams, salt: u64, packet: &Arrival) -> bool {
        let backlog = self.empty_at.saturating_since(packet.now);
        let grown = (backlog + service(params.serializer, packet.size)).min(params.size);
        self.empty_at = packet.now + grown;
        params.ecn.marks(backlog, || draw(salt ^ 0x5048_414e_544f_4d00, packet))
    }

    /// Returns whether its occupancy at `packet.now` requires a mark.
    #[inline]
    pub(crate) fn requires_mark(self, params: &PhantomParams, salt: u64, packet: &Arrival) -> bool {
        let backlog = self.empty_at.saturating_since(packet.now);
        params.ecn.marks(backlog, || draw(salt ^ 0x5048_414e_544f_4d00, packet))
    }

    /// Returns its occupancy at a time.
    pub fn occupancy(self, params: &PortParams, now: Time) -> Bytes {
        let backlog = self.empty_at.saturating_since(now);
        params.phantom.as_ref().map_or(Bytes::ZERO, |phantom| phantom.serializer.bytes_in(backlog.unsigned_ps()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_values_are_rejected() {
        let refusal = |config: PortConfig| PortParams::new(&config).err();
        let phantom = |drain| {
            let ecn = Ecn { min: Bytes::ZERO, max: Bytes::new(10), max_probability: Frac::ONE };
            Some(Phantom { size: Bytes::new(10), drain, ecn })
        };
        let port = PortConfig::new(SLOWEST, Span::from_us(1));
        assert_eq!(refusal(port), None);
        let trims = |header, control_priority| {
            let trim = Some(Trim { header, control: Bytes::new(1_000) });
            refusal(PortConfig { control_priority, trim, ..port })
        };
        assert_eq!(
            [trims(0, true), trims(64, false), trims(64, true)],
            [Some(PortError::Trim), Some(PortError::Trim), None]
        );
        assert_eq!(refusal(PortConfig { rate: Rate::ZERO, ..port }), Some(PortError::TooSlow { rate: Rate::ZERO }));
        let hundred = PortConfig { rate: Rate::from_gbps(100), ..port };
        assert_eq!(refusal(PortConfig { phantom: phantom(Frac::millionths(11)), ..hundred }), None);
        for (config, bps) in [(port, 0), (hundred, 93)] {
            let slow = PortConfig { phantom: phantom(Frac::from_bits(4)), ..config };
            assert_eq!(refusal(slow), Some(PortError::TooSlow { rate: Rate::from_bps(bps) }));
        }
    }

    /// A packet of 1048 B counts as 83.84 ns where it waits, and lasts 83 ns.
    #[test]
    fn ticks_shorten_services_and_not_queues() {
        let tick = Tick::short(Span::from_ns(1));
        let port = PortConfig { tick, ..PortConfig::new(Rate::from_gbps(100), Span::from_us(1)) };
        assert!(!port.is_plain() && !PortConfig { control_priority: true, ..port }.is_plain_but_for_order());
        let params = PortParams::new(&port).unwrap();
        assert_eq!([1_048, 60].map(|size| params.service(size)), [83, 4].map(Span::from_ns));
        assert_eq!(params.exact_service(1_048), Span::from_ps(83_840));
        let packet = Arrival {
            now: Time::from_ns(5),
            size: 1_048,
            ecn_capable: true,
            control: false,
            credit: false,
            expendable: false,
            identity: 1,
        };
        let mut plain = crate::PlainPort::default();
        let passes = [(); 2].map(|()| plain.enqueue(&params, 7, &packet).map(|it| it.arrives));
        assert_eq!(passes, [1_088, 1_171].map(|ns| Some(Time::from_ns(ns))));
    }
}
