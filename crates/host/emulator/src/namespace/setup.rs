//! Setup inside a new namespace: device, addresses, and the kernel's TCP.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};

use super::ip::ip_batch;
use super::{HostPlan, NamespaceOptions, on_new_thread};
use crate::Error;
use crate::processors::steer_received;
use crate::tun::{DEVICE, Tun};

/// Maximum number of packets that wait to be read. The kernel drops packets if the queue is full, so it must never fill.
const QUEUE_LENGTH: u32 = 20_000;

/// The buckets of a host's table of connections. Each dump of the sampler walks a complete table. The table that the
/// machine's namespaces share grows with its memory: 262,144 buckets on 24 GB, 0.3 ms a walk.
const CONNECTION_TABLE: u32 = 4096;

/// Runs `make`. Network namespaces that `make` creates get small tables of connections (Linux 6.2 and later). A new
/// namespace takes the size from the namespace of the thread that creates it, so this runs on a thread with an unnamed one
/// of its own.
pub(super) fn with_small_tables<T: Send>(make: impl FnOnce() -> T + Send) -> Result<T, Error> {
    on_new_thread(|| {
        let unshared = unshare(CloneFlags::CLONE_NEWNET).map_err(Into::into);
        unshared.map_err(Error::system("make a network namespace"))?;
        // An older kernel has no such setting, and its hosts share the machine's table.
        let _ = sysctl("ipv4/tcp_child_ehash_entries", &CONNECTION_TABLE.to_string());
        Ok(make())
    })
}

/// Sets up the calling thread's namespace, and returns its device.
pub(super) fn set_up(plan: &HostPlan, options: &NamespaceOptions) -> Result<Tun, Error> {
    let tun = Tun::create()?;
    // Before the device is up: no link-local address and no traffic caused by one.
    sysctl(&format!("ipv6/conf/{DEVICE}/addr_gen_mode"), "1")?;
    sysctl(&format!("ipv6/conf/{DEVICE}/accept_dad"), "0")?;
    sysctl(&format!("ipv6/conf/{DEVICE}/router_solicitations"), "0")?;
    // Path metrics of one connection must not affect the next.
    sysctl("ipv4/tcp_no_metrics_save", "1")?;
    let buffer = options.socket_buffer.get().clamp(65_536, i32::MAX as u64);
    sysctl("ipv4/tcp_rmem", &format!("4096 131072 {buffer}"))?;
    sysctl("ipv4/tcp_wmem", &format!("4096 65536 {buffer}"))?;
    if options.ecn {
        sysctl("ipv4/tcp_ecn", "1")?;
    }
    let mut commands = format!("link set lo up\nlink set {DEVICE} mtu {} txqueuelen {QUEUE_LENGTH}\n", options.mtu);
    if let Some(size) = options.gso_max_size {
        let _ = writeln!(commands, "link set {DEVICE} gso_max_size {size}");
    }
    let _ = write!(
        commands,
        "link set {DEVICE} up\naddr add {}/10 dev {DEVICE}\naddr add {}/96 dev {DEVICE} nodad\n",
        plan.v4, plan.v6
    );
    ip_batch(&commands)?;
    let acks = if options.quick_ack { " quickack 1" } else { "" };
    if options.quick_ack {
        ip_batch(&routes(acks))?;
    }
    if let Some(name) = &options.congestion {
        set_congestion(name, acks)?;
    }
    // Last, because the thread's mounts change. Without it the router is late where receivers have much to do, which it
    // measures.
    let _ = steer_received();
    Ok(tun)
}

/// Sets the default by sysctl. A namespace may set only laws that the kernel allows everyone; setting its current law again
/// is no error. Other laws are set by the routes, which the kernel allows root to do. A route's law applies to every
/// socket, even one that requests another law.
fn set_congestion(name: &str, acks: &str) -> Result<(), Error> {
    let path = "ipv4/tcp_congestion_control";
    let failed = |source| Error::Congestion { name: name.into(), source };
    if fs::read_to_string(full_path(path)).is_ok_and(|now| now.trim() == name) {
        return Ok(());
    }
    match fs::write(full_path(path), name) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => ip_batch(&routes(&format!(" congctl {name}{acks}"))),
        other => other.map_err(failed),
    }
}

/// Returns the commands that replace the routes of the addresses, with additional attributes `more`.
fn routes(more: &str) -> String {
    format!(
        "route replace 10.192.0.0/10 dev {DEVICE}{more}\nroute replace fd6e:6172::/96 dev {DEVICE} metric 256{more}\n"
    )
}

fn full_path(path: &str) -> std::path::PathBuf {
    Path::new("/proc/sys/net").join(path)
}

fn sysctl(path: &str, value: &str) -> Result<(), Error> {
    fs::write(full_path(path), value).map_err(Error::system(format!("write {value} to /proc/sys/net/{path}")))
}
