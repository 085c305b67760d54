//! Samples of sockets where the kernel refuses the laws' state.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use emulator::diag::Sampler;
use emulator::{Clock, LawReading, LawStateReader};
use inet_diag::DiagSocket;
use units::Span;

use crate::set::{ALICE, middle, set};

/// A reader with a map that is not a BPF map: the kernel refuses the request for it.
struct NoMap(File);

impl LawStateReader for NoMap {
    fn maps(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.0.as_fd()]
    }

    fn decode(&self, _: &DiagSocket) -> Option<LawReading> {
        unreachable!("there is no state to decode")
    }
}

#[test]
fn refused_law_state_is_named_and_sampling_goes_on() {
    let Some(set) = set(&middle()) else { return };
    let reader = NoMap(File::open("/dev/null").unwrap());
    let sampler = Sampler::start(&set.hosts, Clock::start(), Span::from_ms(1), |_| true, Some(Box::new(reader)));
    let sampler = sampler.unwrap();
    let connect = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect_timeout(&listener.local_addr().unwrap(), Duration::from_secs(5));
        (connection.unwrap(), listener)
    };
    let (connection, _listener) = set.hosts.enter(ALICE, connect).unwrap();
    let address = connection.local_addr().unwrap();
    // The last samples are taken now.
    let samples = sampler.stop();
    let refused = samples.law_state_refused.expect("the request cannot be granted");
    assert!(refused.contains("BPF storage") && refused.contains("EINVAL"), "{refused}");
    let own = samples.rows.iter().find(|row| row.host == ALICE && row.socket.local == address);
    assert!(own.is_some_and(|row| row.law.is_none()), "{:?}", samples.rows);
}
