//! Exit codes, errors and output of commands.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

/// A command's failure and its exit code.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// 1: the run failed.
    Run(anyhow::Error),
    /// 2: usage or input; the message is complete and ready to print.
    Input(String),
    /// 3: something is worse than recorded.
    Regression(String),
    /// 130: interrupted; the message describes the remaining work.
    Interrupted(String),
}

impl CommandFailure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Run(_) => 1,
            Self::Input(_) => 2,
            Self::Regression(_) => 3,
            Self::Interrupted(_) => 130,
        }
    }

    /// An unknown name, with the known one that was perhaps meant.
    pub(crate) fn unknown(kind: &str, name: &str, known: &[&str]) -> Self {
        study::Error::unknown(kind, name, known).into()
    }

    /// A file that cannot be read or written as the user asked.
    pub(crate) fn file(action: &str, path: &Path, error: &io::Error) -> Self {
        Self::Input(format!("error: cannot {action} `{}`: {error}", path.display()))
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => write!(f, "error: {error:#}"),
            Self::Input(text) => f.write_str(text),
            Self::Regression(text) => write!(f, "regression: {text}"),
            Self::Interrupted(left) => write!(f, "interrupted: {left}"),
        }
    }
}

impl std::error::Error for CommandFailure {}

impl From<anyhow::Error> for CommandFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error)
    }
}

/// A scenario that cannot be used: its message with caret, in colour where that is wanted.
impl From<scenario::Error> for CommandFailure {
    fn from(error: scenario::Error) -> Self {
        Self::Input(error.render(if colour() { scenario::Colour::Ansi } else { scenario::Colour::Plain }))
    }
}

/// Results that cannot be read or written are the user's to mend, except that a run's own description always fits.
impl From<results::Error> for CommandFailure {
    fn from(error: results::Error) -> Self {
        match error {
            results::Error::Mismatch { .. } => Self::Run(error.into()),
            results::Error::File(error) => error.into(),
            error @ results::Error::Differs { .. } => Self::Input(format!(
                "error: {error}\nhelp: give the command that made these results again: it redoes the runs that were changed"
            )),
            other => Self::Input(format!("error: {other}")),
        }
    }
}

/// Converts the error of a study. An error of the command's own backend is returned unchanged.
impl From<study::Error> for CommandFailure {
    fn from(error: study::Error) -> Self {
        use study::Error as E;
        match error {
            E::Scenario(error) => error.into(),
            E::Results(error) => error.into(),
            error @ (E::InvalidRequest { .. } | E::WouldLose { .. }) => Self::Input(format!("error: {error}")),
            E::Broken(broken) => Self::Run(broken.into()),
            error @ (E::Failed { .. } | E::Missing { .. }) => Self::Run(anyhow::anyhow!(error.to_string())),
            E::Host(error) => match error.downcast::<Self>() {
                Ok(failure) => *failure,
                Err(error) => Self::Run(anyhow::anyhow!(error)),
            },
            E::Interrupted => Self::Interrupted("no run was finished".to_owned()),
            E::Stopped { cause, finished, of } => stopped((*cause).into(), finished, of),
        }
    }
}

/// Wraps a failure for a study, which returns it unchanged.
impl From<CommandFailure> for study::Error {
    fn from(failure: CommandFailure) -> Self {
        match failure {
            CommandFailure::Interrupted(_) => Self::Interrupted,
            failure => Self::host(failure),
        }
    }
}

/// Returns the failure of a command that did not finish all runs, with the number of runs that are kept.
fn stopped(failure: CommandFailure, finished: usize, of: usize) -> CommandFailure {
    match failure {
        failure if finished == 0 => failure,
        CommandFailure::Interrupted(_) => CommandFailure::Interrupted(study::kept(finished, of)),
        CommandFailure::Input(text) => CommandFailure::Input(format!("{text}\nhelp: {}", study::kept(finished, of))),
        CommandFailure::Run(error) => {
            CommandFailure::Run(anyhow::anyhow!("{error:#}\nhelp: {}", study::kept(finished, of)))
        }
        CommandFailure::Regression(_) => failure,
    }
}

/// A file or a directory that cannot be used: exit code 2.
impl From<files::Error> for CommandFailure {
    fn from(error: files::Error) -> Self {
        let help = match &error {
            files::Error::Locked { .. } => "\nhelp: wait until it ends, or name another directory with --out",
            files::Error::DirectoryLost { .. } => {
                "\nhelp: give the same command again with --out and the name that it has now"
            }
            _ => "",
        };
        Self::Input(format!("error: {error}{help}"))
    }
}

/// Converts the error of an emulator. Restrictions of the machine are for the user to lift.
#[cfg(target_os = "linux")]
impl From<emulator::Error> for CommandFailure {
    fn from(error: emulator::Error) -> Self {
        use emulator::Error as E;
        match error {
            E::Interrupted => Self::Interrupted(String::new()),
            E::System { .. } | E::Ip { .. } | E::RouterDied | E::NotConnected { .. } => Self::Run(error.into()),
            other => Self::Input(format!("error: {other}")),
        }
    }
}

/// Fails with exit code 1 if a run breaks an identity. Called once everything is written and shown, because the run's
/// warnings include the broken identity.
pub(crate) fn check_identities<'a>(runs: impl IntoIterator<Item = &'a results::Summary>) -> Result<(), CommandFailure> {
    let broken: Vec<String> = runs
        .into_iter()
        .flat_map(|run| run.broken_identities().map(|identity| format!("{}, seed {}: {identity}", run.run, run.seed)))
        .collect();
    if broken.is_empty() { Ok(()) } else { Err(CommandFailure::Run(anyhow::anyhow!(broken.join("\n")))) }
}

/// Colour only on a terminal, and never with `NO_COLOR`.
pub(crate) fn colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints a text on standard output. A closed pipe is not an error: the work continues and the command ends normally.
pub(crate) fn print(text: &str) -> Result<(), CommandFailure> {
    printed(text).map(drop)
}

/// Prints a text on standard output. Returns whether standard output is still read: for output without an end.
pub(crate) fn printed(text: &str) -> Result<bool, CommandFailure> {
    is_read(write_text(&mut io::stdout().lock(), text))
}

/// Returns whether standard output is read, by the result of a write.
fn is_read(written: io::Result<()>) -> Result<bool, CommandFailure> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CommandFailure::Run(anyhow::anyhow!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(true),
    }
}

/// Prints clap's message: help and the version on standard output, a usage error on standard error.
pub(crate) fn print_usage(error: &clap::Error) -> Result<(), CommandFailure> {
    let printed = error.print().and_then(|()| io::stdout().flush());
    // A failure to write standard error cannot be reported anywhere.
    if error.use_stderr() { Ok(()) } else { is_read(printed).map(drop) }
}

/// Prints a message on standard error. A failure to write is ignored.
pub(crate) fn print_stderr(text: &str) {
    let _ = write_text(&mut io::stderr().lock(), text);
}

/// Prints notes about a lock.
pub(crate) fn print_lock_notes(directory: &Path, lock: &files::Lock) {
    lock.notes(directory).iter().for_each(|note| print_stderr(note));
}

/// Makes a text safe for a terminal, because names in it may be from files: control characters are replaced by their
/// pictures, except line ends, tabs and the sequences that set colours.
fn sanitized(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_shown) {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(index) = rest.find(is_shown) {
        output.push_str(&rest[..index]);
        rest = &rest[index..];
        let colour = rest.strip_prefix("\x1b[").and_then(|rest| {
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ';'))?;
            rest[end..].starts_with('m').then_some(2 + end + 1)
        });
        let Some(c) = rest.chars().next() else { break };
        let length = colour.unwrap_or_else(|| c.len_utf8());
        match colour {
            Some(length) => output.push_str(&rest[..length]),
            // Unicode has pictures of the first 32 and of DEL.
            None => output.push(match u32::from(c) {
                code @ 0..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
                0x7f => '\u{2421}',
                _ => char::REPLACEMENT_CHARACTER,
            }),
        }
        rest = &rest[length..];
    }
    output.push_str(rest);
    Cow::Owned(output)
}

fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(sanitized(text).as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Summary;

    #[test]
    fn control_characters_are_replaced() {
        let plain = "a\tb\nc, \u{e9}";
        assert!(matches!(sanitized(plain), Cow::Borrowed(same) if same == plain));
        assert_eq!(sanitized("\x1b[1;31mred\x1b[0m"), "\x1b[1;31mred\x1b[0m");
        let cleared = sanitized("x\x1b[2J\x1b]0;title\x07y\x7f\u{9b}z\r\x1b[");
        assert_eq!(cleared, "x\u{241b}[2J\u{241b}]0;title\u{2407}y\u{2421}\u{fffd}z\u{240d}\u{241b}[");
    }

    /// A run with a broken identity ends a command with exit code 1 and is named; other warnings do not.
    #[test]
    fn a_broken_identity_is_a_failed_run() {
        let summary = |warning: &str| Summary {
            schema: results::summary::SCHEMA,
            scenario: "test".into(),
            run: "uno".into(),
            label: "Uno".into(),
            point: results::Ordered::default(),
            backend: results::BackendKind::Simulator,
            seed: 7,
            end_ns: 0.0,
            conditions: results::conditions::Conditions::default(),
            flows: results::summary::Flows::default(),
            requests: results::summary::FlowGroupStats::default(),
            collectives: results::summary::FlowGroupStats::default(),
            jobs: results::Ordered::default(),
            schedules: results::Ordered::default(),
            network: results::summary::NetworkTotals::default(),
            credits: results::summary::Credits::default(),
            fairness: results::summary::Fairness::default(),
            predicts: results::summary::Predicts::default(),
            law: results::summary::LawTotals::default(),
            engine: results::summary::Engine::default(),
            emulator: None,
            virtual_time: None,
            warnings: vec![warning.into()],
            notes: Vec::new(),
        };
        assert!(check_identities(&[summary("1 of 2 flows never started")]).is_ok());
        let failure = check_identities(&[summary("odd"), summary("broken identity: 1 is 2")]).unwrap_err();
        assert_eq!((failure.code(), failure.to_string().as_str()), (1, "error: uno, seed 7: broken identity: 1 is 2"));
    }
}
