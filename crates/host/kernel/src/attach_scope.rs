//! Scopes in which sockets use a law: by default, in a namespace, on a route, in a cgroup. Each scope keeps the
//! previous setting, so that it can be restored.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use files::process::{HELPER_DEADLINE, output_within};
use inet_diag::netns::{self, OWN};

use crate::Error;

/// The sysctl of a namespace's default.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Directory in which `ip netns` keeps its namespaces.
const NAMED_NETNS: &str = "/run/netns";

/// Sockets that are to use a law.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AttachScope {
    /// All new connections of this namespace that do not choose another one.
    Default,
    /// The same of another network namespace, by its name (`ip netns`) or path.
    Netns(String),
    /// Those towards a route of this namespace, as `ip route show` names it.
    Route(String),
    /// Those that processes of a cgroup (version 2) open, by its directory.
    Cgroup(PathBuf),
}

impl fmt::Display for AttachScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Netns(name) => write!(f, "netns {name}"),
            Self::Route(prefix) => write!(f, "route {prefix}"),
            Self::Cgroup(path) => write!(f, "cgroup {}", path.display()),
        }
    }
}

/// A scope that uses a law or is about to, and its previous setting.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttachedScope {
    /// The scope.
    pub scope: AttachScope,
    /// The previous name or route; empty for a cgroup, which has its link pinned.
    pub previous: String,
    /// The network namespace of the scope, by its inode: the process that restores the scope may run in another one.
    netns: u64,
}

impl AttachedScope {
    /// Returns the current law of a scope. Changes nothing yet, so that it can be noted first.
    ///
    /// # Errors
    /// When the scope does not exist.
    pub fn find(scope: &AttachScope) -> Result<Self, Error> {
        let netns = |name: &str| {
            let path = netns_file(name);
            let file = File::open(&path).map_err(|error| Error::io("open the namespace", &path, error))?;
            Ok((inside(&file, default_law)??, inode(&path)?))
        };
        let (previous, netns) = match scope {
            AttachScope::Default => (default_law()?, inode(Path::new(OWN))?),
            AttachScope::Netns(name) => netns(name)?,
            AttachScope::Route(prefix) => (single_route(prefix)?, inode(Path::new(OWN))?),
            AttachScope::Cgroup(_) => (String::new(), inode(Path::new(OWN))?),
        };
        Ok(Self { scope: scope.clone(), previous, netns })
    }

    /// Makes the scope use the law `tcp_name`. A cgroup is attached by its link, elsewhere.
    ///
    /// # Errors
    /// When the scope does not take the law.
    pub fn attach(&self, tcp_name: &str) -> Result<(), Error> {
        self.in_its_netns(|| match &self.scope {
            AttachScope::Default | AttachScope::Netns(_) => set_default_law(tcp_name),
            AttachScope::Route(prefix) => {
                ip_route("replace", prefix, &format!("{} congctl {tcp_name}", without_congctl(&self.previous)))
                    .map(drop)
            }
            AttachScope::Cgroup(_) => Ok(()),
        })
    }

    /// Restores the previous setting, if the scope still uses `tcp_name`; returns a message if it could not be restored.
    pub fn restore(&self, tcp_name: &str) -> Option<String> {
        let restored = match &self.scope {
            AttachScope::Default | AttachScope::Netns(_) => {
                self.in_its_netns(|| restore_default(tcp_name, &self.previous))
            }
            AttachScope::Route(prefix) => self.in_its_netns(|| restore_route(prefix, tcp_name, &self.previous)),
            AttachScope::Cgroup(_) => Ok(()),
        };
        restored.err().map(|error| format!("{}: {error}", self.scope))
    }

    /// Takes over the previous setting of the law `tcp_name` at the same scope, if that law is removed and is this scope's
    /// own previous setting. Returns whether it did.
    pub(crate) fn inherit(&mut self, tcp_name: &str, removed: &[Self]) -> bool {
        let found = match &self.scope {
            AttachScope::Default | AttachScope::Netns(_) => self.previous == tcp_name,
            AttachScope::Route(_) => has_congctl(&self.previous, tcp_name),
            AttachScope::Cgroup(_) => false,
        };
        let Some(removed) = removed.iter().find(|removed| found && removed.is_same_scope(self)) else { return false };
        self.previous.clone_from(&removed.previous);
        true
    }

    /// Returns whether two are the same scope under any names.
    fn is_same_scope(&self, other: &Self) -> bool {
        let target = |scope: &AttachScope| match scope {
            AttachScope::Default | AttachScope::Netns(_) => Some(String::new()),
            AttachScope::Route(prefix) => Some(prefix.clone()),
            AttachScope::Cgroup(_) => None,
        };
        self.netns == other.netns && target(&self.scope).is_some_and(|scope| Some(scope) == target(&other.scope))
    }

    /// Does something in the network namespace where the scope was found.
    fn in_its_netns(&self, act: impl FnOnce() -> Result<(), Error> + Send) -> Result<(), Error> {
        if inode(Path::new(OWN))? == self.netns {
            return act();
        }
        let Some(file) = netns::of_inode(self.netns) else {
            return Err(Error::Failed {
                action: "find the network namespace where it was set",
                reason: format!("no process and no mount seen from here has {}", self.netns),
            });
        };
        inside(&file, act)?
    }

    /// Returns the scope as a line of a file.
    pub(crate) fn line(&self) -> String {
        let (kind, target) = match &self.scope {
            AttachScope::Default => ("default", String::new()),
            AttachScope::Netns(name) => ("netns", name.clone()),
            AttachScope::Route(prefix) => ("route", prefix.clone()),
            AttachScope::Cgroup(path) => ("cgroup", path.display().to_string()),
        };
        format!("{kind}\t{}\t{target}\t{}", self.netns, self.previous)
    }

    /// From such a line.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, '\t');
        let (kind, netns, target, previous) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let scope = match kind {
            "default" => AttachScope::Default,
            "netns" => AttachScope::Netns(target.to_owned()),
            "route" => AttachScope::Route(target.to_owned()),
            "cgroup" => AttachScope::Cgroup(target.into()),
            _ => return None,
        };
        Some(Self { scope, previous: previous.to_owned(), netns: netns.parse().ok()? })
    }
}

/// The law of the thread's namespace for connections that name none.
fn default_law() -> Result<String, Error> {
    let name = fs::read_to_string(DEFAULT).map_err(|error| Error::io("read", DEFAULT, error))?;
    Ok(name.trim().to_owned())
}

fn set_default_law(tcp_name: &str) -> Result<(), Error> {
    fs::write(DEFAULT, tcp_name).map_err(|error| Error::io("write", DEFAULT, error))
}

fn restore_default(tcp_name: &str, previous: &str) -> Result<(), Error> {
    if default_law()? == tcp_name { set_default_law(previous) } else { Ok(()) }
}

/// The file of a namespace that `ip netns` names, or its path.
fn netns_file(name: &str) -> PathBuf {
    if name.contains('/') { PathBuf::from(name) } else { Path::new(NAMED_NETNS).join(name) }
}

fn inode(file: &Path) -> Result<u64, Error> {
    netns::inode(file).map_err(|error| Error::io("read", file, error))
}

/// Calls `act` on a thread that has entered a network namespace.
fn inside<T: Send>(namespace: &File, act: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let failed =
        |error: std::io::Error| Error::Failed { action: "enter a network namespace", reason: error.to_string() };
    netns::inside(namespace, act).map_err(failed)
}

/// The one route that `ip route show` names for a prefix.
fn single_route(prefix: &str) -> Result<String, Error> {
    let shown = ip_route("show", prefix, prefix)?;
    let mut lines = shown.lines().map(str::trim).filter(|line| !line.is_empty());
    let (Some(previous), None) = (lines.next(), lines.next()) else {
        let reason = match shown.lines().count() {
            0 => "there is no such route; `ip route add` it first".to_owned(),
            many => format!("`ip route show {prefix}` names {many} routes, not one"),
        };
        return Err(Error::UnusableScope { scope: format!("route {prefix}"), reason });
    };
    Ok(route_arguments(previous))
}

/// Puts a route back, if it is still there with the law.
fn restore_route(prefix: &str, tcp_name: &str, previous: &str) -> Result<(), Error> {
    let shown = ip_route("show", prefix, prefix)?;
    if has_congctl(&shown, tcp_name) {
        ip_route("replace", prefix, previous)?;
    }
    Ok(())
}

/// A route in the form of `ip route show`, without the fields that are output only.
fn route_arguments(shown: &str) -> String {
    let words: Vec<&str> = shown.split_whitespace().filter(|word| !matches!(*word, "linkdown" | "dead")).collect();
    words.join(" ")
}

/// Returns whether a route uses that law.
fn has_congctl(route: &str, tcp_name: &str) -> bool {
    let words: Vec<&str> = route.split_whitespace().collect();
    words.windows(2).any(|pair| pair == ["congctl", tcp_name])
}

fn without_congctl(route: &str) -> String {
    let mut words = Vec::new();
    let mut rest = route.split_whitespace();
    while let Some(word) = rest.next() {
        if word == "congctl" {
            rest.next();
        } else {
            words.push(word);
        }
    }
    words.join(" ")
}

/// Runs `ip route` for a route of the main table; its prefix determines the family.
fn ip_route(verb: &str, prefix: &str, route: &str) -> Result<String, Error> {
    let failed = |reason: String| Error::UnusableScope { scope: format!("route {route}"), reason };
    let family = if prefix.contains(':') { "-6" } else { "-4" };
    let mut command = Command::new("ip");
    command.args([family, "route", verb]).args(route.split_whitespace());
    let output = output_within(&mut command, &[], HELPER_DEADLINE);
    let output = output.map_err(|error| failed(format!("`ip` of iproute2: {error}")))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back() {
        let scopes = [
            AttachScope::Default,
            AttachScope::Netns("a".into()),
            AttachScope::Route("10.0.0.0/8".into()),
            AttachScope::Cgroup("/sys/fs/cgroup/x y".into()),
        ];
        for scope in scopes {
            let attached =
                AttachedScope { scope, previous: "10.0.0.0/8 dev eth0 scope link".into(), netns: 4_026_531_840 };
            assert_eq!(AttachedScope::of_line(&attached.line()), Some(attached));
        }
        assert_eq!(AttachedScope::of_line("elsewhere\t1\tx\ty"), None, "no such scope");
        assert_eq!(AttachedScope::of_line("default\t\tcubic"), None, "of an earlier build");
        assert_eq!(AttachedScope::of_line("default"), None);
        assert_eq!(AttachedScope::of_line("default\tthis\t\tcubic"), None, "no inode");
    }

    #[test]
    fn place_in_a_namespace_that_is_gone_is_reported() {
        let removed = AttachedScope { scope: AttachScope::Default, previous: "cubic".into(), netns: 0 };
        let complaint = removed.restore("narrows_x").expect("no namespace has this inode");
        assert!(complaint.starts_with("default: "), "{complaint}");
    }

    #[test]
    fn what_a_law_found_goes_to_the_one_that_found_it() {
        let attached = |scope, previous: &str, netns| AttachedScope { scope, previous: previous.to_owned(), netns };
        let route = || AttachScope::Route("10.0.0.0/8".into());
        let removed = [attached(AttachScope::Default, "cubic", 7), attached(route(), "10.0.0.0/8 dev lo", 7)];
        let inherits = |mut attached: AttachedScope| attached.inherit("a", &removed).then_some(attached.previous);
        assert_eq!(inherits(attached(AttachScope::Default, "a", 7)), Some("cubic".to_owned()));
        assert_eq!(
            inherits(attached(AttachScope::Netns("x".into()), "a", 7)),
            Some("cubic".to_owned()),
            "another name for it"
        );
        assert_eq!(inherits(attached(AttachScope::Default, "a", 8)), None, "of another namespace");
        assert_eq!(inherits(attached(AttachScope::Default, "b", 7)), None, "it found another law");
        assert_eq!(inherits(attached(route(), "10.0.0.0/8 dev lo congctl a", 7)), Some("10.0.0.0/8 dev lo".to_owned()));
        assert_eq!(inherits(attached(route(), "10.0.0.0/8 dev a", 7)), None, "a device of that name");
        assert_eq!(inherits(attached(AttachScope::Route("10.0.0.0/9".into()), "10.0.0.0/9 dev lo congctl a", 7)), None);
        assert_eq!(inherits(attached(AttachScope::Cgroup("/x".into()), "", 7)), None);
    }

    #[test]
    fn route_keeps_everything_but_law_and_state() {
        let shown = "10.1.0.0/16 dev deadline0 scope link congctl reno linkdown mtu 1400 dead";
        let route = route_arguments(shown);
        assert_eq!(route, "10.1.0.0/16 dev deadline0 scope link congctl reno mtu 1400");
        assert_eq!(without_congctl(&route), "10.1.0.0/16 dev deadline0 scope link mtu 1400");
    }
}
