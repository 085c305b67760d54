//! Starts of flows: at a time, or once others have progressed far enough and their sender has computed for a while.

use std::collections::BTreeMap;
use std::ops::Range;

use units::{Span, Time};

/// A flow, numbered from 0 as listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u32);

/// A dependency of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Dependency {
    /// The sender of that flow has everything acknowledged.
    Complete(FlowId),
    /// The receiver of that flow has every byte.
    Received(FlowId),
    /// The flow has started. Only its own sender knows, so the flow that waits has the same sender.
    Begun(FlowId),
}

impl Dependency {
    /// Returns the flow that it depends on.
    pub fn flow(self) -> FlowId {
        match self {
            Self::Complete(flow) | Self::Received(flow) | Self::Begun(flow) => flow,
        }
    }

    /// Returns the same dependency on another flow.
    fn of(self, flow: FlowId) -> Self {
        match self {
            Self::Complete(_) => Self::Complete(flow),
            Self::Received(_) => Self::Received(flow),
            Self::Begun(_) => Self::Begun(flow),
        }
    }
}

/// The start of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Start {
    /// At this time.
    At(Time),
    /// After all of its dependencies.
    Waits {
        /// The dependencies, a set of [`Dependencies`].
        dependencies: DependencySet,
        /// Computation time of the sender after the last of them.
        after: Span,
    },
}

/// A set of dependencies, an index in [`Dependencies`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DependencySet(u32);

/// Sets of dependencies, one behind the other in one list.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct Dependencies {
    /// By set: where it ends in `list`.
    ends: Vec<u32>,
    list: Vec<Dependency>,
    /// By set: before when a flow that waits for it does not start; few have that.
    earliest: BTreeMap<u32, Time>,
    /// (index in `list`, how long the sender computes on that dependency alone), in the order of indices. Most dependencies have none.
    lags: Vec<(u32, Span)>,
}

impl Dependencies {
    /// Adds a set and returns the start of a flow that waits for all of it, and computes for `after` then.
    ///
    /// # Panics
    /// If the set is empty, or with 2^32 dependencies.
    pub fn start(&mut self, dependencies: impl IntoIterator<Item = Dependency>, after: Span) -> Start {
        Start::Waits { dependencies: self.add(dependencies), after }
    }

    /// Adds a set.
    ///
    /// # Panics
    /// If the set is empty, for a flow would wait for ever, or with 2^32 dependencies.
    pub fn add(&mut self, dependencies: impl IntoIterator<Item = Dependency>) -> DependencySet {
        self.add_each(dependencies.into_iter().map(|dependency| (dependency, Span::ZERO)))
    }

    /// Adds a set of different dependencies, each with the sender's computation time on it alone: the set is complete
    /// when the last of these times is over. So a computation that starts no flow can be omitted, and its dependencies
    /// are listed separately.
    ///
    /// # Panics
    /// As [`Dependencies::add`].
    pub fn add_each(&mut self, dependencies: impl IntoIterator<Item = (Dependency, Span)>) -> DependencySet {
        let before = self.list.len();
        for (dependency, lag) in dependencies {
            if lag > Span::ZERO {
                self.lags.push((self.list.len() as u32, lag));
            }
            self.list.push(dependency);
        }
        assert!(self.list.len() > before, "a flow that waits for nothing would wait for ever");
        self.close()
    }

    /// Lets no flow that waits for a set start before `time`.
    pub fn not_before(&mut self, set: DependencySet, time: Time) {
        if time > Time::ZERO {
            self.earliest.insert(set.0, time);
        }
    }

    /// Returns the time before which a flow that waits for a set does not start.
    pub fn earliest(&self, set: DependencySet) -> Time {
        if self.earliest.is_empty() { Time::ZERO } else { self.earliest.get(&set.0).copied().unwrap_or(Time::ZERO) }
    }

    /// Returns the dependencies of a set.
    pub fn of(&self, set: DependencySet) -> &[Dependency] {
        &self.list[self.indices(set)]
    }

    /// Returns the sender's computation time on one dependency of a set alone.
    #[inline]
    pub fn lag(&self, set: DependencySet, dependency: Dependency) -> Span {
        if self.lags.is_empty() { Span::ZERO } else { self.find_lag(set, dependency) }
    }

    fn find_lag(&self, set: DependencySet, dependency: Dependency) -> Span {
        let indices = self.indices(set);
        let first = self.lags.partition_point(|&(index, _)| (index as usize) < indices.start);
        let mut lags = self.lags[first..].iter().take_while(|&&(index, _)| (index as usize) < indices.end);
        lags.find(|&&(index, _)| self.list[index as usize] == dependency).map_or(Span::ZERO, |&(_, lag)| lag)
    }

    /// The indices of a set's dependencies.
    fn indices(&self, set: DependencySet) -> Range<usize> {
        let index = set.0 as usize;
        let begins = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        begins as usize..self.ends[index] as usize
    }

    /// Adds the sets of `others`; their flow 0 is `first` here. Returns the mapping from their sets to the new ones.
    ///
    /// # Panics
    /// With 2^32 dependencies.
    pub fn join(&mut self, others: &Self, first: FlowId) -> impl Fn(DependencySet) -> DependencySet + use<> {
        let before = self.ends.len() as u32;
        let listed = self.list.len() as u32;
        self.lags.extend(others.lags.iter().map(|&(index, lag)| (listed + index, lag)));
        for set in 0..others.ends.len() as u32 {
            let dependencies = others.of(DependencySet(set)).iter();
            self.list.extend(dependencies.map(|dependency| dependency.of(FlowId(first.0 + dependency.flow().0))));
            self.close();
        }
        self.earliest.extend(others.earliest.iter().map(|(&set, &time)| (before + set, time)));
        move |set| DependencySet(before + set.0)
    }

    /// Ends the set that was added last.
    fn close(&mut self) -> DependencySet {
        let end = u32::try_from(self.list.len());
        self.ends.push(end.expect("fewer than 2^32 dependencies"));
        DependencySet(self.ends.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_sets_are_renumbered() {
        let [a, b, c] =
            [Dependency::Complete(FlowId(0)), Dependency::Received(FlowId(1)), Dependency::Begun(FlowId(2))];
        let mut dependencies = Dependencies::default();
        let (first, second) = (dependencies.add([a]), dependencies.add([b, c]));
        assert_eq!((dependencies.of(first), dependencies.of(second)), (&[a][..], &[b, c][..]));
        let mut all = Dependencies::default();
        let own = all.add([c]);
        let here = all.join(&dependencies, FlowId(10));
        assert_eq!(all.of(own), [c]);
        assert_eq!(all.of(here(first)), [Dependency::Complete(FlowId(10))]);
        assert_eq!(all.of(here(second)), [Dependency::Received(FlowId(11)), Dependency::Begun(FlowId(12))]);
    }

    #[test]
    fn the_earliest_start_of_a_set_survives_a_join() {
        let mut dependencies = Dependencies::default();
        let set = dependencies.add([Dependency::Complete(FlowId(0))]);
        dependencies.not_before(set, Time::from_us(7));
        let mut all = Dependencies::default();
        let own = all.add([Dependency::Complete(FlowId(0))]);
        let here = all.join(&dependencies, FlowId(10))(set);
        assert_eq!((all.earliest(here), all.earliest(own)), (Time::from_us(7), Time::ZERO));
    }

    #[test]
    fn a_lag_belongs_to_one_dependency_of_one_set() {
        let [a, b] = [Dependency::Complete(FlowId(0)), Dependency::Received(FlowId(1))];
        let mut dependencies = Dependencies::default();
        let plain = dependencies.add([a, b]);
        let late = dependencies.add_each([(a, Span::ZERO), (b, Span::from_us(3))]);
        let later = dependencies.add_each([(a, Span::from_us(5)), (b, Span::ZERO)]);
        let lags = |dependencies: &Dependencies, set, [a, b]: [Dependency; 2]| {
            [dependencies.lag(set, a), dependencies.lag(set, b)]
        };
        assert_eq!(lags(&dependencies, plain, [a, b]), [Span::ZERO; 2]);
        assert_eq!(lags(&dependencies, late, [a, b]), [Span::ZERO, Span::from_us(3)]);
        assert_eq!(lags(&dependencies, later, [a, b]), [Span::from_us(5), Span::ZERO]);
        let mut all = Dependencies::default();
        all.add([b]);
        let here = all.join(&dependencies, FlowId(10));
        let there = [Dependency::Complete(FlowId(10)), Dependency::Received(FlowId(11))];
        assert_eq!(lags(&all, here(late), there), [Span::ZERO, Span::from_us(3)]);
        assert_eq!(lags(&all, here(plain), there), [Span::ZERO; 2]);
    }

    #[test]
    #[should_panic(expected = "wait for ever")]
    fn an_empty_dependency_set_panics() {
        Dependencies::default().start([], Span::ZERO);
    }
}
