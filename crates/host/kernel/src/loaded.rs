//! A law in the kernel, for as long as this process wants it.

#![allow(unsafe_code, reason = "geteuid has no safe form")]

use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;

use inet_diag::Machine;
use libbpf_rs::{Link, MapCore as _, Object};

use crate::object::{self, Programs, errno_of};
use crate::sockets::{COUNT, LawSockets, SocketWatcher, refused};
use crate::{Error, KernelLaw, Settings};

/// The kernel's list of congestion controls.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The kernel's own type information.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// A law that the kernel's TCP can use by name. Dropped, it is taken out again; sockets that run it keep it until
/// they close.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) row: &'static KernelLaw,
    tcp_name: String,
    pub(crate) object: Object,
    pub(crate) link: Link,
}

impl Loaded {
    /// Loads a law and registers it with the kernel's TCP, as `tcp_name` or by the name in its row.
    ///
    /// # Errors
    /// If the settings are bad, this process may not, the kernel lacks type information, refuses a program or a map, or
    /// has the name already. Nothing is left behind then.
    pub fn load(
        row: &'static KernelLaw,
        settings: &Settings,
        tcp_name: Option<&str>,
        programs: Programs,
    ) -> Result<Self, Error> {
        let config = settings.config(row)?;
        need_root()?;
        if !Path::new(BTF).exists() {
            return Err(Error::NoBtf);
        }
        let tcp_name = tcp_name.unwrap_or(row.tcp_name);
        if registered()?.iter().any(|name| name == tcp_name) {
            return Err(Error::NameTaken { name: tcp_name.to_owned() });
        }
        let mut object = object::load(row, tcp_name, &config, programs)?;
        let link = object
            .maps_mut()
            .find(|map| map.name() == "law")
            .ok_or_else(|| Error::Failed { action: "register the law", reason: "the object has no `law`".into() })?
            .attach_struct_ops()
            .map_err(|error| match registered() {
                // Another command registered it since the check above.
                Ok(names) if names.iter().any(|name| name == tcp_name) => {
                    Error::NameTaken { name: tcp_name.to_owned() }
                }
                Ok(_) | Err(_) => Error::Refused {
                    law: row.kind.info().title.to_owned(),
                    object: "to register the law (a link of type struct_ops)".to_owned(),
                    errno: errno_of(&error),
                    reason: error.to_string(),
                },
            })?;
        Ok(Self { row, tcp_name: tcp_name.to_owned(), object, link })
    }

    /// Its name for `TCP_CONGESTION`, sysctl and routes.
    pub fn tcp_name(&self) -> &str {
        &self.tcp_name
    }

    /// Lists the sockets that run it, of all network namespaces.
    ///
    /// # Errors
    /// [`Error::Sockets`] if the kernel lists none.
    pub fn sockets(&self) -> Result<LawSockets, Error> {
        self.watcher()?.sockets(&mut Machine::default())
    }

    /// Returns the number of sockets that run without the law for lack of memory: they keep the initial window.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn refused(&self) -> Result<u64, Error> {
        let map = self.object.maps().find(|map| map.name() == "refused");
        let map =
            map.ok_or_else(|| Error::Failed { action: COUNT, reason: "the object has no map `refused`".into() })?;
        refused(&map)
    }

    /// A reader of its sockets.
    ///
    /// # Errors
    /// If the object lacks a part.
    pub fn watcher(&self) -> Result<SocketWatcher, Error> {
        let missing = || Error::Failed { action: "list sockets", reason: "the object has no map `flows`".into() };
        let flows = self.object.maps().find(|map| map.name() == "flows").ok_or_else(missing)?;
        SocketWatcher::new(self.row, flows.as_fd())
    }

    /// Makes sockets of a cgroup (version 2) use it: those that connect or listen from now on, for as long as the
    /// link is held. Only for a law loaded with [`Programs::LawAndCgroup`].
    ///
    /// # Errors
    /// If the directory is no cgroup of version 2 or takes no program.
    pub fn choose_in_cgroup(&self, cgroup: &Path) -> Result<Link, Error> {
        let folder = fs::File::open(cgroup).map_err(|error| Error::io("open", cgroup, error))?;
        let failed = |reason: String| Error::UnusableScope { scope: format!("cgroup {}", cgroup.display()), reason };
        let program = self.object.progs_mut().find(|program| program.name() == "choose");
        let program = program.ok_or_else(|| failed("the object has no `choose`".into()))?;
        program.attach_cgroup(folder.as_raw_fd()).map_err(|error| {
            failed(format!("{}, {error}; it must be a directory of the cgroup2 file system", errno_of(&error)))
        })
    }
}

/// Only root may access laws and their pins.
pub(crate) fn need_root() -> Result<(), Error> {
    // SAFETY: geteuid cannot fail and touches no memory.
    if unsafe { libc::geteuid() } == 0 { Ok(()) } else { Err(Error::NotRoot) }
}

/// Returns the names of the congestion controls that the kernel has now.
///
/// # Errors
/// If the kernel does not report them.
pub fn registered() -> Result<Vec<String>, Error> {
    let text = fs::read_to_string(AVAILABLE).map_err(|error| Error::io("read", AVAILABLE, error))?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}
