//! TLS secrets on disk, if the environment requests them: `SSLKEYLOGFILE`, in the format that browsers and other programs
//! write and capture tools read (draft-ietf-tls-keylogfile). `docs/src/transport-security.md`, "Secrets on disk".

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use proto::identity::KeyLogger;
use rustls::KeyLogFile;

use crate::exit::{CommandFailure, print_stderr};

const VARIABLE: &str = "SSLKEYLOGFILE";

/// Writes secrets to the file that the environment names, if it names one, and prints a note about it.
///
/// # Errors
/// If nothing can be written there.
pub(super) fn from_environment() -> Result<KeyLogger, CommandFailure> {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from) else {
        return Ok(None);
    };
    // rustls does not report a file that it cannot open. Only the owner may read the file.
    let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    let opened = files::check_output(&path).and_then(|()| open());
    if let Err(error) = opened {
        return Err(CommandFailure::Input(format!(
            "error: {VARIABLE}: cannot write `{}`: {error}\nhelp: name a file that can be written, or unset {VARIABLE}",
            path.display()
        )));
    }
    print_stderr(&format!(
        "warning: TLS secrets are written to `{}`, as {VARIABLE} requests: anyone with them can decrypt all traffic",
        path.display()
    ));
    Ok(Some(Arc::new(KeyLogFile::new())))
}
