//! Endpoints: where connections begin.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::closed::CloseCode;
use proto::endpoint::{Authentication, EndpointConfig};
use proto::four_tuple::FourTuple;
use proto::identity::{Identity, SEED_LEN, Trust};
use proto::secret::Secret;
use proto::settings::Settings;
use proto::side::Side;
use proto::ticket::TicketId;
use rustls::crypto::{CryptoProvider, aws_lc_rs};

use crate::accept_queue::{AcceptQueue, AlpnMismatch, IncomingConnection};
use crate::clock::Clock;
use crate::connection::{Connection, Incoming};
use crate::driver::Driver;
use crate::endpoint_core::{Core, Holder, State};
use crate::error::Error;
use crate::socket::Socket;

/// Maximum wait for a socket to take the last packets, in milliseconds.
const CLOSE_TIMEOUT_MS: u32 = 500;

/// Threads of a listener, at most.
const MAX_THREADS: u8 = 64;

/// Configuration of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its protocol settings.
    pub settings: Settings,
    /// Its identity.
    pub identity: Identity,
    /// Threads of a listener, 1 to 64; 1 by default. Clients are spread over them, and each connection is served by
    /// one. A client has one thread.
    pub threads: u8,
    provider: Arc<CryptoProvider>,
}

/// Returns unpredictable bytes, as for a secret or an identity's seed.
///
/// # Errors
/// If this machine provides no random numbers.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| io::Error::other("this machine provides no random numbers"))?;
    Ok(bytes)
}

impl Config {
    /// Returns a configuration with these settings, and a new identity.
    ///
    /// # Errors
    /// If this machine provides no random numbers.
    pub fn new(settings: Settings) -> io::Result<Self> {
        Self::with_identity(settings, &random::<SEED_LEN>()?)
    }

    /// Returns a configuration with these settings, and the identity of a seed.
    ///
    /// # Errors
    /// If there can be no such identity.
    pub fn with_identity(settings: Settings, seed: &[u8; SEED_LEN]) -> io::Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let identity = Identity::from_seed(&provider, seed).map_err(io::Error::other)?;
        Ok(Self { settings, identity, threads: 1, provider })
    }
}

/// A UDP port of an endpoint that is for one connection alone: [`Endpoint::reserve`].
#[derive(Debug)]
pub struct ReservedPort {
    socket: u16,
}

/// One UDP port and its threads, or several ports of a client. When it is dropped, its connections are closed. It lives
/// for 100 days and then closes them with [`CloseCode::AGE`]; create another one if it is needed for longer.
pub struct Endpoint {
    /// By thread. A client has one.
    cores: Arc<[Arc<Core>]>,
    accept_queue: Arc<AcceptQueue>,
    address: SocketAddr,
    paths: u8,
    threads: Vec<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens at an address. Port 0 is any that is free.
    ///
    /// # Errors
    /// If the address cannot be used, or the machine provides no thread or random numbers, or cannot spread clients
    /// over several threads.
    pub fn listen(address: SocketAddr, config: &Config) -> io::Result<Self> {
        Self::listen_by(Clock::new(), address, config)
    }

    fn listen_by(clock: Clock, address: SocketAddr, config: &Config) -> io::Result<Self> {
        let Config { settings, identity, threads, provider } = config.clone();
        if !(1..=MAX_THREADS).contains(&threads) {
            let error = format!("a listener of {threads} threads: there may be 1 to {MAX_THREADS}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let sockets = Socket::bind_all(address, threads)?;
        let paths = settings.paths;
        let endpoints = proto::endpoint::Endpoint::listener_group(
            clock.now(),
            EndpointConfig { settings, provider, identity },
            threads,
        )
        .map_err(io::Error::other)?;
        Self::new(endpoints, sockets, clock, paths)
    }

    /// Creates an endpoint for clients at an address; its port is that of the first path.
    ///
    /// # Errors
    /// As for [`Endpoint::listen`].
    pub fn client(address: SocketAddr, config: &Config) -> io::Result<Self> {
        let Config { settings, identity, provider, .. } = config.clone();
        let socket = Socket::bind(address)?;
        let (clock, paths) = (Clock::new(), settings.paths);
        let config = EndpointConfig { settings, provider, identity };
        let endpoint = proto::endpoint::Endpoint::new(clock.now(), config, Side::Client).map_err(io::Error::other)?;
        Self::new(vec![endpoint], vec![socket], clock, paths)
    }

    /// Creates an endpoint with a thread for each socket and its protocol state.
    fn new(
        endpoints: Vec<proto::endpoint::Endpoint>,
        sockets: Vec<Socket>,
        clock: Clock,
        paths: u8,
    ) -> io::Result<Self> {
        let address = sockets[0].address()?;
        let accept_queue = Arc::new(AcceptQueue::default());
        let cores = endpoints.into_iter().zip(sockets).enumerate().map(|(thread, (endpoint, socket))| {
            let state = State::new(endpoint, socket, thread, accept_queue.clone())?;
            Ok(Arc::new(Core::new(state, clock)?))
        });
        let cores: Arc<[Arc<Core>]> = cores.collect::<io::Result<_>>()?;
        let count = cores.len();
        let mut endpoint = Self { cores, accept_queue, address, paths, threads: Vec::new() };
        for own in 0..count {
            let driver = Driver::new(endpoint.cores.clone(), own, paths);
            let thread = thread::Builder::new().name("narrows endpoint".into()).spawn(move || driver.run())?;
            endpoint.threads.push(thread);
        }
        Ok(endpoint)
    }

    /// Returns the core of the thread that makes connections.
    fn core(&self) -> &Arc<Core> {
        &self.cores[0]
    }

    /// Returns its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Binds another UDP port, for the one connection that [`Endpoint::connect_from`] opens from it: networks that choose paths by
    /// ports see that connection apart from the others. The port is in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the address cannot be used, or the endpoint has 65,535 ports.
    pub fn reserve(&self, address: SocketAddr) -> io::Result<ReservedPort> {
        let socket = Socket::bind(address)?;
        let mut state = self.core().lock();
        let at = state.ports.reserve(socket);
        at.map(|at| ReservedPort { socket: at }).ok_or_else(|| io::Error::other("this endpoint has too many ports"))
    }

    /// Opens a connection from a port of its own, with settings of its own.
    ///
    /// # Errors
    /// As for [`Endpoint::connect`].
    pub async fn connect_from(
        &self,
        port: ReservedPort,
        settings: Settings,
        remote: SocketAddr,
        trust: Trust,
    ) -> Result<Connection, Error> {
        let paths = settings.paths;
        let handle = {
            let (mut state, four_tuple) = (self.core().lock(), FourTuple { socket: port.socket, remote });
            let now = self.core().clock.now();
            let called = state.endpoint.connect_with(
                now,
                four_tuple,
                Authentication { trust, secret: None },
                Arc::new(settings),
            );
            state.ports.assign(port.socket, called.as_ref().ok().copied());
            let handle = called?;
            state.add(handle, paths, Holder::Application);
            handle
        };
        self.core().wake_thread();
        let connection = Connection::new(self.core().clone(), handle);
        connection.connected().await?;
        Ok(connection)
    }

    /// Opens a connection; with the identifier and the secret of a ticket, if there is one. The listener may still
    /// refuse it: [`Connection::admitted`] waits for its decision, while data is already sent.
    ///
    /// # Errors
    /// If the listener does not answer, or does not have the expected identity; if this endpoint has several threads, because
    /// any of them could get the answer; or if it has ended.
    pub async fn connect(
        &self,
        remote: SocketAddr,
        trust: Trust,
        secret: Option<(TicketId, Secret)>,
    ) -> Result<Connection, Error> {
        if self.cores.len() > 1 {
            return Err(Error::Threads);
        }
        let handle = {
            let mut state = self.core().lock();
            let handle =
                state.endpoint.connect(self.core().clock.now(), FourTuple { socket: 0, remote }, trust, secret)?;
            state.add(handle, self.paths, Holder::Application);
            handle
        };
        self.core().wake_thread();
        let connection = Connection::new(self.core().clone(), handle);
        connection.connected().await?;
        Ok(connection)
    }

    /// Returns the next client; none when the endpoint is closed, or has ended.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let IncomingConnection { thread, handle } = poll_fn(|context| self.accept_queue.poll_next(context)).await?;
            let core = &self.cores[thread];
            // A connection that was closed in the meantime is skipped.
            if let Some(entry) = core.lock().entries.get_mut(&handle).filter(|entry| entry.closed.is_none()) {
                entry.has_handle = true;
                return Some(Incoming::new(Connection::new(core.clone(), handle)));
            }
        }
    }

    /// Returns whether it has ended because it has lived for 100 days.
    pub fn has_expired(&self) -> bool {
        self.core().lock().ended.as_ref().is_some_and(|(code, _)| *code == CloseCode::AGE)
    }

    /// Returns the next client that requested another service than the one of [`proto::settings::Settings::service`]:
    /// it was notified, and is no [`Incoming`]. 64 are remembered; more than that are notified and forgotten.
    pub fn next_alpn_mismatch(&self) -> Option<AlpnMismatch> {
        self.accept_queue.next_alpn_mismatch()
    }

    /// Closes all connections.
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.cores.iter().for_each(|core| core.close(code, reason));
    }

    /// Closes all connections and waits until their peers have been notified: for an orderly end of a process.
    pub fn shut_down(self, code: CloseCode, reason: &str) {
        self.close(code, reason);
        let mut waited = 0;
        while !self.threads.iter().all(JoinHandle::is_finished) && waited < CLOSE_TIMEOUT_MS {
            thread::sleep(Duration::from_millis(1));
            waited += 1;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close(CloseCode::NONE, "");
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use flow::Codepoint;
    use laws::{Law, NewReno, PathInfo, newreno};
    use proto::closed::Closed;
    use proto::endpoint::ConnectionHandle;
    use proto::header::{Header, ParsedPacket};
    use proto::service::Service;
    use testing::{DEFAULT_TIMEOUT, block_on};
    use units::Time;

    use super::*;
    use crate::clock::END;

    #[track_caller]
    fn wait<T>(future: impl Future<Output = T>) -> T {
        block_on(DEFAULT_TIMEOUT, "both ends finish this part of the test", future)
    }

    fn config(threads: u8) -> Config {
        let law = |path: &PathInfo| Law::NewReno(NewReno::new(path, newreno::Params::for_path(path)));
        let config = Config::new(Settings::new(Service::named("test"), Arc::new(law))).unwrap();
        Config { threads, ..config }
    }

    /// A client and a listener by this clock, connected.
    fn connected(clock: Clock, threads: u8) -> ((Endpoint, Connection), (Endpoint, Connection)) {
        let (config, here) = (config(threads), (Ipv4Addr::LOCALHOST, 0).into());
        let listener = Endpoint::listen_by(clock, here, &config).unwrap();
        let client = Endpoint::client(here, &config).unwrap();
        let trust = Trust::Fingerprint(config.identity.fingerprint());
        let connection = wait(client.connect(listener.address(), trust, None)).unwrap();
        let accepted = wait(listener.accept()).unwrap().admit().unwrap();
        ((client, connection), (listener, accepted))
    }

    fn ends_by_age(threads: u8) {
        let life = Duration::from_hours(24 * 100);
        let ((_client, connection), (listener, accepted)) =
            connected(Clock::of_age(life.checked_sub(Duration::from_secs(3)).unwrap()), threads);
        let closed = wait(connection.closed());
        assert!(matches!(closed, Closed::ByPeer { code: CloseCode::AGE, .. }), "{closed:?}");
        assert!(matches!(wait(accepted.closed()), Closed::Locally { code: CloseCode::AGE, .. }));
        assert!(wait(listener.accept()).is_none() && listener.has_expired());
        drop(accepted);
        let threads = listener.threads.iter();
        let waited = (0..5_000).any(|_| {
            thread::sleep(Duration::from_millis(1));
            threads.clone().all(JoinHandle::is_finished)
        });
        assert!(waited, "its threads end");
    }

    #[test]
    fn an_expired_endpoint_closes_its_connections_and_ends() {
        ends_by_age(1);
    }

    #[test]
    fn all_threads_of_an_expired_endpoint_end() {
        ends_by_age(4);
    }

    #[test]
    fn both_ends_know_the_close_reason_and_earlier_data() {
        let ((_client, connection), (listener, accepted)) = connected(Clock::new(), 1);
        listener.close(CloseCode(0x1001), "enough");
        let closed = |end: &str| format!("{end} closed the connection: application 1 (enough)");
        assert_eq!(wait(accepted.closed()).to_string(), closed("this end"));
        assert_eq!(wait(connection.closed()).to_string(), closed("the peer"));
        assert!(!listener.has_expired());
        let ((client, connection), (_listener, accepted)) = connected(Clock::new(), 1);
        accepted.close(CloseCode(0x1001), "enough");
        assert_eq!(wait(connection.closed()).to_string(), closed("the peer"));
        client.close(CloseCode::NONE, "");
        assert_eq!(wait(connection.closed()).to_string(), closed("the peer"));
    }

    #[test]
    fn a_thread_that_is_done_first_ends_the_others_for_its_reason() {
        let ((_client, connection), (listener, accepted)) = connected(Clock::new(), 4);
        let idle = listener.cores.iter().find(|core| core.lock().entries.is_empty()).unwrap();
        idle.close(CloseCode(0x1001), "enough");
        assert_eq!(wait(accepted.closed()).to_string(), "this end closed the connection: application 1 (enough)");
        assert_eq!(wait(connection.closed()).to_string(), "the peer closed the connection: application 1 (enough)");
    }

    /// Returns the next datagram of a socket; none if the wait times out.
    fn received(socket: &UdpSocket) -> Option<Vec<u8>> {
        let mut datagram = vec![0; 2_000];
        let len = socket.recv(&mut datagram).ok()?;
        datagram.truncate(len);
        Some(datagram)
    }

    /// The next datagram that a connection has to send.
    fn to_send(client: &mut proto::endpoint::Endpoint, now: Time, handle: ConnectionHandle) -> Vec<u8> {
        let mut datagram = Vec::new();
        client.poll_transmit(now, handle, 1, &mut datagram).unwrap();
        datagram
    }

    #[test]
    fn a_listener_forgets_evicted_clients() {
        const CLIENTS: usize = 1_600;
        let here = (Ipv4Addr::LOCALHOST, 0).into();
        let Config { settings, identity, provider, .. } = config(1);
        let listener = Endpoint::listen(here, &config(1)).unwrap();
        let socket = UdpSocket::bind(here).unwrap();
        socket.connect(listener.address()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let (clock, four_tuple) = (Clock::new(), FourTuple { socket: 0, remote: listener.address() });
        let config = EndpointConfig { settings, provider, identity };
        let mut client = proto::endpoint::Endpoint::new(clock.now(), config, Side::Client).unwrap();
        let mut resent = 0;
        let entries = || listener.core().lock().entries.len();
        for calls in 0..CLIENTS {
            let now = clock.now();
            let handle = client.connect(now, four_tuple, Trust::Anyone, None).unwrap();
            let first = to_send(&mut client, now, handle);
            let Header::Long { from, .. } = ParsedPacket::read(&first).unwrap().header else {
                panic!("an Initial packet")
            };
            socket.send(&first).unwrap();
            // The listener still answers earlier clients.
            let retry = loop {
                let Some(datagram) = received(&socket) else {
                    // The socket has dropped the answer.
                    resent += 1;
                    assert!(resent < 100, "the listener does not answer");
                    socket.send(&first).unwrap();
                    continue;
                };
                match ParsedPacket::read(&datagram).unwrap().header {
                    Header::Retry { to, .. } if to == from => break Some(datagram),
                    Header::Long { to, .. } if to == from => break None,
                    _ => {}
                }
            };
            if let Some(mut retry) = retry {
                client.on_datagram(now, four_tuple, Codepoint::NotEct, &mut retry);
                socket.send(&to_send(&mut client, now, handle)).unwrap();
            }
            // A batch may be evicted before the first of it is forgotten.
            assert!(entries() <= 1_024 + 128, "{} connections after {calls} calls", entries());
        }
        let is_full = |entries| entries == 1_024;
        assert!((0..1_000).any(|_| is_full(entries()) || {
            thread::sleep(Duration::from_millis(1));
            false
        }));
    }

    #[test]
    fn a_clock_does_not_restart() {
        let late = Clock::of_age(Duration::from_hours(24 * 214)).now();
        assert!(late > END && late.is_set());
    }
}
