//! When flows start: at a time, or once others have come far enough and their sender has computed for a while.

use std::collections::BTreeMap;

use units::{Span, Time};

/// A flow, numbered from 0 as listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u32);

/// What a flow can wait for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Cause {
    /// The sender of that flow has everything acknowledged.
    Complete(FlowId),
    /// The receiver of that flow has every byte.
    Received(FlowId),
    /// That flow has started. Only its own sender knows, so the flow that waits has the same sender.
    Begun(FlowId),
}

impl Cause {
    /// The flow of which it speaks.
    pub fn flow(self) -> FlowId {
        match self {
            Self::Complete(flow) | Self::Received(flow) | Self::Begun(flow) => flow,
        }
    }

    /// The same of another flow.
    fn of(self, flow: FlowId) -> Self {
        match self {
            Self::Complete(_) => Self::Complete(flow),
            Self::Received(_) => Self::Received(flow),
            Self::Begun(_) => Self::Begun(flow),
        }
    }
}

/// When a flow starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At this time.
    At(Time),
    /// After all of its causes.
    Waits {
        /// The causes, a set of [`Causes`].
        causes: CauseSet,
        /// How long the sender computes after the last of them.
        after: Span,
    },
}

/// A set of causes, a place in [`Causes`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CauseSet(u32);

/// Sets of causes, one behind the other in one list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Causes {
    /// By set: where it ends in `list`.
    ends: Vec<u32>,
    list: Vec<Cause>,
    /// How long the sender computes on a cause of a set by itself, beside what else it does; few have that.
    computes: BTreeMap<(u32, Cause), Span>,
    /// By set: before when a flow that waits for it does not start; few have that.
    earliest: BTreeMap<u32, Time>,
}

impl Causes {
    /// Adds a set and gives the start of a flow that waits for all of it, and computes so long then.
    ///
    /// # Panics
    /// If the set is empty, or with 2^32 causes.
    pub fn start(&mut self, causes: impl IntoIterator<Item = Cause>, after: Span) -> Start {
        Start::Waits { causes: self.add(causes), after }
    }

    /// Adds a set.
    ///
    /// # Panics
    /// If the set is empty, for a flow would wait for ever, or with 2^32 causes.
    pub fn add(&mut self, causes: impl IntoIterator<Item = Cause>) -> CauseSet {
        let before = self.list.len();
        self.list.extend(causes);
        assert!(self.list.len() > before, "a flow that waits for nothing would wait for ever");
        self.close()
    }

    /// Lets the sender compute for a while on one cause of a set, beside what it does meanwhile: the flow hears of the cause
    /// that much later.
    pub fn compute_on(&mut self, set: CauseSet, cause: Cause, compute: Span) {
        debug_assert!(self.of(set).contains(&cause), "{cause:?} is none of the set");
        if !compute.is_zero() {
            self.computes.insert((set.0, cause), compute);
        }
    }

    /// Lets no flow that waits for a set start before `time`.
    pub fn not_before(&mut self, set: CauseSet, time: Time) {
        if time > Time::ZERO {
            self.earliest.insert(set.0, time);
        }
    }

    /// How long the sender computes on one cause of a set.
    pub(crate) fn compute_of(&self, set: CauseSet, cause: Cause) -> Span {
        // Nearly all runs have none.
        if self.computes.is_empty() {
            return Span::ZERO;
        }
        self.computes.get(&(set.0, cause)).copied().unwrap_or(Span::ZERO)
    }

    /// Before when a flow that waits for a set does not start.
    pub fn earliest(&self, set: CauseSet) -> Time {
        if self.earliest.is_empty() { Time::ZERO } else { self.earliest.get(&set.0).copied().unwrap_or(Time::ZERO) }
    }

    /// The causes of a set that is in here.
    pub fn of(&self, set: CauseSet) -> &[Cause] {
        let place = set.0 as usize;
        let begins = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.list[begins as usize..self.ends[place] as usize]
    }

    /// Takes over the sets of others, whose flow 0 is `first` here. Gives the start that one of theirs is from now on.
    ///
    /// # Panics
    /// With 2^32 causes.
    pub fn join(&mut self, others: &Self, first: FlowId) -> impl Fn(CauseSet) -> CauseSet + use<> {
        let before = self.ends.len() as u32;
        for set in 0..others.ends.len() as u32 {
            let causes = others.of(CauseSet(set)).iter();
            self.list.extend(causes.map(|cause| cause.of(FlowId(first.0 + cause.flow().0))));
            self.close();
        }
        for (&(set, cause), &compute) in &others.computes {
            self.computes.insert((before + set, cause.of(FlowId(first.0 + cause.flow().0))), compute);
        }
        self.earliest.extend(others.earliest.iter().map(|(&set, &time)| (before + set, time)));
        move |set| CauseSet(before + set.0)
    }

    /// Ends the set that was added last.
    fn close(&mut self) -> CauseSet {
        let end = u32::try_from(self.list.len());
        self.ends.push(end.expect("fewer than 2^32 causes"));
        CauseSet(self.ends.len() as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_kept_apart_and_numbered_anew_where_they_join_others() {
        let [a, b, c] = [Cause::Complete(FlowId(0)), Cause::Received(FlowId(1)), Cause::Begun(FlowId(2))];
        let mut causes = Causes::default();
        let (first, second) = (causes.add([a]), causes.add([b, c]));
        assert_eq!((causes.of(first), causes.of(second)), (&[a][..], &[b, c][..]));
        let mut all = Causes::default();
        let own = all.add([c]);
        let here = all.join(&causes, FlowId(10));
        assert_eq!(all.of(own), [c]);
        assert_eq!(all.of(here(first)), [Cause::Complete(FlowId(10))]);
        assert_eq!(all.of(here(second)), [Cause::Received(FlowId(11)), Cause::Begun(FlowId(12))]);
    }

    #[test]
    fn what_a_set_adds_goes_with_it() {
        let [a, b] = [Cause::Complete(FlowId(0)), Cause::Received(FlowId(1))];
        let mut causes = Causes::default();
        let set = causes.add([a, b]);
        causes.compute_on(set, b, Span::from_us(3));
        causes.not_before(set, Time::from_us(7));
        let mut all = Causes::default();
        let own = all.add([a]);
        let here = all.join(&causes, FlowId(10))(set);
        assert_eq!(all.compute_of(here, Cause::Received(FlowId(11))), Span::from_us(3));
        assert_eq!(all.compute_of(here, Cause::Complete(FlowId(10))), Span::ZERO);
        assert_eq!((all.earliest(here), all.earliest(own)), (Time::from_us(7), Time::ZERO));
    }

    #[test]
    #[should_panic(expected = "wait for ever")]
    fn a_flow_waits_for_something() {
        Causes::default().start([], Span::ZERO);
    }
}
