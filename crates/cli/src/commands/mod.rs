//! One module a command.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod choose;
pub(crate) mod clocks;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod emulate;
pub(crate) mod explain;
pub(crate) mod export;
#[cfg(feature = "import")]
pub(crate) mod import;
#[cfg(not(feature = "import"))]
pub(crate) mod import {
    //! `narrows import`, which needs the parsers of other programs' files.

    use crate::args::ImportCommand;
    use crate::exit::CommandFailure;

    pub(crate) fn import(_: &ImportCommand) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(format!("error: {}", scenario::WITHOUT_IMPORT)))
    }
}
pub(crate) mod kernel;
pub(crate) mod laws;
pub(crate) mod meta;
pub(crate) mod new_law;
#[cfg(all(target_os = "linux", feature = "transport"))]
pub(crate) mod perf;
#[cfg(not(all(target_os = "linux", feature = "transport")))]
pub(crate) mod perf {
    //! `narrows perf`, which needs Linux, and the transport.

    use crate::args::PerfArgs;
    use crate::exit::CommandFailure;

    pub(crate) fn perf(_: &PerfArgs) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(
            "error: this build has no transport: it needs Linux, and the feature `transport`, which is on by default"
                .into(),
        ))
    }
}
#[cfg(all(target_os = "linux", feature = "transport"))]
pub(crate) mod proxy;
#[cfg(not(all(target_os = "linux", feature = "transport")))]
pub(crate) mod proxy {
    //! `narrows proxy`, which needs Linux, and the transport.

    use crate::args::ProxyCommand;
    use crate::exit::CommandFailure;

    pub(crate) fn proxy(_: ProxyCommand) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(
            "error: this build has no transport: it needs Linux, and the feature `transport`, which is on by default"
                .into(),
        ))
    }
}
pub(crate) mod flow_comparison;
pub(crate) mod python;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod score;
pub(crate) mod show;
pub(crate) mod size;
pub(crate) mod sweep;
#[cfg(all(target_os = "linux", feature = "transport"))]
pub(crate) mod transfer;
#[cfg(not(all(target_os = "linux", feature = "transport")))]
pub(crate) mod transfer {
    //! `narrows send` and `narrows recv`, which need Linux, and the transport.

    use crate::args::{RecvArgs, SendArgs};
    use crate::exit::CommandFailure;

    const ABSENT: &str =
        "error: this build has no transport: it needs Linux, and the feature `transport`, which is on by default";

    pub(crate) fn send(_: &SendArgs) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(ABSENT.into()))
    }

    pub(crate) fn recv(_: &RecvArgs) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(ABSENT.into()))
    }
}
