//! Amounts of data that wait to be sent and for acknowledgement, summed over all streams without a walk.

/// Data that a stream could send if the connection had credit, and data that it keeps.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct SendBacklog {
    /// Bytes that were lost.
    pub(super) lost: u64,
    /// Bytes that were never sent, up to the stream's limit.
    pub(super) fresh: u64,
    /// Bytes of `fresh` within the stream's reservation, which it may send regardless of other streams.
    pub(super) reserved: u64,
    /// Bytes of its reservation that the peer has received, or will receive, and has not read as far as this end knows.
    pub(super) used: u64,
    /// The same beyond its reservation.
    pub(super) unreserved: u64,
    /// Set if data waits and the application may write more after it.
    pub(super) is_open: bool,
    /// Set if the application has more, and a full buffer or the peer's limit blocks it.
    pub(super) is_host_limited: bool,
    /// Bytes that were written and are not acknowledged.
    pub(super) buffered: u64,
}

/// The sum over streams.
#[derive(Default, Debug)]
pub(super) struct Sum {
    pub(super) lost: u64,
    pub(super) fresh: u64,
    pub(super) reserved: u64,
    pub(super) used: u64,
    pub(super) unreserved: u64,
    /// Number of open streams.
    pub(super) open: usize,
    /// Number of streams that are held back.
    pub(super) host_limited: usize,
    pub(super) buffered: u64,
}

impl Sum {
    /// Replaces a stream's part of the sum.
    pub(super) fn replace(&mut self, before: SendBacklog, now: SendBacklog) {
        debug_assert!(before.lost <= self.lost && before.buffered <= self.buffered, "{before:?} was not counted");
        self.lost = self.lost - before.lost + now.lost;
        self.fresh = self.fresh - before.fresh + now.fresh;
        self.reserved = self.reserved - before.reserved + now.reserved;
        self.used = self.used - before.used + now.used;
        self.unreserved = self.unreserved - before.unreserved + now.unreserved;
        self.buffered = self.buffered - before.buffered + now.buffered;
        self.open = self.open - usize::from(before.is_open) + usize::from(now.is_open);
        self.host_limited = self.host_limited - usize::from(before.is_host_limited) + usize::from(now.is_host_limited);
    }
}
