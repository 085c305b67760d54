//! The peers file: the mesh as all its members know it, and the paths of the daemon.
//!
//! ```toml
//! key = "mesh.key"              # a file with at least 16 bytes, not accessible by others
//! page = "/run/narrows/clock"
//! status = "/run/narrows/clock.sock"
//!
//! [limits]
//! asymmetry_ns = 1000
//!
//! [[member]]                    # in the order in which they are preferred as the reference
//! name = "a"
//! address = "10.0.0.1:7123"
//! site = "east"
//! ```
//!
//! The members, their order, addresses and sites, the seed and the limits are the same on all hosts: the key of the messages
//! is derived from them, so members with other files are ignored.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clocks::{Limits, Member, MemberConfig, MeshConfig, Skew};
use files::SizeLimit;
use sha2::{Digest as _, Sha256};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::Span;

use crate::host_clock::HostClock;
use crate::seal::{MIN_KEY_LENGTH, MeshKey};

/// Maximum number of members.
const MAX_MEMBERS: usize = 2_000;

/// Maximum length of a member's name, in bytes.
const MAX_NAME: usize = 64;

const PEERS: SizeLimit = SizeLimit { kind: "a peers file", mib: 1 };
const KEY: SizeLimit = SizeLimit { kind: "a key", mib: 1 };

/// Error of a peers file or a key.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// A value is not accepted.
    #[error("{}:{line}: `{key}` is {value}; accepted: {accepted}", file.display())]
    Value {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key.
        key: String,
        /// The value as in the file.
        value: String,
        /// Accepted values.
        accepted: String,
    },
    /// A key is missing.
    #[error("{}:{line}: `{key}` is missing; accepted: {accepted}", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// The line of its table, from 1.
        line: usize,
        /// The key.
        key: String,
        /// Accepted values.
        accepted: String,
    },
    /// A key is not known.
    #[error("{}:{line}: `{key}` is not a key here; accepted: {accepted}", file.display())]
    UnknownKey {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The key.
        key: String,
        /// Accepted keys.
        accepted: String,
    },
    /// The file is not TOML.
    #[error("{}:{line}: this is not TOML: {problem}", file.display())]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The parser's message.
        problem: String,
    },
    /// The host is no member.
    #[error("{}: no member is named `{name}`; accepted: {accepted}", file.display())]
    NotMember {
        /// The file.
        file: PathBuf,
        /// The name of this host.
        name: String,
        /// The members' names.
        accepted: String,
    },
    /// The key cannot be used.
    #[error("the key `{}` {problem}; accepted: {accepted}", file.display())]
    Key {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
        /// Accepted keys.
        accepted: &'static str,
    },
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] files::Error),
}

/// Source of UTC of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum UtcSource {
    /// None.
    #[default]
    None,
    /// The system clock, with the error that the kernel states (`maxerror` of adjtimex(2)): chrony and others set it.
    Kernel,
    /// The system clock, with an error of at most this.
    Bound {
        /// The largest error, in nanoseconds.
        error_ns: i64,
    },
}

/// A member of the mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerConfig {
    /// Name, unique in the mesh.
    pub name: String,
    /// UDP address.
    pub address: SocketAddr,
    /// Source of UTC.
    pub utc: UtcSource,
}

/// Pages of `ClockBound`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClockBoundConfig {
    /// Path of the page that `ClockBound` 2 reads.
    pub shm0: PathBuf,
    /// Path of the page that `ClockBound` 3 reads.
    pub shm1: PathBuf,
    /// Largest drift of clocks that are not corrected, in parts per billion.
    pub max_drift_ppb: u32,
}

/// Configuration of a daemon.
#[derive(Clone, Debug)]
pub struct DaemonConfig {
    /// The mesh.
    pub mesh: MeshConfig,
    /// The members, as in the mesh.
    pub peers: Vec<PeerConfig>,
    /// Member of this host.
    pub own: Member,
    /// Key of the messages.
    pub key: MeshKey,
    /// Path of the page.
    pub page: PathBuf,
    /// Path of the socket that answers queries, if any.
    pub status: Option<PathBuf>,
    /// Path of a file with metrics as Prometheus reads them, if any.
    pub metrics: Option<PathBuf>,
    /// Pages of `ClockBound`, if any.
    pub clock_bound: Option<ClockBoundConfig>,
    /// The clock.
    pub clock: HostClock,
}

impl DaemonConfig {
    /// Reads a peers file and its key. `own` is the name of this host's member; by default the host's name.
    ///
    /// # Errors
    /// If a file cannot be read, or has values that are not accepted.
    pub fn read(path: &Path, own: Option<&str>) -> Result<Self, PeersError> {
        let text = files::text(path, PEERS)?;
        let source = Source { path, text: &text };
        let draft = source.parse()?;
        let name = match own {
            Some(name) => name.to_owned(),
            None => fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
        };
        let names: Vec<&str> = draft.peers.iter().map(|peer| peer.name.as_str()).collect();
        let Some(own) = names.iter().position(|&it| it == name) else {
            return Err(PeersError::NotMember { file: path.to_path_buf(), name, accepted: names.join(", ") });
        };
        let secret = read_key(&draft.key)?;
        let key = MeshKey::derive(&secret, &describe(&draft.mesh, &draft.peers));
        let Draft { mesh, peers, page, status, metrics, clock_bound, .. } = draft;
        let own = Member(own as u16);
        Ok(Self { mesh, peers, own, key, page, status, metrics, clock_bound, clock: HostClock::default() })
    }
}

/// Returns a description of what all members must agree on. Another text is another key, so members of versions with different
/// texts do not understand each other.
fn describe(mesh: &MeshConfig, peers: &[PeerConfig]) -> Vec<u8> {
    let MeshConfig { members, seed, limits, .. } = mesh;
    let Limits { asymmetry, asymmetry_between_sites, timestamp_error, wander, max_skew, purity } = limits;
    let between_sites = asymmetry_between_sites.map_or_else(|| "none".to_owned(), |ns| ns.to_string());
    let mut text = format!(
        "1 seed={seed} asymmetry={asymmetry} between_sites={between_sites} timestamp_error={timestamp_error} wander={} \
         max_skew={} purity={purity}",
        wander.0, max_skew.0
    );
    for (member, peer) in members.iter().zip(peers) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{} {} {} {}", member.id, member.site, peer.address, peer.name);
    }
    text.into_bytes()
}

const ACCEPTED_KEYS: &str = "a file of at least 16 bytes that only its owner and group may read, such as of \
                             `head -c 32 /dev/urandom`";

fn read_key(path: &Path) -> Result<Vec<u8>, PeersError> {
    let refused = |problem: String| PeersError::Key { file: path.to_path_buf(), problem, accepted: ACCEPTED_KEYS };
    let bytes = files::read(path, KEY)?;
    let metadata = fs::metadata(path).map_err(|error| refused(format!("has an unknown mode: {error}")))?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o007 != 0 {
        return Err(refused(format!("has the mode {mode:o}")));
    }
    if bytes.len() < MIN_KEY_LENGTH {
        return Err(refused(format!("has {} bytes", bytes.len())));
    }
    Ok(bytes)
}

/// Returns the ID of a member with this name.
fn id_of(name: &str) -> u64 {
    let digest = Sha256::digest(name.as_bytes());
    digest[..8].iter().fold(0, |id, &byte| id << 8 | u64::from(byte))
}

/// A peers file as parsed.
#[derive(Debug)]
struct Draft {
    mesh: MeshConfig,
    peers: Vec<PeerConfig>,
    key: PathBuf,
    page: PathBuf,
    status: Option<PathBuf>,
    metrics: Option<PathBuf>,
    clock_bound: Option<ClockBoundConfig>,
}

struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

/// A value with its place.
struct Entry<'a> {
    key: String,
    key_span: Range<usize>,
    span: Range<usize>,
    value: DeValue<'a>,
}

/// A table, from which entries are taken.
struct Table<'a> {
    source: &'a Source<'a>,
    name: &'static str,
    span: Range<usize>,
    entries: Vec<Entry<'a>>,
    taken: Vec<&'static str>,
}

/// Accepted values of an integer.
#[derive(Clone, Copy)]
struct Accepted {
    min: i64,
    max: i64,
    unit: &'static str,
}

impl<'a> Source<'a> {
    fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or(self.text).matches('\n').count() + 1
    }

    fn refuse(&self, key: &str, span: &Range<usize>, accepted: impl Into<String>) -> PeersError {
        let value = self.text.get(span.clone()).unwrap_or_default();
        let value: String = value.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(80).collect();
        PeersError::Value {
            file: self.path.to_path_buf(),
            line: self.line(span.start),
            key: key.to_owned(),
            value: if value.starts_with(['"', '\'']) { value } else { format!("`{value}`") },
            accepted: accepted.into(),
        }
    }

    fn table(&'a self, name: &'static str, span: Range<usize>, table: DeTable<'a>) -> Table<'a> {
        let entry = |(key, value): (Spanned<std::borrow::Cow<'a, str>>, Spanned<DeValue<'a>>)| Entry {
            key_span: key.span(),
            key: key.into_inner().into_owned(),
            span: value.span(),
            value: value.into_inner(),
        };
        Table { source: self, name, span, entries: table.into_iter().map(entry).collect(), taken: Vec::new() }
    }

    /// Resolves a path, relative to the file.
    fn resolve(&self, path: &str) -> PathBuf {
        files::parent_of(self.path).join(path)
    }

    fn parse(&'a self) -> Result<Draft, PeersError> {
        let parsed = DeTable::parse(self.text).map_err(|error| PeersError::Syntax {
            file: self.path.to_path_buf(),
            line: self.line(error.span().map_or(0, |span| span.start)),
            problem: error.message().trim_end().replace('\n', ", "),
        })?;
        let span = parsed.span();
        let mut root = self.table("", span, parsed.into_inner());
        let Some(key) = root.path("key")? else { return Err(root.missing("key", "the path of the key's file")) };
        let page = root.path("page")?.unwrap_or_else(|| "/run/narrows/clock".into());
        let status = root.path("status")?.or_else(|| Some("/run/narrows/clock.sock".into()));
        let metrics = root.path("metrics")?;
        let defaults = MeshConfig::new(Vec::new());
        let seed = root.integer("seed", Accepted { min: 0, max: i64::MAX, unit: "" })?;
        let interval = root.integer("probe_interval_ms", Accepted { min: 5, max: 60_000, unit: " milliseconds" })?;
        let spacing = root.integer("pair_spacing_us", Accepted { min: 10, max: 10_000, unit: " microseconds" })?;
        let window = root.integer("window_ms", Accepted { min: 1_000, max: 60_000, unit: " milliseconds" })?;
        let limits = match root.table("limits")? {
            Some(table) => parse_limits(table)?,
            None => Limits::default(),
        };
        let clock_bound = root.table("clockbound")?.map(parse_clock_bound).transpose()?;
        let (members, peers) = self.parse_members(&mut root)?;
        root.finish()?;
        let mesh = MeshConfig {
            members,
            seed: seed.map_or(defaults.seed, |seed| seed as u64),
            probe_interval: interval.map_or(defaults.probe_interval, Span::from_ms),
            pair_spacing: spacing.map_or(defaults.pair_spacing, Span::from_us),
            window: window.map_or(defaults.window, Span::from_ms),
            limits,
        };
        Ok(Draft { mesh, peers, key, page, status, metrics, clock_bound })
    }

    fn parse_members(&'a self, root: &mut Table<'a>) -> Result<Members, PeersError> {
        const ACCEPTED: &str = "2 to 2000 tables [[member]], each with `name` and `address`";
        let Some(list) = root.take("member") else { return Err(root.missing("member", ACCEPTED)) };
        let DeValue::Array(list_values) = list.value else { return Err(self.refuse("member", &list.span, ACCEPTED)) };
        if !(2..=MAX_MEMBERS).contains(&list_values.len()) {
            let value = format!("a list of {}", list_values.len());
            let (file, line) = (self.path.to_path_buf(), self.line(list.span.start));
            return Err(PeersError::Value { file, line, key: "member".into(), value, accepted: ACCEPTED.into() });
        }
        let (mut members, mut peers, mut sites) = (Vec::new(), Vec::<PeerConfig>::new(), Vec::<String>::new());
        for value in list_values {
            let span = value.span();
            let DeValue::Table(table) = value.into_inner() else { return Err(self.refuse("member", &span, ACCEPTED)) };
            let mut table = self.table("member", span, table);
            let peer = self.parse_member(&mut table, &peers)?;
            let site = table.take("site").map(|entry| self.string(&entry, "a name such as \"east\"")).transpose()?;
            table.finish()?;
            let site = site.unwrap_or_default();
            let site = sites.iter().position(|it| *it == site).unwrap_or_else(|| {
                sites.push(site);
                sites.len() - 1
            });
            members.push(MemberConfig { id: id_of(&peer.name), site: site as u16 });
            peers.push(peer);
        }
        Ok((members, peers))
    }

    fn parse_member(&self, table: &mut Table<'_>, others: &[PeerConfig]) -> Result<PeerConfig, PeersError> {
        const NAME: &str = "a name of 1 to 64 letters, digits, dots, dashes and underscores, unique in the mesh";
        const ADDRESS: &str =
            "an address and a port such as \"10.0.0.1:7123\" or \"[fd00::1]:7123\", unique in the mesh";
        let Some(entry) = table.take("name") else { return Err(table.missing("name", NAME)) };
        let name = self.string(&entry, NAME)?;
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
        let is_used = others.iter().any(|other| other.name == name || id_of(&other.name) == id_of(&name));
        if name.is_empty() || name.len() > MAX_NAME || !is_plain || is_used {
            return Err(self.refuse("name", &entry.span, NAME));
        }
        let Some(entry) = table.take("address") else { return Err(table.missing("address", ADDRESS)) };
        let address: Option<SocketAddr> = self.string(&entry, ADDRESS)?.parse().ok();
        let is_free = |address: &SocketAddr| others.iter().all(|other| other.address != *address);
        let is_usable = |address: &SocketAddr| address.port() != 0 && !address.ip().is_unspecified();
        let Some(address) = address.filter(|address| is_usable(address) && is_free(address)) else {
            return Err(self.refuse("address", &entry.span, ADDRESS));
        };
        if others.iter().any(|other| other.address.is_ipv4() != address.is_ipv4()) {
            let accepted = "addresses of one family, IPv4 or IPv6, for all members";
            return Err(self.refuse("address", &entry.span, accepted));
        }
        Ok(PeerConfig { name, address, utc: self.parse_utc(table)? })
    }

    fn parse_utc(&self, table: &mut Table<'_>) -> Result<UtcSource, PeersError> {
        const ACCEPTED: &str = "\"kernel\", or `utc_bound_us` instead";
        let source = table.take("utc");
        let bound = table.integer("utc_bound_us", Accepted { min: 1, max: 1_000_000_000, unit: " microseconds" })?;
        match (source, bound) {
            (None, None) => Ok(UtcSource::None),
            (None, Some(us)) => Ok(UtcSource::Bound { error_ns: us * 1_000 }),
            (Some(entry), None) if self.string(&entry, ACCEPTED)? == "kernel" => Ok(UtcSource::Kernel),
            (Some(entry), _) => Err(self.refuse("utc", &entry.span, ACCEPTED)),
        }
    }

    fn string(&self, entry: &Entry<'_>, accepted: &str) -> Result<String, PeersError> {
        match &entry.value {
            DeValue::String(text) => Ok(text.clone().into_owned()),
            _ => Err(self.refuse(&entry.key, &entry.span, accepted)),
        }
    }
}

/// The members as the mesh and as the daemon know them.
type Members = (Vec<MemberConfig>, Vec<PeerConfig>);

fn parse_clock_bound(mut table: Table<'_>) -> Result<ClockBoundConfig, PeersError> {
    let shm0 = table.path("shm0")?.unwrap_or_else(|| "/var/run/clockbound/shm0".into());
    let shm1 = table.path("shm1")?.unwrap_or_else(|| "/var/run/clockbound/shm1".into());
    let accepted = Accepted { min: 0, max: 999_999_999, unit: " parts per billion" };
    let max_drift_ppb = table.integer("max_drift_ppb", accepted)?.unwrap_or(50_000) as u32;
    table.finish()?;
    Ok(ClockBoundConfig { shm0, shm1, max_drift_ppb })
}

fn parse_limits(mut table: Table<'_>) -> Result<Limits, PeersError> {
    const NS: Accepted = Accepted { min: 0, max: 1_000_000_000, unit: " nanoseconds" };
    let ppb = |max| Accepted { min: 1, max, unit: " parts per billion" };
    let defaults = Limits::default();
    let limits = Limits {
        asymmetry: table.integer("asymmetry_ns", NS)?.unwrap_or(defaults.asymmetry),
        asymmetry_between_sites: table.integer("asymmetry_between_sites_ns", NS)?.or(defaults.asymmetry_between_sites),
        timestamp_error: table.integer("timestamp_error_ns", NS)?.unwrap_or(defaults.timestamp_error),
        wander: table.integer("wander_ppb", ppb(100_000))?.map_or(defaults.wander, Skew::from_ppb),
        max_skew: table.integer("max_skew_ppb", ppb(500_000))?.map_or(defaults.max_skew, Skew::from_ppb),
        purity: table.integer("purity_ns", NS)?.unwrap_or(defaults.purity),
    };
    table.finish()?;
    Ok(limits)
}

impl<'a> Table<'a> {
    fn take(&mut self, key: &'static str) -> Option<Entry<'a>> {
        self.taken.push(key);
        let index = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.swap_remove(index))
    }

    fn missing(&self, key: &'static str, accepted: &str) -> PeersError {
        let line = self.source.line(self.span.start);
        PeersError::Missing { file: self.source.path.to_path_buf(), line, key: key.into(), accepted: accepted.into() }
    }

    fn path(&mut self, key: &'static str) -> Result<Option<PathBuf>, PeersError> {
        const ACCEPTED: &str = "a path such as \"/run/narrows/clock\", or one relative to this file";
        let Some(entry) = self.take(key) else { return Ok(None) };
        let text = self.source.string(&entry, ACCEPTED)?;
        if text.is_empty() || text.contains('\0') {
            return Err(self.source.refuse(key, &entry.span, ACCEPTED));
        }
        Ok(Some(self.source.resolve(&text)))
    }

    fn integer(&mut self, key: &'static str, accepted: Accepted) -> Result<Option<i64>, PeersError> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let value = match &entry.value {
            DeValue::Integer(number) => i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok(),
            _ => None,
        };
        if value.is_some_and(|value| (accepted.min..=accepted.max).contains(&value)) {
            return Ok(value);
        }
        let accepted = format!("a whole number from {} to {}{}", accepted.min, accepted.max, accepted.unit);
        Err(self.source.refuse(key, &entry.span, accepted))
    }

    fn table(&mut self, key: &'static str) -> Result<Option<Table<'a>>, PeersError> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        match entry.value {
            DeValue::Table(table) => Ok(Some(self.source.table(key, entry.key_span, table))),
            _ => Err(self.source.refuse(key, &entry.span, format!("a table [{key}]"))),
        }
    }

    /// Refuses entries that have not been taken; the first one of the file is named.
    fn finish(self) -> Result<(), PeersError> {
        let Some(entry) = self.entries.iter().min_by_key(|entry| entry.key_span.start) else { return Ok(()) };
        let mut accepted = self.taken.clone();
        accepted.sort_unstable();
        let prefix = if self.name.is_empty() { String::new() } else { format!("{}.", self.name) };
        let plain: String = entry.key.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(80).collect();
        Err(PeersError::UnknownKey {
            file: self.source.path.to_path_buf(),
            line: self.source.line(entry.key_span.start),
            key: format!("{prefix}{plain}"),
            accepted: accepted.join(", "),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MEMBERS: &str = "[[member]]\nname = \"a\"\naddress = \"10.0.0.1:7123\"\nsite = \"east\"\nutc = \"kernel\"\n\
                           [[member]]\nname = \"b\"\naddress = \"10.0.0.2:7123\"\nutc_bound_us = 20\n";

    fn parse(text: &str) -> Result<Draft, PeersError> {
        Source { path: Path::new("etc/peers.toml"), text }.parse()
    }

    #[test]
    fn all_keys_are_read() {
        let text = format!(
            "key = \"k\"\npage = \"/p\"\nstatus = \"s\"\nmetrics = \"m\"\nseed = 3\nprobe_interval_ms = 50\n\
             pair_spacing_us = 100\nwindow_ms = 2000\n[limits]\nasymmetry_ns = 5\nasymmetry_between_sites_ns = 6\n\
             timestamp_error_ns = 7\nwander_ppb = 8\nmax_skew_ppb = 9\npurity_ns = 10\n[clockbound]\nshm0 = \"/a\"\n\
             max_drift_ppb = 11\n{MEMBERS}"
        );
        let draft = parse(&text).unwrap();
        let limits = Limits {
            asymmetry: 5,
            asymmetry_between_sites: Some(6),
            timestamp_error: 7,
            wander: Skew::from_ppb(8),
            max_skew: Skew::from_ppb(9),
            purity: 10,
        };
        assert_eq!((draft.mesh.seed, draft.mesh.limits), (3, limits));
        assert_eq!((draft.key, draft.page), ("etc/k".into(), "/p".into()));
        assert_eq!((draft.status, draft.metrics), (Some("etc/s".into()), Some("etc/m".into())));
        let clock_bound = draft.clock_bound.unwrap();
        assert_eq!((clock_bound.max_drift_ppb, clock_bound.shm1), (11, "/var/run/clockbound/shm1".into()));
        assert_eq!(draft.peers[0].utc, UtcSource::Kernel);
        assert_eq!(draft.peers[1].utc, UtcSource::Bound { error_ns: 20_000 });
        let sites: Vec<u16> = draft.mesh.members.iter().map(|member| member.site).collect();
        assert_eq!(sites, [0, 1]);
    }

    /// The example of the book is accepted.
    #[test]
    fn example_is_accepted() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/src/clocks.md");
        let page = fs::read_to_string(page).unwrap();
        let (_, rest) = page.split_once("```toml\n").unwrap();
        let draft = parse(rest.split_once("```").unwrap().0).unwrap();
        assert_eq!(draft.peers.len(), 2);
    }

    /// Each error is at its line, and names its key.
    #[test]
    fn errors_name_line_and_key() {
        let cases = [
            ("key = 3", 1, "key"),
            ("key = \"k\"\nseed = -1", 2, "seed"),
            ("key = \"k\"\n\nwindow_ms = \"4\"", 3, "window_ms"),
            ("key = \"k\"\npages = \"p\"", 2, "pages"),
            ("key = \"k\"\n[limits]\npurity_ns = 1.5", 3, "purity_ns"),
            ("key = \"k\"\n[limits]\npurity = 1", 3, "limits.purity"),
            ("key = \"k\"\nlimits = 4", 2, "limits"),
            ("key = \"k\"\n[clockbound]\nshm2 = \"\"", 3, "clockbound.shm2"),
        ];
        for (text, expected, named) in cases {
            let error = parse(&format!("{text}\n{MEMBERS}")).unwrap_err();
            let (PeersError::Value { line, key, .. } | PeersError::UnknownKey { line, key, .. }) = &error else {
                panic!("{error}")
            };
            assert_eq!((*line, key.as_str()), (expected, named), "{error}");
            assert!(error.to_string().starts_with(&format!("etc/peers.toml:{expected}: ")), "{error}");
        }
        assert!(matches!(parse(MEMBERS), Err(PeersError::Missing { key, .. }) if key == "key"));
        assert!(matches!(parse("key = \"k\"\na = = 1"), Err(PeersError::Syntax { line: 2, .. })));
    }

    #[test]
    fn members_must_differ() {
        let member = |name: &str, address: &str| format!("[[member]]\nname = \"{name}\"\naddress = \"{address}\"\n");
        let file = |second: &str| format!("key = \"k\"\n{}{second}", member("a", "10.0.0.1:1"));
        assert!(parse(&file(&member("b", "10.0.0.1:2"))).is_ok());
        let refused = [
            (member("a", "10.0.0.2:1"), 6),
            (member("", "10.0.0.2:1"), 6),
            (member("b c", "10.0.0.2:1"), 6),
            (member("b", "10.0.0.1:1"), 7),
            (member("b", "10.0.0.2:0"), 7),
            (member("b", "0.0.0.0:1"), 7),
            (member("b", "[fd00::1]:1"), 7),
            (member("b", "host:1"), 7),
        ];
        for (second, expected) in refused {
            let error = parse(&file(&second)).unwrap_err();
            assert!(matches!(&error, PeersError::Value { line, .. } if *line == expected), "{error}");
        }
        for second in ["", "[[member]]\nname = \"b\"\n", "[[member]]\naddress = \"10.0.0.2:1\"\n"] {
            assert!(parse(&file(second)).is_err(), "{second}");
        }
    }

    #[test]
    fn keys_depend_on_what_members_must_agree_on() {
        let describe = |text: &str| {
            let draft = parse(text).unwrap();
            describe(&draft.mesh, &draft.peers)
        };
        let base = format!("key = \"k\"\n{MEMBERS}");
        assert_eq!(describe(&base), describe(&base.replace("\"k\"", "\"l\"")));
        let limits = |text: &str| format!("key = \"k\"\n[limits]\n{text}\n{MEMBERS}");
        let changes = [("\"a\"", "\"c\""), ("0.0.1", "0.0.3"), ("\"east\"", "\"\""), ("key", "seed = 1\nkey")];
        for (from, to) in changes {
            assert_ne!(describe(&base), describe(&base.replace(from, to)), "{from}");
        }
        assert_ne!(describe(&base), describe(&limits("asymmetry_ns = 2000")));
        assert_eq!(describe(&base), describe(&limits("asymmetry_ns = 1000")));
        // The text is part of the protocol: a change of it separates versions.
        let text = String::from_utf8(describe(&base)).unwrap();
        let first = text.lines().next().unwrap();
        let expected = "1 seed=0 asymmetry=1000 between_sites=none timestamp_error=200 wander=14073748 max_skew=84442493013 \
                        purity=300";
        assert_eq!(first, expected);
    }

    #[test]
    fn files_are_read_with_their_key() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("narrows-clockd-peers-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("peers.toml");
        fs::write(&path, format!("key = \"k\"\n{MEMBERS}")).unwrap();
        assert!(matches!(DaemonConfig::read(&path, Some("b")), Err(PeersError::File(_))), "no key");
        fs::write(directory.join("k"), [3; 32]).unwrap();
        fs::set_permissions(directory.join("k"), fs::Permissions::from_mode(0o600)).unwrap();
        let config = DaemonConfig::read(&path, Some("b")).unwrap();
        assert_eq!((config.own, config.peers.len()), (Member(1), 2));
        let error = DaemonConfig::read(&path, Some("c")).unwrap_err();
        assert!(error.to_string().contains("no member is named `c`; accepted: a, b"), "{error}");
        // Messages of members with the same file are understood, and those with another list are not.
        let sealed = config.key.seal(b"message", 0);
        assert!(DaemonConfig::read(&path, Some("a")).unwrap().key.open(&sealed).is_some());
        fs::write(&path, format!("key = \"k\"\n{MEMBERS}").replace("east", "west").replace("10.0.0.2", "10.0.0.3"))
            .unwrap();
        assert!(DaemonConfig::read(&path, Some("a")).unwrap().key.open(&sealed).is_none());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn keys_must_be_private_and_long() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("narrows-clockd-key-{}", std::process::id()));
        let try_key = |bytes: &[u8], mode: u32| {
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            read_key(&path)
        };
        assert!(try_key(&[7; 16], 0o600).is_ok());
        assert!(matches!(try_key(&[7; 15], 0o600), Err(PeersError::Key { .. })));
        assert!(matches!(try_key(&[7; 16], 0o644), Err(PeersError::Key { .. })));
        fs::remove_file(&path).unwrap();
        assert!(matches!(read_key(&path), Err(PeersError::File(_))));
    }

    proptest! {
        #[test]
        fn any_text_is_a_mesh_or_an_error(text in "[a-z\\[\\]=\"0-9.:\n_ ]{0,120}") {
            let _ = parse(&text);
            let _ = parse(&format!("key = \"k\"\n{text}\n{MEMBERS}"));
        }
    }
}
