//! Calls of iproute2's `ip`: making and removing namespaces, addresses and links.

use std::io;
use std::process::{Command, Output};

use files::process::{HELPER_DEADLINE, output_within};

use crate::Error;

/// Runs `ip` with these arguments.
pub(super) fn ip(arguments: &[&str]) -> Result<(), Error> {
    check(arguments, output_within(Command::new("ip").args(arguments), &[], HELPER_DEADLINE))
}

/// Runs several commands of `ip` in the calling thread's network namespace, up to the first that fails.
pub(super) fn ip_batch(commands: &str) -> Result<(), Error> {
    let mut command = Command::new("ip");
    check(&["-batch"], output_within(command.args(["-batch", "-"]), commands.as_bytes(), HELPER_DEADLINE))
}

fn check(arguments: &[&str], output: io::Result<Output>) -> Result<(), Error> {
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::NoIp),
        other => other.map_err(Error::system("run ip"))?,
    };
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let arguments = arguments.join(" ");
    if message.contains("Operation not permitted") || message.contains("Permission denied") {
        return Err(Error::NotPermitted { action: format!("ip {arguments}") });
    }
    Err(Error::Ip { arguments, message })
}
