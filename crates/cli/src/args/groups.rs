//! Groups of the commands in `narrows --help`, and the words that replace former ones.

use std::ffi::OsString;
use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _};

use super::Cli;

/// Commands by group, frequent ones first. clap cannot group subcommands itself.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Simulate", &["demo", "run", "sweep", "check", "size", "choose", "tune", "reproduce"]),
    ("Results", &["show", "explain", "score", "compare", "plot", "report", "export"]),
    ("Real packets", &["emulate", "kernel"]),
    ("Transport", &["send", "recv", "perf", "proxy"]),
    ("Laws", &["laws", "new-law"]),
    ("Files", &["import", "schema"]),
    ("Developer", &["bench", "completions", "man"]),
];

/// Former options and subcommands with the one that replaces each. A word may have several: the command decides.
const RENAMED: &[(&str, &str)] = &[
    ("--anew", "--force"),
    ("--checked", "--check-invariants"),
    ("--as-written", "--no-vary"),
    ("--newcomer", "--not-in-baseline"),
    ("--against", "--baseline"),
    ("--one-law", "--coupled"),
    ("--eight-lanes-from", "--eight-lane-min"),
    ("--marks-apart", "--separate-wred"),
    ("--allow-caller", "--allow-key"),
    ("--allow", "--allow-key"),
    ("--least", "--minimize"),
    ("--over", "--vary"),
    ("--try", "--vary"),
    ("--steps", "--steps-per-doubling"),
    ("--write", "--save-baseline"),
    ("--cell", "--metric"),
    ("--only", "--filter"),
    ("--share", "--slowest"),
    ("--page", "--markdown"),
    ("--page", "--results"),
    ("--markdown", "--results"),
    ("--record", "--update-verdicts"),
    ("--on", "--command-host"),
    ("--with", "--background"),
    ("--burst", "--gso-max-size"),
    ("--packet", "--max-udp-payload"),
    ("--idle", "--idle-timeout"),
    ("--window", "--stream-window"),
    ("--keep", "--reusable"),
    ("--valid", "--ticket-lifetime"),
    ("--address", "--advertise"),
    ("--replace", "--overwrite"),
    ("--hold", "--foreground"),
    ("--as", "--name"),
    ("--default", "--set-default"),
    ("--output", "--out"),
    ("near", "client"),
    ("far", "server"),
];

impl Cli {
    /// Parses a command line; its first word is the command's name.
    ///
    /// # Errors
    /// clap's error or help. An unknown word that was renamed is answered with its new name.
    pub(crate) fn parse_words(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let mut command = command_with_groups();
        let words: Vec<OsString> = words.into_iter().collect();
        let matches = command
            .try_get_matches_from_mut(&words)
            .map_err(|error| suggest_replacement(find_subcommand_of(&Self::command(), &words), error))?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// The command, with its subcommands in groups.
fn command_with_groups() -> clap::Command {
    let command = Cli::command();
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let mut list = String::new();
    for (group, names) in GROUPS {
        let _ = writeln!(list, "{group}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about).map(ToString::to_string);
            let _ = writeln!(list, "  {name:width$}  {}", about.unwrap_or_default());
        }
        list.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}{{after-help}}"
    ))
}

/// Returns the subcommand that a command line addresses.
fn find_subcommand_of<'a>(command: &'a clap::Command, words: &[OsString]) -> &'a clap::Command {
    let words = words.iter().skip(1).filter_map(|word| word.to_str());
    words.fold(command, |at, word| at.find_subcommand(word).unwrap_or(at))
}

/// Returns whether a command has this option or subcommand.
fn accepts(command: &clap::Command, word: &str) -> bool {
    match word.strip_prefix("--") {
        Some(long) => command.get_arguments().any(|arg| arg.get_long() == Some(long)),
        None => command.find_subcommand(word).is_some(),
    }
}

/// Adds the new name to the error for a word that was renamed, if the command has the new one.
fn suggest_replacement(command: &clap::Command, mut error: clap::Error) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return error };
    let word = word.split('=').next().unwrap_or_default();
    if let Some((_, new)) = RENAMED.iter().find(|(old, new)| *old == word && accepts(command, new)) {
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue] {
            error.remove(kind);
        }
        let tip = clap::builder::StyledStr::from(format!("renamed to `{new}`"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{Cli, GROUPS, RENAMED, accepts};

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = Cli::command();
        let mut commands: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(clap::Command::get_name)
            .filter(|name| *name != "help")
            .collect();
        listed.sort_unstable();
        commands.sort_unstable();
        assert_eq!(listed, commands);
    }

    #[test]
    fn renamed_options_suggest_replacements() {
        let error_text = |line: &str| {
            let words = line.split(' ').map(Into::into);
            Cli::parse_words(words).expect_err("refused").render().to_string()
        };
        for (line, tip) in [
            ("narrows run a.toml --anew", "renamed to `--force`"),
            ("narrows run a.toml --over=port.ecn.min=1KB", "renamed to `--vary`"),
            ("narrows recv . --keep", "renamed to `--reusable`"),
            ("narrows proxy far", "renamed to `server`"),
            ("narrows reproduce uno --markdown page.md", "renamed to `--results`"),
            ("narrows reproduce uno --page=page.md", "renamed to `--results`"),
            ("narrows compare a b --flows --page page.md", "renamed to `--markdown`"),
        ] {
            let text = error_text(line);
            assert!(text.contains(tip), "{line}: {text}");
        }
        // Other commands never had it.
        for line in ["narrows laws --page x", "narrows run a.toml --keep", "narrows export near"] {
            assert!(!error_text(line).contains("renamed"), "{line}");
        }
    }

    #[test]
    fn every_replacement_belongs_to_a_command() {
        fn commands<'a>(command: &'a clap::Command, into: &mut Vec<&'a clap::Command>) {
            into.push(command);
            command.get_subcommands().for_each(|command| commands(command, into));
        }
        let root = Cli::command();
        let mut all = Vec::new();
        commands(&root, &mut all);
        for (old, new) in RENAMED {
            assert!(
                all.iter().any(|command| accepts(command, new) && !accepts(command, old)),
                "{old} was renamed to {new}"
            );
        }
    }
}
