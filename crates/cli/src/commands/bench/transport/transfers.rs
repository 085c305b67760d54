//! Transfers over this machine's loopback, both ends in this process: one stream of the transport, and one connection of the
//! kernel's TCP.
//!
//! Both write and read as many bytes at a time, from and into memory that the caches hold. The measurement begins when the
//! connection is established, with its final packet size. It ends when the receiver has read the last byte and, of the
//! transport, the sender knows so.

use std::future::pending;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use laws::catalog::{self, LawKind, ParamValue};
use proto::closed::CloseCode;
use proto::identity::Trust;
use proto::service::Service;
use proto::settings::{LawMaker, Settings};
use transport::{Config, Connection, Endpoint, Error};
use units::Bytes;

use crate::interrupt::interrupted;
use crate::peer::session_error::SessionError;
use crate::peer::wait::{unless, wait_for, with_close_reason};
use study::Stopwatch;

/// Any free port of the loopback.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Bytes that are written or read at a time.
const CHUNK: usize = 256 << 10;
/// The maximum number of bytes in flight. Sockets accept it where Linux allows them 1 MiB (`net.core.rmem_max`), so
/// nothing is lost. A quarter of it costs up to a third more for each bit, in smaller batches. Four times as much gains
/// nothing.
const WINDOW: Bytes = Bytes::new(1 << 20);
/// Bytes of the stream that may be under way, as in `narrows perf`.
const STREAM_WINDOW: u64 = 16 << 20;
/// The first probe of the packet size gets through at once, or the loopback does not take such packets.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which a blocked TCP socket checks the time.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The maximum duration of a transfer.
pub(super) struct Deadline {
    clock: Stopwatch,
    limit: Duration,
}

/// The cost of a transfer.
pub(super) struct Cost {
    /// Processor time of this process, thus of both ends.
    pub(super) cpu_s: f64,
    pub(super) wall_s: f64,
    /// Counters of the transport; none for TCP.
    pub(super) sent: Option<SenderCounters>,
}

/// The sender's counters.
pub(super) struct SenderCounters {
    /// The longest UDP payload that got through.
    pub(super) packet_bytes: u16,
    /// Packets with data or parity, and the number of them declared lost.
    pub(super) packets: u64,
    pub(super) lost: u64,
}

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        Self { clock: Stopwatch::start(), limit }
    }

    fn check_expired(&self) -> Result<(), SessionError> {
        if interrupted() {
            return Err(SessionError::Interrupted);
        }
        if self.clock.elapsed() >= self.limit { Err(SessionError::TimedOut(self.limit)) } else { Ok(()) }
    }
}

impl From<io::Error> for SessionError {
    fn from(error: io::Error) -> Self {
        Error::from(error).into()
    }
}

/// Sends bytes over the transport, in packets of `packet` bytes of UDP payload.
pub(super) fn over_transport(packet: u16, coding: &str, bytes: u64, deadline: &Deadline) -> Result<Cost, SessionError> {
    let config = config(packet, coding)?;
    let listener = Endpoint::listen(ANY, &config)?;
    let client = Endpoint::client(ANY, &config)?;
    let trust = Trust::Fingerprint(config.identity.fingerprint());
    let sender = wait_for(client.connect(listener.address(), trust, None), || deadline.check_expired())??;
    let receiver = wait_for(listener.accept(), || deadline.check_expired())?.ok_or(Error::Endpoint)?.admit()?;
    wait_for(sender.admitted(), || deadline.check_expired())??;
    let (discovery_clock, packet_size) =
        (Stopwatch::start(), || sender.paths().first().map_or(0, |path| path.packet_size));
    wait_for(unless(|| packet_size() >= packet, pending::<()>()), || {
        if discovery_clock.elapsed() >= DISCOVERY_TIMEOUT {
            return Err(SessionError::Peer(format!(
                "gets no packets of {packet} bytes: the loopback's MTU is too small"
            )));
        }
        deadline.check_expired()
    })?;

    let clock = Stopwatch::start();
    let result = transfer_concurrently(
        || {
            wait_for(send(&sender, bytes), || deadline.check_expired())
                .and_then(|sent| sent)
                .map_err(|it| with_close_reason(&sender, it))
        },
        || wait_for(receive(&receiver), || deadline.check_expired()).and_then(|received| received),
        || sender.close(CloseCode::APPLICATION, "the transfer was given up"),
    );
    let times = clock.times();
    check(result?, bytes)?;
    let stats = sender.stats();
    let sent = SenderCounters { packet_bytes: packet_size(), packets: stats.packets_sent, lost: stats.lost };
    // The next workload finds no thread of this one.
    client.shut_down(CloseCode::NONE, "");
    listener.shut_down(CloseCode::NONE, "");
    Ok(Cost { cpu_s: times.cpu_s, wall_s: times.wall_s, sent: Some(sent) })
}

fn config(packet: u16, coding: &str) -> Result<Config, SessionError> {
    let law: LawMaker =
        Arc::new(|path| match catalog::build(LawKind::Fixed, path, &[("window", ParamValue::Bytes(WINDOW))]) {
            Ok(law) => law,
            Err(error) => unreachable!("a constant: {error}"),
        });
    let mut settings = Settings::new(Service::named("bench"), law);
    settings.max_packet = packet;
    settings.coding = coding.parse().map_err(|error| SessionError::Peer(format!("cannot code: {error}")))?;
    settings.limits.max_stream_data = STREAM_WINDOW;
    settings.send_buffer = STREAM_WINDOW;
    Ok(Config::new(settings)?)
}

async fn send(connection: &Connection, bytes: u64) -> Result<(), SessionError> {
    let mut stream = connection.open_message(bytes).await?;
    let (chunk, mut left) = (vec![0x6e; CHUNK], bytes);
    while left > 0 {
        left -= stream.write(&chunk[..left.min(CHUNK as u64) as usize]).await? as u64;
    }
    Ok(stream.delivered().await?)
}

async fn receive(connection: &Connection) -> Result<u64, SessionError> {
    let mut stream = connection.accept_stream().await?.receive;
    let (mut chunk, mut total) = (vec![0; CHUNK], 0);
    loop {
        match stream.read(&mut chunk).await? {
            0 => return Ok(total),
            count => total += count as u64,
        }
    }
}

/// Sends bytes over one connection of the kernel's TCP.
pub(super) fn over_tcp(bytes: u64, deadline: &Deadline) -> Result<Cost, SessionError> {
    let listener = TcpListener::bind(ANY)?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    sender.set_write_timeout(Some(POLL_INTERVAL))?;
    receiver.set_read_timeout(Some(POLL_INTERVAL))?;
    let handle = sender.try_clone()?;

    let clock = Stopwatch::start();
    let result = transfer_concurrently(
        || {
            let (chunk, mut left) = (vec![0x6e; CHUNK], bytes);
            while left > 0 {
                left -= retry_io(deadline, || sender.write(&chunk[..left.min(CHUNK as u64) as usize]))? as u64;
            }
            Ok(sender.shutdown(Shutdown::Write)?)
        },
        || {
            let (mut chunk, mut total) = (vec![0; CHUNK], 0);
            loop {
                match retry_io(deadline, || receiver.read(&mut chunk))? {
                    0 => return Ok(total),
                    count => total += count as u64,
                }
            }
        },
        // It may be shut already.
        || drop(handle.shutdown(Shutdown::Both)),
    );
    let times = clock.times();
    check(result?, bytes)?;
    Ok(Cost { cpu_s: times.cpu_s, wall_s: times.wall_s, sent: None })
}

/// Repeats a socket operation until it succeeds or fails, or the deadline passes.
fn retry_io(deadline: &Deadline, mut operation: impl FnMut() -> io::Result<usize>) -> Result<usize, SessionError> {
    loop {
        deadline.check_expired()?;
        match operation() {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            result => return Ok(result?),
        }
    }
}

/// Sends on this thread and receives on another one. If sending fails, the connection is given up, which ends
/// receiving. Returns the number of bytes received.
fn transfer_concurrently(
    send: impl FnOnce() -> Result<(), SessionError>,
    receive: impl FnOnce() -> Result<u64, SessionError> + Send,
    abort: impl FnOnce(),
) -> Result<u64, SessionError> {
    thread::scope(|scope| {
        let receiver = scope.spawn(receive);
        let sent = send();
        if sent.is_err() {
            abort();
        }
        let received = join(receiver);
        sent?;
        received
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Checks that the receiver has read exactly the bytes that were sent.
fn check(received: u64, bytes: u64) -> Result<(), SessionError> {
    if received == bytes { Ok(()) } else { Err(SessionError::Peer(format!("read {received} of {bytes} bytes"))) }
}
