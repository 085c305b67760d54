//! Commands that do not belong together, and what TLS's secrets are: what all commands of the transport share in their handshake.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{Ran, Scratch, code};

fn command(scratch: &Scratch, line: &str) -> Command {
    let mut command = scratch.command(line.split_whitespace());
    command.env("XDG_STATE_HOME", scratch.path("state"));
    command
}

/// A listener that has printed its ticket.
struct Listener {
    child: Child,
    ticket: String,
}

impl Listener {
    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { child, ticket: line.trim().to_owned() }
    }

    /// Ends it as Ctrl-C does. Gives its exit code and what it said.
    fn interrupted(mut self) -> (i32, String) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT);
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(!said.contains("panicked"), "{said}");
        (code(self.child.wait().unwrap()), said)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A listener's command line, what it is called, and the command that calls it.
const LISTENERS: [(&str, &str, &str); 3] = [
    ("perf --listen 127.0.0.1:0 --idle 2", "narrows perf --listen", "narrows perf"),
    ("recv in --listen 127.0.0.1:0 --idle 2", "narrows recv", "narrows send"),
    ("proxy far --listen 127.0.0.1:0 --idle 2", "narrows proxy far", "narrows proxy near"),
];

/// A caller's command line, and the right listener.
const CALLERS: [(&str, &str); 3] = [
    ("perf @ticket --bytes 1k --idle 2", "narrows perf --listen"),
    ("send file @ticket --idle 2", "narrows recv"),
    ("proxy near @ticket --socks 0 --idle 2", "narrows proxy far"),
];

/// Each of the six wrong pairs: both ends say what was asked for and what is there, nothing is sent, and the ticket stays good.
#[test]
fn the_wrong_command_is_refused_at_both_ends() {
    for (listening, listener, caller) in LISTENERS {
        let scratch = Scratch::new("services");
        scratch.write("file", "contents");
        let running = Listener::of(&mut command(&scratch, listening));
        scratch.write("ticket", &running.ticket);
        let wrong = CALLERS.iter().filter(|(_, right)| *right != listener);
        for (calling, right) in wrong.clone() {
            let ran = Ran::new(calling, &command(&scratch, calling).output().unwrap());
            let said = format!("is `{listener}`, not `{right}`: call it with `{caller}`");
            ran.fails(1, &["error: the listener at 127.0.0.1:", &said]);
        }
        // One caller may come in, and none has.
        if listener == "narrows recv" {
            Ran::new("send", &command(&scratch, CALLERS[1].0).output().unwrap()).ok();
            assert_eq!(scratch.read("in/file"), "contents");
        } else {
            assert!(!scratch.path("in").exists());
        }
        let (_, said) = running.interrupted();
        for (_, right) in wrong {
            let words = format!("asks for `{right}`, and this is `{listener}`");
            assert!(said.contains("refused a caller: it is `") && said.contains(&words), "no `{words}` in {said}");
        }
    }
}

/// The lines of a file of secrets, without what names the connection: label, random of the client, secret.
fn secrets(scratch: &Scratch, name: &str) -> BTreeSet<Vec<String>> {
    scratch.read(name).lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// Both ends write the same secrets, where the environment asks for them, and say so.
#[test]
fn secrets_are_written_where_the_environment_says() {
    for (at, (listening, ..)) in LISTENERS.iter().enumerate() {
        let scratch = Scratch::new("secrets");
        scratch.write("file", "contents");
        let running = Listener::of(command(&scratch, listening).env("SSLKEYLOGFILE", "listener.keys"));
        scratch.write("ticket", &running.ticket);
        let warning =
            "warning: TLS's secrets go to `caller.keys`, as SSLKEYLOGFILE says: who has them can read all that crosses";
        let mut caller = command(&scratch, CALLERS[at].0);
        caller.env("SSLKEYLOGFILE", "caller.keys");
        if CALLERS[at].0.starts_with("proxy") {
            let mut near = caller.stderr(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(near.stderr.take().unwrap()).lines().map_while(Result::ok);
            assert_eq!(lines.next().as_deref(), Some(warning));
            let linked = lines.find(|line| line.contains("connected to the far end"));
            kill(Pid::from_raw(near.id() as i32), Signal::SIGINT).unwrap();
            assert!(linked.is_some());
            near.wait().unwrap();
        } else {
            Ran::new("caller", &caller.output().unwrap()).ok().says(&[warning]);
        }
        let (_, said) = running.interrupted();
        assert!(said.contains("warning: TLS's secrets go to `listener.keys`"), "{said}");
        let caller = secrets(&scratch, "caller.keys");
        assert_eq!(caller, secrets(&scratch, "listener.keys"));
        let labels: BTreeSet<&str> = caller.iter().map(|line| line[0].as_str()).collect();
        let expected = [
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "CLIENT_TRAFFIC_SECRET_0",
            "EXPORTER_SECRET",
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            "SERVER_TRAFFIC_SECRET_0",
        ];
        assert_eq!(labels, expected.into());
        let is_hex = |text: &str, len| text.len() == len && text.chars().all(|it| it.is_ascii_hexdigit());
        for line in &caller {
            let [_, random, secret] = &line[..] else { panic!("{line:?}") };
            assert!(is_hex(random, 64) && (is_hex(secret, 64) || is_hex(secret, 96)), "{line:?}");
        }
        let mode = scratch.path("caller.keys").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn secrets_that_cannot_be_written_are_an_error() {
    let scratch = Scratch::new("secrets-nowhere");
    scratch.write("file", "contents");
    for line in LISTENERS.iter().map(|it| it.0).chain(CALLERS.iter().map(|it| it.0)) {
        let line = line.replace("@ticket", "127.0.0.1 --insecure");
        let output = command(&scratch, &line).env("SSLKEYLOGFILE", "none/keys").output().unwrap();
        let parts = ["error: SSLKEYLOGFILE: cannot write `none/keys`: No such file", "help: name a file"];
        Ran::new(&line, &output).fails(2, &parts);
    }
    // A variable that is empty asks for nothing.
    let output = command(&scratch, "perf 127.0.0.1 --insecure --idle 1").env("SSLKEYLOGFILE", "").output().unwrap();
    let ran = Ran::new("perf", &output).fails(1, &["nothing answers"]);
    assert!(!ran.err.contains("secrets"), "{ran}");
}
