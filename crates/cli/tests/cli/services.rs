//! Commands that do not belong together.

use std::io::{BufRead, BufReader, Read};
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
