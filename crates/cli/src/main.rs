//! The `narrows` command.

mod args;
mod commands;
mod exit;
mod interrupt;
mod named_file;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod peer;
mod progress;
mod results_page;
mod table;

use std::process::ExitCode;

use clap::Parser;

use args::{BenchCommand, Cli, Command};
use exit::Failure;

fn main() -> ExitCode {
    interrupt::report_full_files();
    let done = match Cli::try_parse() {
        Ok(cli) => dispatch(cli.command),
        Err(said) => match exit::print_usage(&said) {
            // Help was asked for and printed, or the usage was wrong and that is said.
            Ok(()) => return ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(2)),
            Err(failure) => Err(failure),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            exit::tell(&failure.to_string());
            ExitCode::from(failure.code())
        }
    }
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => commands::demo::demo(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Sweep(args) => commands::sweep::sweep(&args),
        Command::Emulate(args) => commands::emulate::emulate(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Laws(args) => commands::laws::laws(&args),
        Command::NewLaw(args) => commands::new_law::new_law(&args),
        Command::Bench(BenchCommand::Engine(args)) => commands::bench::engine(&args),
        Command::Bench(BenchCommand::Codes(args)) => commands::bench::codes(&args),
        Command::Bench(BenchCommand::Transport(args)) => commands::bench::transport(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Import(command) => commands::import::import(&command),
        Command::Perf(args) => commands::perf::perf(&args),
        Command::Send(args) => commands::transfer::send(&args),
        Command::Recv(args) => commands::transfer::recv(&args),
        Command::Proxy(command) => commands::proxy::proxy(command),
        Command::Kernel(command) => commands::kernel::kernel(command),
        Command::Reproduce(args) => commands::reproduce::reproduce(&args),
        Command::Compare(args) if args.flows => commands::sides::compare(&args),
        Command::Compare(args) => commands::compare::compare(&args),
        Command::Schema => commands::meta::schema(),
        Command::Completions { shell } => commands::meta::completions(shell),
        Command::Man { directory } => commands::meta::man(&directory),
    }
}
