//! Bodies of the fuzz targets. A test replays their corpora through the same functions.

use std::net::SocketAddr;
use std::sync::Arc;

use flow::Codepoint;
use laws::{Law, NewReno, PathInfo, newreno};
use proto::connection::Event;
use proto::endpoint::{ConnectionHandle, Endpoint, EndpointConfig, Received};
use proto::four_tuple::FourTuple;
use proto::frame::{Frame, FrameError, Frames};
use proto::header::{Header, ParsedPacket, SAMPLE};
use proto::identity::{Identity, Trust};
use proto::parameters::Parameters;
use proto::service::Service;
use proto::settings::Settings;
use proto::side::Side;
use units::Time;

#[allow(unreachable_pub, dead_code)]
#[path = "../tests/world/provider.rs"]
mod provider;

/// Checks that each packet of a datagram is within it, and that its protected part is long enough.
pub(crate) fn datagram(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(packet) = ParsedPacket::read(rest) {
        assert!(packet.number_at <= packet.len && packet.len <= rest.len());
        if matches!(packet.header, Header::Long { .. } | Header::Short { .. }) {
            assert!(packet.len - packet.number_at >= SAMPLE.end);
        }
        assert!(packet.len > 0);
        rest = &rest[packet.len..];
    }
}

/// Checks that frames that were read, written and read again are the same. An acknowledgement's ranges descend.
pub(crate) fn frames(bytes: &[u8]) {
    let read: Result<Vec<Frame>, FrameError> = Frames::new(bytes).collect();
    let Ok(frames) = read else { return };
    for frame in &frames {
        if let Frame::Ack(ack) = frame {
            let mut above = None;
            for range in ack.ranges() {
                assert!(range.first <= range.last && above.is_none_or(|above| range.last + 1 < above));
                above = Some(range.first);
            }
            assert!(ack.received().all(|(number, _)| number <= ack.newest.last));
        }
    }
    let mut rewritten = Vec::new();
    for frame in &frames {
        frame.put(&mut rewritten);
    }
    assert!(rewritten.len() <= bytes.len());
    let reread: Result<Vec<Frame>, FrameError> = Frames::new(&rewritten).collect();
    // Ranges and times keep their received encoding, which may be longer than necessary.
    assert_eq!(format!("{:?}", reread.map(plain)), format!("{:?}", Ok::<_, FrameError>(plain(frames))));
}

/// Returns the text of frames, with all contents of an acknowledgement.
fn plain(frames: Vec<Frame>) -> Vec<String> {
    let plain = |frame: Frame| match frame {
        Frame::Ack(ack) => {
            let (ranges, received): (Vec<_>, Vec<_>) = (ack.ranges().collect(), ack.received().collect());
            format!("{} {:?} {:?} {ranges:?} {received:?}", ack.path, ack.delay, ack.ecn)
        }
        frame => format!("{frame:?}"),
    };
    frames.into_iter().map(plain).collect()
}

/// Checks that parameters that were read, written and read again are the same.
pub(crate) fn parameters(bytes: &[u8]) {
    let Ok(read) = Parameters::read(bytes) else { return };
    let mut rewritten = Vec::new();
    read.put(&mut rewritten);
    assert_eq!(Parameters::read(&rewritten), Ok(read));
}

fn endpoint(seed: u8) -> Endpoint {
    let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
    let mut settings = Settings::new(Service::named("test"), Arc::new(law));
    (settings.coding, settings.paths) = (proto::blocks::CodingPolicy::Tail, 3);
    let provider = provider::provider();
    let identity = Identity::from_seed(&provider, &[seed; 32]).unwrap();
    Endpoint::new(Time::ZERO, EndpointConfig { settings, provider, identity }, Side::Listener).unwrap()
}

fn four_tuple(host: u8) -> FourTuple {
    FourTuple { socket: 0, remote: SocketAddr::from(([192, 0, 2, host], 4_433)) }
}

/// Parts of a fuzzer's input, each behind its length in a byte, or in two where the first is 255.
fn parts(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (&len, rest) = bytes.split_first()?;
        let (len, rest) = match rest.split_first() {
            Some((&more, rest)) if len == 255 => (255 + usize::from(more) * 8, rest),
            _ => (usize::from(len), rest),
        };
        let (part, rest) = rest.split_at(len.min(rest.len()));
        bytes = rest;
        Some(part)
    })
}

/// Passes the pending datagrams of an endpoint to the other one.
fn carry(
    from: &mut Endpoint,
    handle: ConnectionHandle,
    to: &mut Endpoint,
    host: u8,
    now: Time,
) -> Option<ConnectionHandle> {
    let (mut out, mut new) = (Vec::new(), None);
    for _ in 0..100 {
        out.clear();
        let Some(transmit) = from.poll_transmit(now, handle, 1, &mut out) else { break };
        let mut datagram = out[..transmit.segment].to_vec();
        if let Received::New(handle) = to.on_datagram(now, four_tuple(host), Codepoint::Ect0, &mut datagram) {
            new = Some(handle);
        }
    }
    new
}

/// Passes datagrams from unknown hosts to a listener: nothing panics, and a host that has sent little receives at most three
/// times that.
pub(crate) fn strangers(bytes: &[u8]) {
    provider::begin(1, 0);
    let mut listener = endpoint(1);
    let (mut received, mut sent) = (0, 0);
    for (at, part) in parts(bytes).enumerate().take(64) {
        let mut datagram = part.to_vec();
        received += datagram.len();
        let now = Time::from_ms(100 * at as u64);
        listener.on_datagram(now, four_tuple(7), Codepoint::NotEct, &mut datagram);
        let (handles, mut out): (Vec<ConnectionHandle>, _) = (listener.handles().collect(), Vec::new());
        for handle in handles {
            listener.on_timer(now, handle);
            while listener.poll_transmit(now, handle, 1, &mut out).is_some() {}
        }
        while listener.poll_reply(&mut out).is_some() {}
        sent += out.len();
    }
    assert!(sent <= 3 * received, "{sent} bytes for {received}");
}

/// Passes frames of a peer that has keys, each part of the input in a packet of its own: nothing panics, and no
/// connection lasts forever.
pub(crate) fn sealed(bytes: &[u8]) {
    provider::begin(1, 0);
    let (mut client, mut listener) = (endpoint(1), endpoint(2));
    let ours = client.connect(Time::ZERO, four_tuple(1), Trust::Anyone, None).unwrap();
    let mut theirs = None;
    let mut now = Time::ZERO;
    for _ in 0..4 {
        now += units::Span::from_ms(5);
        theirs = carry(&mut client, ours, &mut listener, 2, now).or(theirs);
        let Some(handle) = theirs else { return };
        while let Some(event) = listener.connection(handle).and_then(proto::connection::Connection::poll_event) {
            if let Event::Claim(_) = event {
                listener.connection(handle).unwrap().admit(now);
                listener.settle(handle);
            }
        }
        carry(&mut listener, handle, &mut client, 1, now);
    }
    let Some(theirs) = theirs else { return };
    for (at, part) in parts(bytes).enumerate().take(64) {
        now += units::Span::from_ms(20);
        for (endpoint, handle) in [(&mut client, ours), (&mut listener, theirs)] {
            endpoint.on_timer(now, handle);
            let Some(connection) = endpoint.connection(handle) else { continue };
            if let Some(streams) = connection.streams() {
                // One of each kind is in flight, so that the peer's frames can refer to it.
                if let Some(stream) = streams.open(proto::streams::Direction::Both) {
                    let _ = streams.write(stream, &[at as u8; 2_000]);
                    let _ = streams.finish(stream);
                }
                while streams.accept().is_some() {}
            }
            while connection.poll_event().is_some() {}
        }
        provider::inject_frames(part);
        if at % 2 == 0 {
            carry(&mut client, ours, &mut listener, 2, now);
            carry(&mut listener, theirs, &mut client, 1, now);
        } else {
            carry(&mut listener, theirs, &mut client, 1, now);
            carry(&mut client, ours, &mut listener, 2, now);
        }
    }
}
