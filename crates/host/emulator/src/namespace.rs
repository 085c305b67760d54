//! Emulated hosts: a network namespace and a TUN device each. They are removed when the set is dropped; leftovers of a
//! killed process are removed by [`HostNamespaces::clean_stale`].

mod ip;
mod lock;
mod setup;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use fabric::{HostId, Network};
use units::Bytes;

use crate::tun::Tun;
use crate::{Error, sys};
use ip::ip;
use lock::NamespaceLock;
use router::{HostPlan, plan};

const NAMESPACES: &str = "/run/netns";
/// Files here replace those of `/etc` for programs that `ip netns exec` starts.
const OVERLAYS: &str = "/etc/netns";

/// Hosts that are created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HostSelection {
    /// All of the network.
    All,
    /// These: no other sends or receives.
    Only(BTreeSet<HostId>),
}

/// Kernel settings of the hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamespaceOptions {
    /// Hosts to create.
    pub hosts: HostSelection,
    /// The largest packet on the wire, IP header included: 1,280 to 65,535 bytes.
    pub mtu: u16,
    /// The largest packet that the kernel passes on for segmentation; none keeps the kernel's own limit, 64 KiB, and a
    /// value of `mtu` or less makes the kernel send every packet alone.
    pub gso_max_size: Option<u32>,
    /// True if receivers acknowledge every packet, as the kernel delivers them; false for every second one.
    pub quick_ack: bool,
    /// Maximum size of a TCP socket's buffers, in each direction. Should be several times the capacity of the path.
    pub socket_buffer: Bytes,
    /// The congestion control of sockets that choose none; none keeps the kernel's own.
    pub congestion: Option<String>,
    /// True if TCP requests ECN. Otherwise it only accepts requests, unless its congestion control needs ECN.
    pub ecn: bool,
}

#[derive(Debug)]
pub(crate) struct HostNamespace {
    /// The namespace's name; removed when dropped.
    name: Name,
    namespace: File,
    pub(crate) tun: Tun,
}

impl HostNamespace {
    /// Its namespace, which lives as long as this is open.
    pub(crate) fn namespace_file(&self) -> Result<File, Error> {
        self.namespace.try_clone().map_err(Error::system("hold a namespace open"))
    }
}

/// Namespaces and TUN devices, one a host; all is removed when dropped. A process has one set at a time.
#[derive(Debug)]
pub struct HostNamespaces {
    plan: Vec<HostPlan>,
    /// The hosts that were created.
    members: BTreeMap<HostId, HostNamespace>,
    mtu: u16,
    /// Given back after the hosts are gone: fields are dropped in this order.
    _lock: NamespaceLock,
}

impl HostNamespaces {
    /// Makes a namespace named `narrows-PROCESS-HOST` for each selected host, with a TUN device `nw0`, addresses, and the
    /// names of all hosts in `/etc/hosts`.
    ///
    /// # Errors
    /// Without root, `ip` or `/dev/net/tun`; when an option is out of its range; when this process has a set.
    /// Nothing is left behind.
    pub fn create(network: &Network, options: &NamespaceOptions) -> Result<Self, Error> {
        if options.mtu < 1280 {
            return Err(Error::Mtu { mtu: options.mtu });
        }
        let plan = plan(network)?;
        let lock = NamespaceLock::take()?;
        let mut names = String::from("127.0.0.1 localhost\n::1 localhost\n");
        for host in &plan {
            let _ = write!(names, "{} {}\n{} {}\n", host.v4, host.name, host.v6, host.name);
        }
        let created: Vec<HostId> = match &options.hosts {
            HostSelection::All => (0..plan.len() as u32).map(HostId).collect(),
            HostSelection::Only(hosts) => hosts.iter().copied().filter(|host| host.index() < plan.len()).collect(),
        };
        let names = setup::with_small_tables(|| {
            let name = |host: &HostId| {
                Name::create(lock::namespace_name(std::process::id(), &plan[host.index()].name), &names)
            };
            created.iter().map(name).collect::<Result<Vec<_>, _>>()
        })??;
        let mut hosts = BTreeMap::new();
        for (host, name) in created.into_iter().zip(names) {
            let namespace = name.open()?;
            let tun = inside(&namespace, || setup::set_up(&plan[host.index()], options))??;
            hosts.insert(host, HostNamespace { name, namespace, tun });
        }
        Ok(Self { plan, members: hosts, mtu: options.mtu, _lock: lock })
    }

    /// The hosts' names and addresses, by [`HostId`].
    pub fn plan(&self) -> &[HostPlan] {
        &self.plan
    }

    /// The largest packet on the wire, in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// The name of a host's namespace, as `ip netns` knows it.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn namespace(&self, host: HostId) -> Result<&str, Error> {
        Ok(&self.host(host)?.name.0)
    }

    /// A host's TUN device.
    ///
    /// # Errors
    /// When there is no such host.
    pub fn tun(&self, host: HostId) -> Result<&Tun, Error> {
        Ok(&self.host(host)?.tun)
    }

    /// Runs `f` on a thread of its own inside a host's namespace. A panic of `f` continues in the caller.
    ///
    /// # Errors
    /// If there is no such host, or without permission to enter.
    pub fn enter<T: Send>(&self, host: HostId, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
        inside(&self.host(host)?.namespace, f)
    }

    /// A program to be run in a host's namespace, where `/etc/hosts` names the hosts. It is killed when the thread that
    /// starts it ends for any reason; processes that the program itself starts are not.
    ///
    /// # Errors
    /// If there is no such host.
    pub fn command(&self, host: HostId, program: impl AsRef<OsStr>) -> Result<Command, Error> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.host(host)?.name.0]).arg(program);
        sys::end_with_parent(&mut command);
        Ok(command)
    }

    /// Removes namespaces of processes that ended without removing them. Returns the names of the namespaces removed.
    ///
    /// # Errors
    /// If a namespace cannot be removed.
    pub fn clean_stale() -> Result<Vec<String>, Error> {
        let mut left: Vec<(u32, Vec<String>)> = lock::owners().into_iter().map(|it| (it, Vec::new())).collect();
        for (process, name) in existing() {
            match left.iter_mut().find(|it| it.0 == process) {
                Some((_, names)) => names.push(name),
                None => left.push((process, vec![name])),
            }
        }
        let mut removed = Vec::new();
        for (process, names) in left {
            lock::if_dead(process, || {
                names.iter().try_for_each(|name| remove(name))?;
                removed.extend(names);
                Ok(())
            })?;
        }
        removed.sort();
        Ok(removed)
    }

    /// Removes this process's set, as far as possible, before its owner drops it: for a process that has to end at once.
    pub fn abandon() {
        for (_, name) in existing().into_iter().filter(|it| it.0 == std::process::id()) {
            let _ = remove(&name);
        }
        lock::give_up();
    }

    /// Returns the hosts that were created, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (HostId, &HostNamespace)> {
        self.members.iter().map(|(&host, namespace)| (host, namespace))
    }

    fn host(&self, host: HostId) -> Result<&HostNamespace, Error> {
        self.members.get(&host).ok_or(Error::NoSuchHost { host: host.0, hosts: self.members.len() })
    }
}

/// A namespace's name in `/run/netns`, and its overlay of `/etc`. Removed when dropped.
#[derive(Debug)]
struct Name(String);

impl Name {
    fn create(name: String, names_of_hosts: &str) -> Result<Self, Error> {
        ip(&["netns", "add", &name])?;
        let this = Self(name);
        let overlay = Path::new(OVERLAYS).join(&this.0);
        fs::create_dir_all(&overlay)
            .and_then(|()| fs::write(overlay.join("hosts"), names_of_hosts))
            .map_err(Error::system(format!("write {}", overlay.join("hosts").display())))?;
        Ok(this)
    }

    fn open(&self) -> Result<File, Error> {
        let path: PathBuf = [NAMESPACES, &self.0].iter().collect();
        File::open(&path).map_err(Error::system(format!("open {}", path.display())))
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // A namespace that cannot be removed now is stale as soon as this process ends, and is removed later as such.
        let _ = remove(&self.0);
    }
}

/// The names of sets' namespaces and overlays, each once, and the processes that they are named for.
fn existing() -> BTreeSet<(u32, String)> {
    let entries = [NAMESPACES, OVERLAYS].into_iter().filter_map(|directory| fs::read_dir(directory).ok());
    let names = entries.flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| Some((lock::process_of(&name)?, name))).collect()
}

/// Removes a namespace's name and overlay, as far as they are there.
fn remove(name: &str) -> Result<(), Error> {
    let overlay = Path::new(OVERLAYS).join(name);
    if overlay.exists() {
        fs::remove_dir_all(&overlay).map_err(Error::system(format!("remove {}", overlay.display())))?;
        // The directory itself is removed with its last entry, if it was made for us; if not empty, it stays.
        let _ = fs::remove_dir(OVERLAYS);
    }
    if Path::new(NAMESPACES).join(name).exists() {
        ip(&["netns", "delete", name])?;
    }
    Ok(())
}

/// Runs `f` on a thread that is moved into a namespace, and so are programs that it starts.
pub(crate) fn inside<T: Send>(namespace: &File, f: impl FnOnce() -> T + Send) -> Result<T, Error> {
    let run = || {
        sys::enter_network(namespace).map_err(Error::system("enter a network namespace"))?;
        Ok(f())
    };
    on_new_thread(run)
}

/// Runs `f` on a separate thread, so that its namespaces end with the thread. A panic of `f` continues in the caller.
fn on_new_thread<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(f).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
