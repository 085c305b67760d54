//! Behaviour that all commands of the transport share: mismatched commands, TLS secrets, and logs.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testing::{Bounded, Process};

use crate::support::{ProgramRun, Scratch, code, wait_for};

fn command(scratch: &Scratch, line: &str) -> Command {
    let mut command = scratch.command(line.split_whitespace());
    command.env("XDG_STATE_HOME", scratch.path("state"));
    command
}

/// A listener that has printed its ticket.
struct Listener {
    child: Process,
    ticket: String,
}

impl Listener {
    fn of(command: &mut Command) -> Self {
        let child = command.piped();
        let ticket = child.line().trim().to_owned();
        Self { child, ticket }
    }

    /// Ends it as Ctrl-C does. Returns its exit code and its output.
    fn interrupted(mut self) -> (i32, String) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT);
        let output = self.child.output();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        (code(output.status), stderr)
    }
}

/// A listener's command line, its name, and the client's command.
const LISTENERS: [(&str, &str, &str); 3] = [
    ("perf --listen 127.0.0.1:0 --idle-timeout 2", "narrows perf --listen", "narrows perf"),
    ("recv in --listen 127.0.0.1:0 --idle-timeout 2", "narrows recv", "narrows send"),
    ("proxy server --listen 127.0.0.1:0 --idle-timeout 2", "narrows proxy server", "narrows proxy client"),
];

/// A client's command line, and the right listener.
const CLIENTS: [(&str, &str); 3] = [
    ("perf @ticket --bytes 1k --idle-timeout 2", "narrows perf --listen"),
    ("send file @ticket --idle-timeout 2", "narrows recv"),
    ("proxy client @ticket --socks 0 --idle-timeout 2", "narrows proxy server"),
];

/// Each of the six wrong pairs: both ends report the requested service and the one that is offered, nothing is sent,
/// and the ticket stays good.
#[test]
fn mismatched_commands_fail_at_both_ends() {
    for (listening, listener, client) in LISTENERS {
        let scratch = Scratch::new("services");
        scratch.write("file", "contents");
        let running = Listener::of(&mut command(&scratch, listening));
        scratch.write("ticket", &running.ticket);
        let wrong = CLIENTS.iter().filter(|(_, right)| *right != listener);
        for (calling, right) in wrong.clone() {
            let ran = ProgramRun::new(calling, &command(&scratch, calling).finish());
            let expected = format!("is `{listener}`, not `{right}`: call it with `{client}`");
            ran.fails(1, &["error: the listener at 127.0.0.1:", &expected]);
        }
        // One client is admitted, and none has connected.
        if listener == "narrows recv" {
            ProgramRun::new("send", &command(&scratch, CLIENTS[1].0).finish()).ok();
            assert_eq!(scratch.read("in/file"), "contents");
        } else {
            assert!(!scratch.path("in").exists());
        }
        let (_, stderr) = running.interrupted();
        for (_, right) in wrong {
            let words = format!("asks for `{right}`, and this is `{listener}`");
            assert!(
                stderr.contains("refused a client: it is `") && stderr.contains(&words),
                "no `{words}` in {stderr}"
            );
        }
    }
}

/// The lines of a file of secrets, without the connection's name: label, random of the client, secret.
fn secrets(scratch: &Scratch, name: &str) -> BTreeSet<Vec<String>> {
    scratch.read(name).lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

/// Both ends write the same secrets to the file named by SSLKEYLOGFILE, and print a note.
#[test]
fn tls_secrets_follow_sslkeylogfile() {
    for (at, (listening, ..)) in LISTENERS.iter().enumerate() {
        let scratch = Scratch::new("secrets");
        scratch.write("file", "contents");
        let running = Listener::of(command(&scratch, listening).env("SSLKEYLOGFILE", "listener.keys"));
        scratch.write("ticket", &running.ticket);
        let warning = "warning: TLS secrets are written to `client.keys`, as SSLKEYLOGFILE requests: anyone with them can decrypt all traffic";
        let mut client = command(&scratch, CLIENTS[at].0);
        client.env("SSLKEYLOGFILE", "client.keys");
        if CLIENTS[at].0.starts_with("proxy") {
            let mut client_process = client.stderr(Stdio::piped()).start();
            assert_eq!(client_process.says(""), warning);
            client_process.says("connected to the proxy server");
            kill(Pid::from_raw(client_process.id() as i32), Signal::SIGINT).unwrap();
            client_process.status();
        } else {
            ProgramRun::new("client", &client.finish()).ok().reports(&[warning]);
        }
        let (_, stderr) = running.interrupted();
        assert!(stderr.contains("TLS") && stderr.contains("`listener.keys`"), "{stderr}");
        let client = secrets(&scratch, "client.keys");
        assert_eq!(client, secrets(&scratch, "listener.keys"));
        let labels: BTreeSet<&str> = client.iter().map(|line| line[0].as_str()).collect();
        let expected = [
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            "CLIENT_TRAFFIC_SECRET_0",
            "EXPORTER_SECRET",
            "SERVER_HANDSHAKE_TRAFFIC_SECRET",
            "SERVER_TRAFFIC_SECRET_0",
        ];
        assert_eq!(labels, expected.into());
        let is_hex = |text: &str, len| text.len() == len && text.chars().all(|it| it.is_ascii_hexdigit());
        for line in &client {
            let [_, random, secret] = &line[..] else { panic!("{line:?}") };
            assert!(is_hex(random, 64) && (is_hex(secret, 64) || is_hex(secret, 96)), "{line:?}");
        }
        let mode = scratch.path("client.keys").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn secrets_that_cannot_be_written_are_an_error() {
    let scratch = Scratch::new("secrets-nowhere");
    scratch.write("file", "contents");
    for line in LISTENERS.iter().map(|it| it.0).chain(CLIENTS.iter().map(|it| it.0)) {
        let line = line.replace("@ticket", "127.0.0.1 --insecure");
        for (path, reason) in
            [("none/keys", "No such file"), ("/dev/zero", "it is a character device; expected a regular file")]
        {
            let output = command(&scratch, &line).env("SSLKEYLOGFILE", path).finish();
            let reason = format!("error: SSLKEYLOGFILE: cannot write `{path}`: {reason}");
            ProgramRun::new(&line, &output).fails(2, &[&reason, "help: name a file"]);
        }
    }
    // An empty variable has no effect.
    let output = command(&scratch, "perf 127.0.0.1 --insecure --idle-timeout 1").env("SSLKEYLOGFILE", "").finish();
    let ran = ProgramRun::new("perf", &output).fails(1, &["nothing answers"]);
    assert!(!ran.err.contains("secrets"), "{ran}");
}

/// Returns the records of the only file in a directory with this name ending; the last one may be cut.
fn log(scratch: &Scratch, directory: &str, end: &str) -> Vec<serde_json::Value> {
    let files = scratch.files(directory);
    let mut named = files.iter().filter(|name| name.ends_with(&format!("-{end}.sqlog")));
    let (Some(name), None) = (named.next(), named.next()) else { panic!("{files:?}") };
    let text = scratch.read(&format!("{directory}/{name}"));
    let complete = text.split('\u{1e}').filter(|piece| piece.ends_with('\n'));
    complete.map(|piece| serde_json::from_str(piece).unwrap_or_else(|error| panic!("{error}: {piece}"))).collect()
}

fn count(log: &[serde_json::Value], name: &str) -> usize {
    log.iter().filter(|event| event["name"] == name).count()
}

/// The kind and number of each packet in these events.
fn packets(log: &[serde_json::Value], name: &str) -> BTreeSet<String> {
    log.iter().filter(|event| event["name"] == name).map(|event| event["data"]["header"].to_string()).collect()
}

/// All pairs of commands write logs at both ends, and only clients that were admitted leave one at a listener.
#[test]
fn connections_are_logged_at_both_ends() {
    for (at, (listening, ..)) in LISTENERS.iter().enumerate() {
        let scratch = Scratch::new("qlog");
        scratch.write("file", &"contents".repeat(10_000));
        let running = Listener::of(&mut command(&scratch, &format!("{listening} --qlog logs/there")));
        scratch.write("ticket", &running.ticket);
        // A stranger that is not admitted.
        let stranger = command(&scratch, CLIENTS[(at + 1) % 3].0).finish();
        assert_eq!(code(stranger.status), 1);
        let mut client = command(&scratch, &format!("{} --qlog logs/here", CLIENTS[at].0));
        if CLIENTS[at].0.starts_with("proxy") {
            let mut client_process = client.stderr(Stdio::piped()).start();
            client_process.says("connected to the proxy server");
            kill(Pid::from_raw(client_process.id() as i32), Signal::SIGINT).unwrap();
            client_process.status();
        } else {
            ProgramRun::new("client", &client.finish()).ok();
        }
        running.interrupted();
        let (here, there) = (log(&scratch, "logs/here", "client"), log(&scratch, "logs/there", "server"));
        let id = |log: &[serde_json::Value]| log[0]["trace"]["common_fields"]["ODCID"].clone();
        assert_eq!(id(&here), id(&there));
        assert!(id(&here).is_string());
        for log in [&here, &there] {
            for name in [
                "connectivity:connection_started",
                "connectivity:connection_closed",
                "transport:packet_sent",
                "transport:packet_received",
                "recovery:metrics_updated",
                "narrows:law_updated",
            ] {
                assert!(count(log, name) > 0, "{listening}: no {name}");
            }
        }
        // Bytes received at one end equal bytes sent at the other.
        for (from, to) in [(&here, &there), (&there, &here)] {
            let (sent, received) = (packets(from, "transport:packet_sent"), packets(to, "transport:packet_received"));
            let odd: Vec<_> = received.difference(&sent).collect();
            assert!(odd.is_empty() && received.len() > 3, "{listening}: {odd:?} were received but not sent");
        }
    }
}

/// The log of a process that was killed can be read up to its last complete record.
#[test]
fn killed_processes_leave_readable_logs() {
    let scratch = Scratch::new("qlog-killed");
    let mut running = Listener::of(&mut command(&scratch, "perf --listen 127.0.0.1:0 --idle-timeout 1 --qlog there"));
    scratch.write("ticket", &running.ticket);
    let mut client = command(&scratch, "perf @ticket --time 60 --idle-timeout 1 --qlog here");
    let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).start();
    for directory in ["here", "there"] {
        wait_for(&mut client, "a log is begun", || {
            scratch.path(directory).exists() && !scratch.files(directory).is_empty()
        });
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    for child in [&mut client, &mut running.child] {
        child.kill();
    }
    for (directory, end, data) in [("here", "client", "sent"), ("there", "server", "received")] {
        let log = log(&scratch, directory, end);
        assert!(count(&log, &format!("transport:packet_{data}")) > 10, "{directory}");
        assert_eq!(count(&log, "connectivity:connection_closed"), 0, "{directory}");
    }
}

#[test]
fn invalid_log_directories_are_errors() {
    let scratch = Scratch::new("qlog-nowhere");
    scratch.write("file", "contents");
    for line in LISTENERS.iter().map(|it| it.0).chain(CLIENTS.iter().map(|it| it.0)) {
        let line = format!("{} --qlog file", line.replace("@ticket", "127.0.0.1 --insecure"));
        let ran = ProgramRun::new(&line, &command(&scratch, &line).finish());
        ran.fails(2, &["--qlog", "`file`"]);
        assert_eq!(scratch.read("file"), "contents");
    }
}
