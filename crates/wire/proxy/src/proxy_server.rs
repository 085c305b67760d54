//! The proxy server: accepts streams, connects to their destinations if its rules allow that, and carries the data.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use transport::{BothStreams, Connection, RecvStream, SendStream};

use crate::MAX_FLOWS;
use crate::allow::Allow;
use crate::copy::{Count, RESET, copy};
use crate::destination::{Destination, Host};
use crate::event::{Event, EventCallback};
use crate::header::{self, DestinationReply};
use crate::parse;
use crate::reply::SocksReply;
use crate::tcp_side::TcpSide;

/// Time limit for a stream's destination after its first bytes: it is sent in one packet.
const HEADER_WAIT: Duration = Duration::from_secs(10);
/// Time limit to resolve a host and connect to it. Linux sends a SYN at 0, 1, 3, 7 and 15 s.
pub(crate) const REACH_WAIT: Duration = Duration::from_secs(20);
/// Time limit for an address if there is another one.
const NEXT_ADDRESS: Duration = Duration::from_secs(5);
/// Maximum number of a name's addresses that are tried.
const MAX_ADDRESSES: usize = 8;
/// Maximum number of concurrent lookups, including abandoned ones. Each blocks a thread. The resolver's own timeouts end
/// them.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// State shared by all clients of a proxy server.
#[derive(Clone)]
pub struct ProxyServer {
    allow: Arc<Allow>,
    flow_permits: Arc<Semaphore>,
    log: EventCallback,
}

impl ProxyServer {
    /// Creates a proxy server with these rules. At most [`MAX_FLOWS`] TCP connections are open at a time, for all clients
    /// together.
    pub fn new(allow: Allow, log: EventCallback) -> Self {
        Self { allow: Arc::new(allow), flow_permits: Arc::new(Semaphore::new(MAX_FLOWS)), log }
    }

    /// Serves a client until its connection is over; then its TCP connections are reset. When the future is dropped, they are, too.
    pub async fn serve(&self, connection: &Connection, client: &str) {
        let client: Arc<str> = client.into();
        let mut flows = JoinSet::new();
        loop {
            tokio::select! {
                stream = connection.accept_stream() => match stream {
                    Ok(BothStreams { send: Some(send), receive }) => {
                        let permit = self.flow_permits.clone().try_acquire_owned().ok();
                        flows.spawn(self.clone().flow(client.clone(), send, receive, permit));
                    }
                    // One-way streams have no meaning here, and are reset.
                    Ok(BothStreams { send: None, .. }) => {}
                    Err(_) => return,
                },
                Some(_) = flows.join_next() => {}
            }
        }
    }

    async fn flow(
        self,
        from: Arc<str>,
        mut send: SendStream,
        mut receive: RecvStream,
        permit: Option<OwnedSemaphorePermit>,
    ) {
        let read = timeout(HEADER_WAIT, parse::read(&mut receive, header::destination)).await;
        let to = match read {
            Ok(Ok(Ok(to))) => to,
            Ok(Ok(Err(error))) => {
                return self
                    .refuse(from, None, send, receive, DestinationReply::new(SocksReply::Failure, &error.to_string()))
                    .await;
            }
            // A stream without a request gets no answer.
            Ok(Err(_)) | Err(_) => return,
        };
        if permit.is_none() {
            let answer = DestinationReply::new(
                SocksReply::Failure,
                &format!("{MAX_FLOWS} connections are open at the proxy server already"),
            );
            return self.refuse(from, Some(to), send, receive, answer).await;
        }
        let reached = tokio::select! {
            biased;
            // The proxy client does not wait for it any more.
            _ = send.delivered() => return,
            reached = connect_allowed(&self.allow, &to) => reached,
        };
        let (tcp, at) = match reached {
            Ok(reached) => reached,
            Err(answer) => return self.refuse(from, Some(to), send, receive, answer).await,
        };
        (self.log)(Event::Opened { from: from.clone(), to: to.clone(), at: Some(at) });
        let mut tcp_side = TcpSide::new(tcp);
        let answered = send.write_all(&DestinationReply::new(SocksReply::Succeeded, "").put()).await;
        let (count, outcome) = match answered {
            Ok(()) => copy(&mut tcp_side, send, receive, None).await,
            Err(error) => (Count::default(), Err(error.into())),
        };
        let error = outcome.err().map(|error| error.to_string());
        (self.log)(Event::Ended { from, to, taken: count.taken, given: count.given, error });
    }

    async fn refuse(
        &self,
        from: Arc<str>,
        to: Option<Destination>,
        mut send: SendStream,
        mut receive: RecvStream,
        answer: DestinationReply,
    ) {
        let put = answer.put();
        (self.log)(Event::Refused { from, to, reply: answer.reply, message: answer.message });
        if send.write_all(&put).await.is_ok() {
            let _ = send.finish();
        }
        receive.stop(RESET);
    }
}

/// Connects, if that is allowed.
async fn connect_allowed(allow: &Allow, to: &Destination) -> Result<(TcpStream, SocketAddr), DestinationReply> {
    if !allow.may_have(to) {
        return Err(DestinationReply::new(SocksReply::NotAllowed, "the proxy server does not allow this destination"));
    }
    let reached = timeout(REACH_WAIT, async {
        let addresses = addresses(to).await?;
        let mut allowed: Vec<SocketAddr> =
            addresses.into_iter().filter(|address| allow.has(&to.host, *address)).collect();
        allowed.truncate(MAX_ADDRESSES);
        connect(&allowed).await
    });
    reached
        .await
        .unwrap_or_else(|_| Err(DestinationReply::new(SocksReply::HostUnreachable, "the host does not answer")))
}

async fn addresses(to: &Destination) -> Result<Vec<SocketAddr>, DestinationReply> {
    match &to.host {
        Host::Address(address) => Ok(vec![(*address, to.port).into()]),
        Host::Name(name) => {
            let (name, port, permit) = (name.clone(), to.port, LOOKUPS.acquire().await);
            let found = spawn_blocking(move || {
                // A lookup continues when it is abandoned, and counts until it ends.
                let _permit = permit;
                (name.as_str(), port).to_socket_addrs().map(Iterator::collect)
            });
            let unknown =
                DestinationReply::new(SocksReply::HostUnreachable, "the proxy server finds no address of that name");
            found.await.ok().and_then(Result::ok).ok_or(unknown)
        }
    }
}

async fn connect(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr), DestinationReply> {
    let mut last = DestinationReply::new(
        SocksReply::NotAllowed,
        "the proxy server does not allow the addresses that this name has there",
    );
    for (at, &address) in addresses.iter().enumerate() {
        let wait = if at + 1 < addresses.len() { NEXT_ADDRESS } else { REACH_WAIT };
        let connected =
            timeout(wait, TcpStream::connect(address)).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match connected {
            Ok(tcp) => return Ok((tcp, address)),
            Err(error) => {
                last = DestinationReply::new(
                    SocksReply::of_error(&error),
                    &format!("the proxy server cannot connect: {error}"),
                );
            }
        }
    }
    Err(last)
}
