//! The `narrows` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    let self_command = std::env::current_exe().map_or_else(|_| "narrows".into(), Into::into);
    ExitCode::from(command::run(std::env::args_os(), vec![self_command]))
}
