//! The system calls that the standard library does not have, each behind a safe function. All of the crate's
//! `unsafe` is here.

#![expect(unsafe_code, reason = "these calls have no safe form in the standard library")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds of processor time that the calling thread has used.
pub(crate) fn thread_cpu_ns() -> u64 {
    clock_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds since 1970.
pub(crate) fn realtime_ns() -> u64 {
    clock_ns(libc::CLOCK_REALTIME)
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to, and each clock passed above exists on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Moves the calling thread into the network namespace that `namespace` is open on.
pub(crate) fn enter_network(namespace: &File) -> io::Result<()> {
    // SAFETY: setns takes a descriptor, open for the length of the call, and changes the calling thread alone.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Lets a program be killed when the thread that starts it ends.
pub(crate) fn end_with_parent(command: &mut Command) {
    // SAFETY: between fork and exec this makes one system call, which takes numbers and changes the new process alone.
    unsafe {
        command.pre_exec(|| checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)).map(drop));
    }
}

/// One descriptor to wait for, and whether it can be read.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct PollDescriptor(libc::pollfd);

impl PollDescriptor {
    /// To be waited for until it can be read. The caller keeps the descriptor open: a closed one is reported, by
    /// [`PollDescriptor::failed`], and nothing worse.
    pub(crate) fn for_read(descriptor: BorrowedFd) -> Self {
        Self(libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 })
    }

    /// Returns whether the descriptor can be read.
    pub(crate) fn readable(self) -> bool {
        self.0.revents & libc::POLLIN != 0
    }

    /// Returns whether the descriptor is closed, or in error.
    pub(crate) fn failed(self) -> bool {
        self.0.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0
    }
}

/// Waits until one of `descriptors` can be read or `timeout` has passed (none: for as long as it takes).
/// An interrupting signal ends the wait early and is no error.
pub(crate) fn wait(descriptors: &mut [PollDescriptor], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: (timeout.as_secs().min(1 << 30) as i32).into(),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos() as i32),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `PollDescriptor` is a transparent pollfd, so the slice is an array of that many; `timeout` is null or points
    // to a timespec that outlives the call; a null signal mask changes none.
    let result = unsafe {
        libc::ppoll(descriptors.as_mut_ptr().cast(), descriptors.len() as libc::nfds_t, timeout, std::ptr::null())
    };
    match checked(result) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            for descriptor in descriptors {
                descriptor.0.revents = 0;
            }
            Ok(())
        }
        other => other.map(drop),
    }
}

/// Asks for real-time scheduling (`SCHED_FIFO`) of the calling thread.
pub(crate) fn schedule_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: a sched_param is numbers only, which may all be 0. Some C libraries have more of them than the priority.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: 0 is the calling thread, and `parameters` is a valid sched_param.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) }).map(drop)
}

/// Real-time scheduling of the current thread, and of threads that it starts meanwhile, until this is dropped. Its priority
/// equals that of the kernel's own work for TCP, which other programs do not delay either.
pub(crate) struct Urgent(());

impl Urgent {
    /// Asks for it. Without the right to it nothing changes but that timers fire on time.
    pub(crate) fn request(priority: i32) -> Self {
        let _ = schedule_real_time(priority);
        let _ = sharpen_timers();
        Self(())
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        // SAFETY: as above; a policy that is not real-time has priority 0.
        let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        // SAFETY: 0 is the calling thread, and `parameters` is a valid sched_param.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
        // SAFETY: PR_SET_TIMERSLACK takes a number, 0 for the default, and changes the calling thread alone.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 0 as libc::c_ulong) };
    }
}

/// Lets the calling thread's timers fire on time: the default lets them be 50 us late.
pub(crate) fn sharpen_timers() -> io::Result<()> {
    // SAFETY: PR_SET_TIMERSLACK takes a number and changes the calling thread alone.
    checked(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) }).map(drop)
}

/// Keeps all pages that the process has or will have in memory, as they are touched.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: takes flags only. MCL_ONFAULT locks only pages that are touched.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) }).map(drop)
}

/// Lets memory be swapped again.
pub(crate) fn unlock_memory() {
    // SAFETY: takes nothing; that nothing was locked is no error.
    unsafe { libc::munlockall() };
}

/// Request to the kernel with a TUN device's name and flags (`struct ifreq`).
#[repr(C)]
struct InterfaceRequest {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    padding: [u8; 22],
}

/// Makes `file`, open on `/dev/net/tun`, the TUN device `name` of the calling thread's network namespace.
pub(crate) fn attach_tun(file: &File, name: &str, flags: libc::c_int) -> io::Result<()> {
    let mut request = InterfaceRequest { name: [0; libc::IFNAMSIZ], flags: flags as libc::c_short, padding: [0; 22] };
    let bytes = name.as_bytes();
    if bytes.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    request.name[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: TUNSETIFF reads and writes an ifreq, 40 bytes long, which `request` is.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) }).map(drop)
}

/// Sets which offloads the TUN device may use towards us.
pub(crate) fn set_tun_offload(file: &File, offload: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its flags by value.
    checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(offload)) }).map(drop)
}

/// Sets the length of the header before each packet, and that it is little-endian.
pub(crate) fn set_tun_header(file: &File, length: libc::c_int) -> io::Result<()> {
    let little: libc::c_int = 1;
    // SAFETY: both requests read one int from the pointer.
    unsafe {
        checked(libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const length))?;
        checked(libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETLE, &raw const little))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn the_kernels_ifreq_is_forty_bytes() {
        assert_eq!(size_of::<InterfaceRequest>(), size_of::<libc::ifreq>());
    }

    #[test]
    fn clocks_go_forward() {
        let (monotonic, cpu, real) = (monotonic_ns(), thread_cpu_ns(), realtime_ns());
        assert!(monotonic > 0 && real > 1_600_000_000_000_000_000);
        assert!((0..1000).all(|_| monotonic_ns() >= monotonic && thread_cpu_ns() >= cpu));
    }

    #[test]
    fn a_wait_ends_by_time_or_by_data() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut descriptors = [PollDescriptor::for_read(reader.as_fd())];
        let before = monotonic_ns();
        wait(&mut descriptors, Some(Duration::from_millis(2))).unwrap();
        assert!(!descriptors[0].readable() && monotonic_ns() - before >= 2_000_000);
        std::io::Write::write_all(&mut writer, b"x").unwrap();
        wait(&mut descriptors, None).unwrap();
        assert!(descriptors[0].readable());
    }

    #[test]
    fn a_name_too_long_for_a_device_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert!(attach_tun(&file, "a-name-of-sixteen", 0).is_err());
    }

    /// The calling thread's scheduling policy: the 41st field of its line, 0 for the usual one, 1 for FIFO.
    fn policy() -> u32 {
        let line = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The thread's name, in brackets, may have spaces; the state behind it is the third field.
        let (_, fields) = line.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(41 - 3).unwrap().parse().unwrap()
    }

    #[test]
    fn real_time_priority_is_inherited_and_ends() {
        let of_others = || std::thread::spawn(policy).join().unwrap();
        std::thread::spawn(move || {
            let may = schedule_real_time(1).is_ok();
            let urgent = Urgent::request(1);
            assert_eq!((policy(), of_others()), if may { (1, 1) } else { (0, 0) });
            drop(urgent);
            assert_eq!((policy(), of_others()), (0, 0));
        })
        .join()
        .unwrap();
    }
}
