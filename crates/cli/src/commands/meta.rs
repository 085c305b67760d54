//! Commands about the program itself: schema, completions, man pages.

use std::path::Path;

use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::{CommandFailure, print};
use crate::named_file::{OutputKind, write_into};

pub(crate) fn schema() -> Result<(), CommandFailure> {
    print(&format!("{:#}", scenario::json_schema()))
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), CommandFailure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "narrows", &mut text);
    print(&String::from_utf8_lossy(&text))
}

pub(crate) fn man(directory: &Path) -> Result<(), CommandFailure> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    add_pages(command, &mut pages);
    write_into(directory, &pages)
}

/// The page of a command, after those of its subcommands.
fn add_pages(command: clap::Command, pages: &mut Vec<(String, OutputKind, Vec<u8>)>) {
    for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        add_pages(subcommand.clone(), pages);
    }
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = page.render(&mut text);
    let text = OutputKind::Manual.sealed(String::from_utf8_lossy(&text).into_owned());
    pages.push((page.get_filename(), OutputKind::Manual, text.into_bytes()));
}
