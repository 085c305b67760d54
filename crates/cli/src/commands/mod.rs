//! One module a command.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod demo;
#[cfg(target_os = "linux")]
pub(crate) mod emulate;
#[cfg(not(target_os = "linux"))]
pub(crate) mod emulate {
    //! `narrows emulate`, which needs Linux.

    use crate::args::EmulateArgs;
    use crate::exit::Failure;

    pub(crate) fn emulate(_: &EmulateArgs) -> Result<(), Failure> {
        Err(Failure::Input("error: real packets need Linux: its network namespaces and TUN devices".into()))
    }
}
pub(crate) mod import;
pub(crate) mod kernel;
pub(crate) mod laws;
pub(crate) mod meta;
pub(crate) mod new_law;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod sides;

use std::io::IsTerminal;

/// Colour only on a terminal, and never with `NO_COLOR`.
pub(crate) fn colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// As many as there are cores, unless asked.
pub(crate) fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from)
}
