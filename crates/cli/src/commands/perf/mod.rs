//! `narrows perf`: how fast bytes cross the transport between two machines. `docs/src/perf.md`.
//!
//! One end listens and prints a ticket, the other one connects. `control.rs` has the messages of both, `test.rs` the test,
//! `listen.rs` and `client.rs` each end's part around it.

mod client;
mod control;
mod listen;
mod meter;
mod show;
mod test;
mod traffic;

use crate::args::PerfArgs;
use crate::exit::CommandFailure;

pub(crate) fn perf(args: &PerfArgs) -> Result<(), CommandFailure> {
    match (&args.listen, &args.peer) {
        (Some(address), _) => listen::listen(address, args),
        (None, Some(peer)) => client::client(peer, args),
        // The command line requires one of the two.
        (None, None) => Err(CommandFailure::Input("error: name a ticket or an address, or --listen ADDR".to_owned())),
    }
}
