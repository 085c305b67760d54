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
/// Waits between calls of the proxy server double from the first to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// Pause after a failure to accept, such as at the limit of open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The reason why a connection to the proxy server failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectFailure {
    /// A temporary failure, such as no answer.
    ForNow(String),
    /// A permanent failure.
    ForGood(String),
}

/// State shared by the connections of a proxy client.
struct NearState {
    link: watch::Receiver<Option<Connection>>,
    gate: Arc<Semaphore>,
    log: EventCallback,
}

/// The reason why a program's connection is not carried.
struct RefusedConnection {
    reply: SocksReply,
    words: String,
    /// The reply to a SOCKS client; none if empty.
    says: Vec<u8>,
}

impl RefusedConnection {
    fn new(reply: SocksReply, words: impl Into<String>) -> Self {
        Self { reply, words: words.into(), says: socks::answer(reply).into() }
    }

    /// Creates a refusal before the client has named a destination.
    fn early(words: impl Into<String>, says: &[u8]) -> Self {
        Self { reply: SocksReply::Failure, words: words.into(), says: says.into() }
    }
}

impl From<RelayError> for RefusedConnection {
    fn from(trouble: RelayError) -> Self {
        let reply = match &trouble {
            RelayError::Refused(answer) => answer.reply,
            RelayError::NoAnswer => SocksReply::HostUnreachable,
            RelayError::Tcp(_) | RelayError::Stream(_) | RelayError::Ended(_) | RelayError::Header(_) => {
                SocksReply::Failure
            }
        };
        Self::new(reply, trouble.to_string())
    }
}

/// Carries connections accepted by these doors, over connections that `call` opens, one at a time. At most [`MAX_FLOWS`] TCP
/// connections are open; more wait at the doors. Ends when a call is refused for good. Then, and when the future is dropped,
/// all TCP connections are reset.
pub async fn client<C, F>(doors: Vec<ProxyListener>, call: C, log: EventCallback) -> String
where
    C: Fn() -> F,
    F: Future<Output = Result<Connection, ConnectFailure>>,
{
    let (linked, link) = watch::channel(None);
    let shared = Arc::new(NearState { link, gate: Arc::new(Semaphore::new(MAX_FLOWS)), log: log.clone() });
    let mut accepting = JoinSet::new();
    for door in doors {
        accepting.spawn(accept(door, shared.clone()));
    }
    let mut pause = FIRST_PAUSE;
    loop {
        let why = match call().await {
            Ok(connection) => {
                pause = FIRST_PAUSE;
                log(Event::Linked);
                linked.send_replace(Some(connection.clone()));
                let closed = connection.closed().await;
                linked.send_replace(None);
                closed.to_string()
            }
            Err(ConnectFailure::ForNow(why)) => why,
            Err(ConnectFailure::ForGood(why)) => return why,
        };
        log(Event::Unlinked { why, again: pause });
        sleep(pause).await;
        pause = (2 * pause).min(MAX_PAUSE);
    }
}

/// Accepts the connections of a door, forever.
async fn accept(door: ProxyListener, shared: Arc<NearState>) {
    let mut flows = JoinSet::new();
    let at = door.address();
    loop {
        let next = async {
            let permit = shared.gate.clone().acquire_owned().await;
            (permit, door.listener.accept().await)
        };
        tokio::select! {
            (permit, accepted) = next => match (permit, accepted) {
                (Ok(permit), Ok((tcp, from))) => {
                    flows.spawn(flow(door.kind.clone(), at, tcp, from, shared.clone(), permit));
                }
                // A connection that was closed before it was accepted needs no pause.
                (_, Err(error)) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                (_, Err(error)) => {
                    (shared.log)(Event::NotAccepted { at, why: error.to_string() });
                    sleep(ACCEPT_PAUSE).await;
                }
                // The gate is never closed.
                (Err(_), _) => return,
            },
            Some(_) = flows.join_next() => {}
        }
    }
}

/// Carries one TCP connection of a program.
async fn flow(
    kind: EntranceKind,
    door: SocketAddr,
    tcp: TcpStream,
    from: SocketAddr,
    shared: Arc<NearState>,
    _permit: OwnedSemaphorePermit,
) {
    let from: Arc<str> = from.to_string().into();
    let (mut leg, mut to) = (TcpSide::new(tcp), None);
    if let Err(RefusedConnection { reply, words, says }) = carry(&kind, door, &shared, &from, &mut leg, &mut to).await {
        (shared.log)(Event::Refused { from, to, reply, words });
        if kind == EntranceKind::Socks && !says.is_empty() {
            leg.farewell(&says).await;
        }
    }
}

async fn carry(
    kind: &EntranceKind,
    door: SocketAddr,
    shared: &NearState,
    from: &Arc<str>,
    leg: &mut TcpSide,
    to: &mut Option<Destination>,
) -> Result<(), RefusedConnection> {
    let destination = match kind {
        EntranceKind::Forward(destination) => destination.clone(),
        EntranceKind::Transparent => original(leg.tcp(), door).map(Destination::from).ok_or_else(|| {
            RefusedConnection::new(
                SocksReply::Failure,
                "it was not redirected here, so there is no other place where it was to go",
            )
        })?,
        EntranceKind::Socks => {
            let told = timeout(HANDSHAKE_WAIT, handshake(leg)).await;
            told.unwrap_or_else(|_| Err(RefusedConnection::early("it did not send its destination in time", &[])))?
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
            error = leg.failed() => return Err(RefusedConnection::from(RelayError::Tcp(error))),
        }
        leg.write_all(&socks::answer(SocksReply::Succeeded)).await.map_err(RelayError::Tcp)?;
        wait = None;
    }
    (shared.log)(Event::Opened { from: from.clone(), to: to.clone(), at: None });
    match copy(leg, send, receive, wait).await {
        (_, Err(trouble @ (RelayError::Refused(_) | RelayError::NoAnswer | RelayError::Header(_)))) => {
            Err(trouble.into())
        }
        (count, outcome) => {
            let trouble = outcome.err().map(|trouble| trouble.to_string());
            (shared.log)(Event::Ended { from: from.clone(), to, taken: count.taken, given: count.given, trouble });
            Ok(())
        }
    }
}

/// Returns the request of a SOCKS client.
async fn handshake(leg: &TcpSide) -> Result<Destination, RefusedConnection> {
    let hung_up = |error: io::Error| RefusedConnection::early(format!("it sent no destination: {error}"), &[]);
    let wrong = |error: &SocksError| {
        let says = error.reply().map_or_else(Vec::new, |reply| socks::answer(reply).to_vec());
        RefusedConnection::early(error.to_string(), &says)
    };
    let method = parse::read(leg.tcp(), socks::greeting).await.map_err(hung_up)?.map_err(|error| wrong(&error))?;
    if method == Method::NoneAcceptable {
        return Err(RefusedConnection::early(
            "it wants to authenticate itself, and there is nothing of the kind",
            &socks::method(method),
        ));
    }
    leg.write_all(&socks::method(method)).await.map_err(hung_up)?;
    match parse::read(leg.tcp(), socks::request).await.map_err(hung_up)?.map_err(|error| wrong(&error))? {
        SocksRequest::Connect(destination) => Ok(destination),
        SocksRequest::Other { command } => Err(RefusedConnection::new(
            SocksReply::CommandNotSupported,
            format!("it sent SOCKS command {command}; only 1 (CONNECT) is supported"),
        )),
    }
}

/// Returns the connection to the proxy server, and waits for it if it is down.
async fn link(shared: &NearState) -> Option<Connection> {
    let mut link = shared.link.clone();
    let linked = timeout(LINK_WAIT, link.wait_for(Option::is_some)).await;
    linked.ok()?.ok()?.clone()
}
