//! What ports report to packets (INT): beside the packets, in a slab of one partition. A packet's place in a link's FIFO
//! says which report is its own: each FIFO has a second one, of places in the slab, where packets carry reports at all.

use std::collections::VecDeque;

use laws::{Hop, MOST_HOPS};

use crate::packet::Report;

/// The reports of the ports that one packet has passed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Record {
    hops: [Hop; MOST_HOPS],
    /// Over [`MOST_HOPS`]: there were more, and none counts.
    len: u8,
}

impl Record {
    pub(crate) fn add(&mut self, hop: Hop) {
        if let Some(free) = self.hops.get_mut(usize::from(self.len)) {
            *free = hop;
        }
        self.len = self.len.saturating_add(1);
    }

    pub(crate) fn hops(&self) -> &[Hop] {
        self.hops.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

/// All reports of a partition.
pub(crate) struct Reports {
    /// The first means none.
    records: Vec<Record>,
    free: Vec<u32>,
    /// Of each FIFO: the reports of the packets in it, in order.
    rings: Vec<VecDeque<u32>>,
}

impl Reports {
    pub(crate) fn new(fifos: usize) -> Self {
        Self { records: vec![Record::default()], free: Vec::new(), rings: vec![VecDeque::new(); fifos] }
    }

    /// A packet joins a FIFO.
    #[inline]
    pub(crate) fn push(&mut self, fifo: usize, report: Report) {
        self.rings[fifo].push_back(report.0);
    }

    /// The first packet of a FIFO leaves it.
    #[inline]
    pub(crate) fn pop(&mut self, fifo: usize) -> Report {
        Report(self.rings[fifo].pop_front().unwrap_or(0))
    }

    /// A port adds its own report to a packet's; a packet without any gets one.
    #[inline]
    pub(crate) fn add(&mut self, report: &mut Report, hop: Hop) {
        if *report == Report::NONE {
            *report = self.begin();
        }
        self.records[report.0 as usize].add(hop);
    }

    /// A report of no port yet.
    #[inline]
    fn begin(&mut self) -> Report {
        if let Some(place) = self.free.pop() {
            // What the last one said is written over, hop by hop.
            self.records[place as usize].len = 0;
            return Report(place);
        }
        self.insert(&Record::default())
    }

    #[inline]
    pub(crate) fn insert(&mut self, record: &Record) -> Report {
        if let Some(place) = self.free.pop() {
            self.records[place as usize] = *record;
            return Report(place);
        }
        self.records.push(*record);
        Report(u32::try_from(self.records.len() - 1).expect("under 2^32 packets in flight"))
    }

    #[inline]
    pub(crate) fn hops(&self, report: Report) -> &[Hop] {
        self.records[report.0 as usize].hops()
    }

    #[inline]
    pub(crate) fn forget(&mut self, report: Report) {
        if report != Report::NONE {
            self.free.push(report.0);
        }
    }

    /// Takes a report out, for another partition.
    pub(crate) fn take(&mut self, report: Report) -> Option<Box<Record>> {
        if report == Report::NONE {
            return None;
        }
        self.free.push(report.0);
        Some(Box::new(self.records[report.0 as usize]))
    }
}
