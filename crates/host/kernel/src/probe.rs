//! The loads that laws need, tried on the running kernel: a kernel may refuse one type of program and take all others.
//! `narrows kernel doctor` reports the result, and tests skip refused types.

use std::sync::OnceLock;

use inet_diag::Machine;

use crate::object::Programs;
use crate::trial::KernelTrial;
use crate::{Error, KernelLaw, Loaded, Settings, rows};

/// Result of one attempt; a refusal names the type of the program or map, and the errno.
pub type Attempt = Result<(), String>;

/// The loads of one law, representative of all laws: they differ in their arithmetic, not in the kernel features that they
/// use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelProbe {
    /// A law: hooks of type `struct_ops`, socket storage, registration with TCP.
    pub law: Attempt,
    /// The program for cgroups, of type `sock_ops`. Only `--cgroup` needs it.
    pub cgroup: Attempt,
    /// The program for calls without a socket, of type `syscall`. Only tests need it.
    pub trial: Attempt,
    /// An `inet_diag` request for sockets' BPF storage. `status` and `narrows emulate` read laws' state with it.
    pub sockets: Attempt,
}

impl KernelProbe {
    /// The result for the running kernel. The first call loads a law for a moment; later ones return the same result.
    pub fn get() -> &'static Self {
        static PROBE: OnceLock<KernelProbe> = OnceLock::new();
        PROBE.get_or_init(Self::run)
    }

    fn run() -> Self {
        let Some(row) = KernelLaw::of_name("fixed").or(rows().first()) else {
            let no_law = || Err("this build has no law".to_owned());
            return Self { law: no_law(), cgroup: no_law(), trial: no_law(), sockets: no_law() };
        };
        let loaded = match load(row, 'l', Programs::Law) {
            Ok(loaded) => loaded,
            Err(error) => {
                let not_tried = || Err(format!("not tried, because no law can be loaded: {error}"));
                return Self {
                    law: Err(error.to_string()),
                    cgroup: not_tried(),
                    trial: not_tried(),
                    sockets: not_tried(),
                };
            }
        };
        Self {
            law: Ok(()),
            cgroup: attempt(load(row, 'c', Programs::LawAndCgroup)),
            trial: attempt(KernelTrial::new(row, &Settings::default())),
            sockets: attempt(loaded.watcher().and_then(|watcher| watcher.sockets(&mut Machine::default()))),
        }
    }
}

/// Loads every law for a moment, each by itself, and returns those that are refused.
pub fn refused_laws() -> Vec<(&'static KernelLaw, Error)> {
    let refused = |row| load(row, 'e', Programs::Law).err().map(|error| (row, error));
    rows().iter().filter_map(refused).collect()
}

/// Loads a law under a name of this process.
fn load(row: &'static KernelLaw, letter: char, programs: Programs) -> Result<Loaded, Error> {
    let name = format!("nwp{}{letter}", std::process::id());
    Loaded::load(row, &Settings::default(), Some(&name), programs)
}

fn attempt<T>(result: Result<T, Error>) -> Attempt {
    result.map(drop).map_err(|error| error.to_string())
}
