//! `narrows proxy`: programs' TCP connections over a long link, as streams of the transport. `docs/src/proxy.md`.
//!
//! `crates/wire/proxy` does the work. `server.rs` and `client.rs` read their command lines, decide which peers may connect, and
//! run until Ctrl-C; `proxy_log.rs` has the messages.

mod client;
mod proxy_log;
mod server;

use std::future::Future;
use std::time::Duration;

use proto::settings::Settings;
use proto::streams::RESERVED;
use proxy::MAX_FLOWS;

use crate::args::ProxyCommand;
use crate::exit::CommandFailure;
use crate::interrupt::{interrupted, listen as listen_for_interrupts};
use crate::peer::descriptors::open_more_files;

/// Ctrl-C is looked for so often.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of streams that may have full windows of unread data at a time. All streams have their reserves in addition to
/// these; the memory is used only then.
const FULL_WINDOWS: u64 = 16;

pub(crate) fn proxy(command: ProxyCommand) -> Result<(), CommandFailure> {
    match command {
        ProxyCommand::Server(args) => server::server(&args),
        ProxyCommand::Client(args) => client::client(&args),
    }
}

/// Makes room for many streams with unread data.
fn reserve_stream_windows(settings: &mut Settings) {
    let full = settings.limits.max_stream_data.saturating_mul(FULL_WINDOWS);
    settings.limits.max_data = full.saturating_add(MAX_FLOWS as u64 * RESERVED);
}

/// Runs an end until it ends or Ctrl-C is pressed. Returns none after Ctrl-C.
fn run<T>(end: impl Future<Output = T>) -> Result<Option<T>, CommandFailure> {
    listen_for_interrupts();
    open_more_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CommandFailure::Run(error.into()))?;
    let ended = runtime.block_on(async {
        let interruption = async {
            while !interrupted() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            ended = end => Some(ended),
            () = interruption => None,
        }
    });
    // A name that is being looked up is not waited for.
    runtime.shutdown_background();
    Ok(ended)
}
