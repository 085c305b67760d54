//! Two endpoints over this machine's loopback.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laws::{Fixed, Law, PathInfo, fixed};
use proto::closed::{CloseCode, Closed};
use proto::connection::Liveness;
use proto::identity::Trust;
use proto::secret::Secret;
use proto::settings::Settings;
use testing::{DEFAULT_TIMEOUT, eventually};
use transport::Error;

mod ends;

use ends::{client, config, listen, wait};

fn byte(at: usize) -> u8 {
    (at / 3 + at * 7) as u8
}

#[test]
fn bytes_cross_on_one_path_and_on_several() {
    for paths in [1, 4] {
        let config = config(paths);
        let listener = listen(&config);
        let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
        let data: Vec<u8> = (0..20_000_000).map(byte).collect();
        let expected = data.clone();
        let listening = std::thread::spawn(move || {
            wait(async {
                let connection = listener.accept().await.unwrap().admit().unwrap();
                let mut stream = connection.accept_stream().await.unwrap();
                assert_eq!(stream.receive.read_to_end(usize::MAX).await.unwrap(), expected);
                let mut back = stream.send.unwrap();
                back.write_all(b"thanks").await.unwrap();
                back.finish().unwrap();
                back.delivered().await.unwrap();
            });
        });
        let client = client(&config);
        wait(async {
            let connection = client.connect(address, trust, None).await.unwrap();
            let (mut send, mut receive) = connection.open().await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            send.delivered().await.unwrap();
            assert_eq!(receive.read_to_end(100).await.unwrap(), b"thanks");
            // Its datagrams arrived coalesced, with their codepoints.
            assert!(connection.paths().iter().all(|path| path.ecn), "{:?}", connection.paths());
            let open = connection.paths().iter().filter(|path| path.is_open).count();
            assert_eq!(open, usize::from(paths), "{:?}", connection.paths());
            // The listener closes when it is notified that all was read.
            assert!(matches!(connection.closed().await, Closed::ByPeer { code: CloseCode::NONE, .. }));
        });
        listening.join().unwrap();
    }
}

/// A live peer answers every probe; a probe of a closed connection only reports that. Both ends derive one resumption
/// secret.
#[test]
fn a_probe_is_answered_while_a_connection_lasts() {
    let config = config(2);
    let listener = listen(&config);
    let trust = Trust::Fingerprint(config.identity.fingerprint());
    let (id, secret) = ([1; 8], Secret::new([2; 16]));
    let client = client(&config);
    let connection = wait(client.connect(listener.address(), trust, Some((id, secret.clone())))).unwrap();
    let accepted = wait(listener.accept()).unwrap().admit().unwrap();
    for _ in 0..3 {
        assert_eq!(wait(accepted.probe()).unwrap(), Liveness::Alive);
        assert_eq!(wait(connection.probe()).unwrap(), Liveness::Alive);
    }
    let resumption = accepted.resumption(&secret).unwrap();
    assert!(resumption != secret && Some(resumption) == connection.resumption(&secret));
    connection.close(CloseCode::NONE, "");
    assert!(matches!(wait(connection.probe()), Err(Error::Closed(Closed::Locally { .. }))));
    wait(accepted.closed());
    assert!(matches!(wait(accepted.probe()), Err(Error::Closed(Closed::ByPeer { .. }))));
}

/// Packets are as long as both ends allow, and their batches as long as UDP allows, with any limit of one end.
#[test]
fn long_packets_cross_and_are_counted() {
    let mut config = config(1);
    // Fits into the sockets' buffers: nothing is lost.
    let window = [("window", laws::catalog::ParamValue::Bytes(units::Bytes::new(100_000)))];
    let law = move |path: &PathInfo| laws::catalog::build(laws::catalog::LawKind::Fixed, path, &window).unwrap();
    config.settings.law = Arc::new(law);
    config.settings.max_packet = 65_527;
    let listener = listen(&config);
    config.settings.max_packet = 9_000;
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let total = 50_000_000;
    let listening = std::thread::spawn(move || {
        wait(async {
            let connection = listener.accept().await.unwrap().admit().unwrap();
            for _ in 0..2 {
                let mut stream = connection.accept_stream().await.unwrap().receive;
                assert_eq!(stream.read_to_end(total).await.unwrap().len(), total);
            }
            // The client closes when it is notified that all was read.
            let mut thanks = connection.open_message(1).await.unwrap();
            thanks.write_all(b"!").await.unwrap();
            connection.closed().await;
        });
    });
    let client = client(&config);
    wait(async {
        let connection = client.connect(address, trust, None).await.unwrap();
        // The packet size is probed during the first message, and the second one uses long packets.
        let mut before = 0;
        for _ in 0..2 {
            before = connection.stats().packets_sent;
            let mut stream = connection.open_message(total as u64).await.unwrap();
            let mut rest = total;
            while rest > 0 {
                rest -= stream.write(&vec![1; rest.min(1 << 20)]).await.unwrap();
                assert!(connection.unacked(stream.id()) <= (total - rest) as u64);
            }
            stream.delivered().await.unwrap();
            assert_eq!(connection.unacked(stream.id()), 0);
        }
        assert_eq!(connection.accept_stream().await.unwrap().receive.read_to_end(1).await.unwrap(), b"!");
        let (paths, stats) = (connection.paths(), connection.stats());
        assert_eq!(paths[0].packet_size, 9_000, "{paths:?}");
        assert!(
            paths[0].acked.get() >= 2 * total as u64 && paths[0].packets >= stats.packets_sent,
            "{paths:?} {stats:?}"
        );
        assert!(stats.packets_sent - before < total as u64 / 8_000, "{before} {stats:?}");
    });
    client.shut_down(CloseCode::NONE, "");
    listening.join().unwrap();
}

#[test]
fn a_reset_is_reported_despite_unread_bytes() {
    let config = config(1);
    let listener = listen(&config);
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let listening = std::thread::spawn(move || {
        wait(async {
            let connection = listener.accept().await.unwrap().admit().unwrap();
            // A stream that ends is read to its end, also after this wait.
            let mut ends = connection.accept_stream().await.unwrap().receive;
            let mut part = [0; 3];
            assert_eq!(ends.read(&mut part).await.unwrap(), 3);
            ends.until_reset().await.unwrap();
            assert_eq!(ends.read(&mut part).await.unwrap(), 0);
            // A stream that is reset reports so, even if its data are not read.
            let both = connection.accept_stream().await.unwrap();
            let (mut back, mut receive) = (both.send.unwrap(), both.receive);
            assert_eq!(receive.read(&mut part[..1]).await.unwrap(), 1);
            back.write_all(b"!").await.unwrap();
            let reset = receive.until_reset().await.unwrap_err();
            assert!(matches!(reset, Error::Read(proto::streams::ReadError::Reset { code: 7 })), "{reset}");
        });
    });
    let client = client(&config);
    wait(async {
        let connection = client.connect(address, trust, None).await.unwrap();
        let (mut ends, _) = connection.open().await.unwrap();
        ends.write_all(b"abc").await.unwrap();
        ends.finish().unwrap();
        let (mut send, mut receive) = connection.open().await.unwrap();
        send.write_all(b"many bytes").await.unwrap();
        assert_eq!(receive.read(&mut [0]).await.unwrap(), 1);
        send.reset(7);
        connection.closed().await;
    });
    listening.join().unwrap();
}

#[test]
fn unknown_clients_are_refused() {
    let config = config(1);
    let listener = listen(&config);
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let listening = std::thread::spawn(move || {
        wait(async {
            let incoming = listener.accept().await.unwrap();
            assert_eq!(incoming.claim().unwrap().ticket, [1; 8]);
            assert!(incoming.proves(&Secret::new([2; 16])) && !incoming.proves(&Secret::new([3; 16])));
            incoming.refuse();
            listener
        })
    });
    let endpoint = client(&config);
    let secret = Some(([1; 8], Secret::new([2; 16])));
    // The refusal may arrive before the connection is reported as open.
    let refused = wait(async {
        match endpoint.connect(address, trust, secret).await {
            Ok(connection) => connection.admitted().await.unwrap_err(),
            Err(refused) => refused,
        }
    });
    assert!(matches!(refused, Error::Closed(Closed::ByPeer { code: CloseCode::REFUSED, .. })), "{refused}");
    let other = Trust::Fingerprint(proto::identity::Fingerprint::new([0; 32]));
    let wrong = wait(endpoint.connect(address, other, None)).err().unwrap();
    assert!(matches!(wrong, Error::Closed(Closed::Locally { .. })), "{wrong}");
    drop(listening.join().unwrap());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn a_listener_that_ends_notifies_its_peers() {
    let mut config = config(1);
    config.settings.idle = units::Span::from_s(120);
    let listener = listen(&config);
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let endpoint = client(&config);
    let begun = Instant::now();
    let connection = wait(async {
        let (connection, incoming) =
            (endpoint.connect(address, trust, None).await.unwrap(), listener.accept().await.unwrap());
        std::mem::forget(incoming.admit().unwrap());
        connection.admitted().await.unwrap();
        connection
    });
    drop(listener);
    let closed = wait(connection.closed());
    assert!(matches!(closed, Closed::ByPeer { .. }), "{closed}");
    // Long before either end times out by itself.
    assert!(begun.elapsed() < Duration::from_mins(1));
}

/// Each connection of one endpoint has a port and a law of its own, and all of its paths have ports that no other one has.
#[test]
fn connections_may_have_ports_and_settings_of_their_own() {
    let config = config(2);
    let listener = listen(&config);
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let listening = std::thread::spawn(move || {
        wait(async {
            let mut connections = Vec::new();
            for _ in 0..2 {
                connections.push(listener.accept().await.unwrap().admit().unwrap());
            }
            for connection in &connections {
                let mut stream = connection.accept_stream().await.unwrap().receive;
                assert_eq!(stream.read_to_end(10).await.unwrap(), b"hello");
            }
            for connection in connections {
                connection.closed().await;
            }
        });
    });
    let endpoint = client(&config);
    let mut ports = std::collections::BTreeSet::new();
    let connections: Vec<_> = [20_000, 50_000]
        .into_iter()
        .map(|window| {
            let law = move |path: &PathInfo| {
                let params = fixed::Params { window: units::Bytes::new(window), ..fixed::Params::for_path(path) };
                Law::Fixed(Fixed::new(path, params))
            };
            let settings = Settings { law: Arc::new(law), ..config.settings.clone() };
            let port = endpoint.reserve("127.0.0.1:0".parse().unwrap()).unwrap();
            wait(async {
                let connection = endpoint.connect_from(port, settings, address, trust).await.unwrap();
                connection.admitted().await.unwrap();
                let is_open = || connection.paths().iter().filter(|path| path.is_open).count() == 2;
                eventually(DEFAULT_TIMEOUT, "both paths are open", is_open);
                // One law for each path, with the window from this connection's settings.
                assert_eq!(connection.laws().window.get(), 2 * window);
                let mut stream = connection.open_message(5).await.unwrap();
                stream.write_all(b"hello").await.unwrap();
                stream.delivered().await.unwrap();
                connection
            })
        })
        .collect();
    for connection in &connections {
        for path in connection.paths() {
            assert!(ports.insert(path.four_tuple.socket), "a port of two connections: {:?}", connection.paths());
        }
        assert!(connection.stats().bytes_sent.get() >= 5);
    }
    assert_eq!(ports.len(), 4);
    drop(connections);
    listening.join().unwrap();
}

/// An application's announcement reaches the law: under Strait a connection with much left has weight 1, one with little
/// left, or with an unknown size and little sent, has weight 16.
#[test]
fn laws_receive_the_announced_bytes() {
    let mut config = config(1);
    let law = |path: &PathInfo| laws::catalog::build(laws::catalog::LawKind::Strait, path, &[]).unwrap();
    config.settings.law = Arc::new(law);
    config.settings.line_rate = units::Rate::from_gbps(100);
    let listener = listen(&config);
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    // The law updates the weight at the end of a round trip without a pause: after more than the first window.
    let connections = [(Some(1 << 40), 5_000_000), (Some(100_000), 50_000), (None, 50_000)];
    let listening = std::thread::spawn(move || {
        wait(async {
            for (_, bytes) in connections {
                let connection = listener.accept().await.unwrap().admit().unwrap();
                for _ in 0..2 {
                    let mut stream = connection.accept_stream().await.unwrap().receive;
                    assert_eq!(stream.read_to_end(usize::MAX).await.unwrap().len(), bytes);
                }
                connection.closed().await;
            }
        });
    });
    let client = client(&config);
    let weighs = connections.map(|(announced, bytes)| {
        wait(async {
            let connection = client.connect(address, trust, None).await.unwrap();
            connection.admitted().await.unwrap();
            connection.announce(announced);
            for _ in 0..2 {
                let mut stream = connection.open_message(bytes as u64).await.unwrap();
                stream.write_all(&vec![7; bytes]).await.unwrap();
                stream.delivered().await.unwrap();
            }
            let trace = connection.laws().trace;
            trace.iter().find(|(name, _)| *name == "weight_ppm").unwrap().1
        })
    });
    listening.join().unwrap();
    assert_eq!(weighs, [1_000_000, 16_000_000, 16_000_000]);
}
