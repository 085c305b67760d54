//! Reports of ports to packets (INT): outside of the packets, in a slab of one partition. If packets carry reports at
//! all, each has a [`TelemetrySlot`] next to it in its link's FIFO, with the place and number of its own reports.

use laws::{Hop, MAX_HOPS};

use crate::packet::TelemetrySlot;
use crate::prefetch;

/// The reports of the ports that one packet has passed.
#[derive(Clone, Copy, Default)]
pub(crate) struct TelemetryRecord {
    hops: [Hop; MAX_HOPS],
    /// Over [`MAX_HOPS`]: there were more, and none counts.
    len: u32,
}

impl TelemetryRecord {
    pub(crate) fn add(&mut self, hop: Hop) {
        if let Some(free) = self.hops.get_mut(self.len as usize) {
            *free = hop;
        }
        self.len = (self.len + 1).min(TelemetrySlot::TOO_MANY);
    }
}

/// The reports of one packet in the slab: no hop spans two cache lines.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Hops([Hop; MAX_HOPS]);

/// Hops that fill a line of the cache.
const HOPS_A_LINE: usize = 2;

const _: () = assert!(size_of::<Hop>() * HOPS_A_LINE == 64);

/// All reports of a partition.
pub(crate) struct Reports {
    /// The first means none.
    records: Vec<Hops>,
    free: Vec<u32>,
}

impl Reports {
    pub(crate) fn new() -> Self {
        Self { records: vec![Hops::default()], free: Vec::new() }
    }

    /// Adds a port's own report to a packet's; a packet without any gets one. The record is written and not read: most
    /// of it is not in the processor's cache.
    #[inline(always)]
    pub(crate) fn add(&mut self, report: &mut TelemetrySlot, hop: Hop) {
        if *report == TelemetrySlot::NONE {
            *report = TelemetrySlot::new(self.place(), 0);
        }
        if let Some(free) = self.records[report.place()].0.get_mut(report.len()) {
            *free = hop;
        }
        report.lengthen();
    }

    /// Returns a free place. The previous contents are overwritten, hop by hop.
    #[inline]
    fn place(&mut self) -> u32 {
        if let Some(place) = self.free.pop() {
            return place;
        }
        self.records.push(Hops::default());
        u32::try_from(self.records.len() - 1)
            .ok()
            .filter(|&place| place < 1 << 28)
            .expect("under 2^28 packets in flight")
    }

    pub(crate) fn insert(&mut self, record: &TelemetryRecord) -> TelemetrySlot {
        let place = self.place();
        self.records[place as usize].0 = record.hops;
        TelemetrySlot::new(place, record.len)
    }

    #[inline]
    pub(crate) fn hops(&self, report: TelemetrySlot) -> &[Hop] {
        self.records[report.place()].0.get(..report.len()).unwrap_or(&[])
    }

    /// Prefetches the memory of the next hop's report, as far as its address is known.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self, report: TelemetrySlot) {
        let next =
            if report == TelemetrySlot::NONE { self.free.last().map_or(0, |&it| it as usize) } else { report.place() };
        if let Some(hops) = self.records.get(next) {
            prefetch::element(&hops.0, report.len());
        }
    }

    /// Asks ahead for all hops of a report.
    #[inline]
    pub(crate) fn prefetch(&self, report: TelemetrySlot) {
        let hops = self.hops(report);
        (0..hops.len()).step_by(HOPS_A_LINE).for_each(|hop| prefetch::element(hops, hop));
    }

    #[inline]
    pub(crate) fn forget(&mut self, report: TelemetrySlot) {
        if report != TelemetrySlot::NONE {
            self.free.push(report.place() as u32);
        }
    }

    /// Takes a report out, for another partition.
    pub(crate) fn take(&mut self, report: TelemetrySlot) -> Option<Box<TelemetryRecord>> {
        if report == TelemetrySlot::NONE {
            return None;
        }
        self.forget(report);
        Some(Box::new(TelemetryRecord { hops: self.records[report.place()].0, len: report.len() as u32 }))
    }
}
