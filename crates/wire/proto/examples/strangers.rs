//! Processor time that a listener spends on the datagrams of a flood: `strangers [HOSTS]`. Hosts connect, 2,500 per
//! second of virtual time, follow a Retry, and fall silent. Prints nanoseconds per datagram, without the costs of the
//! hosts and a network.

use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::Codepoint;
use proto::endpoint::{Endpoint, Received};
use proto::frame::Frame;
use rustls::crypto::aws_lc_rs;
use units::Time;

#[allow(unreachable_pub, dead_code)]
#[path = "../tests/world/flood.rs"]
mod flood;

use flood::{FloodClient, client_hello, endpoint};

/// Passes a datagram to a listener. Returns the listener's answer, and the time it took.
#[allow(clippy::disallowed_methods)] // An example may take the time.
fn receive(listener: &mut Endpoint, now: Time, client: &FloodClient, mut datagram: Vec<u8>) -> (Vec<u8>, Duration) {
    let (mut reply, mut out, begun) = (Vec::new(), Vec::new(), Instant::now());
    if let Received::New(handle) = listener.on_datagram(now, client.four_tuple(), Codepoint::NotEct, &mut datagram) {
        while listener.poll_transmit(now, handle, 10, &mut out).is_some() {}
    }
    while let Some(handle) = listener.poll_evicted() {
        listener.forget(handle);
    }
    listener.poll_reply(&mut reply);
    (reply, begun.elapsed())
}

fn main() {
    let hosts: u64 = std::env::args().nth(1).map_or(20_000, |text| text.parse().expect("a number of hosts"));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let hello = client_hello(&provider);
    let (mut ping, mut part, mut complete) = (Vec::new(), Vec::new(), Vec::new());
    Frame::Ping.put(&mut ping);
    Frame::Crypto { offset: 0, data: &hello[..hello.len() - 1] }.put(&mut part);
    Frame::Crypto { offset: 0, data: &hello }.put(&mut complete);
    println!("a ClientHello has {} bytes", hello.len());
    for (name, frames) in [("a PING", &ping), ("a part of a ClientHello", &part), ("a ClientHello", &complete)] {
        let mut listener = endpoint(&provider, 1, proto::side::Side::Listener);
        let (mut first, mut second, mut count) = (Duration::ZERO, Duration::ZERO, 0);
        for number in 0..hosts {
            let (client, now) = (FloodClient::new(number % 64, number), Time::from_us(400 * number));
            // The first ones leave no slot for clients without validated addresses.
            let (retry, took) = receive(&mut listener, now, &client, client.first(&complete));
            if let Some(datagram) = client.second(&retry, frames) {
                let (_, then) = receive(&mut listener, now, &client, datagram);
                (first, second, count) = (first + took, second + then, count + 1);
            }
        }
        let each = |time: Duration| time.as_nanos() / count.max(1);
        println!("{name}: {} ns without a token, {} ns with one", each(first), each(second));
    }
}
