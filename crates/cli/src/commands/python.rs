//! Commands that are in the Python package: figures, tuning, and sweeps on a cluster. The program starts Python with what it was
//! given. The package's own command does not come here.

use std::ffi::OsString;
use std::process::Command;

use crate::exit::Failure;

/// The exit code by which Python says that it lacks the package: the first of its arguments.
const ABSENT: i32 = 97;
/// What Python runs. Files of the working directory do not count as modules.
const MAIN: &str = "import sys
absent = int(sys.argv.pop(1))
sys.path = [place for place in sys.path if place]
try:
    from narrows.__main__ import main
except ModuleNotFoundError as error:
    if error.name != 'narrows':
        raise
    sys.exit(absent)
sys.argv[0] = 'narrows'
sys.exit(main())";

/// Does a command in Python.
pub(crate) fn run(words: &[OsString]) -> Result<(), Failure> {
    let absent = |why: &str| {
        let name = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        Failure::Input(format!(
            "error: `narrows {name}` is in the Python package, and {why}\nhelp: `pip install .` in a clone of the \
             repository installs it"
        ))
    };
    // Ctrl-C ends Python, which says how far it came.
    crate::interrupt::listen();
    let done = Command::new("python3").arg("-c").arg(MAIN).arg(ABSENT.to_string()).args(words).status();
    let status = done.map_err(|error| absent(&format!("`python3` cannot be started: {error}")))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(ABSENT) => Err(absent("`python3` does not have it")),
        // What is wrong was said.
        Some(code) => Err(Failure::Said(u8::try_from(code).unwrap_or(1))),
        None => Err(Failure::Run(anyhow::anyhow!("`python3` was ended: {status}"))),
    }
}
