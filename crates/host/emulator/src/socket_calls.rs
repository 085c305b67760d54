//! Socket queries that neither the standard library nor `nix` has, each behind a safe function.

#![expect(unsafe_code, reason = "these calls have no safe form")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use inet_diag::TcpInfo;

/// Sets an option that has an integer value.
pub(crate) fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which is as long and outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a TCP socket's `struct tcp_info`; zeros for a socket of another kind.
pub(crate) fn tcp_info(socket: BorrowedFd<'_>) -> TcpInfo {
    let mut buffer = [0u8; 512];
    let mut length = buffer.len() as libc::socklen_t;
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    // SAFETY: the kernel writes at most `length` bytes to `buffer`, which is that long and outlives the call.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, buffer.as_mut_ptr().cast(), &raw mut length) };
    let written = if result == 0 { length as usize } else { 0 };
    TcpInfo::parse(&buffer[..written.min(buffer.len())])
}

/// Removes up to `max_bytes` bytes from a TCP socket without copying them; 0 is the end of the other side's data.
pub(crate) fn discard(socket: BorrowedFd<'_>, max_bytes: usize) -> io::Result<usize> {
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with MSG_TRUNC a TCP socket drops the data instead of copying it (tcp(7)), so the null buffer is never
    // written to.
    let discarded = unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), max_bytes, flags) };
    usize::try_from(discarded).map_err(|_| io::Error::last_os_error())
}
