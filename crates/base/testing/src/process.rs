//! Child processes that do not outlive their test, and that no test waits for without a deadline.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::waits::{DEFAULT_TIMEOUT, Deadline, eventually};

/// Timeout of a complete command, which may simulate for a while.
pub const COMMAND: Duration = Duration::from_mins(5);

/// Time for a killed process to disappear, before it is left to the system.
const REAP_TIMEOUT: Duration = Duration::from_secs(10);

/// A child process. It is killed when dropped, so a test that fails does not leave it behind. Where standard output and error are
/// piped, they are read from the start on, so the child never waits for a reader.
pub struct Process {
    child: Child,
    name: String,
    out: Option<Lines>,
    err: Option<Lines>,
}

/// The lines of a pipe in order of arrival, each with its end.
struct Lines(Receiver<Vec<u8>>);

impl Lines {
    fn of(pipe: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                if sender.send(std::mem::take(&mut line)).is_err() {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// Returns the next line, or none at the pipe's end.
    #[track_caller]
    fn next(&self, deadline: Deadline, event: &str) -> Option<Vec<u8>> {
        match self.0.recv_timeout(deadline.left()) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                deadline.check(event);
                None
            }
        }
    }

    #[track_caller]
    fn rest(&self, deadline: Deadline, event: &str) -> Vec<u8> {
        std::iter::from_fn(|| self.next(deadline, event)).flatten().collect()
    }
}

impl Process {
    /// Starts a command, with standard input, output and error as it has them.
    ///
    /// # Panics
    /// If it cannot be started.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::try_start(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    /// Starts a command that may not be installed.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn try_start(command: &mut Command) -> io::Result<Self> {
        let name = format!("{command:?}");
        let mut child = command.spawn()?;
        let (out, err) = (child.stdout.take().map(Lines::of), child.stderr.take().map(Lines::of));
        Ok(Self { child, name, out, err })
    }

    /// Process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Exit status, once it has ended.
    ///
    /// # Panics
    /// If the system does not report it.
    pub fn try_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until it ends.
    ///
    /// # Panics
    /// If it runs longer than `within`.
    #[track_caller]
    pub fn status_within(&mut self, within: Duration) -> ExitStatus {
        let event = format!("{} ends", self.name);
        let mut status = None;
        eventually(within, &event, || {
            status = self.try_status();
            status.is_some()
        });
        status.expect("a status, since the wait has ended")
    }

    /// The same within [`COMMAND`].
    #[track_caller]
    pub fn status(&mut self) -> ExitStatus {
        self.status_within(COMMAND)
    }

    /// Waits until it ends. Returns its output, without lines that were taken before.
    ///
    /// # Panics
    /// If it runs longer than `within`, or its pipes are open for longer.
    #[track_caller]
    pub fn output_within(&mut self, within: Duration) -> Output {
        let deadline = Deadline::new(within);
        let status = self.status_within(within);
        let event = format!("the output of {} ends", self.name);
        let [stdout, stderr] = [&self.out, &self.err]
            .map(|pipe| pipe.as_ref().map(|pipe| pipe.rest(deadline, &event)).unwrap_or_default());
        Output { status, stdout, stderr }
    }

    /// The same within [`COMMAND`].
    #[track_caller]
    pub fn output(&mut self) -> Output {
        self.output_within(COMMAND)
    }

    /// Takes the next line of standard output, without its end. At the end of the output it is empty.
    ///
    /// # Panics
    /// If none arrives within [`DEFAULT_TIMEOUT`], or if standard output is not piped.
    #[track_caller]
    pub fn line(&self) -> String {
        let pipe = self.out.as_ref().expect("a pipe as standard output");
        let line = pipe.next(Deadline::new(DEFAULT_TIMEOUT), &format!("a line of {}", self.name)).unwrap_or_default();
        String::from_utf8_lossy(&line).trim_end_matches('\n').to_owned()
    }

    /// Takes lines of standard error up to the first that has these words. Returns that one, without its end.
    ///
    /// # Panics
    /// If none has them within [`DEFAULT_TIMEOUT`], or if standard error is not piped.
    #[track_caller]
    pub fn says(&self, text: &str) -> String {
        let pipe = self.err.as_ref().expect("a pipe as standard error");
        let deadline = Deadline::new(DEFAULT_TIMEOUT);
        let mut before = String::new();
        loop {
            let event = format!("{} prints `{text}`; its output was:\n{before}", self.name);
            let line = pipe.next(deadline, &event).unwrap_or_else(|| panic!("it ended before this: {event}"));
            let line = String::from_utf8_lossy(&line);
            if line.contains(text) {
                return line.trim_end_matches('\n').to_owned();
            }
            before += &line;
        }
    }

    /// Kills it, and waits until it is gone.
    #[track_caller]
    pub fn kill(&mut self) -> ExitStatus {
        let _ = self.child.kill();
        self.status_within(DEFAULT_TIMEOUT)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let deadline = Deadline::new(REAP_TIMEOUT);
        while self.child.try_wait().is_ok_and(|status| status.is_none()) && !deadline.left().is_zero() {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Commands of tests, run within a deadline.
pub trait Bounded {
    /// Starts it, as [`Process::start`].
    #[track_caller]
    fn start(&mut self) -> Process;

    /// Starts it with standard output and error piped.
    #[track_caller]
    fn piped(&mut self) -> Process;

    /// Runs it to its end within [`COMMAND`], and returns its output.
    #[track_caller]
    fn finish(&mut self) -> Output {
        self.piped().output()
    }

    /// The same for a command that may not be installed.
    ///
    /// # Errors
    /// If it cannot be started.
    #[track_caller]
    fn try_finish(&mut self) -> io::Result<Output>;
}

impl Bounded for Command {
    #[track_caller]
    fn start(&mut self) -> Process {
        Process::start(self)
    }

    #[track_caller]
    fn piped(&mut self) -> Process {
        Process::start(self.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }

    #[track_caller]
    fn try_finish(&mut self) -> io::Result<Output> {
        Process::try_start(self.stdout(Stdio::piped()).stderr(Stdio::piped())).map(|mut process| process.output())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn shell(script: &str) -> Process {
        Command::new("sh").args(["-c", script]).piped()
    }

    #[test]
    fn lines_are_taken_and_the_rest_is_output() {
        let mut process = shell("echo one; echo two; echo three >&2; echo four >&2; exit 3");
        assert_eq!((process.line(), process.says("hree")), ("one".to_owned(), "three".to_owned()));
        let output = process.output();
        assert_eq!(
            (output.status.code(), &output.stdout[..], &output.stderr[..]),
            (Some(3), &b"two\n"[..], &b"four\n"[..])
        );
        assert_eq!(process.line(), "");
    }

    #[test]
    fn child_with_much_output_does_not_block() {
        let output = shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2").output();
        assert_eq!((output.stdout.len(), output.stderr.len()), (1_000_000, 1_000_000));
    }

    #[test]
    fn timeout_message_names_the_child() {
        let mut process = shell("exec sleep 1000");
        let panic = catch_unwind(AssertUnwindSafe(|| process.output_within(Duration::from_millis(20)))).unwrap_err();
        let message = panic.downcast::<String>().unwrap();
        assert!(message.contains("not within 20ms") && message.contains("exec sleep 1000"), "{message}");
        assert!(process.try_status().is_none());
        assert_eq!(process.kill().code(), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn dropped_children_are_killed() {
        let process = shell("exec sleep 1000");
        let place = format!("/proc/{}", process.id());
        assert!(std::path::Path::new(&place).exists());
        drop(process);
        assert!(!std::path::Path::new(&place).exists());
    }

    #[test]
    fn truncated_file_names_the_expected_field() {
        let process = shell("echo other >&2");
        let panic = catch_unwind(AssertUnwindSafe(|| process.says("words"))).unwrap_err();
        let message = panic.downcast::<String>().unwrap();
        assert!(message.contains("it ended before this") && message.contains("other"), "{message}");
    }
}
