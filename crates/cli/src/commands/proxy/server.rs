//! The proxy server: lets proxy clients in and connects for them.

use std::sync::Arc;

use proto::closed::CloseCode;
use proxy::allow::{Allow, Rule};
use proxy::{MAX_FLOWS, ProxyServer};
use tokio::task::JoinSet;
use transport::Endpoint;

use super::proxy_log::ProxyLog;
use super::{LOOK, run, with_room};
use crate::args::ProxyServerArgs;
use crate::exit::{CommandFailure, tell};
use crate::peer::end::{EndpointSpec, MAX_PACKET, MAX_PATHS, PeerLimits};
use crate::peer::service::PROXY;
use crate::peer::ticket_listener::{self, ListenConfig, ListenRequest, TicketListener};

/// Proxy clients at a time: each may have windows full of bytes.
const MAX_CALLERS: usize = 32;

pub(super) fn server(args: &ProxyServerArgs) -> Result<(), CommandFailure> {
    let rules: Result<Vec<Rule>, _> = args.allow.iter().map(|text| text.parse()).collect();
    let rules = rules.map_err(|error| CommandFailure::Input(format!("error: --allow {error}")))?;
    let terms = ListenConfig::new(ListenRequest {
        listen: &args.listen,
        threads: args.threads,
        keep: true,
        valid: args.ticket_lifetime.as_deref(),
        addresses: &args.advertise,
        allow: ("--allow-key", &args.allow_key),
        insecure: args.insecure,
        file: args.ticket.as_deref(),
    })?;
    let room = PeerLimits { paths: MAX_PATHS, packet: MAX_PACKET, both_ways: MAX_FLOWS as u64, one_way: 0 };
    let mut end = EndpointSpec::new(&args.end, PROXY, room)?;
    with_room(&mut end.config.settings);
    let endpoint = terms.listen(&end)?;
    let mut desk = TicketListener::open(&endpoint, terms, &end)?;
    if rules.is_empty() {
        tell("warning: without --allow HOST:PORTS this end connects to nothing");
    }
    let told = Arc::new(ProxyLog::default());
    let log = if args.verbose { told.log_verbosely() } else { told.log() };
    let proxy = ProxyServer::new(Allow::new(rules), log);
    let ended = run(serve(&endpoint, &mut desk, &proxy))?;
    let outcome = match ended {
        None => Err(CommandFailure::Interrupted(format!("the proxy server ended: {}", told.summary()))),
        Some(()) => Err(ticket_listener::ended(&endpoint)),
    };
    endpoint.end(CloseCode::NONE, if ended.is_none() { "the proxy server was interrupted" } else { "" });
    outcome
}

/// Serves proxy clients until the socket fails.
async fn serve(endpoint: &Endpoint, desk: &mut TicketListener, proxy: &ProxyServer) {
    let mut callers = JoinSet::new();
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { return };
                let Some(connection) = desk.admit(incoming) else { continue };
                let label = connection.paths().first().map_or_else(String::new, |path| path.via.remote.to_string());
                if callers.len() >= MAX_CALLERS {
                    connection.close(CloseCode::BUSY, "as many proxy clients are connected as there may be");
                    tell(&format!("{label}: refused, as {MAX_CALLERS} proxy clients are connected already"));
                    continue;
                }
                tell(&format!("{label}: a proxy client is connected"));
                let proxy = proxy.clone();
                callers.spawn(async move {
                    proxy.serve(&connection, &label).await;
                    tell(&format!("{label}: the proxy client is gone: {}", connection.closed().await));
                });
            }
            Some(_) = callers.join_next() => {}
            () = tokio::time::sleep(LOOK) => desk.tell_of_strays(endpoint),
        }
    }
}
