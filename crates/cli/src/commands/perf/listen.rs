//! The listener: prints a ticket, lets in who has it, and serves tests.

use std::net::SocketAddr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::closed::Code;
use proto::identity::Fingerprint;
use proto::secret::Secret;
use proto::ticket::{MOST_ADDRESSES, Ticket, TicketId};
use transport::{Connection, Endpoint, Incoming, random};

use super::access::{End, addresses, fingerprint, of_this_machine};
use super::control::{Answer, Request};
use super::meter::{Meter, Watch};
use super::patience::wait_for;
use super::quantity::{amount, duration, in_words, rate};
use super::test::{Outcome, explained, of_listener};
use super::trouble::Trouble;
use crate::args::PerfArgs;
use crate::clock::seconds_since_1970;
use crate::exit::{Failure, printed, tell};
use crate::interrupt::{interrupted, listen as listen_for_interrupts};

/// Paths that a caller may open.
const MOST_PATHS: u8 = 64;
/// Tests at a time.
const MOST_TESTS: usize = 64;
/// The longest UDP payload that there is: the caller decides.
const LONGEST_PACKET: u16 = 65_527;
const LONGEST_VALID: Duration = Duration::from_hours(24 * 365);

/// Who is let in.
struct Desk {
    id: TicketId,
    secret: Secret,
    ends: u64,
    /// Callers by their keys.
    allowed: Vec<Fingerprint>,
    lets_anyone_in: bool,
    keeps: bool,
    /// Whether somebody was let in.
    is_used: bool,
}

impl Desk {
    /// Whether a caller is let in. If not, why.
    fn judge(&self, incoming: &Incoming, now: u64) -> Result<(), &'static str> {
        let Some(claim) = incoming.claim() else { return Err("it did not say who it is") };
        // Asked whatever the ticket, so that the time tells nothing.
        let has_ticket = incoming.proves(&self.secret) && claim.ticket == self.id;
        let is_allowed = self.lets_anyone_in || claim.key.is_some_and(|key| self.allowed.contains(&key));
        match () {
            () if self.is_used && !self.keeps => Err("one caller was let in already; --keep lets in more"),
            () if is_allowed => Ok(()),
            () if !has_ticket => Err("it does not have this ticket"),
            () if self.ends <= now => Err("the ticket has ended"),
            () => Ok(()),
        }
    }
}

/// What came of a test, in words.
type Tested = Result<String, Trouble>;

pub(super) fn listen(address: &str, args: &PerfArgs) -> Result<(), Failure> {
    let at = addresses("--listen", address)?[0];
    let valid = duration("--valid", &args.valid, (Duration::from_secs(1), LONGEST_VALID))?;
    let allowed = args.allow.iter().map(|text| fingerprint("--allow", text)).collect::<Result<_, _>>()?;
    let end = End::new(args, (MOST_PATHS, LONGEST_PACKET, 1))?;
    listen_for_interrupts();
    let endpoint = Endpoint::listen(at, &end.config)
        .map_err(|error| Failure::Input(format!("error: cannot listen at {at}: {error}")))?;
    let random_error = |error: std::io::Error| Failure::Run(error.into());
    let mut desk = Desk {
        id: random().map_err(random_error)?,
        secret: Secret::new(random().map_err(random_error)?),
        ends: seconds_since_1970().saturating_add(valid.as_secs()),
        allowed,
        lets_anyone_in: args.insecure,
        keeps: args.keep,
        is_used: false,
    };
    let ticket = Ticket {
        addresses: to_be_named(endpoint.address(), args)?,
        ends: Some(desk.ends),
        fingerprint: end.config.identity.fingerprint(),
        id: desk.id,
        secret: desk.secret.clone(),
    };
    tell(&introduction(&ticket, endpoint.address(), valid, &desk));
    if !printed(&ticket.to_string())? {
        return Err(Failure::Run(anyhow::anyhow!("nobody reads standard output, where the ticket goes")));
    }
    let done = serve(&endpoint, &end, &mut desk);
    endpoint.end(Code::NONE, if interrupted() { "the listener was interrupted" } else { "" });
    done
}

/// The addresses in the ticket.
fn to_be_named(own: SocketAddr, args: &PerfArgs) -> Result<Vec<SocketAddr>, Failure> {
    let mut named = Vec::new();
    for text in &args.addresses {
        // A name or a number without a port is where this listener is.
        let has_port =
            text.parse::<SocketAddr>().is_ok() || text.rsplit_once(':').is_some_and(|(name, _)| !name.contains(':'));
        let found = addresses("--address", text)?;
        named.extend(
            found.into_iter().map(|it| SocketAddr::new(it.ip(), if has_port { it.port() } else { own.port() })),
        );
    }
    if named.is_empty() {
        named = if own.ip().is_unspecified() { of_this_machine(own) } else { vec![own] };
    }
    named.dedup();
    match named.len() {
        1..=MOST_ADDRESSES => Ok(named),
        0 => Err(Failure::Input(
            "error: this machine has no address by which others reach it, so there is none for the ticket\nhelp: name one with \
             --address"
                .to_owned(),
        )),
        many => Err(Failure::Input(format!("error: --address: {many} addresses; a ticket has 1 to {MOST_ADDRESSES}"))),
    }
}

fn introduction(ticket: &Ticket, at: SocketAddr, valid: Duration, desk: &Desk) -> String {
    let named: Vec<String> = ticket.addresses.iter().map(ToString::to_string).collect();
    let uses = if desk.keeps { "any number of callers" } else { "one caller" };
    let mut text = format!(
        "listening at {at} with the key {}\nthe ticket names {}; it lets in {uses}, for {}",
        ticket.fingerprint,
        named.join(", "),
        in_words(valid)
    );
    if desk.lets_anyone_in {
        text.push_str("\nwarning: --insecure lets anyone in who reaches this address");
    }
    text
}

/// Serves callers until the only one is served, or for ever.
fn serve(endpoint: &Endpoint, end: &End, desk: &mut Desk) -> Result<(), Failure> {
    let mut tests: Vec<JoinHandle<Tested>> = Vec::new();
    loop {
        let is_last = desk.is_used && !desk.keeps;
        let look = || {
            let is_over = !tests.is_empty() && tests.iter().all(JoinHandle::is_finished);
            if interrupted() || (is_last && is_over) { Err(Trouble::Interrupted) } else { Ok(()) }
        };
        let accepted = wait_for(endpoint.accept(), look);
        if interrupted() {
            return Err(Failure::Interrupted("the listener ended".to_owned()));
        }
        tests.retain(|test| is_last || !test.is_finished());
        match accepted {
            Ok(Some(incoming)) => {
                if let Err(why) = desk.judge(&incoming, seconds_since_1970()) {
                    tell(&format!("refused a caller: {why}"));
                    incoming.refuse();
                    continue;
                }
                // A caller that has gone leaves the ticket as it is.
                let Ok(connection) = incoming.admit() else { continue };
                if tests.len() >= MOST_TESTS {
                    connection.close(Code::BUSY, "as many tests run here as there may be");
                    tell(&format!("refused a caller: {MOST_TESTS} tests run already"));
                    continue;
                }
                desk.is_used = true;
                tests.push(begin(connection, end, desk.keeps)?);
            }
            Ok(None) => return Err(Failure::Run(anyhow::anyhow!("the listener's socket failed"))),
            Err(_) => break,
        }
    }
    match tests.pop().map(JoinHandle::join) {
        Some(Ok(Err(trouble))) => Err(Failure::Run(anyhow::anyhow!("the test did not end well: {trouble}"))),
        Some(Err(_)) => Err(Failure::Run(anyhow::anyhow!("the test failed within this program"))),
        Some(Ok(Ok(_))) | None => Ok(()),
    }
}

/// Begins a test in a thread of its own.
fn begin(connection: Connection, end: &End, keeps: bool) -> Result<JoinHandle<Tested>, Failure> {
    let (answer, idle) = (Answer::new(end.law.name(), end.window), end.idle);
    let thread = thread::Builder::new().name("narrows test".into()).spawn(move || {
        let who = connection.paths().first().map_or_else(String::new, |path| path.via.remote.to_string());
        let tested = test(&connection, &answer, idle);
        match &tested {
            Ok(text) => tell(&format!("{who}: {text}")),
            Err(trouble) if keeps => tell(&format!("{who}: the test did not end well: {trouble}")),
            Err(_) => {}
        }
        tested
    });
    thread.map_err(|error| Failure::Run(error.into()))
}

fn test(connection: &Connection, answer: &Answer, idle: Duration) -> Tested {
    let meter = Meter::new(connection);
    let mut watch = Watch::new(&meter, idle);
    // Closed before its streams are, so that the peer learns why.
    let close = |trouble: &Trouble| connection.close(Code::APPLICATION, &trouble.to_peer());
    let tested = wait_for(of_listener(answer, &meter), || watch.look().inspect_err(close)).and_then(|outcome| outcome);
    let tested = tested.map_err(|trouble| explained(connection, trouble));
    let (request, outcome) = tested.inspect_err(close)?;
    Ok(summary(&request, &outcome))
}

fn summary(request: &Request, Outcome { own, .. }: &Outcome) -> String {
    let verb = if request.reverse { "sent" } else { "received" };
    let streams = if request.streams == 1 { "1 stream".to_owned() } else { format!("{} streams", request.streams) };
    let (bytes, time) = (own.sum(), own.time());
    format!("{verb} {} on {streams} in {:.2} s, {}", amount(bytes), time.as_secs_f64(), rate(bytes, time))
}
