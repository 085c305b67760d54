//! A TCP connection of this machine. Unless both directions have ended in order it ends with a reset.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::parse::Source;

/// A connection on which nothing moves is asked for after so long, and again every quarter of it: a program's machine may have
/// gone without a word. NATs forget a connection after two hours at the soonest (RFC 5382 §5), Linux asks then.
const ASKED_AFTER: Duration = Duration::from_mins(2);
/// So long and so many bytes are waited for until a program that was refused hangs up: if the socket were closed with bytes of
/// the program in it, it might hear of a reset and not of the reason.
const FAREWELL: Duration = Duration::from_secs(1);
const FAREWELL_BYTES: usize = 64 << 10;

pub(crate) struct Leg {
    tcp: TcpStream,
    ends_well: bool,
}

impl Leg {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        // What the kernel does not do of this costs time alone.
        let _ = tcp.set_nodelay(true);
        let keepalive = TcpKeepalive::new().with_time(ASKED_AFTER).with_interval(ASKED_AFTER / 4);
        let _ = SockRef::from(&tcp).set_tcp_keepalive(&keepalive);
        Self { tcp, ends_well: false }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    /// Reads what has come, at least a byte; 0 at the end.
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

    /// Waits until the connection fails, as by a reset. It is known also while nobody reads or writes.
    pub(crate) async fn failed(&self) -> io::Error {
        loop {
            match self.tcp.ready(Interest::ERROR).await.and_then(|_| self.tcp.take_error()) {
                Ok(Some(error)) | Err(error) => return error,
                // Nothing was wrong, or a read was told: waits for the next sign.
                Ok(None) => {
                    let _ = self.tcp.try_io(Interest::ERROR, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
                }
            }
        }
    }

    /// Both directions have ended in order.
    pub(crate) fn end(&mut self) {
        self.ends_well = true;
    }

    /// Says a last word, and hangs up in order.
    pub(crate) async fn farewell(mut self, word: &[u8]) {
        let goodbye = async {
            self.write_all(word).await?;
            self.shut()?;
            let (mut rest, mut part) = (FAREWELL_BYTES, [0; 1_024]);
            while rest > 0 {
                match self.read(&mut part).await? {
                    0 => return Ok(()),
                    count => rest = rest.saturating_sub(count),
                }
            }
            Ok::<(), io::Error>(())
        };
        // A program that does not hang up has heard the word by now.
        let _ = timeout(FAREWELL, goodbye).await;
        self.end();
    }
}

impl Drop for Leg {
    fn drop(&mut self) {
        if !self.ends_well {
            let _ = SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO));
        }
    }
}
