//! How commands end.

use std::fmt;
use std::io::{self, Write};

/// A command's failure and its exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 1: the run failed.
    Run(anyhow::Error),
    /// 2: usage or input; the message is complete and ready to print.
    Input(String),
    /// 3: something is worse than recorded.
    Regression(String),
    /// 130: interrupted.
    Interrupted,
    /// 0: the reader of standard output has gone, which is its right.
    ClosedPipe,
}

impl Failure {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Run(_) => 1,
            Self::Input(_) => 2,
            Self::Regression(_) => 3,
            Self::Interrupted => 130,
            Self::ClosedPipe => 0,
        }
    }

    /// A file that cannot be read or written as the user asked.
    pub(crate) fn file(what: &str, path: &std::path::Path, error: &io::Error) -> Self {
        Self::Input(format!("error: cannot {what} `{}`: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(error) => write!(f, "error: {error:#}"),
            Self::Input(text) => f.write_str(text),
            Self::Regression(text) => write!(f, "regression: {text}"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::ClosedPipe => Ok(()),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Run(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::ClosedPipe } else { Self::Run(error.into()) }
    }
}

/// Results that cannot be read or written are the user's to mend, except that a run's own description always fits.
impl From<results::Error> for Failure {
    fn from(error: results::Error) -> Self {
        match error {
            results::Error::Mismatch { .. } => Self::Run(error.into()),
            other => Self::Input(format!("error: {other}")),
        }
    }
}

/// Prints a text on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
