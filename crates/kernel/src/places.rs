//! Which sockets use a law: by default, in a namespace, on a route, in a cgroup. Each place remembers what was there
//! before, so that it can be put back.

#![allow(unsafe_code, reason = "a thread enters a namespace")]

use std::fmt;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Error;

/// The sysctl of a namespace's default.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Sockets that are to use a law.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// All new ones of this namespace that ask for nothing else.
    Default,
    /// The same of another network namespace, by its name (`ip netns`) or path.
    Netns(String),
    /// Those towards a route of this namespace, as `ip route show` names it.
    Route(String),
    /// Those that processes of a cgroup (version 2) open, by its directory.
    Cgroup(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Netns(name) => write!(f, "netns {name}"),
            Self::Route(prefix) => write!(f, "route {prefix}"),
            Self::Cgroup(path) => write!(f, "cgroup {}", path.display()),
        }
    }
}

/// A place that uses a law, and what it had before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    /// The place.
    pub place: Place,
    /// The name or route that was there; empty for a cgroup, whose link is pinned.
    pub before: String,
}

impl Taken {
    /// Makes a place use the law `tcp_name`. A cgroup is taken by its link, elsewhere.
    ///
    /// # Errors
    /// When the place does not exist or does not take the law.
    pub fn take(place: &Place, tcp_name: &str) -> Result<Self, Error> {
        let before = match place {
            Place::Default => swap(tcp_name)?,
            Place::Netns(name) => in_netns(name, || swap(tcp_name))??,
            Place::Route(prefix) => change_route(prefix, tcp_name)?,
            Place::Cgroup(_) => String::new(),
        };
        Ok(Self { place: place.clone(), before })
    }

    /// Puts back what was there before, if the place still uses `tcp_name`; says what could not be put back.
    pub fn give_back(&self, tcp_name: &str) -> Option<String> {
        let restored = match &self.place {
            Place::Default => swap_back(tcp_name, &self.before),
            Place::Netns(name) => in_netns(name, || swap_back(tcp_name, &self.before)).and_then(|result| result),
            Place::Route(prefix) => route_back(prefix, tcp_name, &self.before),
            Place::Cgroup(_) => Ok(()),
        };
        restored.err().map(|error| format!("{}: {error}", self.place))
    }

    /// As a line of a file.
    pub(crate) fn line(&self) -> String {
        let (kind, what) = match &self.place {
            Place::Default => ("default", String::new()),
            Place::Netns(name) => ("netns", name.clone()),
            Place::Route(prefix) => ("route", prefix.clone()),
            Place::Cgroup(path) => ("cgroup", path.display().to_string()),
        };
        format!("{kind}\t{what}\t{}", self.before)
    }

    /// From such a line.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, '\t');
        let (kind, what, before) = (parts.next()?, parts.next()?, parts.next()?);
        let place = match kind {
            "default" => Place::Default,
            "netns" => Place::Netns(what.to_owned()),
            "route" => Place::Route(what.to_owned()),
            "cgroup" => Place::Cgroup(what.into()),
            _ => return None,
        };
        Some(Self { place, before: before.to_owned() })
    }
}

/// Sets the default of the thread's namespace and says what it was.
fn swap(tcp_name: &str) -> Result<String, Error> {
    let before = fs::read_to_string(DEFAULT).map_err(|error| Error::io("read", DEFAULT, error))?;
    fs::write(DEFAULT, tcp_name).map_err(|error| Error::io("write", DEFAULT, error))?;
    Ok(before.trim().to_owned())
}

fn swap_back(tcp_name: &str, before: &str) -> Result<(), Error> {
    let now = fs::read_to_string(DEFAULT).map_err(|error| Error::io("read", DEFAULT, error))?;
    if now.trim() != tcp_name {
        return Ok(());
    }
    fs::write(DEFAULT, before).map_err(|error| Error::io("write", DEFAULT, error))
}

/// Does something on a thread that has entered a network namespace.
fn in_netns<T: Send>(name: &str, act: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let path = if name.contains('/') { PathBuf::from(name) } else { Path::new("/run/netns").join(name) };
    let file = File::open(&path).map_err(|error| Error::io("open the namespace", &path, error))?;
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // SAFETY: a valid descriptor; only this thread enters, and it ends here.
            if unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                return Err(Error::io("enter the namespace", &path, std::io::Error::last_os_error()));
            }
            Ok(act())
        });
        worker.join().unwrap_or_else(|_| Err(Error::Failed { action: "enter a namespace", reason: "it failed".into() }))
    })
}

/// Adds `congctl` to a route and says what the route was.
fn change_route(prefix: &str, tcp_name: &str) -> Result<String, Error> {
    let shown = ip_route("show", prefix)?;
    let mut lines = shown.lines().map(str::trim).filter(|line| !line.is_empty());
    let (Some(before), None) = (lines.next(), lines.next()) else {
        let reason = match shown.lines().count() {
            0 => "there is no such route; `ip route add` it first".to_owned(),
            many => format!("`ip route show {prefix}` names {many} routes, not one"),
        };
        return Err(Error::NoPlace { place: format!("route {prefix}"), reason });
    };
    let before = replaceable(before);
    ip_route("replace", &format!("{} congctl {tcp_name}", without_congctl(&before)))?;
    Ok(before)
}

/// Puts a route back, if it is still there with the law.
fn route_back(prefix: &str, tcp_name: &str, before: &str) -> Result<(), Error> {
    let shown = ip_route("show", prefix)?;
    let words: Vec<&str> = shown.split_whitespace().collect();
    if words.windows(2).any(|pair| pair == ["congctl", tcp_name]) {
        ip_route("replace", before)?;
    }
    Ok(())
}

/// A route as `ip route show` has it, without what is only shown.
fn replaceable(shown: &str) -> String {
    let words: Vec<&str> = shown.split_whitespace().filter(|word| !matches!(*word, "linkdown" | "dead")).collect();
    words.join(" ")
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

fn ip_route(verb: &str, route: &str) -> Result<String, Error> {
    let failed = |reason: String| Error::NoPlace { place: format!("route {route}"), reason };
    let output = Command::new("ip").args(["route", verb]).args(route.split_whitespace()).output();
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
        let places = [
            Place::Default,
            Place::Netns("a".into()),
            Place::Route("10.0.0.0/8".into()),
            Place::Cgroup("/sys/fs/cgroup/x y".into()),
        ];
        for place in places {
            let taken = Taken { place, before: "10.0.0.0/8 dev eth0 scope link".into() };
            assert_eq!(Taken::of_line(&taken.line()), Some(taken));
        }
        assert_eq!(Taken::of_line("elsewhere\tx\ty"), None);
        assert_eq!(Taken::of_line("default"), None);
    }

    #[test]
    fn a_route_keeps_all_but_its_law_and_its_state() {
        let shown = "10.1.0.0/16 dev deadline0 scope link congctl reno linkdown mtu 1400 dead";
        let route = replaceable(shown);
        assert_eq!(route, "10.1.0.0/16 dev deadline0 scope link congctl reno mtu 1400");
        assert_eq!(without_congctl(&route), "10.1.0.0/16 dev deadline0 scope link mtu 1400");
    }
}
