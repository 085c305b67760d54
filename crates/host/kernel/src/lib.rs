//! Narrows' control laws in the kernel's own TCP. The law is the one of `laws`, compiled for BPF and joined with a thin C
//! adapter into a `tcp_congestion_ops` (`bpf/`); this crate loads it, attaches it, and shows its state.
//!
//! Without the feature `bpf` there are no objects and no loader: the rest ([`Settings`], [`tcp_adapter`], [`doctor`])
//! builds and is tested anywhere. With it, the build needs clang and libelf.

pub mod doctor;
mod kernel_laws;
mod settings;
pub mod tcp_adapter;

#[cfg(feature = "bpf")]
pub mod attach_scope;
#[cfg(feature = "bpf")]
mod loaded;
#[cfg(feature = "bpf")]
mod object;
#[cfg(feature = "bpf")]
pub mod pins;
#[cfg(feature = "bpf")]
pub mod probe;
#[cfg(feature = "bpf")]
mod sockets;
#[cfg(feature = "bpf")]
pub mod trial;

mod error;

pub use error::Error;
pub use kernel_laws::{KernelLaw, rows};
#[cfg(feature = "bpf")]
pub use loaded::{Loaded, registered};
#[cfg(feature = "bpf")]
pub use object::{Programs, is_object, objects};
pub use settings::Settings;
#[cfg(feature = "bpf")]
pub use sockets::{LawSocket, LawSockets, LawState, SocketWatcher};

/// Build number: flows of another build are not read, because their memory layout may differ.
pub const BUILD: u64 = build_number(env!("NARROWS_KERNEL_BUILD"));

const fn build_number(text: &str) -> u64 {
    let (bytes, mut number, mut index) = (text.as_bytes(), 0u64, 0);
    while index < bytes.len() {
        number = number.wrapping_mul(10).wrapping_add((bytes[index] - b'0') as u64);
        index += 1;
    }
    number
}
