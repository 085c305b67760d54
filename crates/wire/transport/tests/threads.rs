//! A listener with two threads: the kernel selects the thread for each datagram, without an effect on connections.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use proto::closed::{CloseCode, Closed};
use proto::identity::Trust;
use proto::secret::Secret;
use testing::{DEFAULT_TIMEOUT, eventually};
use transport::{Config, Connection, Endpoint, Error};

mod ends;

use ends::{anywhere, client, wait};

/// Number of clients, so that each thread has some: all have the same one of two with a probability of 2^-31.
const CLIENTS: usize = 32;

fn config(paths: u8) -> Config {
    let mut config = ends::config(paths);
    config.threads = 2;
    config
}

fn listen(config: &Config) -> (Endpoint, SocketAddr, Trust) {
    let listener = ends::listen(config);
    let (address, trust) = (listener.address(), Trust::Fingerprint(config.identity.fingerprint()));
    (listener, address, trust)
}

/// Sends the data received on one stream back.
async fn echo(connection: &Connection) {
    let stream = connection.accept_stream().await.unwrap();
    let (mut receive, mut send) = (stream.receive, stream.send.unwrap());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match receive.read(&mut buffer).await.unwrap() {
            0 => break,
            count => send.write_all(&buffer[..count]).await.unwrap(),
        }
    }
    send.finish().unwrap();
    // The client closes when it has read everything.
    let _ = send.delivered().await;
}

/// Admits `count` connections, and echoes one stream of each. Returns the numbers of their threads.
fn echoes(listener: Endpoint, count: usize) -> JoinHandle<Vec<usize>> {
    std::thread::spawn(move || {
        let accept = || wait(async { listener.accept().await.unwrap().admit().unwrap() });
        let serve = |_| {
            let connection = accept();
            let thread = connection.thread();
            (thread, std::thread::spawn(move || wait(echo(&connection))))
        };
        let served: Vec<_> = (0..count).map(serve).collect();
        let thread = |(thread, served): (usize, JoinHandle<()>)| {
            served.join().unwrap();
            thread
        };
        served.into_iter().map(thread).collect()
    })
}

/// Sends bytes and gets them back.
async fn there_and_back(connection: &Connection, data: &[u8]) {
    let (mut send, mut receive) = connection.open().await.unwrap();
    send.write_all(data).await.unwrap();
    send.finish().unwrap();
    assert!(receive.read_to_end(data.len()).await.unwrap() == data, "other bytes came back");
}

#[test]
fn connections_are_spread_over_threads() {
    let config = config(1);
    let (listener, address, trust) = listen(&config);
    let listening = echoes(listener, CLIENTS);
    let clients: Vec<_> = (0..CLIENTS as u8)
        .map(|of| {
            let config = config.clone();
            std::thread::spawn(move || {
                let endpoint = client(&config);
                wait(async {
                    let connection = endpoint.connect(address, trust, None).await.unwrap();
                    there_and_back(&connection, &vec![of; 300_000]).await;
                });
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    let threads = listening.join().unwrap();
    assert_eq!(threads.iter().collect::<BTreeSet<_>>(), BTreeSet::from([&0, &1]), "{threads:?}");
}

/// Ports of further paths lead to either thread, and their datagrams to the connection with their codepoints.
#[test]
fn all_paths_of_a_connection_lead_to_it() {
    const CONNECTIONS: usize = 8;
    let config = config(4);
    let (listener, address, trust) = listen(&config);
    let listening = echoes(listener, CONNECTIONS);
    for _ in 0..CONNECTIONS {
        let endpoint = client(&config);
        wait(async {
            let connection = endpoint.connect(address, trust, None).await.unwrap();
            connection.admitted().await.unwrap();
            let open = || connection.paths().iter().filter(|path| path.is_open).count();
            eventually(DEFAULT_TIMEOUT, "four paths are open", || open() == 4);
            there_and_back(&connection, &vec![1; 2_000_000]).await;
            let paths = connection.paths();
            assert!(paths.len() == 4 && paths.iter().all(|path| path.is_open && path.ecn), "{paths:?}");
            assert!(paths.iter().filter(|path| path.acked.get() > 0).count() > 1, "{paths:?}");
        });
    }
    listening.join().unwrap();
}

/// Carries datagrams between one client and a listener, to which they appear to come from a port that may change.
struct Nat {
    inside: UdpSocket,
    outside: Mutex<Arc<UdpSocket>>,
    listener: SocketAddr,
    client: Mutex<Option<SocketAddr>>,
    ends: AtomicBool,
}

/// Interval at which a thread checks whether it should end.
const LOOK: Duration = Duration::from_millis(50);

impl Nat {
    fn new(listener: SocketAddr) -> Arc<Self> {
        let socket = || UdpSocket::bind(anywhere()).unwrap();
        let (inside, outside) = (socket(), Mutex::new(Arc::new(socket())));
        inside.set_read_timeout(Some(LOOK)).unwrap();
        let nat = Arc::new(Self { inside, outside, listener, client: Mutex::new(None), ends: AtomicBool::new(false) });
        nat.rebind();
        let outwards = nat.clone();
        std::thread::spawn(move || {
            let mut datagram = [0; 2_000];
            while !outwards.ends.load(Ordering::Relaxed) {
                let Ok((len, from)) = outwards.inside.recv_from(&mut datagram) else { continue };
                *outwards.client.lock().unwrap() = Some(from);
                let outside = outwards.outside.lock().unwrap().clone();
                outside.send_to(&datagram[..len], outwards.listener).unwrap();
            }
        });
        nat
    }

    /// Continues from another port. Datagrams to the old one are lost. Returns the new one's address.
    fn rebind(self: &Arc<Self>) -> SocketAddr {
        let socket = Arc::new(UdpSocket::bind(anywhere()).unwrap());
        socket.set_read_timeout(Some(LOOK)).unwrap();
        *self.outside.lock().unwrap() = socket.clone();
        let (address, nat) = (socket.local_addr().unwrap(), self.clone());
        std::thread::spawn(move || {
            let mut datagram = [0; 2_000];
            while !nat.ends.load(Ordering::Relaxed) && Arc::ptr_eq(&socket, &nat.outside.lock().unwrap()) {
                if let (Ok((len, _)), Some(client)) = (socket.recv_from(&mut datagram), *nat.client.lock().unwrap()) {
                    nat.inside.send_to(&datagram[..len], client).unwrap();
                }
            }
        });
        address
    }
}

/// A NAT that loses its state makes the client appear at other ports; some of them lead to the other thread.
#[test]
fn a_client_whose_port_changes_keeps_its_connection() {
    let config = config(1);
    let (listener, address, trust) = listen(&config);
    let nat = Nat::new(address);
    let endpoint = client(&config);
    wait(async {
        let connection = endpoint.connect(nat.inside.local_addr().unwrap(), trust, None).await.unwrap();
        let accepted = listener.accept().await.unwrap().admit().unwrap();
        for round in 0..12 {
            let (port, data) = (nat.rebind(), vec![round; 50_000]);
            let (mut send, mut receive) = connection.open().await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            let mut stream = accepted.accept_stream().await.unwrap();
            assert_eq!(stream.receive.read_to_end(50_000).await.unwrap(), data);
            // The listener answers there only once it has moved.
            let back = stream.send.as_mut().unwrap();
            back.write_all(&data).await.unwrap();
            back.finish().unwrap();
            assert_eq!(receive.read_to_end(50_000).await.unwrap(), data);
            assert_eq!(accepted.paths()[0].four_tuple.remote, port);
        }
    });
    nat.ends.store(true, Ordering::Relaxed);
}

/// Endpoints of clients that lead to different threads. Datagrams from one address always go to the same thread.
fn apart(listener: &Endpoint, config: &Config, trust: Trust) -> [Endpoint; 2] {
    let thread_of = |endpoint: &Endpoint| {
        wait(async {
            let _connection = endpoint.connect(listener.address(), trust, None).await.unwrap();
            listener.accept().await.unwrap().admit().unwrap().thread()
        })
    };
    let mut found = [None, None];
    for _ in 0..CLIENTS {
        let endpoint = client(config);
        let thread = thread_of(&endpoint);
        assert_eq!(thread_of(&endpoint), thread);
        found[thread] = Some(endpoint);
    }
    found.map(|endpoint| endpoint.expect("clients at either thread"))
}

/// Two clients at different threads have one ticket. The accept queue returns both, one after the other.
#[test]
fn one_ticket_admits_one_of_two_concurrent_clients() {
    let config = config(1);
    let (listener, address, trust) = listen(&config);
    let endpoints = apart(&listener, &config, trust);
    for round in 0..20 {
        let (ticket, secret) = ([round; 8], Secret::new([round; 16]));
        let admitted: usize = std::thread::scope(|scope| {
            let calls = endpoints.each_ref().map(|endpoint| {
                let secret = secret.clone();
                scope.spawn(move || {
                    wait(async {
                        // The refusal may arrive before the connection is reported as open.
                        let called = match endpoint.connect(address, trust, Some((ticket, secret))).await {
                            Ok(connection) => connection.admitted().await.map(|()| connection),
                            Err(error) => Err(error),
                        };
                        match called {
                            Ok(_) => 1,
                            Err(Error::Closed(Closed::ByPeer { code: CloseCode::REFUSED, .. })) => 0,
                            Err(error) => panic!("{error}"),
                        }
                    })
                })
            });
            let (mut is_used, mut connections) = (false, Vec::new());
            for _ in 0..2 {
                let incoming = wait(listener.accept()).unwrap();
                let is_good = incoming.claim().unwrap().ticket == ticket && incoming.proves(&secret);
                assert!(is_good, "a client without the ticket");
                if std::mem::replace(&mut is_used, true) {
                    incoming.refuse();
                } else {
                    connections.push(incoming.admit().unwrap());
                }
            }
            calls.into_iter().map(|call| call.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1);
    }
}

/// All threads end with the endpoint, and notify their peers.
#[test]
fn a_listener_that_ends_notifies_peers_on_all_threads() {
    let mut config = config(1);
    // A client that receives no notice times out, and ends with another reason.
    (config.settings.idle, config.settings.keep_alive) = (units::Span::from_s(1), None);
    let (listener, address, trust) = listen(&config);
    let endpoints = apart(&listener, &config, trust);
    let connections = endpoints.each_ref().map(|endpoint| {
        wait(async {
            let connection = endpoint.connect(address, trust, None).await.unwrap();
            std::mem::forget(listener.accept().await.unwrap().admit().unwrap());
            connection.admitted().await.unwrap();
            connection
        })
    });
    listener.shut_down(CloseCode(0x1000), "enough");
    for connection in connections {
        let closed = wait(connection.closed());
        assert!(matches!(closed, Closed::ByPeer { code: CloseCode(0x1000), .. }), "{closed}");
    }
}

#[test]
fn the_address_is_the_listeners_alone() {
    let mut config = config(1);
    let (listener, address, _) = listen(&config);
    for threads in [1, 2] {
        config.threads = threads;
        let error = Endpoint::listen(address, &config).err().expect("an address in use");
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse, "{error}");
    }
    drop(listener);
    for threads in [0, 65] {
        config.threads = threads;
        let error = Endpoint::listen(anywhere(), &config).err().expect("no such number");
        assert_eq!(error.to_string(), format!("a listener of {threads} threads: there may be 1 to 64"));
    }
}

/// Any thread could get the answer to a packet sent from the shared address; a separate port belongs to one thread.
#[test]
fn a_listener_with_threads_connects_from_separate_ports() {
    let config = config(3);
    let (listener, address, trust) = listen(&config);
    let calling = Endpoint::listen(anywhere(), &config).unwrap();
    assert!(matches!(wait(calling.connect(address, trust, None)).err(), Some(Error::Threads)));
    let listening = echoes(listener, 4);
    for _ in 0..4 {
        let port = calling.reserve(anywhere()).unwrap();
        wait(async {
            let connection = calling.connect_from(port, config.settings.clone(), address, trust).await.unwrap();
            there_and_back(&connection, &vec![1; 100_000]).await;
        });
    }
    listening.join().unwrap();
}
