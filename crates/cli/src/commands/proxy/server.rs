//! The proxy server: admits proxy clients, and opens TCP connections on their behalf.

use std::sync::Arc;

use proto::closed::CloseCode;
use proxy::allow::{Allow, Rule};
use proxy::{MAX_FLOWS, ProxyServer};
use tokio::task::JoinSet;
use transport::Endpoint;

use super::proxy_log::ProxyLog;
use super::{POLL_INTERVAL, reserve_stream_windows, run};
use crate::args::ProxyServerArgs;
use crate::exit::{CommandFailure, print_stderr};
use crate::peer::end::{EndpointSpec, MAX_PACKET, MAX_PATHS, PeerLimits};
use crate::peer::service::PROXY;
use crate::peer::ticket_listener::{self, ListenConfig, ListenRequest, TicketListener};

/// Maximum number of concurrent proxy clients: each may fill its receive windows.
const MAX_CLIENTS: usize = 32;

pub(super) fn server(args: &ProxyServerArgs) -> Result<(), CommandFailure> {
    let rules: Result<Vec<Rule>, _> = args.allow.iter().map(|text| text.parse()).collect();
    let rules = rules.map_err(|error| CommandFailure::Input(format!("error: --allow {error}")))?;
    let listen_config = ListenConfig::new(ListenRequest {
        listen: &args.listen,
        threads: args.threads,
        reusable: true,
        lifetime: args.ticket_lifetime.as_deref(),
        addresses: &args.advertise,
        allow: ("--allow-key", &args.allow_key),
        insecure: args.insecure,
        file: args.ticket.as_deref(),
    })?;
    let limits =
        PeerLimits { paths: MAX_PATHS, packet: MAX_PACKET, bidirectional: MAX_FLOWS as u64, unidirectional: 0 };
    let mut endpoint_spec = EndpointSpec::new(&args.endpoint, PROXY, limits)?;
    reserve_stream_windows(&mut endpoint_spec.config.settings);
    let endpoint = listen_config.listen(&endpoint_spec)?;
    let mut listener = TicketListener::open(&endpoint, listen_config, &endpoint_spec)?;
    if rules.is_empty() {
        print_stderr("warning: without --allow HOST:PORTS this end connects to nothing");
    }
    let proxy_log = Arc::new(ProxyLog::default());
    let log = if args.verbose { proxy_log.log_verbosely() } else { proxy_log.log() };
    let proxy = ProxyServer::new(Allow::new(rules), log);
    let completed = run(serve(&endpoint, &mut listener, &proxy))?;
    let outcome = match completed {
        None => Err(CommandFailure::Interrupted(format!("the proxy server ended: {}", proxy_log.summary()))),
        Some(()) => Err(ticket_listener::ended(&endpoint)),
    };
    endpoint.shut_down(CloseCode::NONE, if completed.is_none() { "the proxy server was interrupted" } else { "" });
    outcome
}

/// Serves proxy clients until the socket fails.
async fn serve(endpoint: &Endpoint, listener: &mut TicketListener, proxy: &ProxyServer) {
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { return };
                let Some(connection) = listener.admit(incoming) else { continue };
                let label = connection.paths().first().map_or_else(String::new, |path| path.four_tuple.remote.to_string());
                if clients.len() >= MAX_CLIENTS {
                    connection.close(CloseCode::BUSY, "the maximum number of proxy clients is connected");
                    print_stderr(&format!("{label}: refused, as {MAX_CLIENTS} proxy clients are connected already"));
                    continue;
                }
                print_stderr(&format!("{label}: a proxy client is connected"));
                let proxy = proxy.clone();
                clients.spawn(async move {
                    proxy.serve(&connection, &label).await;
                    print_stderr(&format!("{label}: the proxy client disconnected: {}", connection.closed().await));
                });
            }
            Some(_) = clients.join_next() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => listener.report_alpn_mismatches(endpoint),
        }
    }
}
