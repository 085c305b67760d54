//! The near end: accepts programs' TCP connections, and carries each as a stream to the far end. If the connection to the far
//! end is lost, it reconnects.

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

use crate::MOST_FLOWS;
use crate::copy::{Trouble, answer, copy};
use crate::destination::Destination;
use crate::door::{Door, Kind, original};
use crate::event::{Event, Log};
use crate::far::REACH_WAIT;
use crate::header;
use crate::leg::Leg;
use crate::parse;
use crate::reply::Reply;
use crate::socks::{self, Method, Request, SocksError};

/// Time limit for a SOCKS client's request: programs send it at once.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Maximum wait of a program while there is no connection to the far end.
const LINK_WAIT: Duration = Duration::from_secs(10);
/// Time limit for the far end's answer: its own attempt, and a round trip of a long path, with some retransmissions.
const ANSWER_WAIT: Duration = REACH_WAIT.saturating_add(Duration::from_secs(10));
/// Waits between calls of the far end double from the first to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Pause after a failure to accept, such as at the limit of open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The reason why a connection to the far end failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A temporary failure, such as no answer.
    ForNow(String),
    /// A permanent failure.
    ForGood(String),
}

/// State shared by the connections of a near end.
struct Shared {
    link: watch::Receiver<Option<Connection>>,
    gate: Arc<Semaphore>,
    log: Log,
}

/// The reason why a program's connection is not carried.
struct Refused {
    reply: Reply,
    words: String,
    /// The reply to a SOCKS client; none if empty.
    says: Vec<u8>,
}

impl Refused {
    fn new(reply: Reply, words: impl Into<String>) -> Self {
        Self { reply, words: words.into(), says: socks::answer(reply).into() }
    }

    /// Creates a refusal before the client has named a destination.
    fn early(words: impl Into<String>, says: &[u8]) -> Self {
        Self { reply: Reply::Failure, words: words.into(), says: says.into() }
    }
}

impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Self {
        let reply = match &trouble {
            Trouble::Refused(answer) => answer.reply,
            Trouble::NoAnswer => Reply::HostUnreachable,
            Trouble::Tcp(_) | Trouble::Stream(_) | Trouble::Ended(_) | Trouble::Header(_) => Reply::Failure,
        };
        Self::new(reply, trouble.to_string())
    }
}

/// Carries connections accepted by these doors, over connections that `call` opens, one at a time. At most [`MOST_FLOWS`] TCP
/// connections are open; more wait at the doors. Ends when a call is refused for good. Then, and when the future is dropped,
/// all TCP connections are reset.
pub async fn near<C, F>(doors: Vec<Door>, call: C, log: Log) -> String
where
    C: Fn() -> F,
    F: Future<Output = Result<Connection, Refusal>>,
{
    let (linked, link) = watch::channel(None);
    let shared = Arc::new(Shared { link, gate: Arc::new(Semaphore::new(MOST_FLOWS)), log: log.clone() });
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
            Err(Refusal::ForNow(why)) => why,
            Err(Refusal::ForGood(why)) => return why,
        };
        log(Event::Unlinked { why, again: pause });
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

/// Accepts the connections of a door, forever.
async fn accept(door: Door, shared: Arc<Shared>) {
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
    kind: Kind,
    door: SocketAddr,
    tcp: TcpStream,
    from: SocketAddr,
    shared: Arc<Shared>,
    _permit: OwnedSemaphorePermit,
) {
    let from: Arc<str> = from.to_string().into();
    let (mut leg, mut to) = (Leg::new(tcp), None);
    if let Err(Refused { reply, words, says }) = carry(&kind, door, &shared, &from, &mut leg, &mut to).await {
        (shared.log)(Event::Refused { from, to, reply, words });
        if kind == Kind::Socks && !says.is_empty() {
            leg.farewell(&says).await;
        }
    }
}

async fn carry(
    kind: &Kind,
    door: SocketAddr,
    shared: &Shared,
    from: &Arc<str>,
    leg: &mut Leg,
    to: &mut Option<Destination>,
) -> Result<(), Refused> {
    let destination = match kind {
        Kind::Forward(destination) => destination.clone(),
        Kind::Transparent => original(leg.tcp(), door).map(Destination::from).ok_or_else(|| {
            Refused::new(Reply::Failure, "it was not redirected here, so there is no other place where it was to go")
        })?,
        Kind::Socks => {
            let told = timeout(HANDSHAKE_WAIT, handshake(leg)).await;
            told.unwrap_or_else(|_| Err(Refused::early("it did not say in time where to go", &[])))?
        }
    };
    let to = to.insert(destination).clone();
    let connection = link(shared)
        .await
        .ok_or_else(|| Refused::new(Reply::NetworkUnreachable, "there is no connection to the far end"))?;
    // As many streams may be open as connections, so this takes time only if the far end allows fewer.
    let opened = timeout(ANSWER_WAIT, connection.open()).await.map_err(|_| Refused::from(Trouble::NoAnswer))?;
    let (mut send, mut receive) = opened.map_err(Trouble::from)?;
    send.write_all(&header::put_destination(&to)).await.map_err(Trouble::from)?;
    let mut wait = Some(ANSWER_WAIT);
    if *kind == Kind::Socks {
        // The client is notified of the result, so its bytes follow after that.
        tokio::select! {
            biased;
            answered = answer(&mut receive, ANSWER_WAIT) => answered?,
            error = leg.failed() => return Err(Refused::from(Trouble::Tcp(error))),
        }
        leg.write_all(&socks::answer(Reply::Succeeded)).await.map_err(Trouble::Tcp)?;
        wait = None;
    }
    (shared.log)(Event::Opened { from: from.clone(), to: to.clone(), at: None });
    match copy(leg, send, receive, wait).await {
        (_, Err(trouble @ (Trouble::Refused(_) | Trouble::NoAnswer | Trouble::Header(_)))) => Err(trouble.into()),
        (count, outcome) => {
            let trouble = outcome.err().map(|trouble| trouble.to_string());
            (shared.log)(Event::Ended { from: from.clone(), to, taken: count.taken, given: count.given, trouble });
            Ok(())
        }
    }
}

/// Returns the request of a SOCKS client.
async fn handshake(leg: &Leg) -> Result<Destination, Refused> {
    let hung_up = |error: io::Error| Refused::early(format!("it said not where to go: {error}"), &[]);
    let wrong = |error: &SocksError| {
        let says = error.reply().map_or_else(Vec::new, |reply| socks::answer(reply).to_vec());
        Refused::early(error.to_string(), &says)
    };
    let method = parse::read(leg.tcp(), socks::greeting).await.map_err(hung_up)?.map_err(|error| wrong(&error))?;
    if method == Method::NoneAcceptable {
        return Err(Refused::early(
            "it wants to authenticate itself, and there is nothing of the kind",
            &socks::method(method),
        ));
    }
    leg.write_all(&socks::method(method)).await.map_err(hung_up)?;
    match parse::read(leg.tcp(), socks::request).await.map_err(hung_up)?.map_err(|error| wrong(&error))? {
        Request::Connect(destination) => Ok(destination),
        Request::Other { command } => Err(Refused::new(
            Reply::CommandNotSupported,
            format!("it gives SOCKS command {command}; there is 1 (CONNECT) alone"),
        )),
    }
}

/// Returns the connection to the far end, and waits for it if it is down.
async fn link(shared: &Shared) -> Option<Connection> {
    let mut link = shared.link.clone();
    let linked = timeout(LINK_WAIT, link.wait_for(Option::is_some)).await;
    linked.ok()?.ok()?.clone()
}
