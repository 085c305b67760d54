//! The causes of slow flows: what a flow's completion time beyond the ideal was spent on, and who is to blame.
//!
//! The input is the log of a recorded run ([`experiment::Recording`]). [`walk`](critical_path) goes backwards from a
//! flow's completion along its critical path: the last acknowledgement, the packet that it acknowledges, the event that
//! let that packet go when it left, and so on to the start. Each picosecond of the completion time lies in exactly one
//! step. A second recording counts the flows that used the links of these steps meanwhile. [`Paths::attribute`]
//! subtracts the time that an ideal flow needs, too, and assigns the rest to causes.

mod group;
mod shares;
mod walk;

pub use group::{GroupCause, NamedTime, OfRun, RootKind, WindowSince, group_causes, root_words};
pub use shares::{Attribution, Cause, FlowTime, LastCut, Logged, LostAt, Paths, Ranked, Root, Share};
pub use walk::{CriticalPath, LossFound, Round, Step, StepKind, critical_path};
