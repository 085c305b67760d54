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

use super::access::{addresses, fingerprint, of_this_machine};
use super::end::EndpointSpec;
use super::identity::secret;
use super::quantity::{duration, in_words};
use super::service::CommandPair;
use crate::args::ListenArgs;
use crate::exit::{CommandFailure, printed, tell};
use study::seconds_since_1970;

const TICKET: SizeLimit = SizeLimit { what: "a file with a ticket", mib: 1 };
const MAX_VALID: Duration = Duration::from_hours(24 * 365);

/// A listener's options on the command line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListenRequest<'a> {
    /// The address on which it listens.
    pub(crate) listen: &'a str,
    /// Threads over which connections are spread.
    pub(crate) threads: u8,
    /// Set if any number of callers are admitted, one after the other or together.
    pub(crate) keep: bool,
    /// The lifetime of a new ticket; none if it has no end.
    pub(crate) valid: Option<&'a str>,
    /// Addresses for the ticket; none for those that the listener has.
    pub(crate) addresses: &'a [String],
    /// Callers' keys, and the option that names them.
    pub(crate) allow: (&'static str, &'a [String]),
    /// Set if callers need no proof.
    pub(crate) insecure: bool,
    /// The file in which the ticket is kept from one run to the next. Where there is none it is made.
    pub(crate) file: Option<&'a Path>,
}

impl<'a> ListenRequest<'a> {
    /// A ticket for a run.
    pub(crate) fn new(listen: &'a str, args: &'a ListenArgs) -> Self {
        let ListenArgs {
            reusable: keep,
            ticket_lifetime: ref valid,
            advertise: ref addresses,
            allow_key: ref allow,
            threads,
        } = *args;
        let (valid, allow) = (Some(&**valid), ("--allow-key", &**allow));
        Self { listen, threads, keep, valid, addresses, allow, insecure: false, file: None }
    }
}

/// The same, read and found right, before anything is done.
pub(crate) struct ListenConfig<'a> {
    asked: ListenRequest<'a>,
    at: SocketAddr,
    valid: Option<Duration>,
    allowed: Vec<Fingerprint>,
    /// Addresses for the ticket, and whether they have a port of their own.
    named: Vec<(SocketAddr, bool)>,
}

impl<'a> ListenConfig<'a> {
    /// # Errors
    /// If the request is invalid.
    pub(crate) fn new(asked: ListenRequest<'a>) -> Result<Self, CommandFailure> {
        let at = addresses("--listen", asked.listen)?[0];
        let range = Duration::from_secs(1)..=MAX_VALID;
        let valid = asked.valid.map(|text| duration("--ticket-lifetime", text, range)).transpose()?;
        let (option, keys) = asked.allow;
        let allowed = keys.iter().map(|text| fingerprint(option, text)).collect::<Result<_, _>>()?;
        let mut named = Vec::new();
        for text in asked.addresses {
            // A name or a number without a port is where this listener is.
            let has_port = text.parse::<SocketAddr>().is_ok()
                || text.rsplit_once(':').is_some_and(|(name, _)| !name.contains(':'));
            for address in addresses("--advertise", text)? {
                if !named.contains(&(address, has_port)) {
                    named.push((address, has_port));
                }
            }
        }
        if named.len() > MAX_ADDRESSES {
            return Err(too_many(named.len()));
        }
        Ok(Self { asked, at, valid, allowed, named })
    }

    /// Listens. Callers are admitted once there is a [`TicketListener`].
    ///
    /// # Errors
    /// If the address cannot be used.
    pub(crate) fn listen(&self, end: &EndpointSpec) -> Result<Endpoint, CommandFailure> {
        let mut config = end.config.clone();
        config.threads = self.asked.threads;
        let at = self.at;
        Endpoint::listen(at, &config)
            .map_err(|error| CommandFailure::Input(format!("error: cannot listen at {at}: {error}")))
    }

    /// The addresses in the ticket of a listener that has this one.
    fn to_be_named(&self, own: SocketAddr) -> Result<Vec<SocketAddr>, CommandFailure> {
        let with_port = |&(address, has_port): &(SocketAddr, bool)| {
            if has_port { address } else { SocketAddr::new(address.ip(), own.port()) }
        };
        let mut named: Vec<SocketAddr> = self.named.iter().map(with_port).collect();
        if named.is_empty() {
            named = if own.ip().is_unspecified() { of_this_machine(own) } else { vec![own] };
            named.truncate(MAX_ADDRESSES);
        }
        let mut known = BTreeSet::new();
        named.retain(|address| known.insert(*address));
        if named.is_empty() {
            return Err(CommandFailure::Input(
                "error: this machine has no address by which others reach it, so there is none for the ticket\nhelp: name one \
                 with --advertise"
                    .to_owned(),
            ));
        }
        Ok(named)
    }
}

fn too_many(addresses: usize) -> CommandFailure {
    CommandFailure::Input(format!("error: --advertise: {addresses} addresses; a ticket has 1 to {MAX_ADDRESSES}"))
}

/// Returns the reason why a listener has no more callers.
pub(crate) fn ended(endpoint: &Endpoint) -> CommandFailure {
    CommandFailure::Run(if endpoint.is_old() {
        anyhow::anyhow!("the listener has run for 100 days, which is the most: start it again")
    } else {
        anyhow::anyhow!("the listener's socket failed")
    })
}

/// Admission of callers.
pub(crate) struct TicketListener {
    id: TicketId,
    secret: Secret,
    /// In seconds since 1970; none if it never does.
    ends: Option<u64>,
    /// Callers by their keys.
    allowed: Vec<Fingerprint>,
    lets_anyone_in: bool,
    keeps: bool,
    pair: CommandPair,
    /// Set if a caller was admitted.
    is_used: bool,
    /// The caller that is served, if it may connect again.
    served: Option<ServedCaller>,
}

/// Proofs by which the caller that is served may connect again.
struct ServedCaller {
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
    pub(crate) fn open(endpoint: &Endpoint, terms: ListenConfig, end: &EndpointSpec) -> Result<Self, CommandFailure> {
        let file = terms.asked.file;
        let kept = file.map_or(Ok(None), |path| kept(path, end))?;
        let random_error = |error: std::io::Error| CommandFailure::Run(error.into());
        let (addresses, fingerprint) = (terms.to_be_named(endpoint.address())?, end.config.identity.fingerprint());
        let ticket = if let Some(Ticket { id, secret, ends, .. }) = &kept {
            Ticket { addresses, fingerprint, id: *id, secret: secret.clone(), ends: *ends }
        } else {
            let id = random().map_err(random_error)?;
            let secret = Secret::new(random().map_err(random_error)?);
            let ends = terms.valid.map(|valid| seconds_since_1970().saturating_add(valid.as_secs()));
            Ticket { addresses, fingerprint, id, secret, ends }
        };
        if let (Some(path), None) = (file, &kept) {
            files::create_private(path, format!("{ticket}\n").as_bytes())
                .map_err(|error| CommandFailure::file("make", path, &error))?;
        }
        let (id, secret, ends) = (ticket.id, ticket.secret.clone(), ticket.ends);
        let ListenConfig { asked: ListenRequest { insecure: lets_anyone_in, keep: keeps, .. }, allowed, .. } = terms;
        let desk =
            Self { id, secret, ends, allowed, lets_anyone_in, keeps, pair: end.pair, is_used: false, served: None };
        tell(&introduction(&ticket, endpoint.address(), &desk));
        if !printed(&ticket.to_string())? {
            return Err(CommandFailure::Run(anyhow::anyhow!("standard output, where the ticket goes, is closed")));
        }
        Ok(desk)
    }

    /// Returns whether no other caller is admitted.
    pub(crate) fn is_done(&self) -> bool {
        self.is_used && !self.keeps
    }

    /// Returns whether it admits any number of callers.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Prints the callers that requested another service. The transport has notified them.
    pub(crate) fn tell_of_strays(&self, endpoint: &Endpoint) {
        while let Some(stray) = endpoint.next_stray() {
            tell(&format!("refused a caller: {}", self.pair.not_asked_for(stray.asked)));
        }
    }

    /// Records the caller that is served, for a listener that serves one at a time. It may connect again by its resumption secret or its
    /// key, also after the ticket is used.
    pub(crate) fn serve(&mut self, connection: &Connection) {
        let secret = connection.resumption(&self.secret);
        self.served = secret.map(|secret| ServedCaller { secret, key: connection.peer() });
    }

    /// Admits a caller that is allowed, and prints the reason for refusing another one.
    pub(crate) fn admit(&mut self, incoming: Incoming) -> Option<Connection> {
        if let Err(why) = self.judge(&incoming, seconds_since_1970()) {
            tell(&format!("refused a caller: {why}"));
            incoming.refuse();
            return None;
        }
        // A caller that has gone leaves the ticket as it is.
        let connection = incoming.admit().ok()?;
        self.is_used = true;
        Some(connection)
    }

    /// Checks whether a caller is admitted. Returns the reason if not.
    fn judge(&self, incoming: &Incoming, now: u64) -> Result<(), &'static str> {
        let Some(claim) = incoming.claim() else { return Err("it did not authenticate itself") };
        // Checked whatever the ticket, so that the response time does not depend on it.
        let proves_ticket = incoming.proves(&self.secret);
        let proves_resumption = self.served.as_ref().is_some_and(|served| incoming.proves(&served.secret));
        let is_of_ticket = claim.ticket == self.id;
        let is_allowed = self.lets_anyone_in || claim.key.is_some_and(|key| self.allowed.contains(&key));
        let has_served_key = claim.key.is_some() && self.served.as_ref().is_some_and(|served| served.key == claim.key);
        let comes_again = is_of_ticket && proves_resumption || is_allowed && has_served_key;
        match () {
            () if self.is_done() && !comes_again => Err("one caller was let in already; --reusable lets in more"),
            () if is_allowed => Ok(()),
            () if !(is_of_ticket && (proves_ticket || proves_resumption)) => Err("it does not have this ticket"),
            () if self.ends.is_some_and(|ends| ends <= now) => Err("the ticket has ended"),
            () => Ok(()),
        }
    }
}

/// The ticket in a file; none if there is no such file.
fn kept(path: &Path, end: &EndpointSpec) -> Result<Option<Ticket>, CommandFailure> {
    let Some(bytes) = secret(path, TICKET, "call as its holder")? else { return Ok(None) };
    let wrong = |what: &str| {
        let help = "help: remove it to have a new one, which proxy clients must be given";
        CommandFailure::Input(format!("error: `{}` {what}\n{help}", path.display()))
    };
    let text = String::from_utf8_lossy(&bytes);
    let ticket: Ticket = text.trim().parse().map_err(|error| wrong(&format!("has no ticket: {error}")))?;
    if ticket.fingerprint != end.config.identity.fingerprint() {
        return Err(wrong("has a ticket for another key than this machine's"));
    }
    match ticket.ends {
        Some(ends) if ends <= seconds_since_1970() => Err(wrong("has a ticket that has ended")),
        _ => Ok(Some(ticket)),
    }
}

fn introduction(ticket: &Ticket, at: SocketAddr, desk: &TicketListener) -> String {
    let named: Vec<String> = ticket.addresses.iter().map(ToString::to_string).collect();
    let uses = if desk.keeps { "any number of callers" } else { "one caller" };
    let left = |ends: u64| format!("for {}", in_words(Duration::from_secs(ends.saturating_sub(seconds_since_1970()))));
    let mut text = format!(
        "listening at {at} with the key {}\nthe ticket names {}; it lets in {uses}, {}",
        ticket.fingerprint,
        named.join(", "),
        desk.ends.map_or_else(|| "and does not end".to_owned(), left)
    );
    if desk.lets_anyone_in {
        text.push_str("\nwarning: --insecure admits any peer that reaches this address");
    }
    text
}
