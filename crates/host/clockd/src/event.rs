//! Events that operators may want to know.

use std::fmt;

use clocks::Event;

/// An event of a daemon.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DaemonEvent {
    /// The daemon has started.
    Started {
        /// The member's name.
        name: String,
    },
    /// The host's clock contradicts most of its neighbours: it has stepped, and the page is void.
    OwnStep,
    /// The clock of a neighbour has stepped, or the path to it has changed.
    NeighbourStep {
        /// The neighbour's name.
        name: String,
    },
    /// A member has restarted.
    Restart {
        /// The member's name.
        name: String,
    },
    /// A member contradicts the others.
    Suspect {
        /// The member's name.
        name: String,
    },
    /// Mesh time advances with the clock of this member.
    Reference {
        /// The member's name.
        name: String,
    },
    /// Mesh time has stepped by more than its error.
    Disruption,
    /// Mesh time is no longer known.
    Lost,
    /// `CLOCK_REALTIME` has been stepped, which does not change mesh time.
    SystemClockStep {
        /// The step, in nanoseconds.
        ns: i64,
    },
    /// The host was suspended: the page is void.
    Suspend {
        /// The time, in nanoseconds.
        ns: i64,
    },
    /// The daemon begins a new session, as it does every few weeks.
    Renewal,
    /// The file of metrics cannot be written.
    Metrics {
        /// The error.
        error: String,
    },
}

impl DaemonEvent {
    /// Returns whether something is wrong, or was: with a clock, a member or a file.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::OwnStep
            | Self::NeighbourStep { .. }
            | Self::Suspect { .. }
            | Self::Disruption
            | Self::Lost
            | Self::SystemClockStep { .. }
            | Self::Suspend { .. }
            | Self::Metrics { .. } => true,
            Self::Started { .. } | Self::Restart { .. } | Self::Reference { .. } | Self::Renewal => false,
        }
    }

    pub(crate) fn of_node(event: Event, name: impl Fn(clocks::Member) -> String) -> Self {
        match event {
            Event::OwnStep => Self::OwnStep,
            Event::NeighbourStep(member) => Self::NeighbourStep { name: name(member) },
            Event::Restart(member) => Self::Restart { name: name(member) },
            Event::Suspect(member) => Self::Suspect { name: name(member) },
            Event::Reference(member) => Self::Reference { name: name(member) },
            Event::Disruption => Self::Disruption,
            Event::Lost => Self::Lost,
        }
    }
}

impl fmt::Display for DaemonEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { name } => write!(f, "started as {name}"),
            Self::OwnStep => {
                f.write_str("the clock of this host stepped; the page is void until it is synchronised again")
            }
            Self::NeighbourStep { name } => write!(f, "the clock of {name} stepped, or the path to it changed"),
            Self::Restart { name } => write!(f, "{name} restarted"),
            Self::Suspect { name } => write!(f, "{name} contradicts the other members and is left out"),
            Self::Reference { name } => write!(f, "mesh time advances with the clock of {name}"),
            Self::Disruption => f.write_str("mesh time stepped by more than its error"),
            Self::Lost => f.write_str("mesh time is no longer known"),
            Self::SystemClockStep { ns } => write!(f, "the system clock was stepped by {ns} ns; mesh time goes on"),
            Self::Suspend { ns } => write!(f, "this host was suspended for {} ms; the page is void", ns / 1_000_000),
            Self::Renewal => f.write_str("a new session begins"),
            Self::Metrics { error } => write!(f, "cannot write the metrics: {error}"),
        }
    }
}
