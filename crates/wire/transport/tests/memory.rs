//! Resources left behind by connections in a process that runs nothing else.

use proto::identity::Trust;
use testing::{DEFAULT_TIMEOUT, eventually};

mod ends;

use ends::{client, config, listen, wait};

/// Returns the resident memory of this process, in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Returns the number of open files and sockets of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A thousand connections are opened and dropped: before admission, with a stream that has begun, with bytes in flight.
/// Nothing of them remains, and the next one is served as the first.
#[test]
fn a_thousand_connections_leave_nothing() {
    let config = config(1);
    let listener = listen(&config);
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    let endpoint = client(&config);
    let mut resident_sizes = Vec::new();
    for turn in 0..1_000 {
        wait(async {
            let connection = endpoint.connect(address, trust, None).await.unwrap();
            let incoming = listener.accept().await.unwrap();
            if turn % 4 == 0 {
                return;
            }
            let admitted = incoming.admit().unwrap();
            let (mut send, receive) = connection.open().await.unwrap();
            send.write_all(&vec![1; 100 << (turn % 10)]).await.unwrap();
            if turn % 4 == 1 {
                drop((connection, send, receive));
                let mut stream = admitted.accept_stream().await.map(|stream| stream.receive);
                while let Ok(stream) = &mut stream
                    && stream.read(&mut [0; 1000]).await.is_ok_and(|count| count > 0)
                {}
            }
        });
        if turn % 250 == 249 {
            resident_sizes.push(resident());
        }
    }
    let grown = resident_sizes[3].saturating_sub(resident_sizes[1]);
    assert!(grown < 8 << 20, "{grown} bytes more after 500 connections more: {resident_sizes:?}");
    wait(async {
        let connection = endpoint.connect(address, trust, None).await.unwrap();
        let admitted = listener.accept().await.unwrap().admit().unwrap();
        let mut send = connection.open_one_way().await.unwrap();
        send.write_all(b"the last").await.unwrap();
        send.finish().unwrap();
        let mut stream = admitted.accept_stream().await.unwrap().receive;
        assert_eq!(stream.read_to_end(100).await.unwrap(), b"the last");
    });

    // Connections with ports of their own: the ports are closed once their connections are over.
    let before = descriptors();
    for _ in 0..100 {
        let port = endpoint.reserve("127.0.0.1:0".parse().unwrap()).unwrap();
        drop(wait(endpoint.connect_from(port, config.settings.clone(), address, trust)).unwrap());
    }
    eventually(DEFAULT_TIMEOUT, &format!("no more than {before} descriptors are open"), || descriptors() <= before);
}
