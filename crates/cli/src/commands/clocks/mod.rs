//! `narrows clocks`: clock synchronisation in a mesh of hosts.

#[cfg(target_os = "linux")]
mod daemon;
#[cfg(not(target_os = "linux"))]
mod daemon {
    //! `narrows clocks run` and `status`, which need Linux.

    use crate::args::{ClocksRunArgs, ClocksStatusArgs};
    use crate::exit::CommandFailure;

    const ABSENT: &str = "error: the daemon needs Linux";

    pub(super) fn run(_: &ClocksRunArgs) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(ABSENT.into()))
    }

    pub(super) fn status(_: &ClocksStatusArgs) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(ABSENT.into()))
    }
}
mod simulate;

use crate::args::ClocksCommand;
use crate::exit::CommandFailure;

pub(crate) fn clocks(command: &ClocksCommand) -> Result<(), CommandFailure> {
    match command {
        ClocksCommand::Simulate(args) => simulate::simulate(args),
        ClocksCommand::Run(args) => daemon::run(args),
        ClocksCommand::Status(args) => daemon::status(args),
    }
}
