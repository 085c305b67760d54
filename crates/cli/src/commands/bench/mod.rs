//! `narrows bench`: how fast things are, on fixed workloads.

mod codes;
mod engine;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod transport;
#[cfg(not(all(target_os = "linux", feature = "transport")))]
mod transport {
    //! `narrows bench transport`, which needs Linux, and the transport.

    use crate::args::BenchTransportArgs;
    use crate::exit::CommandFailure;

    pub(crate) fn transport(_: &BenchTransportArgs) -> Result<(), CommandFailure> {
        Err(CommandFailure::Input(
            "error: this build has no transport: it needs Linux, and the feature `transport`, which is on by default"
                .into(),
        ))
    }
}

pub(crate) use codes::codes;
pub(crate) use engine::engine;
pub(crate) use transport::transport;
