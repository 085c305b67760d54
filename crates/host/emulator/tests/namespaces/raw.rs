//! Sockets that the standard library does not have.

#![expect(unsafe_code, reason = "packet sockets and socket options have no safe form in the standard library")]

use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A packet socket on the calling thread's namespace: sends bytes as they are out of the device.
pub(crate) struct RawSocket {
    socket: OwnedFd,
    device: libc::c_int,
}

impl RawSocket {
    pub(crate) fn open(device: &str) -> Self {
        let name = std::ffi::CString::new(device).unwrap();
        // SAFETY: takes numbers, and returns a new descriptor or -1.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
        assert!(socket >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new and no one else's; the name is a C string that outlives the call.
        unsafe {
            Self { socket: OwnedFd::from_raw_fd(socket), device: libc::if_nametoindex(name.as_ptr()) as libc::c_int }
        }
    }

    /// Returns whether the kernel took it.
    pub(crate) fn send(&self, bytes: &[u8], protocol: u16) -> bool {
        // SAFETY: all zero is a valid sockaddr_ll.
        let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        to.sll_family = libc::AF_PACKET as u16;
        to.sll_protocol = protocol.to_be();
        to.sll_ifindex = self.device;
        let length = size_of::<libc::sockaddr_ll>() as u32;
        // SAFETY: both pointers are to live values of the lengths given.
        let sent = unsafe {
            libc::sendto(self.socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0, (&raw const to).cast(), length)
        };
        sent >= 0
    }
}

/// Makes the kernel cut sent data into datagrams of `size` bytes.
pub(crate) fn cut_datagrams(socket: &UdpSocket, size: i32) -> bool {
    // SAFETY: the option takes an int, which the pointer is to.
    unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const size).cast(), 4) == 0 }
}
