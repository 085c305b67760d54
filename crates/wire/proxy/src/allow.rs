//! Destinations that the proxy server may connect to: none without rules.
//!
//! A rule is `HOST:PORTS`. `HOST` is a name, an address, a network (`10.0.0.0/8`) or `*`; `PORTS` is a port, a range or `*`.
//!
//! - A rule of a name allows the addresses of exactly that name, as resolved by the proxy server.
//! - A rule of addresses allows them, and any name that resolves to one of them.
//! - Special addresses (loopback, link-local, multicast, broadcast, unspecified) are this machine's own or its
//!   neighbours'. A rule of addresses allows them if it names them: its network has no others. `*`, names and networks
//!   that only contain them, such as `0.0.0.0/0`, do not. So no name server can decide that a name is 127.0.0.1. The
//!   one exception is the name `localhost`.
//! - A cloud's metadata services return credentials to any client that reaches them. Only a rule of that very address
//!   allows one.
//! - An IPv6 address that a translator or a tunnel turns into an IPv4 one counts as that one, too.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;

use crate::destination::{Destination, Host, printable};

/// The hosts of a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
enum HostPattern {
    All,
    Name(String),
    Network(AddressPrefix),
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    hosts: HostPattern,
    /// The first and the last port.
    ports: (u16, u16),
}

/// A text that is no rule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "`{text}`: {wrong}; expected HOST:PORTS, such as files.example.org:873, 10.1.0.0/16:5201-5210, [2001:db8::7]:* or *:443"
)]
pub struct RuleError {
    /// The text, without terminal control characters.
    pub text: String,
    /// The part of it that is wrong.
    pub wrong: &'static str,
}

/// All rules of a proxy server.
#[derive(Clone, Default, Debug)]
pub struct Allow {
    rules: Vec<Rule>,
}

/// The addresses that share a prefix of this number of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct AddressPrefix {
    address: IpAddr,
    length: u8,
}

impl AddressPrefix {
    const fn v4(a: u8, b: u8, length: u8) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, 0, 0)), length }
    }

    /// Creates an IPv6 network, by the first three of its segments of 16 bits.
    const fn v6([a, b, c]: [u16; 3], length: u8) -> Self {
        Self { address: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), length }
    }

    /// The network of one address.
    fn of(address: IpAddr) -> Self {
        Self { address, length: bits(address).1 }
    }

    fn has(&self, address: IpAddr) -> bool {
        let ((network, width), (address, other)) = (bits(self.address), bits(address));
        let differs = (network ^ address).leading_zeros();
        width == other && differs >= u32::from(self.length)
    }

    /// Returns whether all addresses of the other one are in this one.
    fn contains(&self, other: &Self) -> bool {
        self.length <= other.length && self.has(other.address)
    }

    fn is_one_address(&self) -> bool {
        self.length == bits(self.address).1
    }
}

/// Addresses of the machine itself, or of its neighbours only.
const SPECIAL: [AddressPrefix; 8] = [
    // Linux takes 0.0.0.0 for itself, and the rest of it is "this network" (RFC 1122 §3.2.1.3).
    AddressPrefix::v4(0, 0, 8),
    AddressPrefix::v4(127, 0, 8),
    AddressPrefix::v4(169, 254, 16),
    AddressPrefix::v4(224, 0, 4),
    AddressPrefix { address: IpAddr::V4(Ipv4Addr::BROADCAST), length: 32 },
    // Unspecified and loopback, too.
    COMPATIBLE,
    AddressPrefix::v6([0xfe80, 0, 0], 10),
    AddressPrefix::v6([0xff00, 0, 0], 8),
];

/// Metadata services of clouds. `fe80::a9fe:a9fe` (`OpenStack`) is a link-local address and special anyway.
const METADATA: [IpAddr; 14] = [
    // Amazon, Google, Azure, Oracle and most others.
    metadata_v4(169, 254, 169, 254),
    metadata_v6(0xfd00, 0xec2, [0, 0x254]),
    metadata_v6(0xfd20, 0xce, [0, 0x254]),
    metadata_v6(0xfd00, 0xc1, [0xa9fe, 0xa9fe]),
    // Credentials of Amazon's containers: ECS, and EKS Pod Identity.
    metadata_v4(169, 254, 170, 2),
    metadata_v4(169, 254, 170, 23),
    metadata_v6(0xfd00, 0xec2, [0, 0x23]),
    // Azure's wire server.
    metadata_v4(168, 63, 129, 16),
    // Oracle Classic.
    metadata_v4(192, 0, 0, 192),
    // Alibaba.
    metadata_v4(100, 100, 100, 200),
    metadata_v6(0xfd00, 0x100, [0x100, 0x200]),
    // Scaleway.
    metadata_v4(169, 254, 42, 42),
    metadata_v6(0xfd00, 0x42, [0, 0x42]),
    // Akamai.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1)),
];

const fn metadata_v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// Creates an IPv6 address, by the first two and the last two segments.
const fn metadata_v6(a: u16, b: u16, [y, z]: [u16; 2]) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, y, z))
}

/// NAT64's well-known prefix (RFC 6052 §2.1) and the one for a network's own translators (RFC 8215), IPv4-translated addresses
/// (RFC 2765 §2.1), IPv4-compatible ones (RFC 4291 §2.5.5.1), and 6to4 (RFC 3056 §2).
const NAT64: AddressPrefix = AddressPrefix::v6([0x64, 0xff9b, 0], 96);
const LOCAL_NAT64: AddressPrefix = AddressPrefix::v6([0x64, 0xff9b, 1], 48);
const TRANSLATED: AddressPrefix =
    AddressPrefix { address: IpAddr::V6(Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0)), length: 96 };
const COMPATIBLE: AddressPrefix = AddressPrefix::v6([0, 0, 0], 96);
const SIX_TO_FOUR: AddressPrefix = AddressPrefix::v6([0x2002, 0, 0], 16);

/// Returns the IPv4 addresses to which a translator or a tunnel may forward packets for an address. `::ffff:192.0.2.1` has
/// none: the system treats it as an IPv4 address, and it was converted before.
fn embedded(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let o = if let IpAddr::V6(v6) = address { v6.octets() } else { [0; 16] };
    let last = [o[12], o[13], o[14], o[15]];
    // Positions for prefixes of 48, 56 or 64 bits: octet 8 is skipped (RFC 6052 §2.2).
    let behind_48 = [o[6], o[7], o[9], o[10]];
    let behind_56 = [o[7], o[9], o[10], o[11]];
    let behind_64 = [o[9], o[10], o[11], o[12]];
    let found = if [NAT64, TRANSLATED, COMPATIBLE].iter().any(|network| network.has(address)) {
        vec![last]
    } else if LOCAL_NAT64.has(address) {
        // The length of the prefix is the network's own choice. No host is in 0.0.0.0/8, so a result in it is not an address.
        [last, behind_48, behind_56, behind_64].into_iter().filter(|v4| v4[0] != 0).collect()
    } else if SIX_TO_FOUR.has(address) {
        vec![[o[2], o[3], o[4], o[5]]]
    } else {
        Vec::new()
    };
    found.into_iter().map(IpAddr::from)
}

/// The rule that an address needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Needs {
    /// Any rule that contains the address.
    Any,
    /// A rule of special addresses only.
    Named,
    /// A rule of exactly this address.
    Alone,
}

impl Needs {
    fn of(address: IpAddr) -> Self {
        embedded(address).map(Self::of_one).fold(Self::of_one(address), Self::max)
    }

    fn of_one(address: IpAddr) -> Self {
        if METADATA.contains(&address) {
            Self::Alone
        } else if SPECIAL.iter().any(|network| network.has(address)) {
            Self::Named
        } else {
            Self::Any
        }
    }

    /// Returns whether a rule of a network that has the address is enough.
    fn is_met_by(self, network: &AddressPrefix) -> bool {
        match self {
            Self::Any => true,
            Self::Named => network.is_one_address() || SPECIAL.iter().any(|special| special.contains(network)),
            Self::Alone => network.is_one_address(),
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

/// Returns whether a text is an IPv6 address or network without its brackets.
fn is_of_ipv6(text: &str) -> bool {
    text.split('/').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

impl HostPattern {
    /// # Errors
    /// A description of the error in the text.
    fn new(text: &str) -> Result<Self, &'static str> {
        const NO_HOST: &str = "its host is no name, address or network, and not *";
        const NO_NETWORK: &str =
            "its network is no address with a length, which is at most 32 for IPv4 and 128 for IPv6";

        if text == "*" {
            return Ok(Self::All);
        }
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        // The end of an IPv6 address without brackets could be mistaken for a port.
        if bare.len() == text.len() && is_of_ipv6(bare) {
            return Err(NO_BRACKETS);
        }
        if let Some((address, length)) = bare.split_once('/') {
            let address: IpAddr = address.parse().map_err(|_| NO_NETWORK)?;
            let length = length.parse().ok().filter(|&length| length <= bits(address).1).ok_or(NO_NETWORK)?;
            return Ok(Self::Network(AddressPrefix { address, length }));
        }
        match Host::new(bare.as_bytes()).map_err(|_| NO_HOST)? {
            Host::Address(address) => Ok(Self::Network(AddressPrefix::of(address))),
            Host::Name(_) if bare.len() != text.len() => Err(NO_HOST),
            Host::Name(name) => Ok(Self::Name(name)),
        }
    }

    fn has_address(&self, address: IpAddr) -> bool {
        match self {
            Self::All => Needs::of(address) == Needs::Any,
            Self::Name(_) => false,
            Self::Network(network) => network.has(address) && Needs::of(address).is_met_by(network),
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
            Ok(Self { hosts: HostPattern::new(hosts)?, ports })
        };
        read().map_err(|wrong| RuleError { text: text.chars().flat_map(printable).collect(), wrong })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            HostPattern::All => f.write_str("*")?,
            HostPattern::Name(name) => f.write_str(name)?,
            HostPattern::Network(network @ AddressPrefix { address, length }) => {
                match (address, network.is_one_address()) {
                    (IpAddr::V4(address), true) => write!(f, "{address}")?,
                    (IpAddr::V4(address), false) => write!(f, "{address}/{length}")?,
                    (IpAddr::V6(address), true) => write!(f, "[{address}]")?,
                    (IpAddr::V6(address), false) => write!(f, "[{address}/{length}]")?,
                }
            }
        }
        match self.ports {
            (1, u16::MAX) => f.write_str(":*"),
            (first, last) if first == last => write!(f, ":{first}"),
            (first, last) => write!(f, ":{first}-{last}"),
        }
    }
}

impl Allow {
    /// Creates an allow list of these rules.
    pub fn new(rules: Vec<Rule>) -> Self {
        Self { rules }
    }

    fn on_port(&self, port: u16) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| (rule.ports.0..=rule.ports.1).contains(&port))
    }

    /// Returns whether a destination may be allowed, so that a name is worth looking up.
    pub fn may_have(&self, destination: &Destination) -> bool {
        self.on_port(destination.port).any(|rule| match (&destination.host, &rule.hosts) {
            (Host::Address(address), hosts) => hosts.has_address(*address),
            (Host::Name(name), HostPattern::Name(known)) => name == known,
            (Host::Name(_), HostPattern::All | HostPattern::Network(_)) => true,
        })
    }

    /// Returns whether a connection to this address, which is one of the requested host, is allowed.
    pub fn has(&self, host: &Host, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        self.on_port(address.port()).any(|rule| {
            let is_named = match (&rule.hosts, host) {
                (HostPattern::Name(known), Host::Name(name)) => {
                    known == name && (Needs::of(ip) == Needs::Any || name == "localhost" && ip.is_loopback())
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
        // The name's address may belong to another name.
        assert!(!goes(&names, "192.0.2.1:873", "192.0.2.1"));
        assert!(goes(&names, "localhost:5201", "127.0.0.1") && goes(&names, "localhost:5201", "::1"));
        assert!(!goes(&names, "localhost:5201", "169.254.0.1"));
    }

    #[test]
    fn names_do_not_allow_special_addresses() {
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
        // Named explicitly, so it is allowed.
        assert!(goes(&nets, "127.0.0.1:22", "127.0.0.1") && !goes(&nets, "127.0.0.2:22", "127.0.0.2"));
        assert!(goes(&nets, "[::ffff:127.0.0.1]:22", "::ffff:127.0.0.1"));
        // IPv4 and IPv6 rules are separate.
        assert!(!goes(&allow(&["0.0.0.0/0:*"]), "[2001:db8::1]:1", "2001:db8::1"));
    }

    #[test]
    fn a_network_that_has_others_too_names_no_special_address() {
        let wide = allow(&["0.0.0.0/0:*", "[::/0]:*", "*:*", "126.0.0.0/7:*"]);
        for special in
            ["127.0.0.1", "0.0.0.0", "169.254.0.1", "224.0.0.1", "255.255.255.255", "::1", "fe80::1", "ff02::1"]
        {
            let address: IpAddr = special.parse().unwrap();
            assert!(!wide.has(&Host::Address(address), (address, 1).into()), "{special}");
        }
        assert!(goes(&wide, "192.0.2.1:1", "192.0.2.1") && goes(&wide, "[2001:db8::1]:1", "2001:db8::1"));
        let narrow = allow(&["127.0.0.0/8:*", "169.254.7.0/24:*", "[fe80::/10]:*"]);
        assert!(goes(&narrow, "127.9.9.9:1", "127.9.9.9") && goes(&narrow, "169.254.7.1:1", "169.254.7.1"));
        assert!(goes(&narrow, "[fe80::7]:1", "fe80::7") && goes(&narrow, "some.example:1", "127.0.0.1"));
        assert!(!goes(&narrow, "169.254.8.1:1", "169.254.8.1"));
    }

    /// All forms in which an address of IPv4 is one of IPv6.
    fn forms(v4: Ipv4Addr) -> Vec<String> {
        let ([a, b, c, d], [high, low]) = (v4.octets(), [v4.to_bits() >> 16, v4.to_bits() & 0xffff]);
        vec![
            v4.to_string(),
            format!("::ffff:{v4}"),
            format!("::{v4}"),
            format!("::ffff:0:{v4}"),
            format!("64:ff9b::{v4}"),
            format!("64:ff9b:1::{v4}"),
            format!("64:ff9b:1:abcd:12:3456:{high:x}:{low:x}"),
            format!("64:ff9b:1:{high:x}:{c:x}:{:x}::", u32::from(d) << 8),
            format!("64:ff9b:1:7{a:02x}:{b:x}:{c:02x}{d:02x}::"),
            format!("64:ff9b:1:77:{a:x}:{b:02x}{c:02x}:{:x}::", u32::from(d) << 8),
            format!("2002:{high:x}:{low:x}::"),
            format!("2002:{high:x}:{low:x}:1::7"),
        ]
    }

    #[test]
    fn metadata_services_need_a_rule_with_their_address() {
        let wide = allow(&[
            "*:80",
            "0.0.0.0/0:80",
            "0.0.0.0/1:80",
            "128.0.0.0/1:80",
            "100.64.0.0/10:80",
            "100.100.100.200/31:80",
            "168.63.0.0/16:80",
            "169.254.0.0/16:80",
            "169.254.169.254/31:80",
            "[::/0]:80",
            "[fd00::/8]:80",
            "[fd00:ec2::254/127]:80",
            "[64:ff9b::/96]:80",
            "[64:ff9b:1::/48]:80",
            "[2002::/16]:80",
            "[::/96]:80",
            "metadata.example:80",
        ]);
        let forms = |address: &IpAddr| match address {
            IpAddr::V4(v4) => forms(*v4),
            IpAddr::V6(v6) => vec![v6.to_string()],
        };
        let named = ["fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "169.254.169.254"];
        assert!(named.iter().all(|text| METADATA.contains(&text.parse().unwrap())));
        for text in METADATA.iter().flat_map(forms) {
            let address: IpAddr = text.parse().unwrap_or_else(|_| panic!("{text}"));
            for host in [Host::new(text.as_bytes()), Host::new(b"metadata.example")] {
                assert!(!wide.has(&host.unwrap(), (address, 80).into()), "{text}");
            }
            // An explicit address is allowed, with or without its prefix length.
            let canonical = address.to_canonical();
            let bracketed = |text: &str| if text.contains(':') { format!("[{text}]:80") } else { format!("{text}:80") };
            let lengths = [text.clone(), format!("{canonical}/{}", bits(canonical).1)];
            for rule in lengths.map(|text| allow(&[&bracketed(&text)])) {
                assert!(rule.has(&Host::Address(address), (address, 80).into()), "{text}");
            }
        }
        for other in [
            "100.100.100.201",
            "168.63.129.17",
            "fd00:ec2::255",
            "64:ff9b::1.1.1.1",
            "64:ff9b:1::1.1.1.1",
            "2002:101:101::",
        ] {
            let address: IpAddr = other.parse().unwrap();
            assert!(wide.has(&Host::Address(address), (address, 80).into()), "{other}");
        }
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
            let message = text.parse::<Rule>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("`{text}`: ")) && message.contains(wrong), "{message}");
            assert!(message.contains("; expected HOST:PORTS, such as"), "{message}");
        }
    }

    proptest! {
        /// Checks that a network contains an address if their first bits are equal, bit by bit.
        #[test]
        fn networks_agree_with_a_plainer_rule(network: u32, address: u32, length in 0u8..=32, same in 0u32..=32) {
            let address = if same == 0 { address } else { network ^ (address >> (same - 1)) };
            let rule = AddressPrefix { address: Ipv4Addr::from(network).into(), length };
            let expected = (0..length).all(|bit| (network ^ address) >> (31 - bit) & 1 == 0);
            prop_assert_eq!(rule.has(Ipv4Addr::from(address).into()), expected);
        }

        #[test]
        fn any_text_is_a_rule_or_not(text in ".{0,60}") {
            if let Ok(rule) = text.parse::<Rule>() {
                prop_assert_eq!(rule.to_string().parse::<Rule>().unwrap(), rule);
            }
        }
    }
}
