//! System calls and shared memory that the standard library does not have, each behind a safe function. All of the crate's
//! `unsafe` is here.

#![expect(unsafe_code, reason = "these calls have no safe form")]

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// A clock of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KernelClock {
    /// The oscillator, never slewed or stepped; stops during suspend.
    MonotonicRaw,
    /// Time since 1970, slewed and stepped by others.
    RealTime,
    /// Slewed, never stepped; stops during suspend.
    Monotonic,
    /// The same as of the last tick.
    MonotonicCoarse,
    /// Slewed like [`KernelClock::Monotonic`]; advances during suspend.
    BootTime,
}

/// Returns a clock's reading in nanoseconds.
#[inline]
pub(crate) fn clock_ns(clock: KernelClock) -> i64 {
    let clock = match clock {
        KernelClock::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
        KernelClock::RealTime => libc::CLOCK_REALTIME,
        KernelClock::Monotonic => libc::CLOCK_MONOTONIC,
        KernelClock::MonotonicCoarse => libc::CLOCK_MONOTONIC_COARSE,
        KernelClock::BootTime => libc::CLOCK_BOOTTIME,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to, and each of these clocks exists on every Linux that the crate supports.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    nanoseconds(&time)
}

/// Returns the name of the kernel's clock source; empty if it is not known.
pub(crate) fn clock_source() -> String {
    let name = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    name.unwrap_or_default().trim().to_owned()
}

fn nanoseconds(time: &libc::timespec) -> i64 {
    time.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec)
}

/// Returns the processor's counter; none on architectures without one that the crate knows.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(clippy::unnecessary_wraps, reason = "other architectures have none")]
pub(crate) fn counter() -> Option<u64> {
    // SAFETY: every x86-64 processor has SSE2, and Linux lets programs read the counter.
    Some(unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    })
}

/// Returns the processor's counter; none on architectures without one that the crate knows.
#[cfg(target_arch = "aarch64")]
#[inline]
#[expect(clippy::unnecessary_wraps, reason = "other architectures have none")]
pub(crate) fn counter() -> Option<u64> {
    let count: u64;
    // SAFETY: Linux lets programs read the virtual counter; the barrier before it has no other effect.
    unsafe { core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
    Some(count)
}

/// Returns the processor's counter; none on architectures without one that the crate knows.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn counter() -> Option<u64> {
    None
}

/// State of the kernel's clock discipline, `struct timex` (adjtimex(2)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Discipline {
    /// Returned state, such as `TIME_OK`.
    pub(crate) state: i32,
    /// Flags such as `STA_UNSYNC`.
    pub(crate) status: i32,
    /// Largest error, in microseconds.
    pub(crate) max_error_us: i64,
}

/// Reads the kernel's clock discipline.
pub(crate) fn discipline() -> io::Result<Discipline> {
    // SAFETY: a timex is numbers only, which may all be 0; with `modes` 0 the call changes nothing.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: `timex` is a valid structure to write to.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Discipline { state, status: timex.status, max_error_us: timex.maxerror })
}

/// Returns random bits of the kernel.
pub(crate) fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: the kernel writes at most as many bytes as the array has.
    let written = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match usize::try_from(written) {
        // Up to 256 bytes are returned whole (getrandom(2)).
        Ok(8) => Ok(u64::from_ne_bytes(bytes)),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

// linux/net_tstamp.h
const TX_SOFTWARE: u32 = 1 << 1;
const RX_SOFTWARE: u32 = 1 << 3;
const REPORT_SOFTWARE: u32 = 1 << 4;
const OPT_ID: u32 = 1 << 7;
const OPT_CMSG: u32 = 1 << 10;
const OPT_TSONLY: u32 = 1 << 11;

/// `SO_EE_ORIGIN_TIMESTAMPING` (linux/errqueue.h).
const ORIGIN_TIMESTAMPING: u8 = 4;

/// `SCM_TSTAMP_SND`: the packet was passed to the device.
const STAMP_SENT: u32 = 0;

/// Turns kernel timestamps on. The identifiers of transmitted packets begin at 0 again.
pub(crate) fn enable_timestamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    let common = RX_SOFTWARE | REPORT_SOFTWARE | OPT_CMSG | OPT_TSONLY;
    // The kernel resets the counter when the option goes from off to on.
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, common)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, common | OPT_ID)
}

fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: u32) -> io::Result<()> {
    let length = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which is as long and outlives the call.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A request for a transmit timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TransmitStamp {
    /// The kernel queues a timestamp.
    Wanted,
    /// No timestamp is queued.
    Unwanted,
}

/// A buffer for control messages, aligned as they are.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct ControlBuffer([u8; 512]);

/// An address as the kernel takes it.
fn raw_address(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: a sockaddr_storage is numbers only, which may all be 0.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a sockaddr_storage is large enough and aligned for every address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

fn parse_address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family states that this is a sockaddr_in, which fits.
            let raw = unsafe { *(&raw const *storage).cast::<libc::sockaddr_in>() };
            let address = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(IpAddr::V4(address), u16::from_be(raw.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family states that this is a sockaddr_in6, which fits.
            let raw = unsafe { *(&raw const *storage).cast::<libc::sockaddr_in6>() };
            let address = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            Some(SocketAddr::new(IpAddr::V6(address), u16::from_be(raw.sin6_port)))
        }
        _ => None,
    }
}

/// Sends a datagram without waiting.
pub(crate) fn send(socket: BorrowedFd<'_>, to: SocketAddr, bytes: &[u8], stamp: TransmitStamp) -> io::Result<()> {
    let (mut address, length) = raw_address(to);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = ControlBuffer([0; 512]);
    // SAFETY: a msghdr is numbers and pointers, which may all be 0.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = (&raw mut address).cast();
    header.msg_namelen = length;
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    if stamp == TransmitStamp::Wanted {
        header.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: the buffer is larger than the space of one control message with an integer, and aligned; the header's
        // pointers and lengths describe it.
        unsafe {
            header.msg_controllen = libc::CMSG_SPACE(size_of::<u32>() as libc::c_uint) as _;
            let message = libc::CMSG_FIRSTHDR(&raw const header);
            (*message).cmsg_level = libc::SOL_SOCKET;
            (*message).cmsg_type = libc::SO_TIMESTAMPING;
            (*message).cmsg_len = libc::CMSG_LEN(size_of::<u32>() as libc::c_uint) as _;
            libc::CMSG_DATA(message).cast::<u32>().write_unaligned(TX_SOFTWARE);
        }
    }
    // SAFETY: all pointers in the header are to values that outlive the call, with their lengths; the kernel reads only.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A received datagram, or an entry of a socket's error queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Received {
    /// Length of the datagram. The buffer may hold only a part of it.
    pub(crate) length: usize,
    /// The sender.
    pub(crate) from: Option<SocketAddr>,
    /// Software timestamp by `CLOCK_REALTIME`, in nanoseconds.
    pub(crate) stamp: Option<i64>,
    /// Identifier of the transmitted packet, in an entry of the error queue with a transmit timestamp.
    pub(crate) sent_id: Option<u32>,
}

/// A queue of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SocketQueue {
    /// Received datagrams.
    Datagrams,
    /// Transmit timestamps.
    Errors,
}

/// Maximum number of entries that one call takes.
pub(crate) const RECEIVE_BATCH: usize = 8;

/// Maximum length of a datagram, in bytes; of longer ones only the beginning is stored.
pub(crate) const MAX_DATAGRAM: usize = 1_500;

/// Buffers of one entry of a queue.
#[derive(Clone, Copy)]
struct EntryBuffer {
    control: ControlBuffer,
    address: libc::sockaddr_storage,
    bytes: [u8; MAX_DATAGRAM],
}

/// Buffers for the entries that one call takes.
pub(crate) struct ReceiveBuffers(Vec<EntryBuffer>);

impl std::fmt::Debug for ReceiveBuffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReceiveBuffers(..)")
    }
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        // SAFETY: a sockaddr_storage is numbers only, which may all be 0.
        let address: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let entry = EntryBuffer { control: ControlBuffer([0; 512]), address, bytes: [0; MAX_DATAGRAM] };
        Self(vec![entry; RECEIVE_BATCH])
    }

    /// Returns the bytes of a datagram of the last call; none if it was longer than the buffer.
    pub(crate) fn bytes(&self, index: usize, received: &Received) -> Option<&[u8]> {
        self.0.get(index)?.bytes.get(..received.length)
    }
}

/// Takes the next entries of a queue without waiting, at most [`RECEIVE_BATCH`]; none if it is empty.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    queue: SocketQueue,
    buffers: &mut ReceiveBuffers,
) -> io::Result<Vec<Received>> {
    let mut parts: [libc::iovec; RECEIVE_BATCH] = std::array::from_fn(|index| {
        let bytes = &mut buffers.0[index].bytes;
        libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }
    });
    // SAFETY: a mmsghdr is numbers and pointers, which may all be 0.
    let mut headers: [libc::mmsghdr; RECEIVE_BATCH] = unsafe { std::mem::zeroed() };
    for ((header, part), entry) in headers.iter_mut().zip(&mut parts).zip(buffers.0.iter_mut()) {
        header.msg_hdr.msg_name = (&raw mut entry.address).cast();
        header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_hdr.msg_iov = part;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_control = entry.control.0.as_mut_ptr().cast();
        header.msg_hdr.msg_controllen = entry.control.0.len() as _;
    }
    let flags =
        libc::MSG_DONTWAIT | libc::MSG_TRUNC | if queue == SocketQueue::Errors { libc::MSG_ERRQUEUE } else { 0 };
    // SAFETY: all pointers in the headers are to values that outlive the call, with their lengths.
    let count = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            RECEIVE_BATCH as libc::c_uint,
            flags as _,
            std::ptr::null_mut(),
        )
    };
    let Ok(count) = usize::try_from(count) else {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(Vec::new()) } else { Err(error) };
    };
    let received = |(header, entry): (&libc::mmsghdr, &EntryBuffer)| {
        let from = (header.msg_hdr.msg_namelen > 0).then(|| parse_address(&entry.address)).flatten();
        let mut received = Received { length: header.msg_len as usize, from, stamp: None, sent_id: None };
        parse_control(&header.msg_hdr, &mut received);
        received
    };
    Ok(headers.iter().zip(buffers.0.iter()).take(count).map(received).collect())
}

/// Reads the timestamp and the identifier from the control messages of an entry, which the kernel has filled.
fn parse_control(header: &libc::msghdr, received: &mut Received) {
    // SAFETY: the header has the address and the length of its control messages, within a buffer that lives.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(header) };
    while !message.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return messages that lie within the buffer.
        let (level, kind, data, end) = unsafe {
            let start = libc::CMSG_DATA(message);
            ((*message).cmsg_level, (*message).cmsg_type, start, message.cast::<u8>().add((*message).cmsg_len as usize))
        };
        let data_length = (end as usize).saturating_sub(data as usize);
        let is_stamp = level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPING;
        if is_stamp && data_length >= 3 * size_of::<libc::timespec>() {
            // SAFETY: the message has three timespecs.
            let software = unsafe { data.cast::<libc::timespec>().read_unaligned() };
            received.stamp = Some(nanoseconds(&software)).filter(|&ns| ns != 0);
        }
        let is_error = (level, kind) == (libc::IPPROTO_IP, libc::IP_RECVERR)
            || (level, kind) == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        if is_error && data_length >= size_of::<libc::sock_extended_err>() {
            // SAFETY: the message has a sock_extended_err.
            let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
            let is_stamp = error.ee_origin == ORIGIN_TIMESTAMPING && error.ee_errno == libc::ENOMSG as u32;
            received.sent_id = (is_stamp && error.ee_info == STAMP_SENT).then_some(error.ee_data);
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(header, message) };
    }
}

/// Access to a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MappingAccess {
    Read,
    Write,
}

/// The beginning of a file, shared with other processes, as words of 64 bits.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the memory is accessed by atomic operations alone, and no thread owns the mapping.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `words` words of a file that has them.
    pub(crate) fn new(file: &File, words: usize, access: MappingAccess) -> io::Result<Self> {
        let bytes = words * size_of::<u64>();
        if words == 0 || file.metadata()?.len() < bytes as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("shorter than {bytes} bytes")));
        }
        let protection = libc::PROT_READ | if access == MappingAccess::Write { libc::PROT_WRITE } else { 0 };
        // SAFETY: a new mapping at an address of the kernel's choice; the file is open for this access, else it fails.
        let address =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        match NonNull::new(address.cast()) {
            Some(address) => Ok(Self { address, words }),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Returns the words. Those of a mapping to read must not be stored to: the kernel ends the process.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the words are within the mapping, which is aligned to a page and lives as long as `self`; all processes
        // access them as atomics.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.words) }
    }

    /// Returns a word; see [`Mapping::words`].
    ///
    /// # Panics
    /// If it is beyond the mapping.
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        &self.words()[index]
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length, and no reference to it is left.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance() {
        let clocks = [KernelClock::MonotonicRaw, KernelClock::Monotonic, KernelClock::BootTime, KernelClock::RealTime];
        for clock in clocks {
            let first = clock_ns(clock);
            assert!(first > 0 && clock_ns(clock) >= first, "{clock:?}");
        }
        assert!(clock_ns(KernelClock::MonotonicCoarse) <= clock_ns(KernelClock::Monotonic));
        if let Some(first) = counter() {
            assert!(counter() >= Some(first));
        }
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random().unwrap(), random().unwrap());
    }

    #[test]
    fn addresses_survive_the_conversion() {
        for text in ["192.0.2.7:1234", "[2001:db8::7]:80"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(parse_address(&raw_address(address).0), Some(address));
        }
    }

    #[test]
    fn short_files_are_not_mapped() {
        let file = File::open("/dev/null").unwrap();
        assert!(Mapping::new(&file, 1, MappingAccess::Read).is_err());
    }
}
