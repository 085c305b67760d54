//! The parts of an end of a connection, by the command line.

use std::time::Duration;

use laws::on_ramp::OnRampParams;
use proto::settings::Settings;
use proto::streams::RESERVED;
use scenario::argument;
use transport::Config;
use units::Span;

use super::identity;
use super::key_log;
use super::law::SelectedLaw;
use super::log;
use super::quantity::{bytes, duration};
use super::service::CommandPair;
use crate::args::EndpointArgs;
use crate::exit::CommandFailure;

/// The longest UDP payload that fits an Ethernet packet of 1,500 bytes over IPv4.
pub(crate) const ETHERNET_PACKET: u16 = 1_472;
/// The longest UDP payload that there is: the caller decides.
pub(crate) const MAX_PACKET: u16 = 65_527;
/// Paths that a client may open.
pub(crate) const MAX_PATHS: u8 = 64;
/// The largest window of a stream, in bytes.
pub(crate) const MAX_WINDOW: u64 = 4 << 30;
/// Streams' windows that may be full at a time, for the memory of a connection.
const FULL_WINDOWS: u64 = 8;

/// The limits of an end for its peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLimits {
    /// Paths at a time.
    pub(crate) paths: u8,
    /// The longest UDP payload, in bytes, by default.
    pub(crate) packet: u16,
    /// Streams of two directions that the peer may have open.
    pub(crate) bidirectional: u64,
    /// Streams of one direction that the peer may have open.
    pub(crate) unidirectional: u64,
}

/// The parts of an end.
pub(crate) struct EndpointSpec {
    pub(crate) config: Config,
    pub(crate) law: SelectedLaw,
    /// The commands at both ends.
    pub(crate) pair: CommandPair,
    pub(crate) window: u64,
    pub(crate) idle: Duration,
    /// Writes logs as long as this end is there.
    _log: Option<qlog::Directory>,
}

impl EndpointSpec {
    /// # Errors
    /// If an argument is wrong, or there can be no identity.
    pub(crate) fn new(args: &EndpointArgs, pair: CommandPair, limits: PeerLimits) -> Result<Self, CommandFailure> {
        let law = SelectedLaw::new(args)?;
        let window = bytes("--stream-window", &args.stream_window, 64 << 10..=MAX_WINDOW)?;
        let idle = duration("--idle-timeout", &args.idle_timeout, Duration::from_secs(1)..=Duration::from_mins(10))?;
        let mut settings = Settings::new(pair.service, law.maker());
        settings.one_law = args.coupled;
        settings.key_log = key_log::from_environment()?;
        settings.idle = Span::from_ns(idle.as_nanos() as i64);
        // A client sends keep-alives often enough to detect a dead peer in time.
        settings.keep_alive = Some(Span::from_ns((idle.as_nanos() / 4) as i64));
        settings.limits.max_stream_data = window;
        let reserved = RESERVED.saturating_mul(limits.bidirectional + limits.unidirectional);
        settings.limits.max_data = window.saturating_mul(FULL_WINDOWS).saturating_add(reserved);
        settings.limits.max_streams_bidi = limits.bidirectional;
        settings.limits.max_streams_uni = limits.unidirectional;
        settings.send_buffer = window;
        settings.max_datagram = 0;
        (settings.paths, settings.max_packet) = (limits.paths, args.max_udp_payload.unwrap_or(limits.packet));
        settings.coding =
            args.coding.parse().map_err(|error| CommandFailure::Input(format!("error: --coding: {error}")))?;
        settings.on_ramp = args.on_ramp.as_deref().map(on_ramp).transpose()?;
        if let Some(text) = &args.line_rate {
            settings.line_rate = argument::rate("--line-rate", text)?;
        }
        let log = args.qlog.as_deref().map(log::open).transpose()?;
        settings.observe = log.as_ref().map(qlog::Directory::observer);
        let seed = identity::seed(args.identity.as_deref())?;
        let config = Config::with_identity(settings, &seed).map_err(|error| CommandFailure::Run(error.into()))?;
        Ok(Self { config, law, pair, window, idle, _log: log })
    }
}

/// The threshold of `--on-ramp`; the weight is the paper's.
fn on_ramp(text: &str) -> Result<OnRampParams, CommandFailure> {
    let known = argument::span("--on-ramp", text).ok();
    let threshold = known.filter(|it| (Span::from_us(1)..=Span::from_s(10)).contains(it)).ok_or_else(|| {
        CommandFailure::Input(format!("error: --on-ramp {text}: expected 1us to 10s, with a unit, as in 2ms or 500us"))
    })?;
    Ok(OnRampParams { threshold, gain: OnRampParams::GAIN, strawman: false })
}
