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
    ("Real packets", &["emulate", "kernel", "clocks"]),
    ("Transport", &["send", "recv", "perf", "proxy"]),
    ("Laws", &["laws", "new-law"]),
    ("Files", &["import", "schema"]),
    ("Developer", &["bench", "completions", "man"]),
];

/// A former option or subcommand.
struct Renamed {
    old: &'static str,
    new: &'static str,
    /// The commands that had it: by the name of a command, or of a subcommand if no command has that name.
    commands: &'static [&'static str],
}

const fn renamed(old: &'static str, new: &'static str, commands: &'static [&'static str]) -> Renamed {
    Renamed { old, new, commands }
}

/// Commands that run scenarios.
const RUNS: &[&str] = &["demo", "run", "sweep", "merge", "size", "choose", "reproduce", "emulate"];
const SIMULATES: &[&str] = &["demo", "run", "sweep", "merge", "size", "choose", "reproduce"];
const SWEEPS: &[&str] = &["run", "sweep", "merge"];
const SEARCHES: &[&str] = &["size", "choose"];
/// Ends of the transport.
const ENDS: &[&str] = &["perf", "send", "recv", "server", "client"];
const LISTENS: &[&str] = &["perf", "recv", "server"];
/// Commands that had `--output`.
const WRITES: &[&str] = &[
    "plot",
    "htsim",
    "hpcc",
    "goal",
    "chakra",
    "msccl",
    "simai",
    "flows",
    "netflow",
    "pcap",
    "graphml",
    "links",
    "containerlab",
    "sndlib",
];

/// Former options and subcommands, and what replaced them in the commands that had them.
const RENAMED: &[Renamed] = &[
    renamed("--anew", "--force", RUNS),
    renamed("--checked", "--check-invariants", SIMULATES),
    renamed("--over", "--vary", SWEEPS),
    renamed("--try", "--vary", SEARCHES),
    renamed("--as-written", "--no-vary", SEARCHES),
    renamed("--least", "--minimize", SEARCHES),
    renamed("--steps", "--steps-per-doubling", SEARCHES),
    renamed("--cell", "--metric", &["score", "choose"]),
    renamed("--only", "--filter", &["score"]),
    renamed("--against", "--baseline", &["score", "plot"]),
    renamed("--newcomer", "--not-in-baseline", &["score", "plot"]),
    renamed("--write", "--save-baseline", &["score"]),
    renamed("--share", "--slowest", &["explain"]),
    renamed("--page", "--markdown", &["compare"]),
    renamed("--page", "--results", &["reproduce"]),
    renamed("--markdown", "--results", &["reproduce"]),
    renamed("--record", "--update-verdicts", &["reproduce"]),
    renamed("--on", "--command-host", &["emulate"]),
    renamed("--with", "--background", &["emulate"]),
    renamed("--burst", "--gso-max-size", &["emulate"]),
    renamed("--one-law", "--coupled", ENDS),
    renamed("--packet", "--max-udp-payload", ENDS),
    renamed("--idle", "--idle-timeout", ENDS),
    renamed("--window", "--stream-window", ENDS),
    renamed("--keep", "--reusable", &["perf", "recv"]),
    renamed("--valid", "--ticket-lifetime", LISTENS),
    renamed("--address", "--advertise", LISTENS),
    renamed("--allow", "--allow-key", &["perf", "recv"]),
    renamed("--allow-caller", "--allow-key", &["server"]),
    renamed("--replace", "--overwrite", &["recv"]),
    renamed("--hold", "--foreground", &["load"]),
    renamed("--as", "--name", &["load"]),
    renamed("--default", "--set-default", &["load"]),
    renamed("--eight-lanes-from", "--eight-lane-min", &["sonic"]),
    renamed("--marks-apart", "--separate-wred", &["sonic"]),
    renamed("--output", "--out", WRITES),
    renamed("near", "client", &["proxy"]),
    renamed("far", "server", &["proxy"]),
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
            .map_err(|error| suggest_replacement(&Self::command(), &words, error))?;
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

/// Returns the subcommand to which a word of a command line belongs: words before it select the subcommand.
fn subcommand_of<'a>(command: &'a clap::Command, words: &[OsString], word: &str) -> &'a clap::Command {
    let words = words.iter().skip(1).filter_map(|word| word.to_str());
    let before = words.take_while(|it| it.split('=').next() != Some(word));
    before.fold(command, |at, word| at.find_subcommand(word).unwrap_or(at))
}

/// Returns whether [`Renamed::commands`] has this command by this name.
fn is_named(root: &clap::Command, command: &clap::Command, name: &str) -> bool {
    match root.find_subcommand(name) {
        Some(of_root) => std::ptr::eq(of_root, command),
        None => command.get_name() == name,
    }
}

/// Adds the new name to the error for a word that was renamed, if its subcommand had the old one.
fn suggest_replacement(command: &clap::Command, words: &[OsString], mut error: clap::Error) -> clap::Error {
    let kind = match error.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return error };
    let word = word.split('=').next().unwrap_or_default();
    let subcommand = subcommand_of(command, words, word);
    let has_it = |it: &&Renamed| it.commands.iter().any(|name| is_named(command, subcommand, name));
    if let Some(Renamed { new, .. }) = RENAMED.iter().filter(|it| it.old == word).find(has_it) {
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

    use super::{Cli, GROUPS, RENAMED, Renamed, is_named};

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
        // Other commands never had it, also some that have the new one, or it is before the command.
        for line in [
            "narrows laws --page x",
            "narrows clocks run --checked",
            "narrows run a.toml --keep",
            "narrows export near",
            "narrows run a.toml --output out",
            "narrows tune a.toml --least 'p99(slowdown)'",
            "narrows size a.toml --over stop=1ms,2ms",
            "narrows --checked run a.toml",
            "narrows --keep recv .",
            "narrows far proxy",
        ] {
            assert!(!error_text(line).contains("renamed"), "{line}");
        }
    }

    /// Every command that had an old word has the new one, and the old one no more.
    #[test]
    fn every_replacement_belongs_to_its_commands() {
        fn commands<'a>(command: &'a clap::Command, into: &mut Vec<&'a clap::Command>) {
            into.push(command);
            command.get_subcommands().for_each(|command| commands(command, into));
        }
        let accepts = |command: &clap::Command, word: &str| match word.strip_prefix("--") {
            Some(long) => command.get_arguments().any(|arg| arg.get_long() == Some(long)),
            None => command.find_subcommand(word).is_some(),
        };
        let root = Cli::command();
        let mut all = Vec::new();
        commands(&root, &mut all);
        for Renamed { old, new, commands } in RENAMED {
            for name in *commands {
                let known: Vec<_> = all.iter().filter(|command| is_named(&root, command, name)).collect();
                let [command] = known[..] else { panic!("{} commands are called {name}", known.len()) };
                assert!(accepts(command, new) && !accepts(command, old), "{name}: {old} was renamed to {new}");
            }
        }
    }
}
