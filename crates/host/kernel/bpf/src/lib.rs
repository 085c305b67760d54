//! A law for the kernel's BPF machine: the functions that the C adapter (`adapter.bpf.c`) calls. Which law is chosen by
//! `--cfg NAME`, the name of its module.

#![no_std]

#[path = "../../src/tcp_adapter.rs"]
#[allow(dead_code, reason = "constants that the loader uses")]
mod tcp_adapter;

use tcp_adapter::{Config, KernelFlow, FLOW_WORDS, SocketReport, SocketSettings};
use laws::{Ack, ControlLaw, Loss, Notification};
use units::Span;

macro_rules! this_law {
    ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
        $(
            #[cfg($module)]
            type ThisLaw = laws::$law;
        )*
    };
}
laws::laws!(this_law);

const _: () = assert!(size_of::<KernelFlow<ThisLaw>>() <= FLOW_WORDS * 8, "the law does not fit the socket storage");
const _: () = assert!(align_of::<KernelFlow<ThisLaw>>() <= 8, "socket storage is aligned to words");
const _: () = assert!(size_of::<Config>() == 8 * CONFIG_WORDS, "the C adapter's map is of another size");

/// Same value as in the C adapter.
const CONFIG_WORDS: usize = 69;

/// A socket's storage, as the C adapter lays it out.
#[repr(C)]
pub struct narrows_slot {
    report: SocketReport,
    settings: SocketSettings,
    flow: [u64; FLOW_WORDS],
}

/// Configuration of flows, as the C adapter lays it out.
#[repr(C)]
pub struct narrows_config {
    words: [u64; CONFIG_WORDS],
}

/// A bare call of a law, made by parity tests.
#[repr(C)]
pub struct narrows_call {
    words: [u64; 16],
}

/// The flow in a slot, which has begun.
///
/// # Safety
/// `slot` points to a complete value with no concurrent access while the flow is used: the kernel holds the socket.
#[inline(always)]
unsafe fn flow<'a>(slot: *mut narrows_slot) -> &'a mut KernelFlow<ThisLaw> {
    // SAFETY: the caller's; a flow fits its words, and eight bytes align it.
    unsafe { &mut *(&raw mut (*slot).flow).cast() }
}

/// Begins a flow. `slot.report` has the state of its socket.
///
/// # Safety
/// Both point to complete values, as the verifier has checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_begin(slot: *mut narrows_slot, config: *const narrows_config) {
    // SAFETY: the caller's.
    unsafe {
        let target = (&raw mut (*slot).flow).cast::<KernelFlow<ThisLaw>>();
        KernelFlow::begin(target, &*config.cast(), &(*slot).report);
        (*slot).settings = flow(slot).socket_settings();
    }
}

/// Handles an acknowledgement. `slot.report` has the state of the socket.
///
/// # Safety
/// As [`narrows_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_acked(slot: *mut narrows_slot) {
    // SAFETY: the caller's.
    unsafe {
        flow(slot).acked(&(*slot).report);
        (*slot).settings = flow(slot).socket_settings();
    }
}

/// Handles the start of recovery or a retransmission timeout. `slot.report` has the state of the socket.
///
/// # Safety
/// As [`narrows_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_lost(slot: *mut narrows_slot) {
    // SAFETY: the caller's.
    unsafe {
        flow(slot).lost(&(*slot).report);
        (*slot).settings = flow(slot).socket_settings();
    }
}

/// The law's own acknowledgement, as the simulator makes it.
///
/// # Safety
/// As [`narrows_begin`]; the words are a valid [`Ack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_law_ack(slot: *mut narrows_slot, call: *const narrows_call) {
    // SAFETY: the caller's.
    unsafe {
        flow(slot).law.on_ack(&*call.cast::<Ack>());
        (*slot).settings = flow(slot).socket_settings();
    }
}

/// The law's own loss, as the simulator makes it.
///
/// # Safety
/// As [`narrows_begin`]; the words are a valid [`Loss`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_law_loss(slot: *mut narrows_slot, call: *const narrows_call) {
    // SAFETY: the caller's.
    unsafe {
        flow(slot).law.on_loss(&*call.cast::<Loss>());
        (*slot).settings = flow(slot).socket_settings();
    }
}

/// A new base round trip: the first word, in picoseconds.
///
/// # Safety
/// As [`narrows_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn narrows_law_base_rtt(slot: *mut narrows_slot, call: *const narrows_call) {
    // SAFETY: the caller's.
    unsafe {
        flow(slot).law.on_notification(&Notification::BaseRtt(Span::from_ps((*call).words[0] as i64)));
        (*slot).settings = flow(slot).socket_settings();
    }
}

/// Panics are impossible: the build looks for a call of this and fails if it finds one.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
