//! Helper programs, run to their end within a deadline.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Deadline of a helper such as `ip`, which takes milliseconds on an idle machine.
pub const HELPER_DEADLINE: Duration = Duration::from_secs(30);

/// Polling interval for a program that has closed its output.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Runs a program with `input` as its standard input, and returns its status and output, like [`Command::output`].
///
/// # Errors
/// If it cannot be started, or does not end within the deadline: then it is killed, and the error is of the kind
/// [`io::ErrorKind::TimedOut`] and names the program.
pub fn output_within(command: &mut Command, input: &[u8], deadline: Duration) -> io::Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let output = collect(&mut child, input, deadline);
    output.map_err(|error| {
        let _ = child.kill();
        // Reaped for at most a second: a process that the kernel holds does not end.
        for _ in 0..1_000 {
            if !matches!(child.try_wait(), Ok(None)) {
                break;
            }
            thread::sleep(POLL_INTERVAL);
        }
        if error.kind() != io::ErrorKind::TimedOut {
            return error;
        }
        let seconds = deadline.as_secs_f64();
        io::Error::new(error.kind(), format!("`{name}` did not end within {seconds} s and was killed"))
    })
}

fn collect(child: &mut Child, input: &[u8], deadline: Duration) -> io::Result<Output> {
    let (sender, pipes) = channel();
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // A program that ends early does not read all; its status has the reason.
        thread::spawn(move || stdin.write_all(&input));
    }
    if let Some(stdout) = child.stdout.take() {
        read(stdout, sender.clone(), |output, bytes| output.stdout = bytes);
    }
    if let Some(stderr) = child.stderr.take() {
        read(stderr, sender, |output, bytes| output.stderr = bytes);
    }
    let mut output = Output { status: std::process::ExitStatus::default(), stdout: Vec::new(), stderr: Vec::new() };
    let mut polls_left = deadline.as_millis() / POLL_INTERVAL.as_millis();
    loop {
        match pipes.recv_timeout(POLL_INTERVAL) {
            Ok(part) => {
                part?(&mut output);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                if let Some(status) = child.try_wait()? {
                    output.status = status;
                    return Ok(output);
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
        polls_left = polls_left.checked_sub(1).ok_or(io::ErrorKind::TimedOut)?;
    }
}

/// Stores the complete contents of a pipe in the output.
type PipeSink = Box<dyn FnOnce(&mut Output) + Send>;

fn read(mut pipe: impl Read + Send + 'static, to: Sender<io::Result<PipeSink>>, store: fn(&mut Output, Vec<u8>)) {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let part = pipe.read_to_end(&mut bytes).map(|_| -> PipeSink { Box::new(move |output| store(output, bytes)) });
        let _ = to.send(part);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_status_of_helper() {
        let output = output_within(&mut shell("cat; echo two >&2; exit 3"), b"one", HELPER_DEADLINE).unwrap();
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"one"[..], &b"two\n"[..]));
        assert_eq!(output.status.code(), Some(3));
        // More than a pipe holds, both ways.
        let long = vec![b'x'; 1 << 20];
        let output = output_within(&mut shell("cat"), &long, HELPER_DEADLINE).unwrap();
        assert_eq!(output.stdout.len(), long.len());
    }

    #[test]
    fn helper_is_killed_at_its_deadline() {
        for script in ["exec sleep 1000", "exec >&- 2>&-; exec sleep 1000"] {
            let error = output_within(&mut shell(script), &[], Duration::from_millis(100)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(error.to_string().contains("`sh` did not end within 0.1 s"), "{error}");
        }
        let missing = output_within(&mut Command::new("/nonexistent"), &[], HELPER_DEADLINE).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
