//! The system calls that neither the standard library nor `nix` has, each behind a safe function.

#![expect(unsafe_code, reason = "these calls have no safe form")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

/// Opens a process, so that its descriptors can be duplicated.
pub(crate) fn open_process(process: u32) -> io::Result<OwnedFd> {
    // SAFETY: `pidfd_open` takes numbers; the returned descriptor is new, so nothing else owns it.
    unsafe { owned(libc::syscall(libc::SYS_pidfd_open, process as libc::pid_t, 0)) }
}

/// Duplicates a descriptor of a process.
pub(crate) fn duplicate_from(process: BorrowedFd<'_>, descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: `pidfd_getfd` takes numbers; the returned descriptor is new, so nothing else owns it.
    unsafe { owned(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0)) }
}

/// `SIOCGSKNS` of `include/uapi/linux/sockios.h`.
const GET_SOCKET_NETNS: u64 = 0x894C;

/// Opens the network namespace of a socket.
pub(crate) fn netns_of_socket(socket: &impl AsFd) -> io::Result<File> {
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the request takes no argument; the returned descriptor is new, so nothing else owns it.
    unsafe { owned(libc::ioctl(socket, GET_SOCKET_NETNS as libc::Ioctl).into()) }.map(File::from)
}

/// Takes ownership of a descriptor that a system call returned.
///
/// # Safety
/// A result that is not negative has to be a descriptor without another owner.
unsafe fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(result) {
        // SAFETY: the caller's.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
