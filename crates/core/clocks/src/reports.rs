//! Reports of all members: the newest of each, and those to forward.

use alloc::vec;
use alloc::vec::Vec;

use units::{Span, Time};

use crate::mesh::{Member, Neighbours};
use crate::network::PairInterval;
use crate::wire::{MAX_LENGTH, REPORTS_OVERHEAD, Report, ReportedPair, report_length};

/// Time after which a report no longer counts: three epochs and the time to forward it.
pub(crate) const REPORT_LIFETIME: Span = Span::from_ms(3_500);

/// Time after which a member's session is forgotten.
const SESSION_LIFETIME: Span = Span::from_s(10);

#[derive(Debug)]
struct Known {
    report: Report,
    arrived: Time,
}

/// The newest report of each member.
#[derive(Debug)]
pub(crate) struct Reports {
    known: Vec<Option<Known>>,
    /// Members with a report to forward.
    pending: Vec<Member>,
}

impl Reports {
    pub(crate) fn new(members: usize) -> Self {
        let mut known = Vec::new();
        known.resize_with(members, || None);
        Self { known, pending: Vec::new() }
    }

    /// Takes a report unless it is not newer than the known one of that member. Returns whether it was taken.
    pub(crate) fn take(&mut self, now: Time, report: Report) -> bool {
        let Some(slot) = self.known.get_mut(report.origin.index()) else { return false };
        let is_newer = slot.as_ref().is_none_or(|known| {
            (report.session.0, report.number) > (known.report.session.0, known.report.number)
                || now.saturating_since(known.arrived) > SESSION_LIFETIME
        });
        if is_newer {
            if !self.pending.contains(&report.origin) {
                self.pending.push(report.origin);
            }
            *slot = Some(Known { report, arrived: now });
        }
        is_newer
    }

    /// Returns the reports that count, in the order of members.
    pub(crate) fn recent(&self, now: Time) -> impl Iterator<Item = &Report> {
        let counts = move |known: &&Known| now.saturating_since(known.arrived) <= REPORT_LIFETIME;
        self.known.iter().flatten().filter(counts).map(|known| &known.report)
    }

    /// Returns the pairs of the reports that count, without those of a former era of a member's clock.
    pub(crate) fn pairs(&self, now: Time) -> Vec<PairInterval> {
        let members = self.known.len();
        let mut eras = vec![None; members];
        for report in self.recent(now) {
            eras[report.origin.index()] = Some(report.era);
        }
        let is_valid = |pair: &ReportedPair| {
            let Neighbours { prober, responder } = pair.interval.pair;
            responder.index() < members
                && prober != responder
                && eras[responder.index()].is_none_or(|era| era == pair.era)
        };
        let pairs = self.recent(now).flat_map(|report| &report.pairs);
        pairs.filter(|pair| is_valid(pair)).map(|pair| pair.interval).collect()
    }

    /// Returns whether reports wait to be forwarded.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Takes the reports to forward, in groups that fit into a message each.
    pub(crate) fn take_pending(&mut self) -> Vec<Vec<Report>> {
        let mut groups = vec![Vec::new()];
        let mut length = REPORTS_OVERHEAD;
        for member in core::mem::take(&mut self.pending) {
            let Some(known) = self.known.get(member.index()).and_then(Option::as_ref) else { continue };
            let more = report_length(known.report.pairs.len());
            if length + more > MAX_LENGTH {
                groups.push(Vec::new());
                length = REPORTS_OVERHEAD;
            }
            length += more;
            if let Some(group) = groups.last_mut() {
                group.push(known.report.clone());
            }
        }
        groups.retain(|group| !group.is_empty());
        groups
    }
}
