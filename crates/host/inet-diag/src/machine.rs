//! TCP sockets of every network namespace.

use std::path::Path;

use crate::Dump;
use crate::error::Error;
use crate::message::{DiagSocket, DumpRequest};
use crate::netns::{Finder, OWN, enter, inode};
use crate::sock_diag::SockDiag;

/// The TCP sockets of all network namespaces of the machine, as far as this process finds them.
#[derive(Debug, Default)]
pub struct Machine {
    finder: Finder,
}

/// A dump of several namespaces.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Listing {
    /// The sockets.
    pub sockets: Vec<DiagSocket>,
    /// Namespaces with sockets that may be missing from the list, and the reasons.
    pub unlisted: Vec<String>,
}

impl Machine {
    /// Dumps the sockets that the request selects and `keep` accepts. Kept between calls, it needs less time for each
    /// further one.
    ///
    /// # Errors
    /// If the calling thread's own namespace cannot be listed. Others are named in [`Listing::unlisted`].
    pub fn list(
        &mut self,
        request: &DumpRequest<'_>,
        keep: impl Fn(&DiagSocket) -> bool + Sync,
    ) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        let mut sockets = Vec::new();
        let own = inode(Path::new(OWN)).unwrap_or(0);
        let mut kept = |socket: DiagSocket| {
            if keep(&socket) {
                sockets.push(socket);
            }
        };
        let dump = SockDiag::open()?.dump(request, &mut kept)?;
        let found = self.finder.find();
        listing.unlisted = found.unsearched;
        if dump == Dump::Interrupted {
            listing.unlisted.push(interrupted(own));
        }
        let others: Vec<_> = found.namespaces.into_iter().filter(|&(inode, _)| inode != own).collect();
        if !others.is_empty() {
            // One thread enters all of them, one after the other, and ends in the last.
            let failed = std::thread::scope(|scope| {
                let kept = &mut kept;
                let worker = scope.spawn(move || {
                    let mut failed = Vec::new();
                    for (inode, file) in others {
                        let listed = enter(&file)
                            .map_err(Error::Namespace)
                            .and_then(|()| SockDiag::open()?.dump(request, &mut *kept));
                        match listed {
                            Ok(Dump::Complete) => {}
                            Ok(Dump::Interrupted) => failed.push(interrupted(inode)),
                            Err(error) => failed.push(format!("the network namespace net:[{inode}]: {error}")),
                        }
                    }
                    failed
                });
                worker.join().unwrap_or_else(|_| vec!["other network namespaces: the thread panicked".to_owned()])
            });
            listing.unlisted.extend(failed);
        }
        listing.sockets = sockets;
        Ok(listing)
    }
}

/// Warning of a dump that may lack sockets.
fn interrupted(netns: u64) -> String {
    format!("some sockets of net:[{netns}], because they changed during every attempt")
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use testing::skipped;

    #[test]
    fn connection_in_a_namespace_without_a_name_is_listed() {
        let connection = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).ok()?;
            let up = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
            up.is_ok_and(|status| status.success()).then(|| {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
                (to, listener.accept().unwrap().0)
            })
        });
        let Some((to, from)) = connection.join().unwrap() else {
            return skipped(
                "connection_in_a_namespace_without_a_name_is_listed",
                "a network namespace needs root, its loopback iproute2",
            );
        };
        let ends = [to.local_addr().unwrap(), from.local_addr().unwrap()];
        let mut machine = Machine::default();
        for _ in 0..2 {
            let listing = machine.list(&DumpRequest::connections(), |socket| ends.contains(&socket.local)).unwrap();
            assert!(listing.sockets.len() >= 2, "{listing:?}");
        }
    }
}
