//! Commands that are in the Python package: figures, tuning, and sweeps on a cluster. The process replaces itself with
//! Python and passes its arguments on: signals reach Python, and no other process remains. The package's own command does
//! not use this module.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::exit::CommandFailure;

/// The Python program; its first argument is the message for a missing package. Files of the working directory do not
/// count as modules.
const MAIN: &str = "import sys
absent = sys.argv.pop(1)
sys.path = [path for path in sys.path if path]
try:
    try:
        from narrows.__main__ import main
    except ModuleNotFoundError as error:
        if error.name != 'narrows':
            raise
        print(absent, file=sys.stderr)
        sys.exit(2)
    sys.argv[0] = 'narrows'
    sys.exit(main())
except KeyboardInterrupt:
    sys.exit(130)";

/// Becomes Python, which runs the command. Returns only an error.
pub(crate) fn exec(words: &[OsString]) -> CommandFailure {
    let absent = |reason: &str| {
        let name = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        format!(
            "error: `narrows {name}` is in the Python package, and {reason}\nhelp: `pip install .` in a clone of the \
             repository installs it"
        )
    };
    let missing = absent("`python3` does not have it");
    let error = Command::new("python3").arg("-c").arg(MAIN).arg(missing).args(words).exec();
    CommandFailure::Input(absent(&format!("`python3` cannot be started: {error}")))
}
