//! Exit codes, errors and output of commands.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use scenario::escape_controls;

/// A command's failure and its exit code.
#[derive(Debug)]
pub(crate) enum CommandFailure {
    /// 1: the run failed.
    Run(anyhow::Error),
    /// 2: usage or input; the message is complete and ready to print.
    Input(String),
    /// 2: a scenario that cannot be used, and what else helps.
    Scenario(scenario::Error, Vec<String>),
    /// 2: several files that cannot be used.
    Files(Vec<CommandFailure>),
    /// 3: something is worse than recorded.
    Regression(String),
    /// 130: interrupted; the message describes the remaining work.
    Interrupted(String),
}

impl CommandFailure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Run(_) => 1,
            Self::Input(_) | Self::Scenario(..) | Self::Files(_) => 2,
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

    /// Adds a line of help to an error.
    pub(crate) fn with_help(self, help: String) -> Self {
        match self {
            Self::Run(error) => Self::Run(anyhow::anyhow!("{error:#}\nhelp: {help}")),
            Self::Input(text) => Self::Input(format!("{text}\nhelp: {help}")),
            Self::Scenario(error, mut helps) => {
                helps.push(help);
                Self::Scenario(error, helps)
            }
            Self::Files(_) | Self::Regression(_) | Self::Interrupted(_) => self,
        }
    }

    /// Returns the message, safe for a terminal.
    fn render(&self, colour: scenario::Colour) -> String {
        let text = match self {
            Self::Scenario(error, helps) => {
                let helps: Vec<String> =
                    helps.iter().map(|help| format!("\nhelp: {}", escape_controls(help))).collect();
                let helps = helps.concat();
                return error.render(colour) + &helps;
            }
            Self::Files(failures) => {
                return failures.iter().map(|failure| failure.render(colour)).collect::<Vec<_>>().join("\n\n");
            }
            Self::Run(error) => format!("error: {error:#}"),
            Self::Input(text) => text.clone(),
            Self::Regression(text) => format!("regression: {text}"),
            Self::Interrupted(left) => format!("interrupted: {left}"),
        };
        escape_controls(&text).into_owned()
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(scenario::Colour::Plain))
    }
}

impl std::error::Error for CommandFailure {}

impl From<anyhow::Error> for CommandFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error)
    }
}

impl From<scenario::Error> for CommandFailure {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(error, Vec::new())
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
        failure => failure.with_help(study::kept(finished, of)),
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
///
/// Control characters are escaped here and in [`print_stderr`], because a text may quote files.
pub(crate) fn print(text: &str) -> Result<(), CommandFailure> {
    printed(text).map(drop)
}

/// Prints a text on standard output. Returns whether standard output is still read: for output without an end.
pub(crate) fn printed(text: &str) -> Result<bool, CommandFailure> {
    is_read(write_text(&mut io::stdout().lock(), &escape_controls(text)))
}

/// Prints a text with colours on standard output. Parts of it that may quote files have been escaped.
pub(crate) fn print_coloured(text: &str) -> Result<(), CommandFailure> {
    is_read(write_text(&mut io::stdout().lock(), text)).map(drop)
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
    let _ = write_text(&mut io::stderr().lock(), &escape_controls(text));
}

/// Prints a failure on standard error, in colour where that is wanted. A failure to write is ignored.
pub(crate) fn print_failure(failure: &CommandFailure) {
    let colour = if colour() { scenario::Colour::Ansi } else { scenario::Colour::Plain };
    let _ = write_text(&mut io::stderr().lock(), &failure.render(colour));
}

/// Prints notes about a lock.
pub(crate) fn print_lock_notes(directory: &Path, lock: &files::Lock) {
    lock.notes(directory).iter().for_each(|note| print_stderr(note));
}

fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::Summary;

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
