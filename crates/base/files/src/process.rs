//! Helper programs, run to their end within a deadline.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Deadline of a helper such as `ip`, which takes milliseconds on an idle machine.
pub const HELPER_DEADLINE: Duration = Duration::from_secs(30);

/// Pause between looks at a program that has closed its output.
const PAUSE: Duration = Duration::from_millis(1);

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
            thread::sleep(PAUSE);
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
    let mut looks = deadline.as_millis() / PAUSE.as_millis();
    loop {
        match pipes.recv_timeout(PAUSE) {
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
                thread::sleep(PAUSE);
            }
        }
        looks = looks.checked_sub(1).ok_or(io::ErrorKind::TimedOut)?;
    }
}

/// A whole pipe, to be stored in its place.
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
    fn output_and_status_are_the_program_s() {
        let output = output_within(&mut shell("cat; echo two >&2; exit 3"), b"one", HELPER_DEADLINE).unwrap();
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"one"[..], &b"two\n"[..]));
        assert_eq!(output.status.code(), Some(3));
        // More than a pipe holds, both ways.
        let long = vec![b'x'; 1 << 20];
        let output = output_within(&mut shell("cat"), &long, HELPER_DEADLINE).unwrap();
        assert_eq!(output.stdout.len(), long.len());
    }

    #[test]
    fn program_that_does_not_end_is_killed_and_named() {
        for script in ["exec sleep 1000", "exec >&- 2>&-; exec sleep 1000"] {
            let error = output_within(&mut shell(script), &[], Duration::from_millis(100)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(error.to_string().contains("`sh` did not end within 0.1 s"), "{error}");
        }
        let missing = output_within(&mut Command::new("/nonexistent"), &[], HELPER_DEADLINE).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
