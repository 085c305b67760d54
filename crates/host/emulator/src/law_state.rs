//! The state of control laws in the kernel, as samples record it. The emulator does not depend on laws: it requests the BPF
//! storage of the sockets that it samples, and its caller decodes the bytes.

use std::os::fd::BorrowedFd;

use inet_diag::DiagSocket;
use laws::LawActions;

/// State of the law of one connection at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct LawReading {
    /// Counts of the law's actions.
    pub actions: LawActions,
    /// The law's own state by name; units are the last word.
    pub trace: Vec<(&'static str, i64)>,
}

/// A decoder of laws' state.
pub trait LawStateReader: Send {
    /// The BPF maps of type `sk_storage` in which the laws keep their state.
    fn maps(&self) -> Vec<BorrowedFd<'_>>;

    /// Decodes the state of a sampled socket's law; none for a socket without such a law, or before it begins. Called
    /// at every sample, from the sampler's thread.
    fn decode(&self, socket: &DiagSocket) -> Option<LawReading>;
}
