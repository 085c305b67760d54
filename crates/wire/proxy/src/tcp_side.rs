//! A TCP connection of this machine. Unless both directions have ended in order it ends with a reset.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::parse::ByteSource;

/// Idle time of a connection after which keep-alive probes are sent, and again every quarter of it: a program's machine
/// may have disappeared without notice. NATs remove a connection after two hours at the earliest (RFC 5382 §5), and
/// Linux probes by default after that time.
const KEEPALIVE_IDLE: Duration = Duration::from_mins(2);
/// Limits of the wait, in time and bytes, for a program that was refused to close: if the socket were closed with
/// unread bytes of the program, the program might receive a reset instead of the reason.
const CLOSE_WAIT: Duration = Duration::from_secs(1);
const MAX_CLOSE_DRAIN: usize = 64 << 10;

pub(crate) struct TcpSide {
    tcp: TcpStream,
    ends_well: bool,
}

impl TcpSide {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        // A failure of these options only affects speed.
        let _ = tcp.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_IDLE / 4);
        let _ = SockRef::from(&tcp).set_tcp_keepalive(&keepalive);
        Self { tcp, ends_well: false }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Reads available data, at least a byte; 0 at the end.
    pub(crate) async fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        (&self.tcp).take(out).await
    }

    /// Writes as much as there is room for now, maybe nothing.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.tcp.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            written => written,
        }
    }

    /// Waits until there is room, as far as can be known.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        self.tcp.writable().await
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.try_write(bytes)?;
            bytes = &bytes[count..];
            if !bytes.is_empty() {
                self.writable().await?;
            }
        }
        Ok(())
    }

    /// Ends the direction to the program.
    pub(crate) fn shut(&self) -> io::Result<()> {
        SockRef::from(&self.tcp).shutdown(Shutdown::Write)
    }

    /// Waits until the connection fails, as by a reset. The failure is noticed even if nothing is read or written.
    pub(crate) async fn failed(&self) -> io::Error {
        loop {
            match self.tcp.ready(Interest::ERROR).await.and_then(|_| self.tcp.take_error()) {
                Ok(Some(error)) | Err(error) => return error,
                // No error, or it was reported to a read: waits for the next sign.
                Ok(None) => {
                    let _ = self.tcp.try_io(Interest::ERROR, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
                }
            }
        }
    }

    /// Records that both directions have ended in order.
    pub(crate) fn end(&mut self) {
        self.ends_well = true;
    }

    /// Sends a last message, and closes in order.
    pub(crate) async fn close_with(mut self, word: &[u8]) {
        let goodbye = async {
            self.write_all(word).await?;
            self.shut()?;
            let (mut rest, mut part) = (MAX_CLOSE_DRAIN, [0; 1_024]);
            while rest > 0 {
                match self.read(&mut part).await? {
                    0 => return Ok(()),
                    count => rest = rest.saturating_sub(count),
                }
            }
            Ok::<(), io::Error>(())
        };
        // A program that does not close has received the reply by now.
        let _ = timeout(CLOSE_WAIT, goodbye).await;
        self.end();
    }
}

impl Drop for TcpSide {
    fn drop(&mut self) {
        if !self.ends_well {
            let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        }
    }
}
