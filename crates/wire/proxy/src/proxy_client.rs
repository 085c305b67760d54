//! Proxy client: accepts programs' TCP connections and carries each as a stream to the proxy server. Reconnects when the
//! connection to the server is lost.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use transport::Connection;

use crate::MAX_FLOWS;
use crate::copy::{RelayError, answer, copy};
use crate::destination::Destination;
use crate::event::{Event, EventCallback};
use crate::header;
use crate::parse;
use crate::proxy_listener::{EntranceKind, ProxyListener, original};
use crate::proxy_server::REACH_WAIT;
use crate::reply::SocksReply;
use crate::socks::{self, Method, SocksError, SocksRequest};
use crate::tcp_side::TcpSide;

/// Time limit for a SOCKS client's request: programs send it at once.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Maximum wait of a program while there is no connection to the proxy server.
const LINK_WAIT: Duration = Duration::from_secs(10);
/// Time limit for the proxy server's answer: its own attempt, and a round trip of a long path, with some retransmissions.
const ANSWER_WAIT: Duration = REACH_WAIT.saturating_add(Duration::from_secs(10));
/// Waits between connection attempts to the proxy server double from the first to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// Pause after a failure to accept, such as at the limit of open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The reason why a connection to the proxy server failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectFailure {
    /// A temporary failure, such as no answer.
    Temporary(String),
    /// A permanent failure.
    Permanent(String),
}

/// State shared by the connections of a proxy client.
struct ClientState {
    link: watch::Receiver<Option<Connection>>,
    flow_permits: Arc<Semaphore>,
    log: EventCallback,
}

/// The reason why a program's connection is not carried.
struct RefusedConnection {
    reply: SocksReply,
    message: String,
    /// The reply to a SOCKS client; none if empty.
    socks_reply: Vec<u8>,
}

impl RefusedConnection {
    fn new(reply: SocksReply, message: impl Into<String>) -> Self {
        Self { reply, message: message.into(), socks_reply: socks::answer(reply).into() }
    }

    /// Creates a refusal before the client has named a destination.
    fn early(message: impl Into<String>, socks_reply: &[u8]) -> Self {
        Self { reply: SocksReply::Failure, message: message.into(), socks_reply: socks_reply.into() }
    }
}

impl From<RelayError> for RefusedConnection {
    fn from(error: RelayError) -> Self {
        let reply = match &error {
            RelayError::Refused(answer) => answer.reply,
            RelayError::NoAnswer => SocksReply::HostUnreachable,
            RelayError::Tcp(_) | RelayError::Stream(_) | RelayError::Ended(_) | RelayError::Header(_) => {
                SocksReply::Failure
            }
        };
        Self::new(reply, error.to_string())
    }
}

/// Carries connections accepted by these listeners, over connections that `connect` opens, one at a time. At most [`MAX_FLOWS`] TCP
/// connections are open; more wait at the listeners. Ends when a connection attempt fails permanently. Then, and when the future is dropped,
/// all TCP connections are reset.
pub async fn client<C, F>(listeners: Vec<ProxyListener>, connect: C, log: EventCallback) -> String
where
    C: Fn() -> F,
    F: Future<Output = Result<Connection, ConnectFailure>>,
{
    let (linked, link) = watch::channel(None);
    let shared = Arc::new(ClientState { link, flow_permits: Arc::new(Semaphore::new(MAX_FLOWS)), log: log.clone() });
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, shared.clone()));
    }
    let mut pause = FIRST_PAUSE;
    loop {
        let why = match connect().await {
            Ok(connection) => {
                pause = FIRST_PAUSE;
                log(Event::Connected);
                linked.send_replace(Some(connection.clone()));
                let closed = connection.closed().await;
                linked.send_replace(None);
                closed.to_string()
            }
            Err(ConnectFailure::Temporary(why)) => why,
            Err(ConnectFailure::Permanent(why)) => return why,
        };
        log(Event::Disconnected { why, again: pause });
        sleep(pause).await;
        pause = (2 * pause).min(MAX_PAUSE);
    }
}

/// Accepts the connections of a door, forever.
async fn accept(listener: ProxyListener, shared: Arc<ClientState>) {
    let mut flows = JoinSet::new();
    let at = listener.address();
    loop {
        let next = async {
            let permit = shared.flow_permits.clone().acquire_owned().await;
            (permit, listener.listener.accept().await)
        };
        tokio::select! {
            (permit, accepted) = next => match (permit, accepted) {
                (Ok(permit), Ok((tcp, from))) => {
                    flows.spawn(flow(listener.kind.clone(), at, tcp, from, shared.clone(), permit));
                }
                // A connection that was closed before it was accepted needs no pause.
                (_, Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                (_, Err(error)) => {
                    (shared.log)(Event::NotAccepted { at, why: error.to_string() });
                    sleep(ACCEPT_PAUSE).await;
                }
                // The semaphore is never closed.
                (Err(_), _) => return,
            },
            Some(_) = flows.join_next() => {}
        }
    }
}

/// Carries one TCP connection of a program.
async fn flow(
    kind: EntranceKind,
    listener_address: SocketAddr,
    tcp: TcpStream,
    from: SocketAddr,
    shared: Arc<ClientState>,
    _permit: OwnedSemaphorePermit,
) {
    let from: Arc<str> = from.to_string().into();
    let (mut tcp_side, mut to) = (TcpSide::new(tcp), None);
    if let Err(RefusedConnection { reply, message, socks_reply }) =
        carry(&kind, listener_address, &shared, &from, &mut tcp_side, &mut to).await
    {
        (shared.log)(Event::Refused { from, to, reply, message });
        if kind == EntranceKind::Socks && !socks_reply.is_empty() {
            tcp_side.close_with(&socks_reply).await;
        }
    }
}

async fn carry(
    kind: &EntranceKind,
    listener_address: SocketAddr,
    shared: &ClientState,
    from: &Arc<str>,
    tcp_side: &mut TcpSide,
    to: &mut Option<Destination>,
) -> Result<(), RefusedConnection> {
    let destination = match kind {
        EntranceKind::Forward(destination) => destination.clone(),
        EntranceKind::Transparent => {
            original(tcp_side.tcp(), listener_address).map(Destination::from).ok_or_else(|| {
                RefusedConnection::new(
                    SocksReply::Failure,
                    "it was not redirected here, so it has no original destination",
                )
            })?
        }
        EntranceKind::Socks => {
            let requested = timeout(HANDSHAKE_WAIT, handshake(tcp_side)).await;
            requested
                .unwrap_or_else(|_| Err(RefusedConnection::early("it did not send its destination in time", &[])))?
        }
    };
    let to = to.insert(destination).clone();
    let connection = link(shared).await.ok_or_else(|| {
        RefusedConnection::new(SocksReply::NetworkUnreachable, "there is no connection to the proxy server")
    })?;
    // As many streams may be open as connections, so this takes time only if the proxy server allows fewer.
    let opened =
        timeout(ANSWER_WAIT, connection.open()).await.map_err(|_| RefusedConnection::from(RelayError::NoAnswer))?;
    let (mut send, mut receive) = opened.map_err(RelayError::from)?;
    send.write_all(&header::put_destination(&to)).await.map_err(RelayError::from)?;
    let mut wait = Some(ANSWER_WAIT);
    if *kind == EntranceKind::Socks {
        // The client is notified of the result, so its bytes follow after that.
        tokio::select! {
            biased;
            answered = answer(&mut receive, ANSWER_WAIT) => answered?,
            error = tcp_side.failed() => return Err(RefusedConnection::from(RelayError::Tcp(error))),
        }
        tcp_side.write_all(&socks::answer(SocksReply::Succeeded)).await.map_err(RelayError::Tcp)?;
        wait = None;
    }
    (shared.log)(Event::Opened { from: from.clone(), to: to.clone(), at: None });
    match copy(tcp_side, send, receive, wait).await {
        (_, Err(error @ (RelayError::Refused(_) | RelayError::NoAnswer | RelayError::Header(_)))) => Err(error.into()),
        (count, outcome) => {
            let error = outcome.err().map(|error| error.to_string());
            (shared.log)(Event::Ended { from: from.clone(), to, taken: count.taken, given: count.given, error });
            Ok(())
        }
    }
}

/// Returns the request of a SOCKS client.
async fn handshake(tcp_side: &TcpSide) -> Result<Destination, RefusedConnection> {
    let hung_up = |error: io::Error| RefusedConnection::early(format!("it sent no destination: {error}"), &[]);
    let wrong = |error: &SocksError| {
        let socks_reply = error.reply().map_or_else(Vec::new, |reply| socks::answer(reply).to_vec());
        RefusedConnection::early(error.to_string(), &socks_reply)
    };
    let method = parse::read(tcp_side.tcp(), socks::greeting).await.map_err(hung_up)?.map_err(|error| wrong(&error))?;
    if method == Method::NoneAcceptable {
        return Err(RefusedConnection::early(
            "it offers no method without authentication, and no other method is supported",
            &socks::method(method),
        ));
    }
    tcp_side.write_all(&socks::method(method)).await.map_err(hung_up)?;
    match parse::read(tcp_side.tcp(), socks::request).await.map_err(hung_up)?.map_err(|error| wrong(&error))? {
        SocksRequest::Connect(destination) => Ok(destination),
        SocksRequest::Other { command } => Err(RefusedConnection::new(
            SocksReply::CommandNotSupported,
            format!("it sent SOCKS command {command}; only 1 (CONNECT) is supported"),
        )),
    }
}

/// Returns the connection to the proxy server, and waits for it if it is down.
async fn link(shared: &ClientState) -> Option<Connection> {
    let mut link = shared.link.clone();
    let linked = timeout(LINK_WAIT, link.wait_for(Option::is_some)).await;
    linked.ok()?.ok()?.clone()
}
