//! Listeners: they print a ticket, and admit peers that have it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use files::SizeLimit;
use proto::identity::Fingerprint;
use proto::secret::Secret;
use proto::ticket::{MAX_ADDRESSES, Ticket, TicketId};
use transport::{Connection, Endpoint, Incoming, random};

use super::access::{addresses, fingerprint, machine_addresses};
use super::end::EndpointSpec;
use super::identity::secret;
use super::quantity::{duration, in_words};
use super::service::CommandPair;
use crate::args::ListenArgs;
use crate::exit::{CommandFailure, print_stderr, printed};
use study::seconds_since_1970;

const TICKET: SizeLimit = SizeLimit { kind: "a file with a ticket", mib: 1 };
const MAX_TICKET_LIFETIME: Duration = Duration::from_hours(24 * 365);

/// A listener's options on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenRequest<'a> {
    /// The address on which it listens.
    pub(crate) listen: &'a str,
    /// Threads over which connections are spread.
    pub(crate) threads: u8,
    /// Set if any number of clients are admitted, one after the other or together.
    pub(crate) reusable: bool,
    /// The lifetime of a new ticket; none if it has no end.
    pub(crate) lifetime: Option<&'a str>,
    /// Addresses for the ticket; none for those that the listener has.
    pub(crate) addresses: &'a [String],
    /// Callers' keys, and the option that names them.
    pub(crate) allow: (&'static str, &'a [String]),
    /// Set if clients need no proof.
    pub(crate) insecure: bool,
    /// The file in which the ticket is kept from one run to the next. Where there is none it is made.
    pub(crate) file: Option<&'a Path>,
}

impl<'a> ListenRequest<'a> {
    /// A ticket for a run.
    pub(crate) fn new(listen: &'a str, args: &'a ListenArgs) -> Self {
        let ListenArgs {
            reusable,
            ticket_lifetime: ref lifetime,
            advertise: ref addresses,
            allow_key: ref allow,
            threads,
        } = *args;
        let (lifetime, allow) = (Some(&**lifetime), ("--allow-key", &**allow));
        Self { listen, threads, reusable, lifetime, addresses, allow, insecure: false, file: None }
    }
}

/// The same, read and found right, before anything is done.
pub(crate) struct ListenConfig<'a> {
    request: ListenRequest<'a>,
    at: SocketAddr,
    lifetime: Option<Duration>,
    allowed: Vec<Fingerprint>,
    /// Addresses for the ticket, and whether they have a port of their own.
    advertised: Vec<(SocketAddr, bool)>,
}

impl<'a> ListenConfig<'a> {
    /// # Errors
    /// If the request is invalid.
    pub(crate) fn new(request: ListenRequest<'a>) -> Result<Self, CommandFailure> {
        let at = addresses("--listen", request.listen)?[0];
        let range = Duration::from_secs(1)..=MAX_TICKET_LIFETIME;
        let lifetime = request.lifetime.map(|text| duration("--ticket-lifetime", text, range)).transpose()?;
        let (option, keys) = request.allow;
        let allowed = keys.iter().map(|text| fingerprint(option, text)).collect::<Result<_, _>>()?;
        let mut advertised = Vec::new();
        for text in request.addresses {
            // A name or a number without a port is where this listener is.
            let has_port = text.parse::<SocketAddr>().is_ok()
                || text.rsplit_once(':').is_some_and(|(name, _)| !name.contains(':'));
            for address in addresses("--advertise", text)? {
                if !advertised.contains(&(address, has_port)) {
                    advertised.push((address, has_port));
                }
            }
        }
        if advertised.len() > MAX_ADDRESSES {
            return Err(too_many(advertised.len()));
        }
        Ok(Self { request, at, lifetime, allowed, advertised })
    }

    /// Listens. Callers are admitted once there is a [`TicketListener`].
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn listen(&self, end: &EndpointSpec) -> Result<Endpoint, CommandFailure> {
        let mut config = end.config.clone();
        config.threads = self.request.threads;
        let at = self.at;
        Endpoint::listen(at, &config)
            .map_err(|error| CommandFailure::Input(format!("error: cannot listen at {at}: {error}")))
    }

    /// The addresses in the ticket of a listener that has this one.
    fn ticket_addresses(&self, own: SocketAddr) -> Result<Vec<SocketAddr>, CommandFailure> {
        let with_port = |&(address, has_port): &(SocketAddr, bool)| {
            if has_port { address } else { SocketAddr::new(address.ip(), own.port()) }
        };
        let mut advertised: Vec<SocketAddr> = self.advertised.iter().map(with_port).collect();
        if advertised.is_empty() {
            advertised = if own.ip().is_unspecified() { machine_addresses(own) } else { vec![own] };
            advertised.truncate(MAX_ADDRESSES);
        }
        let mut known = BTreeSet::new();
        advertised.retain(|address| known.insert(*address));
        if advertised.is_empty() {
            return Err(CommandFailure::Input(
                "error: this machine has no address by which others reach it, so there is none for the ticket\nhelp: name one \
                 with --advertise"
                    .to_owned(),
            ));
        }
        Ok(advertised)
    }
}

fn too_many(addresses: usize) -> CommandFailure {
    CommandFailure::Input(format!("error: --advertise: {addresses} addresses; a ticket has 1 to {MAX_ADDRESSES}"))
}

/// Returns the reason why a listener has no more clients.
pub(crate) fn ended(endpoint: &Endpoint) -> CommandFailure {
    CommandFailure::Run(if endpoint.has_expired() {
        anyhow::anyhow!("the listener has run for 100 days, which is the most: start it again")
    } else {
        anyhow::anyhow!("the listener's socket failed")
    })
}

/// Admission of clients.
pub(crate) struct TicketListener {
    id: TicketId,
    secret: Secret,
    /// In seconds since 1970; none if it never does.
    ends: Option<u64>,
    /// Callers by their keys.
    allowed: Vec<Fingerprint>,
    admits_anyone: bool,
    is_reusable: bool,
    pair: CommandPair,
    /// Set if a client was admitted.
    is_used: bool,
    /// The client that is served, if it may connect again.
    served: Option<ServedClient>,
}

/// Proofs by which the client that is served may connect again.
struct ServedClient {
    /// Resumption secret of its first connection. It stays the same each time it is used, so a kill at any moment does
    /// not prevent a new connection.
    secret: Secret,
    /// Its key.
    key: Option<Fingerprint>,
}

impl TicketListener {
    /// Prints a ticket for an endpoint that listens ([`ListenConfig::listen`]) on standard output.
    ///
    /// # Errors
    /// If the ticket's file cannot be used, or standard output is not read.
    pub(crate) fn open(
        endpoint: &Endpoint,
        listen_config: ListenConfig,
        end: &EndpointSpec,
    ) -> Result<Self, CommandFailure> {
        let file = listen_config.request.file;
        let stored_ticket = file.map_or(Ok(None), |path| stored_ticket(path, end))?;
        let random_error = |error: std::io::Error| CommandFailure::Run(error.into());
        let (addresses, fingerprint) =
            (listen_config.ticket_addresses(endpoint.address())?, end.config.identity.fingerprint());
        let ticket = if let Some(Ticket { id, secret, ends, .. }) = &stored_ticket {
            Ticket { addresses, fingerprint, id: *id, secret: secret.clone(), ends: *ends }
        } else {
            let id = random().map_err(random_error)?;
            let secret = Secret::new(random().map_err(random_error)?);
            let ends = listen_config.lifetime.map(|lifetime| seconds_since_1970().saturating_add(lifetime.as_secs()));
            Ticket { addresses, fingerprint, id, secret, ends }
        };
        if let (Some(path), None) = (file, &stored_ticket) {
            files::create_private(path, format!("{ticket}\n").as_bytes())
                .map_err(|error| CommandFailure::file("make", path, &error))?;
        }
        let (id, secret, ends) = (ticket.id, ticket.secret.clone(), ticket.ends);
        let ListenConfig {
            request: ListenRequest { insecure: admits_anyone, reusable: is_reusable, .. }, allowed, ..
        } = listen_config;
        let listener = Self {
            id,
            secret,
            ends,
            allowed,
            admits_anyone,
            is_reusable,
            pair: end.pair,
            is_used: false,
            served: None,
        };
        print_stderr(&startup_message(&ticket, endpoint.address(), &listener));
        if !printed(&ticket.to_string())? {
            return Err(CommandFailure::Run(anyhow::anyhow!("standard output, where the ticket goes, is closed")));
        }
        Ok(listener)
    }

    /// Returns whether no other client is admitted.
    pub(crate) fn is_done(&self) -> bool {
        self.is_used && !self.is_reusable
    }

    /// Returns whether it admits any number of clients.
    pub(crate) fn is_reusable(&self) -> bool {
        self.is_reusable
    }

    /// Prints the clients that requested another service. The transport has notified them.
    pub(crate) fn report_alpn_mismatches(&self, endpoint: &Endpoint) {
        while let Some(stray) = endpoint.next_alpn_mismatch() {
            print_stderr(&format!("refused a client: {}", self.pair.wrong_request(stray.requested)));
        }
    }

    /// Records the client that is served, for a listener that serves one at a time. It may connect again by its resumption secret or its
    /// key, also after the ticket is used.
    pub(crate) fn serve(&mut self, connection: &Connection) {
        let secret = connection.resumption(&self.secret);
        self.served = secret.map(|secret| ServedClient { secret, key: connection.peer() });
    }

    /// Admits a client that is allowed, and prints the reason for refusing another one.
    pub(crate) fn admit(&mut self, incoming: Incoming) -> Option<Connection> {
        if let Err(reason) = self.check_admission(&incoming, seconds_since_1970()) {
            print_stderr(&format!("refused a client: {reason}"));
            incoming.refuse();
            return None;
        }
        // A client that has gone leaves the ticket as it is.
        let connection = incoming.admit().ok()?;
        self.is_used = true;
        Some(connection)
    }

    /// Checks whether a client is admitted. Returns the reason if not.
    fn check_admission(&self, incoming: &Incoming, now: u64) -> Result<(), &'static str> {
        let Some(claim) = incoming.claim() else { return Err("it did not authenticate itself") };
        // Always checked, so that the response time does not depend on the ticket.
        let proves_ticket = incoming.proves(&self.secret);
        let proves_resumption = self.served.as_ref().is_some_and(|served| incoming.proves(&served.secret));
        let is_of_ticket = claim.ticket == self.id;
        let is_allowed = self.admits_anyone || claim.key.is_some_and(|key| self.allowed.contains(&key));
        let has_served_key = claim.key.is_some() && self.served.as_ref().is_some_and(|served| served.key == claim.key);
        let reconnects = is_of_ticket && proves_resumption || is_allowed && has_served_key;
        match () {
            () if self.is_done() && !reconnects => Err("one client was admitted already; --reusable admits more"),
            () if is_allowed => Ok(()),
            () if !(is_of_ticket && (proves_ticket || proves_resumption)) => Err("it does not have this ticket"),
            () if self.ends.is_some_and(|ends| ends <= now) => Err("the ticket has ended"),
            () => Ok(()),
        }
    }
}

/// The ticket in a file; none if there is no such file.
fn stored_ticket(path: &Path, end: &EndpointSpec) -> Result<Option<Ticket>, CommandFailure> {
    let Some(bytes) = secret(path, TICKET, "call as its holder")? else { return Ok(None) };
    let unusable = |problem: &str| {
        let help = "help: remove it to have a new one, which proxy clients must be given";
        CommandFailure::Input(format!("error: `{}` {problem}\n{help}", path.display()))
    };
    let text = String::from_utf8_lossy(&bytes);
    let ticket: Ticket = text.trim().parse().map_err(|error| unusable(&format!("has no ticket: {error}")))?;
    if ticket.fingerprint != end.config.identity.fingerprint() {
        return Err(unusable("has a ticket for another key than this machine's"));
    }
    match ticket.ends {
        Some(ends) if ends <= seconds_since_1970() => Err(unusable("has a ticket that has ended")),
        _ => Ok(Some(ticket)),
    }
}

fn startup_message(ticket: &Ticket, at: SocketAddr, listener: &TicketListener) -> String {
    let advertised: Vec<String> = ticket.addresses.iter().map(ToString::to_string).collect();
    let uses = if listener.is_reusable { "any number of clients" } else { "one client" };
    let left = |ends: u64| format!("for {}", in_words(Duration::from_secs(ends.saturating_sub(seconds_since_1970()))));
    let mut text = format!(
        "listening at {at} with the key {}\nthe ticket names {}; it admits {uses}, {}",
        ticket.fingerprint,
        advertised.join(", "),
        listener.ends.map_or_else(|| "and does not end".to_owned(), left)
    );
    if listener.admits_anyone {
        text.push_str("\nwarning: --insecure admits any peer that reaches this address");
    }
    text
}
