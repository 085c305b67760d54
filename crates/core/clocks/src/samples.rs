//! One-way samples of a pair of clocks, kept for a window of time.

use alloc::collections::VecDeque;

use crate::line::Reading;

/// One packet between two hosts, by both clocks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sample {
    /// Local timestamp: of the departure of a packet to the remote host, or of the arrival of one from it.
    pub at: Reading,
    /// Remote timestamp less local timestamp, in nanoseconds: the clocks' offset plus the delay of a packet to the remote
    /// host, or less the delay of a packet from it.
    pub difference: i64,
}

/// The two packets of a coded probe in one direction, which were sent back to back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodedPair {
    /// The packets, in the order in which they were sent.
    pub packets: [Sample; 2],
}

impl CodedPair {
    /// Returns the change of the packets' spacing on their way, in nanoseconds: receiver's less sender's.
    ///
    /// Queues that grow, drain or differ between the two packets change the spacing (Huygens' coded probes).
    pub fn distortion(&self) -> i64 {
        self.packets[1].difference.wrapping_sub(self.packets[0].difference)
    }

    /// Returns whether the spacing changed by at most `tolerance` nanoseconds: a pure pair.
    pub fn is_pure(&self, tolerance: i64) -> bool {
        self.distortion().unsigned_abs() <= tolerance.unsigned_abs()
    }
}

/// Samples of one direction, in order of time, of a limited age and number.
#[derive(Clone, Debug, Default)]
pub struct SampleWindow {
    samples: VecDeque<Sample>,
}

/// Maximum number of samples of a direction that are kept.
const MAX_SAMPLES: usize = 4_096;

impl SampleWindow {
    /// Adds a sample. Samples may arrive out of order.
    pub fn push(&mut self, sample: Sample) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        let after = self.samples.iter().rposition(|other| other.at <= sample.at).map_or(0, |last| last + 1);
        self.samples.insert(after, sample);
    }

    /// Discards samples from before `start`.
    pub fn discard_before(&mut self, start: Reading) {
        while self.samples.pop_front_if(|sample| sample.at < start).is_some() {}
    }

    /// Discards all samples.
    pub fn clear(&mut self) {
        self.samples.clear();
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Returns the samples from `start` on, in order of time.
    pub fn since(&mut self, start: Reading) -> &[Sample] {
        let samples = self.samples.make_contiguous();
        &samples[samples.partition_point(|sample| sample.at < start)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at: i64) -> Sample {
        Sample { at: Reading(at), difference: 0 }
    }

    #[test]
    fn samples_are_kept_in_order() {
        let mut window = SampleWindow::default();
        for at in [5, 1, 3, 9, 7] {
            window.push(sample(at));
        }
        assert_eq!(window.since(Reading(0)).iter().map(|it| it.at.0).collect::<std::vec::Vec<_>>(), [1, 3, 5, 7, 9]);
        window.discard_before(Reading(5));
        assert_eq!(window.len(), 3);
    }

    #[test]
    fn the_number_of_samples_is_limited() {
        let mut window = SampleWindow::default();
        (0..10_000).for_each(|at| window.push(sample(at)));
        assert_eq!((window.len(), window.since(Reading(0))[0].at), (MAX_SAMPLES, Reading(10_000 - MAX_SAMPLES as i64)));
    }

    #[test]
    fn a_changed_spacing_makes_a_pair_impure() {
        let pair = |second| CodedPair { packets: [sample(0), Sample { at: Reading(20_000), difference: second }] };
        assert!(pair(300).is_pure(300) && pair(-300).is_pure(300));
        assert!(!pair(301).is_pure(300) && !pair(-301).is_pure(300));
    }
}
