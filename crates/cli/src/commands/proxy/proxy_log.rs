//! Messages of an end while it runs, and at its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use proxy::{Event, EventCallback};

use crate::exit::print_stderr;
use crate::peer::quantity::amount;

/// The events so far.
#[derive(Default)]
pub(super) struct ProxyLog {
    opened: AtomicU64,
    refused: AtomicU64,
    taken: AtomicU64,
    given: AtomicU64,
    /// The last reported reason for a missing connection to the proxy server: each reason is reported once.
    last_reason: Mutex<String>,
}

impl ProxyLog {
    /// Counts events. Prints those that concern more than one connection.
    pub(super) fn log(self: &Arc<Self>) -> EventCallback {
        let log = self.clone();
        Arc::new(move |event| {
            if log.record(&event) {
                print_stderr(&event.to_string());
            }
        })
    }

    /// Counts events, and prints all of them.
    pub(super) fn log_verbosely(self: &Arc<Self>) -> EventCallback {
        let log = self.clone();
        Arc::new(move |event| {
            log.record(&event);
            print_stderr(&event.to_string());
        })
    }

    /// Counts an event. Returns whether it is always printed.
    fn record(&self, event: &Event) -> bool {
        let add = |count: &AtomicU64, more| {
            count.fetch_add(more, Ordering::Relaxed);
        };
        let mut last = self.last_reason.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Opened { .. } => add(&self.opened, 1),
            Event::Refused { .. } => add(&self.refused, 1),
            Event::Ended { taken, given, .. } => {
                add(&self.taken, *taken);
                add(&self.given, *given);
            }
            Event::Connected => last.clear(),
            Event::Disconnected { why, .. } if *last == *why => return false,
            Event::Disconnected { why, .. } => last.clone_from(why),
            Event::NotAccepted { .. } => {}
        }
        matches!(event, Event::Connected | Event::Disconnected { .. } | Event::NotAccepted { .. })
    }

    /// All of it in a line.
    pub(super) fn summary(&self) -> String {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        format!(
            "{} connections opened, {} refused; {} taken and {} given by those that ended",
            count(&self.opened),
            count(&self.refused),
            amount(count(&self.taken)),
            amount(count(&self.given))
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lasting_conditions_are_reported_once() {
        let log = ProxyLog::default();
        let unlinked = |why: &str| Event::Disconnected { why: why.into(), again: Duration::from_secs(1) };
        let events = [unlinked("a"), unlinked("a"), unlinked("b"), unlinked("b"), Event::Connected, unlinked("b")];
        assert_eq!(events.map(|event| log.record(&event)), [true, false, true, false, true, true]);
        let to: proxy::Destination = "a:1".parse().unwrap();
        let ended = Event::Ended { from: "x".into(), to: to.clone(), taken: 1_000, given: 2, error: None };
        assert!(!log.record(&Event::Opened { from: "x".into(), to, at: None }) && !log.record(&ended));
        assert_eq!(log.summary(), "1 connections opened, 0 refused; 1.00 kB taken and 2 B given by those that ended");
    }
}
