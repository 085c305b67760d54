//! A law in the kernel, for as long as this process wants it.

#![allow(unsafe_code, reason = "it talks to the kernel")]

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use libbpf_rs::{Link, MapCore as _, Object};

use crate::sockets::{COUNT, Socket, list, refused};
use crate::{Error, Row, Settings, object};

/// Lists the sockets of a law.
#[derive(Debug)]
pub struct Watch {
    row: &'static Row,
    program: OwnedFd,
    flows: OwnedFd,
}

impl Watch {
    /// The sockets that run it, of all namespaces.
    ///
    /// # Errors
    /// When the kernel cannot list them.
    pub fn sockets(&self) -> Result<Vec<Socket>, Error> {
        list(self.row, self.program.as_fd(), self.flows.as_fd())
    }
}

/// The kernel's list of congestion controls.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The kernel's own type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// A law that the kernel's TCP can use by name. Dropped, it is taken out again; sockets that run it keep it until
/// they close.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) row: &'static Row,
    tcp_name: String,
    pub(crate) object: Object,
    pub(crate) link: Link,
}

impl Loaded {
    /// Loads a law and registers it with the kernel's TCP, as `tcp_name` or by the name in its row.
    ///
    /// # Errors
    /// When the settings are bad, this process may not, the kernel lacks type information, refuses the program, or
    /// has the name already. Nothing is left behind then.
    pub fn load(row: &'static Row, settings: &Settings, tcp_name: Option<&str>) -> Result<Self, Error> {
        let config = settings.config(row)?;
        need_root()?;
        if !Path::new(BTF).exists() {
            return Err(Error::NoBtf);
        }
        let tcp_name = tcp_name.unwrap_or(row.tcp_name);
        if registered()?.iter().any(|name| name == tcp_name) {
            return Err(Error::NameTaken { name: tcp_name.to_owned() });
        }
        let mut object = object::load(row, tcp_name, &config)?;
        let link = object
            .maps_mut()
            .find(|map| map.name() == "law")
            .ok_or_else(|| Error::Failed { action: "register the law", reason: "the object has no `law`".into() })?
            .attach_struct_ops()
            .map_err(|error| Error::Failed { action: "register the law", reason: error.to_string() })?;
        Ok(Self { row, tcp_name: tcp_name.to_owned(), object, link })
    }

    /// Its name for `TCP_CONGESTION`, sysctl and routes.
    pub fn tcp_name(&self) -> &str {
        &self.tcp_name
    }

    /// The sockets that run it, of all namespaces.
    ///
    /// # Errors
    /// When the kernel cannot list them.
    pub fn sockets(&self) -> Result<Vec<Socket>, Error> {
        self.watch()?.sockets()
    }

    /// How many sockets found no memory for a flow, and run without the law: the initial window, for ever.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn refused(&self) -> Result<u64, Error> {
        let map = self.object.maps().find(|map| map.name() == "refused");
        let map =
            map.ok_or_else(|| Error::Failed { action: COUNT, reason: "the object has no map `refused`".into() })?;
        refused(&map)
    }

    /// What lists its sockets, also from another thread, for as long as it is kept.
    ///
    /// # Errors
    /// When the object lacks a part.
    pub fn watch(&self) -> Result<Watch, Error> {
        let missing = || Error::Failed { action: "list sockets", reason: "the object lacks a part".into() };
        let program = self.object.progs().find(|program| program.name() == "list_sockets").ok_or_else(missing)?;
        let flows = self.object.maps().find(|map| map.name() == "flows").ok_or_else(missing)?;
        let own = |fd: BorrowedFd<'_>| {
            fd.try_clone_to_owned().map_err(|error| Error::Failed { action: "list sockets", reason: error.to_string() })
        };
        Ok(Watch { row: self.row, program: own(program.as_fd())?, flows: own(flows.as_fd())? })
    }

    /// Makes sockets of a cgroup (version 2) use it: those that connect or listen from now on, for as long as the
    /// link is held.
    ///
    /// # Errors
    /// When the directory is no cgroup of version 2 or takes no program.
    pub fn choose_in_cgroup(&self, cgroup: &Path) -> Result<Link, Error> {
        let folder = fs::File::open(cgroup).map_err(|error| Error::io("open", cgroup, error))?;
        let failed = |reason: String| Error::NoPlace { place: format!("cgroup {}", cgroup.display()), reason };
        let program = self.object.progs_mut().find(|program| program.name() == "choose");
        let program = program.ok_or_else(|| failed("the object has no `choose`".into()))?;
        program
            .attach_cgroup(folder.as_raw_fd())
            .map_err(|error| failed(format!("{error}; it must be a directory of the cgroup2 file system")))
    }
}

/// Laws, and what is pinned of them, are root's.
pub(crate) fn need_root() -> Result<(), Error> {
    // SAFETY: geteuid cannot fail and touches no memory.
    if unsafe { libc::geteuid() } == 0 { Ok(()) } else { Err(Error::NotRoot) }
}

/// The names of the congestion controls that the kernel has now.
///
/// # Errors
/// When the kernel does not say.
pub fn registered() -> Result<Vec<String>, Error> {
    let text = fs::read_to_string(AVAILABLE).map_err(|error| Error::io("read", AVAILABLE, error))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}
