//! A TUN device of a host's namespace: complete IP packets, each behind the virtio header with the offloads that the
//! sender left to the NIC (checksum, segmentation).

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::Error;
use crate::sys;
use router::packet::VNET_LEN;

/// The name of the device in every namespace.
pub const DEVICE: &str = "nw0";

const BASIC: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;

/// A TUN device, read and written without waiting. It exists as long as this or a clone of it does.
#[derive(Debug)]
pub struct Tun {
    file: File,
    udp_segmentation: bool,
}

impl Tun {
    /// Makes [`DEVICE`] in the calling thread's network namespace.
    ///
    /// # Errors
    /// When there is no `/dev/net/tun`, no right to use it, or a device of the name exists.
    pub fn create() -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(|source| Error::NoTun { source })?;
        sys::attach_tun(&file, DEVICE, libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR)
            .map_err(Error::system(format!("make the TUN device {DEVICE}")))?;
        sys::set_tun_header(&file, VNET_LEN as i32).map_err(Error::system("set the TUN device's header"))?;
        // Segmentation of UDP is available since Linux 6.2; before that the device refuses both flags.
        let udp_segmentation = sys::set_tun_offload(&file, BASIC | libc::TUN_F_USO4 | libc::TUN_F_USO6).is_ok();
        if !udp_segmentation {
            sys::set_tun_offload(&file, BASIC).map_err(Error::system("set the TUN device's offloads"))?;
        }
        Ok(Self { file, udp_segmentation })
    }

    /// A device backed by another descriptor, for tests: any that preserves packet boundaries.
    #[cfg(test)]
    pub(crate) fn of(file: File) -> Self {
        Self { file, udp_segmentation: true }
    }

    /// Returns whether the kernel leaves the segmentation of UDP to the device.
    pub fn has_udp_segmentation(&self) -> bool {
        self.udp_segmentation
    }

    /// Duplicates the device's descriptor.
    ///
    /// # Errors
    /// When the process has no descriptors left.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let file = self.file.try_clone().map_err(Error::system("clone a TUN device"))?;
        Ok(Self { file, udp_segmentation: self.udp_segmentation })
    }

    /// Reads one packet with its header into `buffer`. Returns its length, or none if there is none now.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes one packet made of its headers, the virtio header first, and its payload.
    pub(crate) fn send(&self, headers: &[u8], payload: &[u8]) -> io::Result<()> {
        (&self.file).write_vectored(&[IoSlice::new(headers), IoSlice::new(payload)]).map(drop)
    }
}

/// Packets dropped by the device of the calling thread's namespace because its queue was full. 0 if the device is gone.
pub(crate) fn packets_dropped() -> u64 {
    let table = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line = table.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
    // Received: bytes, packets, errors, dropped and four more; then sent, in the same order.
    line.and_then(|counters| counters.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
