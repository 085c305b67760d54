//! Programs in the hosts' namespaces: servers in the background, and the command that is measured.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use emulator::{HostNamespaces, Programs};
use fabric::{HostId, Network};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::args::EmulateArgs;
use crate::exit::{CommandFailure, print_stderr};
use crate::interrupt::interrupted;
use study::Stopwatch;

/// The maximum time to wait until a server listens. A server that listens on no TCP port costs this long.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(1);

/// The time that programs have to end after a signal.
const TERMINATION_GRACE: Duration = Duration::from_secs(2);

/// Runs a command, and next to it a process that ends the whole group when the other end of standard input is closed: a
/// process that is killed drops nothing.
const SUPERVISED: &str = r#"exec 3<&0 </dev/null; { read -r _ <&3; kill -s KILL 0; } & exec 3<&-; eval "$1""#;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A host by its name, or its number.
pub(super) fn host(network: &Network, name: &str) -> Result<HostId, CommandFailure> {
    let names: Vec<&str> = network.hosts().iter().map(|node| network.nodes()[node.index()].name.as_str()).collect();
    let number = name.parse::<usize>().ok().filter(|&number| number < names.len());
    let index = names.iter().position(|known| *known == name).or(number);
    let unknown = || CommandFailure::unknown(&format!("the network has no host `{name}`"), name, &names);
    index.map(|host| HostId(host as u32)).ok_or_else(unknown)
}

/// The command as it was given.
pub(super) fn line(args: &EmulateArgs) -> String {
    let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// The servers and the command of a run.
pub(super) struct RunPrograms<'a> {
    pub(super) network: &'a Network,
    pub(super) args: &'a EmulateArgs,
}

impl<'a> Programs for RunPrograms<'a> {
    type Error = CommandFailure;
    type Background = Vec<Server<'a>>;

    /// Starts the servers.
    fn prepare(&self, hosts: &HostNamespaces) -> Result<Vec<Server<'a>>, CommandFailure> {
        let mut servers = Vec::new();
        for (name, command) in &self.args.background {
            let mut shell = hosts.command(host(self.network, name)?, "sh")?;
            shell.args(["-c", SUPERVISED, "sh", command]).stdin(Stdio::piped()).stdout(Stdio::null());
            let mut server = Server::start(&mut shell, command)?;
            server.wait_for_listener()?;
            servers.push(server);
        }
        Ok(servers)
    }

    /// Runs the command.
    fn work(&self, hosts: &HostNamespaces) -> Result<(), CommandFailure> {
        let args = self.args;
        let [program, rest @ ..] = &args.command[..] else { return Ok(()) };
        let command_host = args.command_host.as_ref().map_or(Ok(HostId(0)), |name| host(self.network, name))?;
        let mut command = hosts.command(command_host, program)?;
        command.args(rest);
        if args.json {
            // Standard output is the summary's.
            command.stdout(std::io::stderr());
        }
        let status = run_to_completion(&mut command, program)?;
        if interrupted() {
            return Err(CommandFailure::Interrupted(String::new()));
        }
        if status.success() {
            return Ok(());
        }
        Err(CommandFailure::Run(anyhow::anyhow!("the command `{}` failed: {status}", line(args))))
    }
}

/// Runs a program until it ends. An interrupt reaches it, too: then it has [`TERMINATION_GRACE`] before it is killed.
fn run_to_completion(command: &mut Command, program: &OsStr) -> Result<ExitStatus, CommandFailure> {
    let failed = |error| CommandFailure::Input(format!("error: cannot run `{}`: {error}", program.display()));
    let mut child = command.spawn().map_err(failed)?;
    let mut interrupt_clock: Option<Stopwatch> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if interrupted() {
            let clock = interrupt_clock.get_or_insert_with(Stopwatch::start);
            if clock.elapsed() > TERMINATION_GRACE {
                // It ignores the interrupt.
                let _ = child.kill();
            }
            if clock.elapsed() > 2 * TERMINATION_GRACE {
                let program = program.display();
                return Err(CommandFailure::Run(anyhow::anyhow!(
                    "the command `{program}` does not end, although it was killed"
                )));
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// A program in the background with all processes that it starts; ended when dropped, or when this process ends, which a
/// watcher detects by the end of its standard input.
pub(super) struct Server<'a> {
    child: Child,
    command: &'a str,
}

impl<'a> Server<'a> {
    fn start(shell: &mut Command, command: &'a str) -> Result<Self, CommandFailure> {
        let child = shell.process_group(0).spawn();
        let child = child.map_err(|error| CommandFailure::Input(format!("error: cannot run `{command}`: {error}")))?;
        Ok(Self { child, command })
    }

    fn wait_for_listener(&mut self) -> Result<(), CommandFailure> {
        let clock = Stopwatch::start();
        while clock.elapsed() < LISTEN_TIMEOUT && !interrupted() {
            if let Ok(Some(status)) = self.child.try_wait() {
                let command = self.command;
                // Some servers put themselves into the background.
                return if status.success() {
                    Ok(())
                } else {
                    Err(CommandFailure::Run(anyhow::anyhow!("the command `{command}` failed: {status}")))
                };
            }
            if self.listens() {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Returns whether any program listens on a TCP port of the server's namespace.
    fn listens(&self) -> bool {
        let table = |name| std::fs::read_to_string(format!("/proc/{}/net/{name}", self.child.id())).unwrap_or_default();
        // The fourth column is the state; 0A is listening. The child is in its namespace once it has become the shell.
        let listening = |line: &str| line.split_whitespace().nth(3) == Some("0A");
        let own_netns = std::fs::read_link("/proc/self/ns/net").ok();
        let child_netns = std::fs::read_link(format!("/proc/{}/ns/net", self.child.id())).ok();
        child_netns.is_some()
            && own_netns != child_netns
            && ["tcp", "tcp6"].into_iter().any(|name| table(name).lines().any(listening))
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        let group = Pid::from_raw(self.child.id().cast_signed());
        let clock = Stopwatch::start();
        let mut signal = Signal::SIGTERM;
        // Until no process of the group is left. The ended child must be reaped, or it would stay in the group.
        while killpg(group, signal).is_ok() && clock.elapsed() < 2 * TERMINATION_GRACE {
            let _ = self.child.try_wait();
            if clock.elapsed() > TERMINATION_GRACE {
                signal = Signal::SIGKILL;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // A process that the kernel holds in a call does not end by a signal. Without it there is nothing to wait for.
        if matches!(self.child.try_wait(), Ok(None)) {
            print_stderr(&format!("warning: the command `{}` does not end, although it was killed", self.command));
        }
    }
}
