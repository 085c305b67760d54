//! Both ends over this machine's loopback, with programs of various behaviour.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laws::{Law, NewReno, PathInfo, newreno};
use proto::closed::CloseCode;
use proto::identity::Trust;
use proto::service::Service;
use proto::settings::Settings;
use proxy::allow::Allow;
use proxy::{ConnectFailure, Destination, EntranceKind, Event, EventCallback, ProxyListener, ProxyServer, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use transport::{Config, Connection, Endpoint};

/// Flow-control window of a stream.
const WINDOW: u64 = 256 << 10;
/// A test that takes longer has failed.
const LONG: Duration = Duration::from_mins(1);

fn config() -> Config {
    let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
    let mut settings = Settings::new(Service::named("test"), Arc::new(law));
    settings.limits.max_stream_data = WINDOW;
    settings.send_buffer = WINDOW;
    settings.limits.max_streams_bidi = 1_024;
    Config::new(settings).unwrap()
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Runs a test, within a time.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { timeout(LONG, test).await.unwrap_or_else(|_| panic!("not within {LONG:?}: the test ends")) });
}

/// Events reported by both ends.
#[derive(Clone, Default)]
struct EventLog(Arc<Mutex<Vec<Event>>>);

impl EventLog {
    fn log(&self) -> EventCallback {
        let events = self.0.clone();
        Arc::new(move |event| events.lock().unwrap().push(event))
    }

    fn any(&self, is: impl Fn(&Event) -> bool) -> bool {
        self.0.lock().unwrap().iter().any(is)
    }

    /// Waits for an event; `what` describes it.
    async fn until(&self, label: &str, is: impl Fn(&Event) -> bool) {
        let begun = tokio::time::Instant::now();
        while !self.any(&is) {
            // Shorter than the time limit of the test, so that this reason is the one reported.
            assert!(begun.elapsed() < LONG / 2, "not within {:?}: {label}", LONG / 2);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A proxy server that admits any client.
struct ServerEnd {
    endpoint: Arc<Endpoint>,
    task: JoinHandle<()>,
}

impl ServerEnd {
    fn new(at: SocketAddr, config: &Config, rules: &[&str], log: EventCallback) -> Self {
        let endpoint = Arc::new(Endpoint::listen(at, config).unwrap());
        let proxy_server = ProxyServer::new(Allow::new(rules.iter().map(|rule| rule.parse().unwrap()).collect()), log);
        let listening = endpoint.clone();
        let task = tokio::spawn(async move {
            while let Some(incoming) = listening.accept().await {
                let (proxy_server, connection) = (proxy_server.clone(), incoming.admit().unwrap());
                tokio::spawn(async move { proxy_server.serve(&connection, "client").await });
            }
        });
        Self { endpoint, task }
    }

    async fn end(self) {
        let Self { endpoint, task } = self;
        task.abort();
        let _ = task.await;
        endpoint.close(CloseCode::NONE, "");
        // The socket is the endpoint's thread's, which ends once its client knows.
        if let Ok(endpoint) = Arc::try_unwrap(endpoint) {
            tokio::task::spawn_blocking(|| endpoint.shut_down(CloseCode::NONE, "")).await.unwrap();
        }
    }
}

/// Both ends.
struct ProxyPair {
    config: Config,
    server_end: ServerEnd,
    listeners: Vec<SocketAddr>,
    client_events: EventLog,
    task: JoinHandle<String>,
}

impl ProxyPair {
    fn new(rules: &[&str], kinds: Vec<EntranceKind>) -> Self {
        let (config, client_events) = (config(), EventLog::default());
        let server_end = ServerEnd::new(loopback(), &config, rules, EventLog::default().log());
        let (address, trust) = (server_end.endpoint.address(), Trust::Fingerprint(config.identity.fingerprint()));
        let listeners: Vec<ProxyListener> =
            kinds.into_iter().map(|kind| ProxyListener::open(kind, loopback()).unwrap()).collect();
        let addresses = listeners.iter().map(ProxyListener::address).collect();
        let endpoint = Arc::new(Endpoint::client(loopback(), &self::config()).unwrap());
        let dial = move || {
            let endpoint = endpoint.clone();
            async move {
                connect(&endpoint, address, trust).await.map_err(|error| ConnectFailure::Temporary(error.to_string()))
            }
        };
        let task = tokio::spawn(client(listeners, dial, client_events.log()));
        Self { config, server_end, listeners: addresses, client_events, task }
    }

    /// With SOCKS, and everything of this machine's loopback allowed.
    fn socks() -> Self {
        Self::new(&["127.0.0.0/8:*"], vec![EntranceKind::Socks])
    }

    /// Sends a request by SOCKS. Returns the connection, and the reply's code.
    async fn ask(&self, request: &[u8]) -> (TcpStream, u8) {
        let mut tcp = TcpStream::connect(self.listeners[0]).await.unwrap();
        // Both messages at once, as fast clients may send them.
        tcp.write_all(&[&[5, 1, 0], request].concat()).await.unwrap();
        let mut received = [0; 12];
        tcp.read_exact(&mut received).await.unwrap();
        assert_eq!((received[0], received[1], received[2]), (5, 0, 5));
        (tcp, received[3])
    }

    async fn open(&self, to: SocketAddr) -> TcpStream {
        let (tcp, reply) = self.ask(&to_address(to)).await;
        assert_eq!(reply, 0);
        tcp
    }

    /// A connection through the proxy, at both ends.
    async fn pair(&self) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(loopback()).await.unwrap();
        let client = self.open(listener.local_addr().unwrap()).await;
        (client, listener.accept().await.unwrap().0)
    }
}

async fn connect(endpoint: &Endpoint, address: SocketAddr, trust: Trust) -> Result<Connection, transport::Error> {
    let connection = endpoint.connect(address, trust, None).await?;
    connection.admitted().await?;
    Ok(connection)
}

/// A request for a connection.
fn to_address(to: SocketAddr) -> Vec<u8> {
    let mut request = vec![5, 1, 0];
    Destination::from(to).put(&mut request);
    request
}

fn to_name(name: &str, port: u16) -> Vec<u8> {
    [&[5, 1, 0, 3, name.len() as u8], name.as_bytes(), &port.to_be_bytes()].concat()
}

/// Echoes received data, to any number of clients.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind(loopback()).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut tcp, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut from, mut to) = tcp.split();
                tokio::io::copy(&mut from, &mut to).await.unwrap();
                to.shutdown().await.unwrap();
            });
        }
    });
    address
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at / 3 + at * 7) as u8).collect()
}

/// Sends all data and the end, while it reads all returned data.
async fn there_and_back(tcp: TcpStream, sent: Vec<u8>) -> Vec<u8> {
    let (mut from, mut to) = tcp.into_split();
    let sending = tokio::spawn(async move {
        to.write_all(&sent).await.unwrap();
        to.shutdown().await.unwrap();
        to
    });
    let mut back = Vec::new();
    from.read_to_end(&mut back).await.unwrap();
    sending.await.unwrap();
    back
}

fn reset(tcp: TcpStream) {
    socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
    drop(tcp);
}

/// Waits until the connection is reset, without reading.
async fn was_reset(tcp: &TcpStream) {
    tcp.ready(Interest::ERROR).await.unwrap();
    // Linux calls it a broken pipe if this end had received the other one's end before.
    let kind = tcp.take_error().unwrap().unwrap().kind();
    assert!(matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{kind}");
}

#[test]
fn bytes_cross_and_the_client_ends_first() {
    run(async {
        let (world, server) = (ProxyPair::socks(), echo().await);
        let sent = bytes(5_000_000);
        let back = there_and_back(world.open(server).await, sent.clone()).await;
        assert!(back == sent);
        let is_sound =
            |event: &Event| matches!(event, Event::Ended { taken: 5_000_000, given: 5_000_000, error: None, .. });
        world.client_events.until("all bytes crossed, and no trouble", is_sound).await;
    });
}

#[test]
fn the_server_may_end_first() {
    run(async {
        let world = ProxyPair::socks();
        let (mut client, mut server) = world.pair().await;
        server.write_all(b"all that I have").await.unwrap();
        server.shutdown().await.unwrap();
        let mut received = Vec::new();
        client.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, b"all that I have");
        // The other direction is open.
        client.write_all(&bytes(1_000_000)).await.unwrap();
        client.shutdown().await.unwrap();
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        assert!(received == bytes(1_000_000));
    });
}

#[test]
fn resets_cross_both_ways() {
    run(async {
        let world = ProxyPair::socks();
        let (client, server) = world.pair().await;
        reset(server);
        was_reset(&client).await;

        let (client, server) = world.pair().await;
        reset(client);
        was_reset(&server).await;

        // After one direction has ended.
        let (mut client, mut server) = world.pair().await;
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
        reset(client);
        was_reset(&server).await;

        let (mut client, mut server) = world.pair().await;
        client.shutdown().await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 0);
        reset(server);
        was_reset(&client).await;

        // While the other program does not read, with all buffers full.
        let (mut client, server) = world.pair().await;
        fill(&mut client).await;
        reset(client);
        was_reset(&server).await;

        // The same after it has ended its own direction: only the reset itself can show it.
        let (mut client, mut server) = world.pair().await;
        server.shutdown().await.unwrap();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        fill(&mut client).await;
        reset(client);
        was_reset(&server).await;
        assert!(world.client_events.any(|event| matches!(event, Event::Ended { error: Some(_), .. })));
    });
}

/// Writes until nothing moves for a second. Returns the number of bytes.
async fn fill(tcp: &mut TcpStream) -> usize {
    let (piece, mut sent) = (bytes(256 << 10), 0);
    while let Ok(written) = timeout(Duration::from_secs(1), tcp.write(&piece[sent % piece.len()..])).await {
        sent += written.unwrap();
    }
    sent
}

#[test]
fn a_program_that_reads_nothing_stops_the_other() {
    run(async {
        let world = ProxyPair::socks();
        let (mut client, mut server) = world.pair().await;
        let sent = fill(&mut client).await;
        // The stream's windows at both ends, two buffers of ours, and the buffers of four kernel sockets: 6 MB each at most
        // by Linux's defaults.
        let max_sent = 2 * WINDOW as usize + ((4 * 6) << 20);
        assert!((WINDOW as usize..max_sent).contains(&sent), "{sent}");
        // Other connections are not affected.
        let echoed = there_and_back(world.open(echo().await).await, bytes(100_000)).await;
        assert!(echoed == bytes(100_000));
        // All data arrives once it is read.
        client.shutdown().await.unwrap();
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        assert_eq!(received.len(), sent);
        assert!(received.chunks(256 << 10).all(|piece| bytes(256 << 10).starts_with(piece)));
    });
}

#[test]
fn unreachable_destinations_get_the_socks_reply() {
    run(async {
        let world = ProxyPair::new(&["127.0.0.1:*", "*:80"], vec![EntranceKind::Socks]);
        let closed = TcpListener::bind(loopback()).await.unwrap().local_addr().unwrap();
        for (request, expected) in [
            (to_address("127.0.0.2:9".parse().unwrap()), 2),
            // Any destination is allowed, except on this machine itself.
            (to_address("127.0.0.2:80".parse().unwrap()), 2),
            (to_name("127.0.0.2", 80), 2),
            (to_address(closed), 5),
            (to_name("127.0.0.1", closed.port()), 5),
            (to_name("does-not-exist.invalid", 80), 4),
            (to_name("not a name", 80), 1),
            (vec![5, 2, 0, 1, 127, 0, 0, 1, 0, 80], 7),
            (vec![5, 3, 0, 1, 0, 0, 0, 0, 0, 0], 7),
            (vec![5, 1, 0, 9, 1, 2, 3, 4, 0, 80], 8),
        ] {
            let (mut tcp, reply) = world.ask(&request).await;
            assert_eq!(reply, expected, "{request:?}");
            // And the connection ends in order.
            assert_eq!(tcp.read(&mut [0]).await.unwrap(), 0);
        }
    });
}

#[test]
fn non_socks_clients_are_disconnected() {
    run(async {
        let world = ProxyPair::socks();
        let mut tcp = TcpStream::connect(world.listeners[0]).await.unwrap();
        tcp.write_all(&[5, 1, 2]).await.unwrap();
        let mut received = Vec::new();
        tcp.read_to_end(&mut received).await.unwrap();
        assert_eq!(received, [5, 255]);
        let mut tcp = TcpStream::connect(world.listeners[0]).await.unwrap();
        tcp.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        assert_eq!(tcp.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_forward_listener_has_one_destination() {
    run(async {
        let (server, closed) = (echo().await, TcpListener::bind(loopback()).await.unwrap().local_addr().unwrap());
        let kinds = [server, closed, "127.0.0.2:1".parse().unwrap()].map(|to| EntranceKind::Forward(to.into()));
        let world = ProxyPair::new(&["127.0.0.1:*"], [kinds.to_vec(), vec![EntranceKind::Transparent]].concat());
        let tcp = TcpStream::connect(world.listeners[0]).await.unwrap();
        assert!(there_and_back(tcp, bytes(300_000)).await == bytes(300_000));
        // The connection ends without a reason.
        for (listener, why) in [(1, "Connection refused"), (2, "does not allow"), (3, "it was not redirected here")] {
            let mut tcp = TcpStream::connect(world.listeners[listener]).await.unwrap();
            assert_eq!(tcp.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
            world
                .client_events
                .until(why, |event| matches!(event, Event::Refused { message, .. } if message.contains(why)))
                .await;
        }
    });
}

#[test]
fn two_hundred_at_once() {
    run(async {
        let (world, server) = (ProxyPair::socks(), echo().await);
        let mut clients = Vec::new();
        for at in 0..200 {
            clients.push((at, world.open(server).await));
        }
        let sent = |at: usize| bytes(20_000 + at);
        let all: Vec<_> =
            clients.into_iter().map(|(at, tcp)| (at, tokio::spawn(there_and_back(tcp, sent(at))))).collect();
        for (at, back) in all {
            assert!(back.await.unwrap() == sent(at), "{at}");
        }
    });
}

#[test]
fn the_client_reconnects_to_a_restarted_server() {
    run(async {
        let server = echo().await;
        let mut world = ProxyPair::socks();
        let client = world.open(server).await;
        let at = world.server_end.endpoint.address();
        world.server_end.end().await;
        was_reset(&client).await;
        world
            .client_events
            .until("the proxy server is missed", |event| matches!(event, Event::Disconnected { .. }))
            .await;
        world.server_end = ServerEnd::new(at, &world.config, &["127.0.0.1:*"], EventLog::default().log());
        // It waits for the connection to the proxy server.
        let tcp = world.open(server).await;
        assert!(there_and_back(tcp, bytes(1_000)).await == bytes(1_000));
        assert!(!world.task.is_finished());
    });
}

#[test]
fn without_a_server_the_network_is_unreachable() {
    run(async {
        tokio::time::pause();
        let listener = ProxyListener::open(EntranceKind::Socks, loopback()).unwrap();
        let address = listener.address();
        let never = || -> Pin<Box<dyn Future<Output = Result<Connection, ConnectFailure>> + Send>> {
            Box::pin(std::future::pending())
        };
        tokio::spawn(client(vec![listener], never, EventLog::default().log()));
        let mut tcp = TcpStream::connect(address).await.unwrap();
        tcp.write_all(&[&[5, 1, 0][..], &to_name("a.example", 1)].concat()).await.unwrap();
        let mut received = Vec::new();
        tcp.read_to_end(&mut received).await.unwrap();
        assert_eq!(received[..4], [5, 0, 5, 3]);
    });
}

#[test]
fn a_permanent_failure_ends_the_client() {
    run(async {
        let events = EventLog::default();
        let attempts = std::cell::Cell::new(0);
        let dial = || {
            attempts.set(attempts.get() + 1);
            let no = if attempts.get() < 3 {
                ConnectFailure::Temporary("not yet".into())
            } else {
                ConnectFailure::Permanent("no".into())
            };
            async move { Err(no) }
        };
        assert_eq!(client(Vec::new(), dial, events.log()).await, "no");
        let again = |ms| {
            let events = &events;
            events.any(move |event| matches!(event, Event::Disconnected { again, .. } if again.as_millis() == ms))
        };
        assert!(again(250) && again(500) && !again(1_000));
    });
}
