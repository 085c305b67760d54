//! Messages of an end while it runs, and at its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use proxy::{Event, EventCallback};

use crate::exit::tell;
use crate::peer::quantity::amount;

/// The events so far.
#[derive(Default)]
pub(super) struct ProxyLog {
    opened: AtomicU64,
    refused: AtomicU64,
    taken: AtomicU64,
    given: AtomicU64,
    /// The last reported reason for a missing connection to the proxy server: each reason is reported once.
    why: Mutex<String>,
}

impl ProxyLog {
    /// Counts events. Prints those that concern more than one connection.
    pub(super) fn log(self: &Arc<Self>) -> EventCallback {
        let told = self.clone();
        Arc::new(move |event| {
            if told.take(&event) {
                tell(&event.to_string());
            }
        })
    }

    /// Counts events, and prints all of them.
    pub(super) fn log_verbosely(self: &Arc<Self>) -> EventCallback {
        let told = self.clone();
        Arc::new(move |event| {
            told.take(&event);
            tell(&event.to_string());
        })
    }

    /// Counts an event. Returns whether it is always printed.
    fn take(&self, event: &Event) -> bool {
        let add = |count: &AtomicU64, more| {
            count.fetch_add(more, Ordering::Relaxed);
        };
        let mut last = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Opened { .. } => add(&self.opened, 1),
            Event::Refused { .. } => add(&self.refused, 1),
            Event::Ended { taken, given, .. } => {
                add(&self.taken, *taken);
                add(&self.given, *given);
            }
            Event::Linked => last.clear(),
            Event::Unlinked { why, .. } if *last == *why => return false,
            Event::Unlinked { why, .. } => last.clone_from(why),
            Event::NotAccepted { .. } => {}
        }
        matches!(event, Event::Linked | Event::Unlinked { .. } | Event::NotAccepted { .. })
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
    fn what_lasts_is_said_once() {
        let told = ProxyLog::default();
        let unlinked = |why: &str| Event::Unlinked { why: why.into(), again: Duration::from_secs(1) };
        let said = [unlinked("a"), unlinked("a"), unlinked("b"), unlinked("b"), Event::Linked, unlinked("b")];
        assert_eq!(said.map(|event| told.take(&event)), [true, false, true, false, true, true]);
        let to: proxy::Destination = "a:1".parse().unwrap();
        let ended = Event::Ended { from: "x".into(), to: to.clone(), taken: 1_000, given: 2, trouble: None };
        assert!(!told.take(&Event::Opened { from: "x".into(), to, at: None }) && !told.take(&ended));
        assert_eq!(told.summary(), "1 connections opened, 0 refused; 1.00 kB taken and 2 B given by those that ended");
    }
}
