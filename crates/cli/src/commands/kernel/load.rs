//! `narrows kernel load` and `unload`.

use std::path::Path;
use std::time::Duration;

use kernel::attach_scope::{AttachScope, AttachedScope};
use kernel::{KernelLaw, Loaded, Programs, Settings, pins};
use scenario::argument;
use units::Span;

use crate::args::{KernelLoadArgs, KernelUnloadArgs};
use crate::exit::{CommandFailure, print, print_stderr};
use crate::interrupt::{interrupted, listen};
use crate::named_file::{OutputKind, write_into};

pub(crate) fn load(args: &KernelLoadArgs) -> Result<(), CommandFailure> {
    let row = row(&args.law)?;
    let settings = settings(row, args)?;
    let scopes = scopes(args)?;
    // The kernel may refuse the program for cgroups and take the law.
    let programs = if args.cgroup.is_empty() { Programs::Law } else { Programs::LawAndCgroup };
    let (name, title) = (args.name.as_deref(), row.kind.info().title);
    if args.foreground {
        // A law that is only attached in the foreground needs no pins.
        if pins::pinned().unwrap_or_default().iter().any(|pinned| pinned.row == row) {
            return Err(kernel::Error::AlreadyLoaded { law: row.name.to_owned() }.into());
        }
        return run_in_foreground(&Loaded::load(row, &settings, name, programs)?, &scopes, title);
    }
    let pins::PinnedLaw { tcp_name: name, mounted } = pins::load(row, &settings, name, programs, &scopes)?;
    if mounted {
        print_stderr("note: the BPF file system was not mounted; it is now, at /sys/fs/bpf");
    }
    let mut text = format!(
        "{title} is in the kernel as `{name}` and stays there when this command ends.\nremove it: narrows kernel unload {}",
        row.name
    );
    text.push_str(&usage_text(&scopes, &name));
    print(&text)
}

/// Returns the present users of the law, and the way to use it.
fn usage_text(scopes: &[AttachScope], name: &str) -> String {
    if scopes.is_empty() {
        return format!(
            "\nno socket uses it yet: name it with TCP_CONGESTION (iperf3 -C {name}), or load it with --set-default, --netns, --route or --cgroup\n\
             both ends need it: a listener that runs another law refuses ECN"
        );
    }
    let scopes: Vec<String> = scopes.iter().map(ToString::to_string).collect();
    format!(
        "\nused by new connections of: {}\nboth ends need it: a listener that runs another law refuses ECN",
        scopes.join(", ")
    )
}

/// Keeps the law loaded while this command runs, and restores all scopes at the end.
fn run_in_foreground(loaded: &Loaded, scopes: &[AttachScope], title: &str) -> Result<(), CommandFailure> {
    listen();
    let mut attached = AttachedLaw { name: loaded.tcp_name().to_owned(), scopes: Vec::new() };
    let mut links = Vec::new();
    for scope in scopes {
        if let AttachScope::Cgroup(path) = scope {
            links.push(loaded.choose_in_cgroup(path)?);
        }
        let scope = AttachedScope::find(scope)?;
        scope.attach(loaded.tcp_name())?;
        attached.scopes.push(scope);
    }
    let used = usage_text(scopes, loaded.tcp_name());
    print(&format!("{title} is in the kernel as `{}` until Ctrl-C.{used}", loaded.tcp_name()))?;
    while !interrupted() {
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

struct AttachedLaw {
    name: String,
    scopes: Vec<AttachedScope>,
}

impl Drop for AttachedLaw {
    fn drop(&mut self) {
        for failure in self.scopes.iter().filter_map(|scope| scope.restore(&self.name)) {
            print_stderr(&format!("warning: not put back: {failure}"));
        }
    }
}

pub(crate) fn unload(args: &KernelUnloadArgs) -> Result<(), CommandFailure> {
    let pinned = if args.all {
        pins::pinned()?
    } else {
        args.laws
            .iter()
            .map(|law| row(law).and_then(|row| Ok(pins::Pinned::of_name(row.name)?)))
            .collect::<Result<_, _>>()?
    };
    // A failure or complaint of one law keeps no other law in the kernel.
    let mut outcome = Ok(());
    for law in pinned {
        let title = law.row.kind.info().title;
        let result = law.remove().map_err(CommandFailure::from).and_then(|failures| {
            for failure in failures {
                print_stderr(&format!("warning: not put back: {failure}"));
            }
            print(&format!("{title} is out of the kernel; sockets that run it keep it until they close"))
        });
        outcome = outcome.and(result);
    }
    outcome
}

pub(crate) fn export(directory: &Path) -> Result<(), CommandFailure> {
    let mut files: Vec<(String, OutputKind, Vec<u8>)> =
        kernel::objects().map(|(name, bytes)| (name, OutputKind::Object, bytes.to_vec())).collect();
    let sources = OutputKind::Sources.sealed(format!("{}\n", kernel::BUILD));
    files.push(("sources".to_owned(), OutputKind::Sources, sources.into_bytes()));
    write_into(directory, &files)?;
    let names: Vec<String> = kernel::objects().map(|(name, _)| name).collect();
    print(&format!("{}: {}", directory.display(), names.join(", ")))
}

/// The law of that name.
pub(crate) fn row(name: &str) -> Result<&'static KernelLaw, CommandFailure> {
    let known: Vec<&str> = kernel::rows().iter().map(|row| row.name).collect();
    let message = if laws::catalog::LawKind::from_name(name).is_some() {
        format!("`{name}` is not built for the kernel")
    } else {
        format!("no law `{name}`")
    };
    KernelLaw::of_name(name).ok_or_else(|| CommandFailure::unknown(&message, name, &known))
}

fn settings(row: &KernelLaw, args: &KernelLoadArgs) -> Result<Settings, CommandFailure> {
    let base_rtt = args.base_rtt.as_deref().map(|text| round_trip("--base-rtt", text)).transpose()?;
    let params = args.params.iter().map(|text| argument::law_param("--param", row.kind, text));
    Ok(Settings {
        line_rate: argument::rate("--line-rate", &args.line_rate)?,
        base_rtt,
        intra_rtt: round_trip("--intra-rtt", &args.intra_rtt)?,
        params: params.collect::<Result<_, _>>()?,
    })
}

/// A base round trip that flows in the kernel can have.
fn round_trip(option: &str, text: &str) -> Result<Span, CommandFailure> {
    let span = argument::span(option, text)?;
    if (Span::from_us(1)..=Span::from_s(10)).contains(&span) {
        return Ok(span);
    }
    Err(CommandFailure::Input(format!(
        "error: {option} {text}: expected 1us to 10s; the kernel measures round trips in whole microseconds, and laws \
         scale with them"
    )))
}

/// The scopes that the options name, one line each where they are noted.
fn scopes(args: &KernelLoadArgs) -> Result<Vec<AttachScope>, CommandFailure> {
    if let Some(prefix) = args.route.iter().find(|prefix| prefix.split_whitespace().ne([prefix.as_str()])) {
        return Err(CommandFailure::Input(format!(
            "error: --route {prefix:?}: expected a prefix alone, as in 10.0.0.0/8 or fd00::/8, of the main table"
        )));
    }
    if let Some(name) = args.netns.iter().find(|name| name.contains(char::is_control)) {
        return Err(CommandFailure::Input(format!(
            "error: --netns {name:?}: expected a name or a path without control characters"
        )));
    }
    // The absolute path is recorded: the process that unloads may have another working directory.
    let absolute = |name: &String| {
        let path = std::path::absolute(name).ok().filter(|_| name.contains('/'));
        path.map_or_else(|| name.clone(), |path| path.display().to_string())
    };
    let default = args.set_default.then_some(AttachScope::Default);
    let netns = args.netns.iter().map(absolute).map(AttachScope::Netns);
    let route = args.route.iter().cloned().map(AttachScope::Route);
    let cgroup = args.cgroup.iter().cloned().map(AttachScope::Cgroup);
    Ok(default.into_iter().chain(netns).chain(route).chain(cgroup).collect())
}
