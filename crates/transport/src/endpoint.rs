//! Endpoints: where connections begin.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::closed::Code;
use proto::identity::{Identity, SEED_LEN, Trust};
use proto::secret::Secret;
use proto::settings::Settings;
use proto::ticket::TicketId;
use proto::via::Via;
use rustls::crypto::{CryptoProvider, aws_lc_rs};

use crate::clock::Clock;
use crate::connection::{Connection, Incoming};
use crate::driver::Driver;
use crate::error::Error;
use crate::shared::{Core, State, Stray};
use crate::socket::Socket;

/// So many milliseconds at most is waited for a socket to take the last packets.
const FAREWELL_MS: u32 = 500;

/// What an endpoint is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// What it allows and wants.
    pub settings: Settings,
    /// Who it is.
    pub identity: Identity,
    provider: Arc<CryptoProvider>,
}

/// Bytes that nobody can guess, such as a secret or an identity's seed.
///
/// # Errors
/// If this machine gives no random numbers.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    filled.map_err(|_| io::Error::other("this machine gives no random numbers"))?;
    Ok(bytes)
}

impl Config {
    /// With these settings, and a new identity.
    ///
    /// # Errors
    /// If this machine gives no random numbers.
    pub fn new(settings: Settings) -> io::Result<Self> {
        Self::with_identity(settings, &random::<SEED_LEN>()?)
    }

    /// With these settings, and the identity of a seed.
    ///
    /// # Errors
    /// If there can be no such identity.
    pub fn with_identity(settings: Settings, seed: &[u8; SEED_LEN]) -> io::Result<Self> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let identity = Identity::from_seed(&provider, seed).map_err(io::Error::other)?;
        Ok(Self { settings, identity, provider })
    }
}

/// A UDP port of an endpoint that is for one connection alone: [`Endpoint::reserve`].
#[derive(Debug)]
pub struct Port {
    socket: u16,
}

/// One UDP port and its thread, or several ports of a caller. When it is dropped, its connections are closed.
pub struct Endpoint {
    core: Arc<Core>,
    address: SocketAddr,
    paths: u8,
    thread: JoinHandle<()>,
}

impl Endpoint {
    /// Listens at an address. Port 0 is any that is free.
    ///
    /// # Errors
    /// If the address cannot be used, or the machine gives no thread or random numbers.
    pub fn listen(address: SocketAddr, config: &Config) -> io::Result<Self> {
        Self::new(address, config, true)
    }

    /// Calls from an address; its port is that of the first path.
    ///
    /// # Errors
    /// As for [`Endpoint::listen`].
    pub fn call_from(address: SocketAddr, config: &Config) -> io::Result<Self> {
        Self::new(address, config, false)
    }

    fn new(address: SocketAddr, config: &Config, listens: bool) -> io::Result<Self> {
        let socket = Socket::bind(address)?;
        let address = socket.address()?;
        let clock = Clock::new();
        let context = (config.settings.clone(), config.provider.clone());
        let endpoint = proto::endpoint::Endpoint::new(clock.now(), context, config.identity.clone(), listens)
            .map_err(io::Error::other)?;
        let core = Arc::new(Core::new(State::new(endpoint, socket)?, clock)?);
        let driver = Driver::new(core.clone(), config.settings.paths);
        let thread = thread::Builder::new().name("narrows endpoint".into()).spawn(move || driver.run())?;
        Ok(Self { core, address, paths: config.settings.paths, thread })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Binds another UDP port, for the one connection that [`Endpoint::connect_from`] opens from it: networks that choose paths by
    /// ports see that connection apart from the others. The port is in the network namespace of the calling thread.
    ///
    /// # Errors
    /// If the address cannot be used, or the endpoint has 65,536 ports.
    pub fn reserve(&self, address: SocketAddr) -> io::Result<Port> {
        let socket = Socket::bind(address)?;
        let mut state = self.core.lock();
        let at =
            u16::try_from(state.sockets.len()).map_err(|_| io::Error::other("this endpoint has too many ports"))?;
        state.sockets.push(Arc::new(socket));
        state.reserved.insert(at, None);
        Ok(Port { socket: at })
    }

    /// Opens a connection from a port of its own, with settings of its own.
    ///
    /// # Errors
    /// As for [`Endpoint::connect`].
    pub async fn connect_from(
        &self,
        port: Port,
        settings: Settings,
        remote: SocketAddr,
        trust: Trust,
    ) -> Result<Connection, Error> {
        let paths = settings.paths;
        let handle = {
            let (mut state, via) = (self.core.lock(), Via { socket: port.socket, remote });
            let now = self.core.clock.now();
            let handle = state.endpoint.call_with(now, via, (trust, None), Arc::new(settings))?;
            state.reserved.insert(port.socket, Some(handle));
            state.add(handle, paths, true);
            handle
        };
        self.core.ring();
        let connection = Connection::new(self.core.clone(), handle);
        connection.connected().await?;
        Ok(connection)
    }

    /// Opens a connection; with the identifier and the secret of a ticket, if there is one. The listener may still refuse it:
    /// [`Connection::admitted`] waits for its word, while what is sent already travels.
    ///
    /// # Errors
    /// If the listener does not answer, or is not who was expected.
    pub async fn connect(
        &self,
        remote: SocketAddr,
        trust: Trust,
        secret: Option<(TicketId, Secret)>,
    ) -> Result<Connection, Error> {
        let handle = {
            let mut state = self.core.lock();
            let handle = state.endpoint.call(self.core.clock.now(), Via { socket: 0, remote }, trust, secret)?;
            state.add(handle, self.paths, true);
            handle
        };
        self.core.ring();
        let connection = Connection::new(self.core.clone(), handle);
        connection.connected().await?;
        Ok(connection)
    }

    /// The next caller; none when the endpoint is closed.
    pub async fn accept(&self) -> Option<Incoming> {
        poll_fn(|context| {
            let mut state = self.core.lock();
            if state.is_closed {
                return Poll::Ready(None);
            }
            while let Some(handle) = state.incoming.pop_front() {
                // Who has gone in the meantime is nobody's caller.
                if let Some(entry) = state.entries.get_mut(&handle).filter(|entry| entry.closed.is_none()) {
                    entry.is_held = true;
                    return Poll::Ready(Some(Incoming::new(Connection::new(self.core.clone(), handle))));
                }
            }
            state.wait_for_callers(context);
            Poll::Pending
        })
        .await
    }

    /// The next caller that asked for another service than the one of [`proto::settings::Settings::service`]: it was told so, and
    /// is no [`Incoming`]. 64 are remembered; more than that are told and forgotten.
    pub fn next_stray(&self) -> Option<Stray> {
        self.core.lock().strays.pop_front()
    }

    /// Closes all connections.
    pub fn close(&self, code: Code, reason: &str) {
        let mut state = self.core.lock();
        let now = self.core.clock.now();
        let handles: Vec<_> = state.endpoint.handles().collect();
        for handle in handles {
            if let Some(connection) = state.endpoint.connection(handle) {
                connection.close(now, code, reason);
            }
            if let Some(entry) = state.entries.get_mut(&handle) {
                entry.is_held = false;
            }
            state.touch(handle);
        }
        state.entries.retain(|_, entry| !entry.is_held);
        state.end();
        drop(state);
        self.core.ring();
    }

    /// Closes all connections, and waits until their peers have been told: a process that is about to end says goodbye so.
    pub fn end(self, code: Code, reason: &str) {
        self.close(code, reason);
        let mut waited = 0;
        while !self.thread.is_finished() && waited < FAREWELL_MS {
            thread::sleep(Duration::from_millis(1));
            waited += 1;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.close(Code::NONE, "");
    }
}
