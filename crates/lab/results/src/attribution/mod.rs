//! The causes of slow flows: a breakdown of the completion time beyond the ideal, and the flows responsible for each part.
//!
//! The input is the log of a recorded run ([`experiment::Recording`]). [`walk`](critical_path) goes backwards from a flow's
//! completion along its critical path: the last acknowledgement, the packet that it acknowledges, the event that released
//! that packet, and so on to the start. Each picosecond of the completion time belongs to exactly one step. A second
//! recording counts the flows that used the links during these steps. [`CriticalPaths::attribute`] subtracts the time that an ideal
//! flow also needs, and assigns the rest to causes.

mod group;
mod shares;
mod walk;

pub use group::{GroupCause, NamedTime, OfRun, RootKind, WindowSince, group_causes, root_words};
pub use shares::{Attribution, CriticalPaths, DelayCause, FlowTime, LastCut, Logged, LostAt, Ranked, Root, Share};
pub use walk::{CriticalPath, LossFound, PathRound, PathStep, StepKind, critical_path};
