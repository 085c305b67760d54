//! The scenario's flows over the transport, which this build does not have.

use emulator::{Emulated, RunOptions};
use experiment::TrafficProgress;
use router::IpVersion;
use scenario::{BuiltRun, Run};

use crate::args::EmulateArgs;
use crate::exit::CommandFailure;

fn absent() -> CommandFailure {
    CommandFailure::Input(
        "error: --stack narrows: this build has no transport: it needs the feature `transport`, which is on by default"
            .into(),
    )
}

pub(super) fn refuse(_: &Run, _: &BuiltRun, _: &EmulateArgs) -> Result<(), CommandFailure> {
    Err(absent())
}

pub(super) fn warnings(_: &BuiltRun, _: IpVersion) -> Vec<String> {
    Vec::new()
}

pub(super) fn run(
    _: &BuiltRun,
    _: RunOptions,
    _: &mut dyn FnMut(TrafficProgress) -> bool,
) -> Result<Emulated, CommandFailure> {
    Err(absent())
}
