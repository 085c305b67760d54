//! Sampling of ports' queues, and the samples taken.

use experiment::{PortSample, SeriesConfig};
use fabric::LinkId;
use units::{Span, Time};

/// Samples of ports' queues at equal distances.
#[derive(Debug)]
pub(super) struct PortSampler {
    pub(super) ports: Vec<LinkId>,
    interval: Span,
    next_at: Time,
    pub(super) samples: Vec<PortSample>,
}

impl PortSampler {
    pub(super) fn new(config: &SeriesConfig, links: usize) -> Self {
        let mut ports: Vec<LinkId> = config.ports.iter().copied().filter(|it| it.index() < links).collect();
        ports.sort_unstable();
        ports.dedup();
        let interval = config.interval;
        let never = interval <= Span::ZERO || ports.is_empty();
        Self { ports, interval, next_at: if never { Time::NEVER } else { Time::ZERO }, samples: Vec::new() }
    }

    /// The next sample time before `now`, if one has passed.
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
        if self.next_at >= now {
            return None;
        }
        let due = self.next_at;
        self.next_at = due.saturating_add(self.interval);
        Some(due)
    }
}
