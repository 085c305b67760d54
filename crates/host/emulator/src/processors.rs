//! Assignment of work to processors. Packets that the router writes to a device are processed by the kernel's TCP at
//! once, on the router's own thread, unless the device is configured to hand them to another processor: then a receiver
//! that repairs thousands of holes delays no other packet.

use std::fs;
use std::io;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, sched_setaffinity, unshare};
use nix::unistd::Pid;

use crate::tun::DEVICE;

/// The processor of the router and those of the hosts' kernels; none where there is only one.
fn shares() -> io::Result<Option<(usize, Vec<usize>)>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let mut all: Vec<usize> = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect();
    let router = all.pop();
    Ok(router.filter(|_| !all.is_empty()).map(|router| (router, all)))
}

/// Keeps the calling thread, the router, on its processor.
pub(crate) fn keep_router() -> io::Result<()> {
    let Some((router, _)) = shares()? else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(router)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Makes the device of the calling thread's namespace distribute received packets to the other processors. The thread gets
/// separate mounts, because a namespace's devices are visible only in a file system that was mounted in it.
pub(crate) fn steer_received() -> io::Result<()> {
    let Some((_, hosts)) = shares()? else { return Ok(()) };
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)?;
    fs::write(format!("/sys/class/net/{DEVICE}/queues/rx-0/rps_cpus"), mask(&hosts))
}

/// Processors as the kernel's hexadecimal mask: words of 32 bits, the highest first.
fn mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(1, |max| max / 32 + 1);
    let word = |at: usize| cpus.iter().filter(|&&cpu| cpu / 32 == at).fold(0u32, |word, cpu| word | 1 << (cpu % 32));
    let words: Vec<String> = (0..words).rev().map(|at| format!("{:08x}", word(at))).collect();
    words.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_the_kernels_format() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[0, 1, 4]), "00000013");
        assert_eq!(mask(&[1, 33]), "00000002,00000002");
    }
}
