//! Ctrl-C ends the current run; finished runs stay. Until a command begins work that must end in order, Ctrl-C ends the
//! program at once, for instance while it reads a file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Begins to listen, once for the whole process. A second Ctrl-C ends the process at once, after the emulated hosts,
/// which would stay behind, are removed.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let handler = || {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                #[cfg(target_os = "linux")]
                emulator::HostNamespaces::abandon();
                std::process::exit(130);
            }
        };
        if ctrlc::set_handler(handler).is_err() {
            crate::exit::print_stderr("warning: Ctrl-C ends the program at once, because its handler could not be set");
        }
    });
}

/// Makes a write beyond `ulimit -f` fail with an error, as on a full disk. By default SIGXFSZ ends the process.
pub(crate) fn report_full_files() {
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Returns the flag that Ctrl-C sets.
#[cfg(target_os = "linux")]
pub(crate) fn flag() -> &'static AtomicBool {
    &INTERRUPTED
}

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
