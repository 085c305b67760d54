//! The socket that answers queries: a client sends `status` or `metrics` and a line end, and receives JSON or the text format
//! of Prometheus.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::host_clock::raw_ns;

/// Maximum number of clients at a time; others wait.
const MAX_CLIENTS: usize = 8;

/// Maximum length of a request, in bytes.
const MAX_REQUEST: usize = 64;

/// Time for which a client may be connected, in nanoseconds.
const PATIENCE: i64 = 2_000_000_000;

/// A query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Query {
    /// The state as JSON.
    Status,
    /// The state in the text format of Prometheus.
    Metrics,
}

impl Query {
    fn parse(line: &str) -> Option<Self> {
        match line.trim() {
            "" | "status" => Some(Self::Status),
            "metrics" => Some(Self::Metrics),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Metrics => "metrics",
        }
    }
}

/// Sends a query to a daemon's socket, and returns the answer.
///
/// # Errors
/// If the daemon does not answer within a few seconds.
pub fn query(path: &Path, query: Query) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    let timeout = Some(Duration::from_secs(3));
    stream.set_read_timeout(timeout)?;
    stream.set_write_timeout(timeout)?;
    stream.write_all(format!("{}\n", query.name()).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    request: Vec<u8>,
    /// The rest of the answer; none before the request is complete.
    answer: Option<Vec<u8>>,
    deadline: i64,
}

/// Progress of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    Waits,
    Done,
}

/// The listening socket and its clients.
#[derive(Debug)]
pub(crate) struct StatusSocket {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

impl StatusSocket {
    /// Binds the socket. One that a former daemon has left is replaced; one that answers is not.
    pub(crate) fn bind(path: &Path) -> io::Result<Self> {
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
            match UnixStream::connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
                _ => return Err(io::ErrorKind::AddrInUse.into()),
            }
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        // Everybody may ask, as everybody may read the page.
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        Ok(Self { listener, path: path.to_path_buf(), clients: Vec::new() })
    }

    /// Returns the descriptors to wait for: those that are read from, and those that are written to.
    pub(crate) fn descriptors(&self) -> [Vec<BorrowedFd<'_>>; 2] {
        let has_room = self.clients.len() < MAX_CLIENTS;
        let mut readers: Vec<BorrowedFd<'_>> = has_room.then(|| self.listener.as_fd()).into_iter().collect();
        let mut writers = Vec::new();
        for client in &self.clients {
            let list = if client.answer.is_none() { &mut readers } else { &mut writers };
            list.push(client.stream.as_fd());
        }
        [readers, writers]
    }

    /// Accepts clients and answers them, as far as that does not block.
    pub(crate) fn serve(&mut self, mut answer: impl FnMut(Query) -> String) {
        let now = raw_ns();
        while self.clients.len() < MAX_CLIENTS
            && let Ok((stream, _)) = self.listener.accept()
        {
            if stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, request: Vec::new(), answer: None, deadline: now + PATIENCE });
            }
        }
        self.clients.retain_mut(|client| {
            let progress = client.proceed(&mut answer);
            progress.is_ok_and(|progress| progress == Progress::Waits) && now < client.deadline
        });
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Client {
    fn proceed(&mut self, answer: &mut impl FnMut(Query) -> String) -> io::Result<Progress> {
        if self.answer.is_none() && !self.read_request()? {
            return Ok(Progress::Waits);
        }
        let rest = self.answer.get_or_insert_with(|| {
            let line = String::from_utf8_lossy(&self.request);
            match Query::parse(&line) {
                Some(query) => answer(query).into_bytes(),
                None => b"error: unknown request; accepted: status, metrics\n".to_vec(),
            }
        });
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Ok(Progress::Done),
                Ok(written) => {
                    rest.drain(..written);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Waits),
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::Done)
    }

    /// Reads what has arrived. Returns whether the request is complete.
    fn read_request(&mut self) -> io::Result<bool> {
        let mut buffer = [0; MAX_REQUEST];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(read) => self.request.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            if self.request.contains(&b'\n') || self.request.len() > MAX_REQUEST {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("narrows-clockd-{name}-{}", std::process::id()))
    }

    #[test]
    fn queries_are_answered() {
        let path = path("query");
        let mut server = StatusSocket::bind(&path).unwrap();
        assert_eq!(StatusSocket::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let long = "x".repeat(1 << 20);
        let client = {
            let path = path.clone();
            std::thread::spawn(move || {
                let answers = [Query::Status, Query::Metrics].map(|it| query(&path, it).unwrap());
                let mut stream = UnixStream::connect(&path).unwrap();
                stream.write_all(b"reboot\n").unwrap();
                let mut refusal = String::new();
                stream.read_to_string(&mut refusal).unwrap();
                (answers, refusal)
            })
        };
        // Clients that are silent do not keep others from an answer.
        let _silent = [(); 3].map(|()| UnixStream::connect(&path).unwrap());
        let started = raw_ns();
        while !client.is_finished() && raw_ns() - started < 10_000_000_000 {
            server.serve(|query| if query == Query::Status { "{}".into() } else { long.clone() });
            std::thread::sleep(Duration::from_millis(1));
        }
        let ([status, metrics], refusal) = testing::join_thread(Duration::from_secs(1), "the client", client);
        assert_eq!((status.as_str(), metrics == long), ("{}", true));
        assert!(refusal.contains("accepted: status, metrics"), "{refusal}");
        drop(server);
        assert!(!path.exists());
    }

    #[test]
    fn abandoned_sockets_are_replaced_and_files_are_not() {
        let path = path("abandoned");
        drop(UnixListener::bind(&path).unwrap());
        drop(StatusSocket::bind(&path).unwrap());
        fs::write(&path, "text").unwrap();
        assert!(StatusSocket::bind(&path).is_err());
        fs::remove_file(&path).unwrap();
    }
}
