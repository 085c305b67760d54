//! The far end: lets near ends in and connects for them.

use std::sync::Arc;

use proto::closed::Code;
use proxy::allow::{Allow, Rule};
use proxy::{Far, MOST_FLOWS};
use tokio::task::JoinSet;
use transport::Endpoint;

use super::told::Told;
use super::{LOOK, run, with_room};
use crate::args::FarArgs;
use crate::exit::{Failure, tell};
use crate::peer::desk::{self, Asked, Desk, Terms};
use crate::peer::end::{End, LONGEST_PACKET, MOST_PATHS, Room};
use crate::peer::service::PROXY;

/// Near ends at a time: each may have windows full of bytes.
const MOST_CALLERS: usize = 32;

pub(super) fn far(args: &FarArgs) -> Result<(), Failure> {
    let rules: Result<Vec<Rule>, _> = args.allow.iter().map(|text| text.parse()).collect();
    let rules = rules.map_err(|error| Failure::Input(format!("error: --allow {error}")))?;
    let terms = Terms::new(Asked {
        listen: &args.listen,
        threads: args.threads,
        keep: true,
        valid: args.valid.as_deref(),
        addresses: &args.addresses,
        allow: ("--allow-caller", &args.allow_caller),
        insecure: args.insecure,
        file: args.ticket.as_deref(),
    })?;
    let room = Room { paths: MOST_PATHS, packet: LONGEST_PACKET, both_ways: MOST_FLOWS as u64, one_way: 0 };
    let mut end = End::new(&args.end, PROXY, room)?;
    with_room(&mut end.config.settings);
    let endpoint = terms.listen(&end)?;
    let mut desk = Desk::open(&endpoint, terms, &end)?;
    if rules.is_empty() {
        tell("warning: without --allow HOST:PORTS this end connects to nothing");
    }
    let told = Arc::new(Told::default());
    let far = Far::new(Allow::new(rules), told.log(args.verbose));
    let ended = run(serve(&endpoint, &mut desk, &far))?;
    let outcome = match ended {
        None => Err(Failure::Interrupted(format!("the far end ended: {}", told.summary()))),
        Some(()) => Err(desk::ended(&endpoint)),
    };
    endpoint.end(Code::NONE, if ended.is_none() { "the far end was interrupted" } else { "" });
    outcome
}

/// Serves near ends until the socket fails.
async fn serve(endpoint: &Endpoint, desk: &mut Desk, far: &Far) {
    let mut callers = JoinSet::new();
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { return };
                let Some(connection) = desk.admit(incoming) else { continue };
                let who = connection.paths().first().map_or_else(String::new, |path| path.via.remote.to_string());
                if callers.len() >= MOST_CALLERS {
                    connection.close(Code::BUSY, "as many near ends are connected as there may be");
                    tell(&format!("{who}: refused, as {MOST_CALLERS} near ends are connected already"));
                    continue;
                }
                tell(&format!("{who}: a near end is connected"));
                let far = far.clone();
                callers.spawn(async move {
                    far.serve(&connection, &who).await;
                    tell(&format!("{who}: the near end is gone: {}", connection.closed().await));
                });
            }
            Some(_) = callers.join_next() => {}
            () = tokio::time::sleep(LOOK) => desk.tell_of_strays(endpoint),
        }
    }
}
