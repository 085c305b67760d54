//! `narrows send` and `narrows recv`: two processes of the program over this machine's loopback.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::secret::Secret;
use proto::ticket::Ticket;
use testing::{Bounded, Process};

use crate::support::{ProgramRun, Scratch, code, skipped, wait_for};

/// The chunk that is sent, checked and resumed at a time.
const CHUNK: u64 = 1 << 20;

fn command(scratch: &Scratch, line: &str) -> Command {
    let mut command = scratch.command(line.split_whitespace());
    command.env("XDG_STATE_HOME", scratch.path("state"));
    command
}

/// A receiver at a free port, and its ticket.
struct ReceiverProcess {
    child: Process,
    ticket: String,
}

impl ReceiverProcess {
    fn new(scratch: &Scratch, options: &str) -> Self {
        Self::with_idle(scratch, 1, options)
    }

    /// Starts a receiver with an idle timeout of `idle_s` seconds.
    fn with_idle(scratch: &Scratch, idle_s: u32, options: &str) -> Self {
        Self::of(&mut command(scratch, &format!("recv in --listen 127.0.0.1:0 --idle-timeout {idle_s} {options}")))
    }

    fn of(command: &mut Command) -> Self {
        let child = command.piped();
        let ticket = child.line().trim().to_owned();
        Self { child, ticket }
    }

    /// Waits until it ends. Returns its exit code and its output.
    fn ended(mut self) -> (i32, String) {
        let output = self.child.output();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        (code(output.status), stderr)
    }
}

fn send(scratch: &Scratch, paths: &str, receiver: &ReceiverProcess) -> ProgramRun {
    let line = format!("send {paths} --idle-timeout 1 {} --json", receiver.ticket);
    ProgramRun::new(&line, &command(scratch, &line).finish())
}

fn signal(child: &Process, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

fn number(ran: &ProgramRun, key: &str) -> u64 {
    ran.json()[key].as_u64().unwrap_or_else(|| panic!("no {key} in {ran}"))
}

fn data(len: u64) -> Vec<u8> {
    (0..len).map(|at| (at / 3 + at * 7 + at / CHUNK) as u8).collect()
}

fn write(scratch: &Scratch, name: &str, bytes: &[u8]) {
    let path = scratch.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// The files that are not whole yet, and their lengths.
fn partials(scratch: &Scratch) -> Vec<(PathBuf, u64)> {
    let entries = fs::read_dir(scratch.path("in/.narrows-partial")).into_iter().flatten().flatten();
    let files = entries.filter(|it| !it.file_name().to_string_lossy().ends_with(".sums"));
    files.filter_map(|it| Some((it.path(), it.metadata().ok()?.len()))).collect()
}

/// A name, its mode, its time and its contents.
type FileState = (PathBuf, u32, (i64, i64), Vec<u8>);

/// All entries below a directory, by name.
fn tree(root: &Path) -> Vec<FileState> {
    let (mut all, mut open) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(path) = open.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let contents = if metadata.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        let relative = path.strip_prefix(root).unwrap().to_path_buf();
        all.push((relative, metadata.mode(), (metadata.mtime(), metadata.mtime_nsec()), contents));
    }
    all.sort();
    all
}

#[test]
fn tree_is_transferred_and_ticket_is_single_use() {
    let scratch = Scratch::new("send");
    write(&scratch, "photos/large", &data(5 * CHUNK + 1));
    write(&scratch, "photos/sub/run", b"#!/bin/sh\n");
    write(&scratch, "photos/empty", b"");
    fs::create_dir(scratch.path("photos/none")).unwrap();
    symlink("../large", scratch.path("photos/sub/link")).unwrap();
    fs::set_permissions(scratch.path("photos/sub/run"), fs::Permissions::from_mode(0o750)).unwrap();
    write(&scratch, "notes", b"notes");
    let receiver = ReceiverProcess::new(&scratch, "");
    scratch.write("ticket", &format!("\n{}\nand more\n", receiver.ticket));
    let ticket = fs::File::open(scratch.path("ticket")).unwrap();
    let output = command(&scratch, "send photos notes -").stdin(ticket).finish();
    let ran = ProgramRun::new("send photos notes -", &output).ok();
    assert!(ran.out.is_empty() && ran.err.contains("sent 8 entries with 5.24 MB in "), "{ran}");
    let used = receiver.ticket.clone();
    let (code, stderr) = receiver.ended();
    assert!(code == 0 && stderr.contains("received 8 entries with 5.24 MB in "), "{stderr}");
    assert_eq!(tree(&scratch.path("in/photos")), tree(&scratch.path("photos")));
    assert_eq!(scratch.read("in/notes"), "notes");
    assert_eq!(fs::read_dir(scratch.path("in")).unwrap().count(), 2);

    // Once more: nothing moves. A receiver with another ticket does not take the first one.
    let receiver = ReceiverProcess::new(&scratch, "--reusable --json --threads 2");
    let other = ReceiverProcess { ticket: used, child: Command::new("true").start() };
    send(&scratch, "notes", &other).fails(1, &["127.0.0.1"]);
    let ran = send(&scratch, "photos notes", &receiver).ok();
    assert_eq!((number(&ran, "moved_bytes"), number(&ran, "had_bytes")), (0, 5 * CHUNK + 16));
    assert_eq!((number(&ran, "made"), number(&ran, "same")), (4, 4));
    let ran = send(&scratch, "photos", &receiver).ok();
    assert_eq!(number(&ran, "moved_bytes"), 0);
    signal(&receiver.child, Signal::SIGINT);
    let (code, stderr) = receiver.ended();
    assert!(code == 130 && stderr.contains("interrupted: the receiver ended"), "{stderr}");
}

/// The same command under a umask.
fn under_umask(umask: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "umask \"$1\"; shift; exec \"$@\"", "sh", umask])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(command.get_current_dir().unwrap_or(Path::new(".")));
    shell
}

/// Received entries are no more open than the user's own, unless that is asked for. A private folder stays private.
#[test]
fn received_modes_follow_the_umask() {
    let scratch = Scratch::new("modes");
    write(&scratch, "photos/sub/run", b"#!/bin/sh\n");
    let chmod = |name: &str, mode| fs::set_permissions(scratch.path(name), fs::Permissions::from_mode(mode)).unwrap();
    for name in ["photos", "photos/sub", "photos/sub/run"] {
        chmod(name, 0o777);
    }
    fs::create_dir_all(scratch.path("in/photos")).unwrap();
    chmod("in/photos", 0o700);
    let names = ["in/photos", "in/photos/sub", "in/photos/sub/run"];
    for (options, expected) in [("", [0o700, 0o750, 0o750]), ("--exact-modes", [0o777; 3])] {
        let line = format!("recv in --listen 127.0.0.1:0 --idle-timeout 1 {options}");
        let receiver = ReceiverProcess::of(&mut under_umask("027", &command(&scratch, &line)));
        send(&scratch, "photos", &receiver).ok();
        assert_eq!(receiver.ended().0, 0);
        let modes = names.map(|name| fs::metadata(scratch.path(name)).unwrap().mode() & 0o7777);
        assert_eq!(modes, expected, "{options}");
    }
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let scratch = Scratch::new("send-usage");
    write(&scratch, "a/x", b"");
    write(&scratch, "b/x", b"");
    let run = |line: &str| ProgramRun::new(line, &command(&scratch, line).finish());
    run("send a").fails(2, &["error: expected paths, then a ticket or an address"]);
    run("send").fails(2, &["PATH... TICKET|ADDR"]);
    run("send none @ticket").fails(2, &["error: cannot read `none`: No such file"]);
    run("send a/x b/x @ticket").fails(2, &["`b/x`", "`x`"]);
    run("send a @ticket").fails(2, &["cannot read `ticket`"]);
    run("send a 127.0.0.1").fails(2, &["does not authenticate the listener"]);
    run("recv no/such --listen 127.0.0.1:0").fails(2, &["error: cannot make `no/such`: No such file"]);
    run("recv a/x --listen 127.0.0.1:0").fails(2, &["`a/x`"]);
    run("recv unheard --listen 192.0.2.1:0").fails(2, &["192.0.2.1:0"]);
    run("recv unheard --ticket-lifetime soon").fails(2, &["error: --ticket-lifetime soon: expected 1 s to"]);
    run("recv unheard --allow-key x").fails(2, &["--allow-key x"]);
    run("recv unheard --advertise a:b:c").fails(2, &["--advertise", "`a:b:c`"]);
    let many: Vec<String> = (1..=9).map(|host| format!("--advertise 192.0.2.{host}")).collect();
    run(&format!("recv unheard {}", many.join(" "))).fails(2, &["--advertise"]);
    assert!(!scratch.path("unheard").exists(), "a directory where nobody can be heard");
    run("recv in --threads 0").fails(2, &["--threads", "64"]);
    let receiver = ReceiverProcess::new(&scratch, "");
    let expected = ["`in` is in use by process ", "one `narrows recv` at a time writes to a directory"];
    run("recv in --listen 127.0.0.1:0").fails(2, &expected);
    drop(receiver);
}

#[test]
fn differing_files_are_kept_and_fail_both_ends() {
    let scratch = Scratch::new("send-differs");
    write(&scratch, "file", b"new");
    write(&scratch, "other", b"other");
    write(&scratch, "in/file", b"mine");
    let receiver = ReceiverProcess::new(&scratch, "");
    let ran = send(&scratch, "file other", &receiver);
    let message = "`file` is not received: a file that differs is here; --overwrite at the receiver replaces it";
    assert_eq!((ran.code, number(&ran, "failed")), (1, 1), "{ran}");
    let ran = ran.reports(&[message, "error: 1 of what was to be sent is not there"]);
    assert_eq!(ran.json()["notes"][0], message);
    let (code, stderr) = receiver.ended();
    assert!(code == 1 && stderr.contains(message), "{stderr}");
    assert_eq!((scratch.read("in/file"), scratch.read("in/other")), ("mine".to_owned(), "other".to_owned()));
    let receiver = ReceiverProcess::new(&scratch, "--overwrite");
    send(&scratch, "file other", &receiver).ok();
    assert_eq!((receiver.ended().0, scratch.read("in/file")), (0, "new".to_owned()));
}

/// Enough for a kill to come in the midst of it.
const LONG: u64 = 400 * CHUNK + 3;

/// A transfer of one large file that is under way: a part of the file is already verified.
fn partial_transfer(scratch: &Scratch) -> (ReceiverProcess, Process) {
    partial_transfer_with(scratch, 1, "")
}

fn partial_transfer_with(scratch: &Scratch, idle_s: u32, options: &str) -> (ReceiverProcess, Process) {
    let mut receiver = ReceiverProcess::with_idle(scratch, idle_s, options);
    let sender = start_sender(scratch, &mut receiver, idle_s);
    (receiver, sender)
}

/// A sender of one large file, with a part of it already verified.
fn start_sender(scratch: &Scratch, receiver: &mut ReceiverProcess, idle_s: u32) -> Process {
    write(scratch, "file", &data(LONG));
    let line = format!("send file {} --idle-timeout {idle_s}", receiver.ticket);
    let mut sender = command(scratch, &line).piped();
    wait_for(&mut receiver.child, "8 chunks have come", || {
        assert!(sender.try_status().is_none(), "the sender ended");
        partials(scratch).iter().any(|(_, len)| *len >= 8 * CHUNK)
    });
    sender
}

/// Resumes it, and checks the retransmitted part: only the chunk during which it was killed.
#[track_caller]
fn resumes(scratch: &Scratch) {
    let [(_, len)] = partials(scratch)[..] else { panic!("{:?}", partials(scratch)) };
    assert!((8 * CHUNK..LONG).contains(&len), "{len}");
    assert!(!scratch.path("in/file").exists());
    let receiver = ReceiverProcess::new(scratch, "");
    let ran = send(scratch, "file", &receiver).ok();
    assert_eq!(receiver.ended().0, 0);
    let (had, moved) = (number(&ran, "had_bytes"), number(&ran, "moved_bytes"));
    assert!(had % CHUNK == 0 && had <= len && had + 2 * CHUNK > len, "{had} of {len}");
    assert_eq!(moved, LONG - had);
    assert!(fs::read(scratch.path("in/file")).unwrap() == data(LONG));
    assert!(!scratch.path("in/.narrows-partial").exists());
}

#[test]
fn killed_receiver_resumes() {
    let scratch = Scratch::new("send-kill-receiver");
    let (mut receiver, mut sender) = partial_transfer(&scratch);
    receiver.child.kill();
    let ran = ProgramRun::new("send", &sender.output());
    assert_eq!(ran.code, 1, "{ran}");
    ran.reports(&["give the same command again, with a new ticket if need be, and it goes on there"]);
    resumes(&scratch);
}

#[test]
fn killed_sender_resumes() {
    let scratch = Scratch::new("send-kill-sender");
    let (receiver, mut sender) = partial_transfer(&scratch);
    sender.kill();
    let (code, stderr) = receiver.ended();
    assert!(code == 1 && stderr.contains("when the sender sends the same again, it goes on there"), "{stderr}");
    resumes(&scratch);
}

/// The permissions of the files that a sender keeps for resuming.
fn stored_tickets(scratch: &Scratch, state: &str) -> Vec<u32> {
    let entries = fs::read_dir(scratch.path(state).join("narrows/resumption")).into_iter().flatten().flatten();
    entries.map(|entry| entry.metadata().unwrap().mode() & 0o7777).collect()
}

/// Sends as another user that has the ticket, but not the secret that its first sender keeps.
fn stranger_sends(scratch: &Scratch, paths: &str, receiver: &ReceiverProcess) -> ProgramRun {
    let line = format!("send {paths} {} --idle-timeout 1", receiver.ticket);
    let mut stranger = command(scratch, &line);
    stranger.env("XDG_STATE_HOME", scratch.path("stranger"));
    ProgramRun::new(&line, &stranger.finish())
}

fn stranger_is_refused(scratch: &Scratch, receiver: &ReceiverProcess) {
    let message = "does not take this ticket: it was used or has expired";
    stranger_sends(scratch, "file", receiver).fails(1, &[message]);
    assert_eq!(stored_tickets(scratch, "stranger"), [0; 0]);
}

/// A receiver that would wait for half a minute serves a reconnecting sender at once when the first connection is silent:
/// killed, or stopped, in which case it is notified. The used ticket alone admits no other sender.
#[test]
#[expect(clippy::disallowed_methods, reason = "how long the program takes is tested here")]
fn killed_sender_reconnects_with_its_used_ticket() {
    for stop_signal in [Signal::SIGKILL, Signal::SIGSTOP] {
        let scratch = Scratch::new("send-again");
        let (receiver, mut first) = partial_transfer_with(&scratch, 30, "");
        signal(&first, stop_signal);
        stranger_is_refused(&scratch, &receiver);
        assert_eq!(stored_tickets(&scratch, "state"), [0o600]);
        let line = format!("send file {} --json", receiver.ticket);
        let begun = Instant::now();
        let ran = ProgramRun::new(&line, &command(&scratch, &line).finish()).ok();
        let elapsed = begun.elapsed();
        // With the half minute it would take longer than that alone, and the transfer takes a few seconds at most.
        assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
        let (had, moved) = (number(&ran, "had_bytes"), number(&ran, "moved_bytes"));
        assert!(had >= 8 * CHUNK && had % CHUNK == 0 && moved == LONG - had, "{had} and {moved}");
        let (code, stderr) = receiver.ended();
        assert!(code == 0 && stderr.contains("it does not answer, and another call takes its place"), "{stderr}");
        assert!(fs::read(scratch.path("in/file")).unwrap() == data(LONG));
        assert_eq!(stored_tickets(&scratch, "state"), [0; 0]);
        if stop_signal == Signal::SIGSTOP {
            signal(&first, Signal::SIGCONT);
            let ran = ProgramRun::new("send", &first.output());
            ran.fails(1, &["the peer closed the connection: busy", "another call takes its place"]);
        }
    }
}

/// A sender with a reusable ticket replaces a silent sender. When that one reconnects, and its stored secret
/// is invalid by then, the ticket admits it.
#[test]
fn silent_sender_does_not_block_reusable_tickets() {
    let scratch = Scratch::new("send-again-keep");
    write(&scratch, "other", b"other");
    let (receiver, mut first) = partial_transfer_with(&scratch, 30, "--reusable");
    first.kill();
    for _ in 0..2 {
        stranger_sends(&scratch, "other", &receiver).ok();
    }
    assert_eq!(scratch.read("in/other"), "other");
    assert_eq!((stored_tickets(&scratch, "state").len(), stored_tickets(&scratch, "stranger").len()), (1, 0));
    let ran = send(&scratch, "file", &receiver).ok();
    assert!(number(&ran, "had_bytes") >= 8 * CHUNK, "{ran}");
    assert_eq!(stored_tickets(&scratch, "state"), [0; 0]);
}

/// A sender admitted by its key needs nothing else to reconnect. Another key does not do.
#[test]
fn sender_reconnects_by_its_allowed_key() {
    let scratch = Scratch::new("send-again-key");
    let ticket = |receiver: &ReceiverProcess| receiver.ticket.parse::<Ticket>().unwrap();
    // Both ends have the same key here, as it is one user's.
    let key = ticket(&ReceiverProcess::new(&scratch, "")).fingerprint;
    let mut receiver = ReceiverProcess::with_idle(&scratch, 30, &format!("--allow-key {key}"));
    receiver.ticket = format!("{} --fingerprint {key}", ticket(&receiver).addresses[0]);
    let mut first = start_sender(&scratch, &mut receiver, 30);
    first.kill();
    stranger_sends(&scratch, "file", &receiver).fails(1, &["does not admit this client"]);
    let ran = send(&scratch, "file", &receiver).ok();
    assert!(number(&ran, "had_bytes") >= 8 * CHUNK, "{ran}");
    assert_eq!((receiver.ended().0, stored_tickets(&scratch, "state")), (0, Vec::new()));
}

/// Files that are no resumption tickets, and one that the receiver refuses, stop no sender and no second call.
#[test]
fn invalid_resumption_tickets_are_skipped() {
    let scratch = Scratch::new("send-again-strays");
    let mut receiver = ReceiverProcess::with_idle(&scratch, 30, "");
    let ticket: Ticket = receiver.ticket.parse().unwrap();
    let id = files::hexadecimal(&ticket.id);
    let directory = scratch.path("state/narrows/resumption");
    fs::create_dir_all(directory.join(format!("{id}-directory"))).unwrap();
    let refused = Ticket { secret: Secret::new([7; 16]), ..ticket }.to_string();
    let strays = [
        ("empty", "", 0o600),
        ("garbage", "narrows1 or not", 0o600),
        ("open", &refused, 0o644),
        ("refused", &refused, 0o600),
    ];
    for (name, text, mode) in strays {
        let path = directory.join(format!("{id}-{name}"));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut first = start_sender(&scratch, &mut receiver, 30);
    first.kill();
    // Its own ticket is next to those that are of no use; the refused one is gone.
    assert_eq!(stored_tickets(&scratch, "state").len(), 5);
    assert!(!directory.join(format!("{id}-refused")).exists());
    let ran = send(&scratch, "file", &receiver).ok();
    assert!(number(&ran, "had_bytes") >= 8 * CHUNK, "{ran}");
    for name in ["directory", "empty", "garbage", "open"] {
        assert!(ran.err.contains(&format!("{id}-{name}` is of no use")), "{name}: {ran}");
    }
    assert_eq!((receiver.ended().0, stored_tickets(&scratch, "state").len()), (0, 4));
}

/// An active sender is not replaced, not even by its own user's second call.
#[test]
fn active_sender_is_not_replaced() {
    let scratch = Scratch::new("send-twice");
    let (receiver, mut first) = partial_transfer_with(&scratch, 30, "");
    send(&scratch, "file", &receiver).fails(1, &["another sender is served here: try again later"]);
    assert_eq!(stored_tickets(&scratch, "state").len(), 1);
    stranger_is_refused(&scratch, &receiver);
    assert!(first.try_status().is_none(), "the first sender has ended meanwhile");
    assert_eq!((code(first.output().status), receiver.ended().0, stored_tickets(&scratch, "state").len()), (0, 0, 0));
    assert!(fs::read(scratch.path("in/file")).unwrap() == data(LONG));
}

#[test]
fn ctrl_c_is_reported_to_the_peer() {
    for stops in ["sender", "receiver"] {
        let scratch = Scratch::new("send-interrupt");
        let (receiver, mut sender) = partial_transfer(&scratch);
        signal(if stops == "sender" { &sender } else { &receiver.child }, Signal::SIGINT);
        let ran = ProgramRun::new("send", &sender.output());
        let (code, stderr) = receiver.ended();
        let (own, other) = if stops == "sender" {
            ((ran.code, ran.err), (code, stderr))
        } else {
            ((code, stderr), (ran.code, ran.err))
        };
        assert!(
            own.0 == 130 && own.1.contains("interrupted: the transfer was not finished; what came whole is kept"),
            "{own:?}"
        );
        assert!(other.0 == 1 && other.1.contains("interrupted"), "{other:?}");
        resumes(&scratch);
    }
}

/// A full file system fails one file with its name, and the others come.
#[test]
fn file_without_space_fails_alone() {
    let scratch = Scratch::new("send-full");
    write(&scratch, "out/large", &data(5 * CHUNK));
    write(&scratch, "out/small", b"small");
    // A limit of the process, which needs no rights.
    let line = "ulimit -f 4096; exec \"$0\" recv in --listen 127.0.0.1:0 --idle-timeout 1";
    let mut limited = Command::new("bash");
    limited.args(["-c", line, env!("CARGO_BIN_EXE_narrows")]).current_dir(scratch.path("."));
    limited.env("XDG_STATE_HOME", scratch.path("state")).stdin(Stdio::null());
    let receiver = ReceiverProcess::of(&mut limited);
    let ran = send(&scratch, "out", &receiver);
    assert_eq!((ran.code, number(&ran, "failed")), (1, 1), "{ran}");
    let message = "`out/large` is not received: File too large (os error 27), after 4194304 of its 5242880 bytes; ";
    ran.reports(&[message, "bytes are free"]);
    let (code, stderr) = receiver.ended();
    assert!(code == 1 && stderr.contains(message), "{stderr}");
    assert!(!scratch.path("in/out/large").exists());
    assert_eq!(scratch.read("in/out/small"), "small");
    // With free space it resumes at the same offset.
    let receiver = ReceiverProcess::new(&scratch, "");
    let ran = send(&scratch, "out", &receiver).ok();
    assert_eq!((number(&ran, "moved_bytes"), number(&ran, "had_bytes")), (CHUNK, 4 * CHUNK + 5));
    assert!(receiver.ended().0 == 0 && fs::read(scratch.path("in/out/large")).unwrap() == data(5 * CHUNK));
}

/// A file system that is too small for all files is reported before it is full. It is mounted in a mount namespace of
/// the receiver's own.
#[test]
fn small_disk_receives_what_fits() {
    let scratch = Scratch::new("send-small");
    write(&scratch, "out/a", &data(3 * CHUNK));
    write(&scratch, "out/b", &data(6 * CHUNK));
    write(&scratch, "out/c", &data(CHUNK));
    fs::create_dir(scratch.path("in")).unwrap();
    let possible = |rights: &&str| {
        let tried = Command::new("unshare").args([rights, "sh", "-c", "mount -t tmpfs none /mnt"]).try_finish();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(rights) = ["-m", "-rm"].into_iter().find(possible) else {
        return skipped("small_disk_receives_what_fits", "no file system can be mounted here");
    };
    let script = "mount -t tmpfs -o size=6m none in && \"$0\" recv in --listen 127.0.0.1:0 --idle-timeout 1; echo $?; find in -type f | sort";
    let mut small = Command::new("unshare");
    small.args([rights, "sh", "-c", script, env!("CARGO_BIN_EXE_narrows")]).current_dir(scratch.path("."));
    let mut receiver = ReceiverProcess::of(small.env("XDG_STATE_HOME", scratch.path("state")).stdin(Stdio::null()));
    let ran = send(&scratch, "out", &receiver);
    assert_eq!((ran.code, number(&ran, "failed")), (1, 1), "{ran}");
    ran.reports(&["`out/b`", "6291456"]);
    let out = receiver.child.output().stdout;
    assert_eq!(String::from_utf8(out).unwrap(), "1\nin/out/a\nin/out/c\n");
}

/// While one sender is served, another one is notified of that; a reusable ticket serves them one after the other.
#[test]
fn one_sender_at_a_time() {
    let scratch = Scratch::new("send-busy");
    write(&scratch, "file", &data(LONG));
    write(&scratch, "other", b"other");
    let mut receiver = ReceiverProcess::new(&scratch, "--reusable");
    let line = format!("send file {} --idle-timeout 1", receiver.ticket);
    let mut first = command(&scratch, &line).piped();
    wait_for(&mut receiver.child, "a part of the file has come", || !partials(&scratch).is_empty());
    send(&scratch, "other", &receiver).fails(1, &["another sender is served here"]);
    assert_eq!(code(first.output().status), 0);
    send(&scratch, "other", &receiver).ok();
    assert_eq!(scratch.read("in/other"), "other");
}
