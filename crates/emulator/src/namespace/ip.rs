//! What is asked of iproute2's `ip`: making and removing namespaces, addresses and links.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

use crate::Error;

/// Runs `ip` with these arguments.
pub(super) fn ip(arguments: &[&str]) -> Result<(), Error> {
    check(arguments, Command::new("ip").args(arguments).stdin(Stdio::null()).output())
}

/// Runs several commands of `ip` in the calling thread's network namespace, up to the first that fails.
pub(super) fn ip_batch(commands: &str) -> Result<(), Error> {
    let run = || {
        let mut child = Command::new("ip")
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut input) = child.stdin.take() {
            input.write_all(commands.as_bytes())?;
        }
        child.wait_with_output()
    };
    check(&["-batch"], run())
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
        return Err(Error::NotPermitted { doing: format!("ip {arguments}") });
    }
    Err(Error::Ip { arguments, message })
}
