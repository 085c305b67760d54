//! Where the far end may connect to: nowhere, but for what its rules say.
//!
//! A rule is `HOST:PORTS`. `HOST` is a name, an address, a network (`10.0.0.0/8`) or `*`; `PORTS` is a port, a range or `*`.
//!
//! - A rule of a name allows what that very name stands for, as the far end's resolver has it.
//! - A rule of addresses allows them, and any name that stands for one of them.
//! - Special addresses (loopback, link-local, multicast, broadcast, unspecified) are this machine's own or its neighbours'. A rule
//!   of addresses allows them if it names them; `*` and names do not. So nobody's name server decides that a name is 127.0.0.1.
//!   The one exception is the name `localhost`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::destination::{Destination, Host, printable};

/// Which hosts a rule is about.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Hosts {
    All,
    Name(String),
    /// The addresses that agree with this one in so many bits.
    Network(IpAddr, u8),
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    hosts: Hosts,
    /// The first and the last port.
    ports: (u16, u16),
}

/// A text that is no rule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{text}`: {wrong}; expected HOST:PORTS, such as files.example.org:873, 10.1.0.0/16:5201-5210, [2001:db8::7]:* or *:443"
)]
pub struct RuleError {
    /// The text, without what a terminal would act on.
    pub text: String,
    /// Which part of it is wrong.
    pub wrong: &'static str,
}

/// All rules of a far end.
#[derive(Clone, Default, Debug)]
pub struct Allow {
    rules: Vec<Rule>,
}

/// An address that is this machine's own, or is for neighbours alone.
fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4 == Ipv4Addr::BROADCAST
                // All of 0.0.0.0/8: Linux takes 0.0.0.0 for itself.
                || v4.octets()[0] == 0
        }
        IpAddr::V6(v6) => {
            // Those in which the first 96 bits are 0 have an address of IPv4 in them, or are loopback or unspecified.
            v6.is_multicast() || v6.is_unicast_link_local() || v6.segments()[..6] == [0; 6]
        }
    }
}

fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

const NO_BRACKETS: &str = "an address of IPv6 must stand in brackets";

/// Whether a text is an address of IPv6 or a network of them, but for its brackets.
fn is_of_ipv6(text: &str) -> bool {
    text.split('/').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

impl Hosts {
    /// # Errors
    /// If it is none: what is wrong.
    fn new(text: &str) -> Result<Self, &'static str> {
        const NO_HOST: &str = "its host is no name, address or network, and not *";
        const NO_NETWORK: &str =
            "its network is no address with a length, which is at most 32 for IPv4 and 128 for IPv6";

        if text == "*" {
            return Ok(Self::All);
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        // An address of IPv6 without brackets could have its end taken for a port.
        if bare.len() == text.len() && is_of_ipv6(bare) {
            return Err(NO_BRACKETS);
        }
        if let Some((address, length)) = bare.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| NO_NETWORK)?;
            let length = length.parse().ok().filter(|&length| length <= bits(address).1).ok_or(NO_NETWORK)?;
            return Ok(Self::Network(address, length));
        }
        match Host::new(bare.as_bytes()).map_err(|_| NO_HOST)? {
            Host::Address(address) => Ok(Self::Network(address, bits(address).1)),
            Host::Name(_) if bare.len() != text.len() => Err(NO_HOST),
            Host::Name(name) => Ok(Self::Name(name)),
        }
    }

    fn has_address(&self, address: IpAddr) -> bool {
        match self {
            Self::All => !is_special(address),
            Self::Name(_) => false,
            Self::Network(network, length) => {
                let ((network, width), (address, other)) = (bits(*network), bits(address));
                let differs = (network ^ address).leading_zeros();
                width == other && differs >= u32::from(*length)
            }
        }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let read = || {
            const NO_PORTS: &str = "it has no ports";
            const WRONG_PORTS: &str = "its ports are neither a number from 1 to 65535 nor a range of them nor *";

            if is_of_ipv6(text) {
                return Err(NO_BRACKETS);
            }
            let (hosts, ports) = text.rsplit_once(':').ok_or(NO_PORTS)?;
            if text.ends_with(']') {
                return Err(NO_PORTS);
            }
            let port = |text: &str| text.parse().ok().filter(|&port: &u16| port != 0).ok_or(WRONG_PORTS);
            let ports = match ports.split_once('-') {
                _ if ports == "*" => (1, u16::MAX),
                Some((first, last)) => (port(first)?, port(last)?),
                None => (port(ports)?, port(ports)?),
            };
            if ports.0 > ports.1 {
                return Err("its range of ports ends before it begins");
            }
            Ok(Self { hosts: Hosts::new(hosts)?, ports })
        };
        read().map_err(|wrong| RuleError { text: text.chars().flat_map(printable).collect(), wrong })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::All => f.write_str("*")?,
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Network(address, length) => match (address, bits(*address).1 == *length) {
                (IpAddr::V4(address), true) => write!(f, "{address}")?,
                (IpAddr::V4(address), false) => write!(f, "{address}/{length}")?,
                (IpAddr::V6(address), true) => write!(f, "[{address}]")?,
                (IpAddr::V6(address), false) => write!(f, "[{address}/{length}]")?,
            },
        }
        match self.ports {
            (1, u16::MAX) => f.write_str(":*"),
            (first, last) if first == last => write!(f, ":{first}"),
            (first, last) => write!(f, ":{first}-{last}"),
        }
    }
}

impl Allow {
    /// What these rules say.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    fn on_port(&self, port: u16) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| (rule.ports.0..=rule.ports.1).contains(&port))
    }

    /// Whether a destination may be allowed, so that a name is worth looking up.
    pub fn may_have(&self, destination: &Destination) -> bool {
        self.on_port(destination.port).any(|rule| match (&destination.host, &rule.hosts) {
            (Host::Address(address), hosts) => hosts.has_address(*address),
            (Host::Name(name), Hosts::Name(known)) => name == known,
            (Host::Name(_), Hosts::All | Hosts::Network(..)) => true,
        })
    }

    /// Whether a connection to this address is allowed, which is that of the host that was asked for.
    pub fn has(&self, host: &Host, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        self.on_port(address.port()).any(|rule| {
            let is_named = match (&rule.hosts, host) {
                (Hosts::Name(known), Host::Name(name)) => {
                    known == name && (!is_special(ip) || name == "localhost" && ip.is_loopback())
                }
                _ => false,
            };
            is_named || rule.hosts.has_address(ip)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allow(rules: &[&str]) -> Allow {
        Allow::new(rules.iter().map(|rule| rule.parse().unwrap()).collect())
    }

    fn goes(allow: &Allow, destination: &str, address: &str) -> bool {
        let destination: Destination = destination.parse().unwrap();
        let address = SocketAddr::new(address.parse().unwrap(), destination.port);
        allow.may_have(&destination) && allow.has(&destination.host, address)
    }

    #[test]
    fn nothing_is_allowed_without_rules() {
        assert!(!goes(&allow(&[]), "192.0.2.1:80", "192.0.2.1") && !goes(&allow(&[]), "a:80", "192.0.2.1"));
    }

    #[test]
    fn names_are_themselves() {
        let names = allow(&["Files.example:873", "localhost:5201"]);
        assert!(goes(&names, "files.EXAMPLE.:873", "192.0.2.1"));
        assert!(!goes(&names, "files.example:874", "192.0.2.1"));
        assert!(!goes(&names, "other.example:873", "192.0.2.1"));
        // The address that the name has may be another name's.
        assert!(!goes(&names, "192.0.2.1:873", "192.0.2.1"));
        assert!(goes(&names, "localhost:5201", "127.0.0.1") && goes(&names, "localhost:5201", "::1"));
        assert!(!goes(&names, "localhost:5201", "169.254.0.1"));
    }

    #[test]
    fn a_name_leads_to_no_special_address() {
        let names = allow(&["evil.example:80", "*:443"]);
        for special in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "169.254.169.254",
            "::1",
            "::",
            "fe80::1",
            "224.0.0.1",
            "::ffff:127.0.0.1",
        ] {
            assert!(
                !goes(&names, "evil.example:80", special) && !goes(&names, "evil.example:443", special),
                "{special}"
            );
        }
        assert!(goes(&names, "evil.example:80", "192.0.2.1") && goes(&names, "evil.example:443", "2001:db8::1"));
    }

    #[test]
    fn networks_have_their_addresses_and_names_of_them() {
        let nets = allow(&["10.1.0.0/16:5201-5210", "[2001:db8::/32]:*", "127.0.0.1:22"]);
        assert!(goes(&nets, "10.1.255.1:5201", "10.1.255.1") && goes(&nets, "10.1.0.0:5210", "10.1.0.0"));
        assert!(!goes(&nets, "10.2.0.0:5201", "10.2.0.0") && !goes(&nets, "10.1.0.1:5211", "10.1.0.1"));
        assert!(goes(&nets, "some.example:5205", "10.1.2.3") && !goes(&nets, "some.example:5205", "10.2.2.3"));
        assert!(goes(&nets, "[2001:db8:1::1]:9", "2001:db8:1::1") && !goes(&nets, "[2001:db9::1]:9", "2001:db9::1"));
        // Named, so it is meant.
        assert!(goes(&nets, "127.0.0.1:22", "127.0.0.1") && !goes(&nets, "127.0.0.2:22", "127.0.0.2"));
        assert!(goes(&nets, "[::ffff:127.0.0.1]:22", "::ffff:127.0.0.1"));
        // IPv4 and IPv6 are apart.
        assert!(!goes(&allow(&["0.0.0.0/0:*"]), "[2001:db8::1]:1", "2001:db8::1"));
        assert!(goes(&allow(&["0.0.0.0/0:*"]), "127.0.0.1:1", "127.0.0.1"));
    }

    #[test]
    fn rules_are_read_as_shown() {
        for text in ["*:*", "*:443", "a.example:1-2", "10.0.0.0/8:*", "[2001:db8::/32]:7", "[::1]:7", "192.0.2.1:80"] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
        for (text, wrong) in [
            ("", "has no ports"),
            ("a", "has no ports"),
            ("a:", "its ports are"),
            ("a:0", "its ports are"),
            ("a:x", "its ports are"),
            ("a:1-", "its ports are"),
            ("a:2-1", "ends before it begins"),
            ("10.0.0.0/33:1", "its network is"),
            ("a/8:1", "its network is"),
            ("::1:1", "must stand in brackets"),
            ("2001:db8::/32:1", "must stand in brackets"),
            ("2001:db8::a", "must stand in brackets"),
            ("[2001:db8::7]", "has no ports"),
            ("https://example.org:443", "its network is"),
            ("a:b:443", "its host is"),
            ("*.example:1", "its host is"),
            ("[a]:1", "its host is"),
            (":1", "its host is"),
        ] {
            let said = text.parse::<Rule>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("`{text}`: ")) && said.contains(wrong), "{said}");
            assert!(said.contains("; expected HOST:PORTS, such as"), "{said}");
        }
    }

    proptest! {
        /// A network has an address where they agree in its first bits, bit by bit.
        #[test]
        fn networks_agree_with_a_plainer_rule(network: u32, address: u32, length in 0u8..=32, same in 0u32..=32) {
            let address = if same == 0 { address } else { network ^ (address >> (same - 1)) };
            let rule = Hosts::Network(Ipv4Addr::from(network).into(), length);
            let expected = (0..length).all(|bit| (network ^ address) >> (31 - bit) & 1 == 0);
            prop_assert_eq!(rule.has_address(Ipv4Addr::from(address).into()), expected);
        }

        #[test]
        fn any_text_is_a_rule_or_not(text in ".{0,60}") {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
            }
        }
    }
}
