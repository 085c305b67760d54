//! The `narrows` command: executes a command line and shows the results. The program `narrows` is [`run`] with its own
//! arguments; the Python package is another caller.

#[cfg(all(feature = "null-crypto", feature = "transport"))]
compile_error!("a build with sockets must not send packets in the clear: `null-crypto` needs `--no-default-features`");

mod args;
mod commands;
mod exit;
mod flow_log;
mod interrupt;
mod named_file;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod peer;
mod progress;
mod record;
mod sheet;
mod sonic;
mod table;
#[cfg(feature = "virtual")]
mod transport_law;

use std::ffi::OsString;
use std::sync::OnceLock;

use args::{BenchCommand, Cli, Command, ExportCommand};
use exit::CommandFailure;

/// The words that start this command again, without arguments.
static SELF_COMMAND: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs a command line, and returns the exit code. Its first word is the command's name. `self_command` are the words that
/// start this command again in a process of its own.
pub fn run(words: impl IntoIterator<Item = OsString>, self_command: Vec<OsString>) -> u8 {
    let _ = SELF_COMMAND.set(self_command);
    interrupt::report_full_files();
    let words: Vec<OsString> = words.into_iter().collect();
    let result = match Cli::parse_words(words.clone()) {
        Ok(cli) => dispatch(cli.command, words.get(1..).unwrap_or_default()),
        Err(error) => match exit::print_usage(&error) {
            // Help was requested and printed, or a usage error was printed.
            Ok(()) => return u8::try_from(error.exit_code()).unwrap_or(2),
            Err(failure) => Err(failure),
        },
    };
    match result {
        Ok(()) => 0,
        Err(failure) => {
            exit::print_failure(&failure);
            failure.code()
        }
    }
}

/// A command that the Python package does.
pub struct PythonCommand {
    /// Its name, such as `tune`.
    pub name: &'static str,
    /// Its options as a JSON object, defaults included.
    pub options: String,
}

/// Parses a command line that the Python package does; its first word is the command's name. Returns nothing for another
/// command, a request for help or a wrong command line: [`run`] is for those.
pub fn python_command(words: impl IntoIterator<Item = OsString>) -> Option<PythonCommand> {
    let (name, options) = match Cli::parse_words(words).ok()?.command {
        Command::Plot(args) => ("plot", serde_json::to_string(&args)),
        Command::Tune(args) => ("tune", serde_json::to_string(&args)),
        _ => return None,
    };
    // Texts, numbers and flags always have a form in JSON.
    Some(PythonCommand { name, options: options.ok()? })
}

#[cfg(feature = "import")]
pub use commands::import::{ImportError, ImportTo};

/// Runs `narrows import` for another program: `words` is the command line, starting with `narrows`. `base` is the scenario
/// that supplies the network, in place of the option `--scenario`.
///
/// # Errors
/// As the command, which prints them.
#[cfg(feature = "import")]
pub fn import(
    words: impl IntoIterator<Item = OsString>,
    base: Option<&scenario::import::Base<'_>>,
    to: ImportTo,
) -> Result<scenario::import::Imported, ImportError> {
    let parsed = Cli::parse_words(words).map_err(|error| ImportError::Other(error.render().to_string()))?;
    match parsed.command {
        Command::Import(command) => commands::import::import_for(&command, base, to),
        _ => Err(ImportError::Other("error: expected `narrows import`".into())),
    }
}

/// Creates the Rust files of a law that exists in Python, in the checkout `root`: those of `narrows new-law`, and a test
/// that replays the behaviour of the Python law. `draft` is the law as the Python package serializes it. Returns the new
/// files.
///
/// # Errors
/// A message, if that is impossible. No file was written then.
pub fn new_law(name: &str, root: &std::path::Path, draft: &str) -> Result<Vec<String>, String> {
    commands::new_law::drafted(name, root, draft).map_err(|failure| failure.to_string())
}

/// Returns this command again, in a process of its own.
fn self_command() -> std::process::Command {
    let words = SELF_COMMAND.get().map_or(&[][..], Vec::as_slice);
    let mut command = std::process::Command::new(words.first().map_or("narrows".as_ref(), OsString::as_os_str));
    command.args(words.iter().skip(1));
    command
}

/// Does a command. `words` are those that it was parsed from.
fn dispatch(command: Command, words: &[OsString]) -> Result<(), CommandFailure> {
    match command {
        Command::Demo(args) => commands::demo::demo(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Sweep(args) => commands::sweep::sweep(&args),
        Command::Size(args) => commands::size::size(&args),
        Command::Choose(args) => commands::choose::choose(&args),
        // Python parses them again, by the definition that its package has.
        Command::Plot(_) | Command::Tune(_) => Err(commands::python::exec(words)),
        Command::Emulate(args) => commands::emulate::emulate(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Laws(args) => commands::laws::laws(&args),
        Command::NewLaw(args) => commands::new_law::new_law(&args),
        Command::Bench(BenchCommand::Engine(args)) => commands::bench::engine(&args),
        Command::Bench(BenchCommand::Codes(args)) => commands::bench::codes(&args),
        Command::Bench(BenchCommand::Transport(args)) => commands::bench::transport(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Show(args) => commands::show::show(&args),
        Command::Explain(args) => commands::explain::explain(&args),
        Command::Score(args) => commands::score::score(&args),
        Command::Import(command) => commands::import::import(&command),
        Command::Export(ExportCommand::Perfetto(args)) => commands::show::perfetto(&args),
        Command::Export(ExportCommand::Qlog(args)) => commands::show::qlog(&args),
        Command::Export(ExportCommand::Sonic(args)) => commands::export::sonic(&args),
        Command::Perf(args) => commands::perf::perf(&args),
        Command::Send(args) => commands::transfer::send(&args),
        Command::Recv(args) => commands::transfer::recv(&args),
        Command::Proxy(command) => commands::proxy::proxy(command),
        Command::Kernel(command) => commands::kernel::kernel(command),
        Command::Reproduce(args) => commands::reproduce::reproduce(&args),
        Command::Compare(args) if args.flows => commands::flow_comparison::compare(&args),
        Command::Compare(args) => commands::compare::compare(&args),
        Command::Clocks(command) => commands::clocks::clocks(&command),
        Command::Schema => commands::meta::schema(),
        Command::Completions { shell } => commands::meta::completions(shell),
        Command::Man { directory } => commands::meta::man(&directory),
    }
}
