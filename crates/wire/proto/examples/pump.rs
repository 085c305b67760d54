//! Pumps bytes from one endpoint into another without a network, for profilers: `pump [MEBIBYTES] [PACKET] [CODING]`.

use std::net::SocketAddr;
use std::sync::Arc;

use flow::Codepoint;
use laws::{Fixed, Law, PathInfo, fixed};
use proto::connection::Event;
use proto::endpoint::{ConnectionHandle, Endpoint, EndpointConfig, Received};
use proto::four_tuple::FourTuple;
use proto::identity::{Identity, Trust};
use proto::service::Service;
use proto::settings::Settings;
use proto::side::Side;
use units::{Bytes, Span, Time};

fn four_tuple(port: u16) -> FourTuple {
    FourTuple { socket: 0, remote: SocketAddr::from(([127, 0, 0, 1], port)) }
}

/// Passes all pending datagrams of one endpoint, at this port, to the other one.
fn carry(
    (from, handle, port): (&mut Endpoint, ConnectionHandle, u16),
    to: &mut Endpoint,
    now: Time,
    out: &mut Vec<u8>,
) -> Option<ConnectionHandle> {
    let mut new = None;
    loop {
        out.clear();
        let Some(transmit) = from.poll_transmit(now, handle, 40, out) else { return new };
        for datagram in out.chunks_mut(transmit.segment) {
            if let Received::New(handle) = to.on_datagram(now, four_tuple(port), Codepoint::Ect0, datagram) {
                new = Some(handle);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let total: u64 = args.first().map_or(Ok(64), |text| text.parse())? << 20;
    let law = |path: &PathInfo| {
        let params = fixed::Params { window: Bytes::new(1 << 20), ..fixed::Params::for_path(path) };
        Law::Fixed(Fixed::new(path, params))
    };
    let mut settings = Settings::new(Service::named("pump"), Arc::new(law));
    settings.max_packet = args.get(1).map_or(Ok(1_400), |text| text.parse())?;
    settings.coding = args.get(2).map_or("off", |text| text).parse()?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let endpoint = |seed: u8, side| {
        let identity = Identity::from_seed(&provider, &[seed; 32])?;
        let config = EndpointConfig { settings: settings.clone(), provider: provider.clone(), identity };
        Ok::<_, Box<dyn std::error::Error>>(Endpoint::new(Time::ZERO, config, side)?)
    };
    let (mut client, mut listener) = (endpoint(1, Side::Client)?, endpoint(2, Side::Listener)?);
    let ours = client.connect(Time::ZERO, four_tuple(2), Trust::Anyone, None)?;
    let (mut theirs, mut now, mut out) = (None, Time::ZERO, Vec::new());
    let part = vec![7; 1 << 16];
    let (mut written, mut read, mut stream, mut incoming, mut buffer) = (0, 0, None, None, vec![0; 1 << 16]);
    while read < total {
        now += Span::from_us(20);
        theirs = carry((&mut client, ours, 1), &mut listener, now, &mut out).or(theirs);
        let Some(theirs) = theirs else { continue };
        let connection = listener.connection(theirs).ok_or("no connection")?;
        while let Some(event) = connection.poll_event() {
            if let Event::Claim(_) = event {
                connection.admit(now);
            }
        }
        if let Some(streams) = connection.streams() {
            incoming = incoming.or_else(|| streams.accept());
            while let Some(Ok(count)) = incoming.map(|stream| streams.read(stream, &mut buffer)) {
                read += count.bytes as u64;
                if count.bytes == 0 {
                    break;
                }
            }
        }
        listener.settle(theirs);
        listener.on_timer(now, theirs);
        client.on_timer(now, ours);
        carry((&mut listener, theirs, 2), &mut client, now, &mut out);
        let connection = client.connection(ours).ok_or("no connection")?;
        while connection.poll_event().is_some() {}
        if let Some(streams) = connection.streams() {
            stream = stream.or_else(|| streams.open_message(total));
            while let Some(stream) = stream.filter(|_| written < total) {
                let max_len = (total - written).min(part.len() as u64) as usize;
                let count = streams.write(stream, &part[..max_len])?;
                written += count as u64;
                if count < max_len {
                    break;
                }
            }
        }
    }
    println!("{read} bytes");
    Ok(())
}
