//! When ports' queues are sampled, and what was found.

use fabric::LinkId;
use sim::{PortSample, SeriesConfig};

/// Samples of ports' queues at equal distances.
#[derive(Debug)]
pub(super) struct Samples {
    pub(super) ports: Vec<LinkId>,
    interval_ps: u64,
    next_ps: u64,
    pub(super) taken: Vec<PortSample>,
}

impl Samples {
    pub(super) fn new(config: &SeriesConfig, links: usize) -> Self {
        let mut ports: Vec<LinkId> = config.ports.iter().copied().filter(|it| it.index() < links).collect();
        ports.sort_unstable();
        ports.dedup();
        let interval_ps = config.interval.unsigned_ps();
        let never = interval_ps == 0 || ports.is_empty();
        Self { ports, interval_ps, next_ps: if never { u64::MAX } else { 0 }, taken: Vec::new() }
    }

    /// The next sample time before `now_ps`, if one has passed.
    pub(super) fn due(&mut self, now_ps: u64) -> Option<u64> {
        if self.next_ps >= now_ps {
            return None;
        }
        let due_ps = self.next_ps;
        self.next_ps = due_ps.saturating_add(self.interval_ps);
        Some(due_ps)
    }
}
