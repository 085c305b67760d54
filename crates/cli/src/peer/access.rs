//! Addresses and tickets on a command line.

use std::io::{BufRead, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::time::Duration;

use files::SizeLimit;
use proto::identity::{Fingerprint, Trust};
use proto::ticket::{MAX, PREFIX, Ticket};

use super::quantity;
use crate::args::ConnectArgs;
use crate::exit::CommandFailure;
use study::seconds_since_1970;

/// The port of a listener if none is named.
const PORT: u16 = 4_700;
const TICKET: SizeLimit = SizeLimit { kind: "a file with a ticket", mib: 1 };

/// The peer to call, and the way to trust it.
#[derive(Clone, Debug)]
pub(crate) enum PeerTarget {
    Ticket(Ticket),
    Address { addresses: Vec<SocketAddr>, trust: Trust },
}

impl PeerTarget {
    pub(crate) fn new(peer: &str, args: &ConnectArgs) -> Result<Self, CommandFailure> {
        let (text, from) = match (peer, peer.strip_prefix('@')) {
            ("-", _) => (standard_input()?, "standard input".to_owned()),
            (_, Some(path)) => (files::text(Path::new(path), TICKET)?, format!("`{path}`")),
            (_, None) => (peer.to_owned(), String::new()),
        };
        let text = text.trim();
        let is_ticket = text.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX));
        if is_ticket || !from.is_empty() {
            let source = if from.is_empty() { String::new() } else { format!("{from}: ") };
            let ticket: Ticket =
                text.parse().map_err(|error| CommandFailure::Input(format!("error: {source}{error}")))?;
            return Self::of_ticket(ticket, args);
        }
        let addresses = addresses("TICKET|ADDR", text)?;
        let trust = match (&args.fingerprint, args.insecure) {
            (Some(text), _) => Trust::Fingerprint(fingerprint("--fingerprint", text)?),
            (None, true) => Trust::Anyone,
            (None, false) => {
                return Err(CommandFailure::Input(format!(
                    "error: `{text}` is an address, which does not authenticate the listener\nhelp: give the ticket that the \
                     listener prints, or --fingerprint SHA256:... with its key, or --insecure to accept any listener"
                )));
            }
        };
        Ok(Self::Address { addresses, trust })
    }

    fn of_ticket(ticket: Ticket, args: &ConnectArgs) -> Result<Self, CommandFailure> {
        if args.fingerprint.is_some() || args.insecure {
            return Err(CommandFailure::Input(
                "error: a ticket contains the listener's key: --fingerprint and --insecure are for addresses"
                    .to_owned(),
            ));
        }
        let now = seconds_since_1970();
        match ticket.ends {
            Some(ends) if ends <= now => Err(CommandFailure::Input(format!(
                "error: the ticket expired {} ago, by this machine's clock\nhelp: ask for a new one; --ticket-lifetime of the listener sets \
                 how long it is valid",
                quantity::in_words(Duration::from_secs(now - ends))
            ))),
            _ => Ok(Self::Ticket(ticket)),
        }
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::Ticket(ticket) => &ticket.addresses,
            Self::Address { addresses, .. } => addresses,
        }
    }

    pub(crate) fn trust(&self) -> Trust {
        match self {
            Self::Ticket(ticket) => Trust::Fingerprint(ticket.fingerprint),
            Self::Address { trust, .. } => *trust,
        }
    }
}

/// Returns the first line of standard input that is not blank. Standard input may be a listener's output: the listener goes
/// on.
fn standard_input() -> Result<String, CommandFailure> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(2 * MAX as u64);
    loop {
        match input.read_line(&mut text) {
            Ok(0) => {
                return Err(CommandFailure::Input(
                    "error: standard input ended without a ticket\nhelp: the command that should have printed it gave the reason on \
                     standard error"
                        .to_owned(),
                ));
            }
            Ok(_) if text.trim().is_empty() => {}
            Ok(_) => return Ok(text),
            Err(error) => {
                return Err(CommandFailure::Input(format!("error: cannot read a ticket from standard input: {error}")));
            }
        }
    }
}

pub(crate) fn fingerprint(option: &str, text: &str) -> Result<Fingerprint, CommandFailure> {
    text.parse().map_err(|error| CommandFailure::Input(format!("error: {option} {text}: {error}")))
}

/// The addresses that a name has, or the one that it is.
pub(crate) fn addresses(option: &str, text: &str) -> Result<Vec<SocketAddr>, CommandFailure> {
    if let Ok(address) = text.parse() {
        return Ok(vec![address]);
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, PORT)]);
    }
    let shown: String = text.chars().take(60).collect();
    let is_name = |name: &str| {
        let known = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
        !name.is_empty() && name.len() <= 253 && name.chars().all(known)
    };
    let (name, port) = match text.split_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        None => (text, Some(PORT)),
    };
    let (true, Some(port)) = (is_name(name), port) else {
        return Err(CommandFailure::Input(format!(
            "error: {option} `{shown}`: expected an address such as 192.0.2.1, 192.0.2.1:{PORT}, [2001:db8::1]:{PORT} or \
             host:{PORT}{}",
            if option.starts_with("TICKET") { ", or a ticket, which begins with narrows1" } else { "" }
        )));
    };
    let found = (name, port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    match found {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(CommandFailure::Input(format!("error: {option} `{shown}`: this name has no address"))),
        Err(error) => Err(CommandFailure::Input(format!("error: {option} `{shown}`: no address is found: {error}"))),
    }
}

/// Addresses of this machine that others may reach, for a listener at all of them: those from which packets to far away leave, or
/// where none would, as on networks without a way out, those of all interfaces but loopback. Nothing is sent to find out.
pub(crate) fn machine_addresses(listen_address: SocketAddr) -> Vec<SocketAddr> {
    // Addresses for documentation (RFC 5737, RFC 3849): routed like any others.
    let remotes: [(IpAddr, IpAddr); 2] = [
        (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::new(192, 0, 2, 1).into()),
        (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into()),
    ];
    let own = |&(any, remote): &(IpAddr, IpAddr)| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect((remote, PORT)).ok()?;
        let ip = socket.local_addr().ok()?.ip();
        (!ip.is_unspecified()).then(|| SocketAddr::new(ip, listen_address.port()))
    };
    // A listener at all IPv6 addresses usually listens at all IPv4 addresses, too.
    let fits = |ip: &IpAddr| listen_address.is_ipv6() || ip.is_ipv4();
    let found: Vec<SocketAddr> = remotes.iter().filter(|(any, _)| fits(any)).filter_map(own).collect();
    if found.is_empty() {
        interface_addresses().filter(fits).map(|ip| SocketAddr::new(ip, listen_address.port())).collect()
    } else {
        found
    }
}

/// The addresses of this machine's interfaces but loopback, and but those that need an interface to be named.
fn interface_addresses() -> impl Iterator<Item = IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::from(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::from(address.ip())))
    });
    addresses.filter(|ip| match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_default_port() {
        for (text, expected) in [
            ("127.0.0.1", "127.0.0.1:4700"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("::1", "[::1]:4700"),
            ("[::1]", "[::1]:4700"),
            ("[::1]:5", "[::1]:5"),
        ] {
            assert_eq!(addresses("--listen", text).unwrap(), [expected.parse().unwrap()], "{text}");
        }
        for text in ["", "1.2.3.4:99999", "a b", "[::1", "x:y", "\u{1b}[31m", ":4700"] {
            let message = addresses("--listen", text).unwrap_err().to_string();
            assert!(
                message.starts_with("error: --listen `") && message.contains("expected an address such as"),
                "{message}"
            );
        }
        let message = addresses("TICKET|ADDR", "narrows2 abc").unwrap_err().to_string();
        assert!(message.contains("or a ticket, which begins with narrows1"), "{message}");
    }

    #[test]
    fn machine_addresses_match_the_listener_family() {
        let found = machine_addresses("0.0.0.0:7".parse().unwrap());
        assert!(found.iter().all(|it| it.is_ipv4() && it.port() == 7 && !it.ip().is_unspecified()), "{found:?}");
    }
}
