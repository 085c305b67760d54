//! Settings of the transport for each flow, and the check that it supports a scenario.

use std::fmt;
use std::sync::Arc;

use fabric::LinkId;
use flow::LoadBalancing;
use laws::PathInfo;
use proto::blocks::CodingPolicy;
use proto::frame::{MAX_PARITY, Shape};
use proto::service::Service;
use proto::settings::{LawMaker, Settings};
use router::IpVersion;
use scenario::{BuiltRun, FlowClass, Run, TRANSPORT_HEADER};
use units::{Bytes, Span};

use super::ip_version;
use crate::args::EmulateArgs;
use crate::exit::CommandFailure;
use crate::transport_law::{accepted, needs};

/// Idle timeout of a connection: the transport's maximum, because connections are idle until their flow starts.
const IDLE_TIMEOUT: Span = Span::from_s(600);
/// Bytes of a UDP payload that are not frames: packet header and AEAD tag.
const TRANSPORT_HEADER_AND_SEAL: u64 = 12 + 16;
/// An acknowledgement's UDP payload: header, seal, and an ACK frame of one range with its counts.
const ACK_PAYLOAD: u32 = 12 + 16 + 20;
/// Streams' windows begin here, as TCP's buffers do in the emulator.
const MIN_WINDOW: Bytes = Bytes::new(64 << 20);

/// UDP payload of a handshake's packets (RFC 9000 §14.1).
const HANDSHAKE_PAYLOAD: u16 = 1_200;

/// Minimum UDP payload of the transport's packets with data.
const MIN_PAYLOAD: u32 = 484;

/// Returns the shortest full packet on the wire, in bytes: 512 over IPv4, 532 over IPv6.
pub(crate) const fn min_packet(version: IpVersion) -> u32 {
    MIN_PAYLOAD + ip_udp(version)
}

/// Headers of IP and of UDP.
const fn ip_udp(version: IpVersion) -> u32 {
    8 + version.header_bytes()
}

/// The longest UDP payload.
pub(super) fn packet(built: &BuiltRun, version: IpVersion) -> u16 {
    // The emulator accepts packets of at most 65,535 bytes.
    (built.setup.host.mss + built.setup.host.header - ip_udp(version)) as u16
}

/// The longest packet on the wire: of data, or of a handshake.
pub(super) fn mtu(built: &BuiltRun, version: IpVersion) -> u16 {
    packet(built, version).max(HANDSHAKE_PAYLOAD).saturating_add(ip_udp(version) as u16)
}

/// Refuses settings that the transport does not support, and more than `max_flows` flows.
pub(crate) fn refuse(run: &Run, built: &BuiltRun, max_flows: usize, args: &EmulateArgs) -> Result<(), CommandFailure> {
    let setup = &built.setup;
    let refused = |reason: String| Err(CommandFailure::Input(format!("error: the transport cannot do this: {reason}")));
    if !args.command.is_empty() {
        return refused("a command after -- brings a transport of its own; --stack narrows is for [[traffic]]".into());
    }
    for class in [FlowClass::Intra, FlowClass::Inter] {
        let Some((law, _)) = built.laws.law(class) else {
            let (scheme, law) = (&run.scheme, built.laws.name(class));
            return refused(format!(
                "the scheme `{scheme}` runs {law}, an external law, which only the simulator can run"
            ));
        };
        if let Some(needs) = needs(law) {
            return refused(format!(
                "the scheme `{}` runs {}, which needs {needs}; accepted are {}",
                run.scheme,
                law.info().title,
                accepted().join(", ")
            ));
        }
    }
    let needed = u32::from(mtu(built, ip_version(args)));
    let links = (0..setup.network.links().len() as u32).map(LinkId);
    let mtus = links.filter_map(|link| Some((link, setup.network.impairments(link)?.mtu?)));
    if let Some((link, mtu)) = mtus.min_by_key(|&(_, mtu)| mtu).filter(|&(_, mtu)| mtu < needed) {
        return refused(format!(
            "`impair.mtu` of {} is {mtu} B, and packets have up to {needed} B here, which its paths must carry",
            setup.network.link_name(link)
        ));
    }
    let flows = setup.flows.len();
    if flows > max_flows {
        return refused(format!("the scenario has {flows} flows, and at most {max_flows} are supported"));
    }
    let absolute = setup.host.on_ramp.is_some_and(|on_ramp| !on_ramp.on_queueing_delay);
    if absolute && setup.flows.iter().any(|flow| flow.on_ramp) {
        return refused(
            "`host.on_ramp` has a threshold of the whole one-way delay, and the transport, which has no synchronised clocks, \
             measures from the minimum; { threshold = \"auto\" } and { on_queueing_delay = true } are accepted"
                .into(),
        );
    }
    let code = setup.host.coding.map(|coding| coding.code).filter(|_| setup.flows.iter().any(|flow| flow.coded));
    match code {
        Some(code) if code.parity > MAX_PARITY => refused(format!(
            "`host.coding` has {} parity packets a block, and 1 to {MAX_PARITY} are accepted",
            code.parity
        )),
        Some(_) | None => Ok(()),
    }
}

/// The sizes of a flow's packets, in bytes.
#[derive(PartialEq)]
struct PacketSizes {
    payload: u32,
    header: u32,
    ack_size: u32,
}

impl fmt::Display for PacketSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { payload, header, ack_size } = self;
        write!(f, "payload {payload}, header {header}, ack_size {ack_size}")
    }
}

/// Returns warnings about values of `[host]` that differ from the transport's. With them the simulator models another
/// host.
pub(crate) fn warnings(built: &BuiltRun, version: IpVersion) -> Vec<String> {
    let host = &built.setup.host;
    let header = ip_udp(version) + TRANSPORT_HEADER;
    let simulated = PacketSizes { payload: host.mss, header: host.header, ack_size: host.ack_size };
    let real =
        PacketSizes { payload: host.mss + host.header - header, header, ack_size: ip_udp(version) + ACK_PAYLOAD };
    let mut warnings = Vec::new();
    if simulated != real {
        warnings.push(format!("[host] has {simulated}, and the transport has {real}: the simulated host differs"));
    }
    if matches!(host.path, LoadBalancing::UnoLb(_)) {
        warnings.push(
            "`host.load_balancing` is \"unolb\", and the transport re-routes a path only after two timeouts".to_owned(),
        );
    }
    warnings
}

/// Returns the settings of a host's endpoint. Incoming connections use them as they are, and carry only
/// acknowledgements back; [`flow_settings`] adapts them to outgoing ones.
pub(super) fn host_settings(built: &BuiltRun, version: IpVersion, law: LawMaker) -> Settings {
    let setup = &built.setup;
    let mut settings = Settings::new(Service::named("emulate"), law);
    let bdps = setup.flows.iter().map(|flow| {
        let path = setup.paths(flow.src, flow.dst, setup.host.mss);
        path.line_rate.bytes_in(path.base_rtt + path.longest_wait.unwrap_or(Span::ZERO))
    });
    let window = bdps.max().unwrap_or(Bytes::ZERO).times(4).max(MIN_WINDOW).get();
    (settings.limits.max_stream_data, settings.limits.max_data, settings.send_buffer) = (window, 2 * window, window);
    settings.max_datagram = 0;
    settings.max_packet = packet(built, version);
    (settings.idle, settings.keep_alive) = (IDLE_TIMEOUT, Some(IDLE_TIMEOUT.over(4)));
    settings.ack_every = setup.host.ack_every.into();
    // As in the simulator: a quarter of the base round trip, here of the shortest.
    let shortest = setup.flows.iter().map(|flow| setup.paths(flow.src, flow.dst, setup.host.mss).base_rtt).min();
    settings.ack_delay = setup.host.ack_delay.unwrap_or_else(|| shortest.unwrap_or(Span::from_ms(4)).over(4));
    settings.intra_rtt = setup.intra_rtt;
    if let LoadBalancing::UnoLb(unolb) = setup.host.path {
        (settings.paths, settings.one_law) = (unolb.subflows, !unolb.own_laws);
    }
    settings
}

/// Returns the settings of a flow's connection: its law, as the simulator makes it, and its coding.
pub(super) fn flow_settings(built: &BuiltRun, flow: usize, burst: Option<u32>, host: &Settings) -> Settings {
    let setup = &built.setup;
    let spec = setup.flows[flow];
    let paths = setup.paths(spec.src, spec.dst, setup.host.mss);
    let (plan, intra_rtt) = (built.laws.clone(), setup.intra_rtt);
    let packet = host.max_packet;
    let law: LawMaker = Arc::new(move |_| {
        // The law begins before the path's packet size is confirmed, and its first window is one of full packets.
        let mss = Bytes::new(u64::from(packet) - TRANSPORT_HEADER_AND_SEAL);
        let path_info = PathInfo { base_rtt: paths.base_rtt, intra_rtt, line_rate: paths.line_rate, mss };
        plan.make(&spec, &path_info)
    });
    let coding = setup.host.coding.filter(|_| spec.coded).map_or(CodingPolicy::Off, |coding| {
        CodingPolicy::Fixed(Shape { data: coding.code.data, parity: coding.code.parity })
    });
    let on_ramp = setup.host.on_ramp.filter(|_| spec.on_ramp).map(|on_ramp| on_ramp.params);
    let mut settings = Settings { law, coding, on_ramp, line_rate: paths.line_rate, ..host.clone() };
    if let Some(burst) = burst {
        settings.burst = Bytes::new(burst.into());
    }
    settings
}
