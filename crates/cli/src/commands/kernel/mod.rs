//! `narrows kernel`: laws in this machine's own TCP.

mod doctor;
#[cfg(feature = "bpf")]
mod load;
#[cfg(feature = "bpf")]
mod status;

use crate::args::KernelCommand;
use crate::exit::CommandFailure;

pub(crate) fn kernel(command: KernelCommand) -> Result<(), CommandFailure> {
    match command {
        KernelCommand::Doctor(args) => doctor::doctor(&args),
        #[cfg(feature = "bpf")]
        KernelCommand::Load(args) => load::load(&args),
        #[cfg(feature = "bpf")]
        KernelCommand::Status(args) => status::status(&args),
        #[cfg(feature = "bpf")]
        KernelCommand::Unload(args) => load::unload(&args),
        #[cfg(feature = "bpf")]
        KernelCommand::Export { directory } => load::export(&directory),
        #[cfg(not(feature = "bpf"))]
        _ => Err(CommandFailure::Input(
            "error: this build of narrows has no BPF part; `narrows kernel doctor` lists what building it needs"
                .to_owned(),
        )),
    }
}

/// Warning about sockets that found no memory for a flow.
#[cfg(feature = "bpf")]
pub(crate) fn missing_state_warning(sockets: u64) -> String {
    let subject = if sockets == 1 { "1 socket runs".to_owned() } else { format!("{sockets} sockets run") };
    format!(
        "{subject} or ran without the law, at the initial window: the kernel had no memory for its state (a socket may have \
         net.core.optmem_max bytes; raise it)"
    )
}

/// The kernel's refusals fail the command; everything else is an error of the input.
#[cfg(feature = "bpf")]
impl From<kernel::Error> for CommandFailure {
    fn from(error: kernel::Error) -> Self {
        match error {
            kernel::Error::Refused { .. } | kernel::Error::Sockets(_) | kernel::Error::Failed { .. } => {
                Self::Run(error.into())
            }
            other => Self::Input(format!("error: {other}")),
        }
    }
}
