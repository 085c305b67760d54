//! What the command says of itself: schema, completions, man pages.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::{Failure, print};

pub(crate) fn schema() -> Result<(), Failure> {
    print(&format!("{:#}", scenario::json_schema()))
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "narrows", &mut text);
    print(&String::from_utf8_lossy(&text))
}

pub(crate) fn man(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| Failure::file("make", directory, &error))?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(|error| Failure::file("write into", directory, &error))
}
