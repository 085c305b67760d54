//! The scenario's flows over the transport, which this build does not have.

use emulator::{Emulated, Options, Progress};
use scenario::{BuiltRun, Run};

use crate::args::EmulateArgs;
use crate::exit::Failure;

fn absent() -> Failure {
    Failure::Input(
        "error: --stack narrows: this build has no transport: it needs the feature `transport`, which is on by default"
            .into(),
    )
}

pub(super) fn refuse(_: &Run, _: &BuiltRun, _: &EmulateArgs) -> Result<(), Failure> {
    Err(absent())
}

pub(super) fn warnings(_: &BuiltRun, _: bool) -> Vec<String> {
    Vec::new()
}

pub(super) fn run(_: &BuiltRun, _: Options, _: &mut dyn FnMut(Progress) -> bool) -> Result<Emulated, Failure> {
    Err(absent())
}
