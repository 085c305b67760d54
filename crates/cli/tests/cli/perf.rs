//! `narrows perf`: two processes of the program over this machine's loopback.

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use proto::closed::{CloseCode, Closed};
use proto::identity::Trust;
use proto::service::Service;
use proto::settings::Settings;
use proto::ticket::Ticket;
use serde_json::Value;
use testing::{Bounded, DEFAULT_TIMEOUT, Process, block_on};
use transport::{Config, Connection, Endpoint, SendStream};

use crate::support::{ProgramRun, Scratch, code, wait_for};

/// A listener at a free port, and its ticket.
struct Listener {
    child: Process,
    ticket: String,
}

/// The program with the words of a line, and with a key of the scratch directory's own.
fn command(scratch: &Scratch, line: &str) -> Command {
    let mut command = scratch.command(["perf"]);
    command.args(line.split_whitespace()).env("XDG_STATE_HOME", scratch.path("state"));
    command
}

fn perf(scratch: &Scratch, line: &str) -> ProgramRun {
    ProgramRun::new(&format!("perf {line}"), &command(scratch, line).finish())
}

impl Listener {
    fn new(scratch: &Scratch, options: &str) -> Self {
        let child = command(scratch, &format!("--listen 127.0.0.1:0 {options}")).piped();
        let ticket = child.line().trim().to_owned();
        Self { child, ticket }
    }

    fn read(&self) -> Ticket {
        self.ticket.parse().unwrap()
    }

    fn address(&self) -> String {
        self.read().addresses[0].to_string()
    }

    /// Waits until it ends. Returns its exit code and its output.
    fn ended(mut self) -> (i32, String) {
        let output = self.child.output();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        (code(output.status), stderr)
    }

    /// Ends it as Ctrl-C does. Returns its output.
    fn interrupted(self) -> String {
        signal(&self.child, Signal::SIGINT);
        let (code, stderr) = self.ended();
        assert_eq!(code, 130, "{stderr}");
        stderr
    }
}

/// Starts a client and waits until its test runs.
fn started(scratch: &Scratch, line: &str) -> Process {
    let client = command(scratch, line).piped();
    let first = client.line();
    assert!(first.starts_with("[ 0.00-0."), "{first}");
    client
}

fn signal(child: &Process, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "how long the program takes is tested here")]
fn now() -> Instant {
    Instant::now()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no whole number: {value}"))
}

fn sum(values: &Value, key: &str) -> u64 {
    values.as_array().unwrap().iter().map(|value| number(if key.is_empty() { value } else { &value[key] })).sum()
}

/// Asserts that the numbers of a test's document agree with each other.
#[track_caller]
fn assert_consistent(json: &Value, bytes: u64) {
    let (sender, receiver) = (&json["sender"], &json["receiver"]);
    assert_eq!(number(&sender["bytes"]), bytes, "{json:#}");
    assert_eq!(sender["streams"], receiver["streams"], "{json:#}");
    for end in [sender, receiver] {
        assert_eq!(sum(&end["streams"], ""), number(&end["bytes"]), "{json:#}");
        let rate = number(&end["bytes"]) as f64 * 8e9 / number(&end["time_ns"]) as f64;
        assert!((rate / end["rate_bps"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{json:#}");
    }
    assert_eq!(sum(&json["intervals"], "bytes"), bytes, "{json:#}");
    let intervals = json["intervals"].as_array().unwrap();
    assert_eq!(intervals[0]["from_ns"], 0);
    for pair in intervals.windows(2) {
        assert_eq!(pair[0]["to_ns"], pair[1]["from_ns"], "{json:#}");
    }
}

#[test]
fn both_directions_many_streams_and_many_paths() {
    let scratch = Scratch::new("perf");
    let listener = Listener::new(&scratch, "--reusable --law newreno");
    scratch.write("ticket", &listener.ticket);
    let run =
        |options: &str| perf(&scratch, &format!("@ticket --bytes 20M --json --interval 20ms {options}")).ok().json();
    let json = run("");
    assert_consistent(&json, 20_000_000);
    let parameters = &json["parameters"];
    assert_eq!((&parameters["law"], &parameters["direction"]), (&"bbr".into(), &"to the listener".into()));
    assert_eq!((&parameters["packet_bytes"], &parameters["bytes"]), (&1_472.into(), &20_000_000.into()));
    assert!(json["sender"]["cpu_s"].as_f64().unwrap() > 0.0 && json["receiver"]["cpu_s"].as_f64().unwrap() > 0.0);
    // Each packet has less than 1,472 bytes of data.
    assert!(number(&json["sender"]["packets"]) > 20_000_000 / 1_472);
    let acked = sum(&json["paths"], "acked_bytes");
    assert!((20_000_000..22_000_000).contains(&acked), "{json:#}");

    let json = run("--reverse");
    assert_consistent(&json, 20_000_000);
    assert_eq!(json["parameters"]["law"], "newreno");

    let json = run("--streams 4");
    assert_consistent(&json, 20_000_000);
    assert_eq!(json["receiver"]["streams"], serde_json::json!([5_000_000, 5_000_000, 5_000_000, 5_000_000]));

    let json = run("--reverse --streams 3 --max-udp-payload 9000");
    assert_consistent(&json, 20_000_000);
    assert_eq!(json["receiver"]["streams"], serde_json::json!([6_666_667, 6_666_667, 6_666_666]));

    let json = run("--paths 4 --law fixed --param window=200KB --coding 8,2");
    assert_consistent(&json, 20_000_000);
    let paths = json["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 4, "{json:#}");
    let used = |path: &&Value| path["is_open"] == true && number(&path["acked_bytes"]) > 0;
    assert_eq!(paths.iter().filter(used).count(), 4, "{json:#}");
    assert!(json["parameters"]["law_params"]["window"].is_string(), "{json:#}");

    // Fewer bytes than streams, and a test by time: all sent bytes arrived.
    let few = perf(&scratch, "@ticket --bytes 3 --streams 4 --json").ok().json();
    assert_consistent(&few, 3);
    let timed = perf(&scratch, "@ticket --time 300ms --interval 100ms --json").ok().json();
    assert_consistent(&timed, number(&timed["receiver"]["bytes"]));
    assert!(number(&timed["sender"]["time_ns"]) >= 300_000_000);
    // Messages, one at a time, and their times.
    let messages = perf(&scratch, "@ticket --messages 20 --bytes 30k --json").ok().json();
    assert_consistent(&messages, 600_000);
    let durations = messages["messages"]["took_ns"].as_array().unwrap();
    assert!(durations.len() == 20 && durations.iter().all(|ns| number(ns) > 0), "{messages:#}");
    let [p50, p99, max] = ["p50_ns", "p99_ns", "most_ns"].map(|key| number(&messages["messages"][key]));
    assert!(p50 <= p99 && p99 <= max && durations.iter().any(|ns| number(ns) == max), "{messages:#}");
    assert_eq!((&json["messages"], &messages["parameters"]["messages"]), (&Value::Null, &20.into()));
    // The same as CSV, a table at a time.
    let csv = perf(&scratch, "@ticket --messages 5 --bytes 30k --csv=messages").ok().out;
    let (head, values) = csv.trim_end().split_once('\n').unwrap();
    assert!(head == "p50_ns,p99_ns,most_ns" && values.split(',').all(|it| it.parse::<u64>().unwrap() > 0), "{csv}");
    let csv = perf(&scratch, "@ticket --bytes 300k --csv").ok().out;
    let ends: Vec<&str> = csv.lines().map(|line| line.split_once(',').unwrap().0).collect();
    assert!(ends == ["end", "sender", "receiver"] && csv.matches(",300000,").count() == 2, "{csv}");
    perf(&scratch, "@ticket --csv=end").fails(2, &["`end`", "intervals, paths, messages"]);
    let stderr = listener.interrupted();
    assert_eq!(stderr.matches(": received ").count(), 8, "{stderr}");
    assert_eq!(stderr.matches(": sent 20.0 MB").count(), 2, "{stderr}");
}

#[test]
fn text_output_has_progress_and_summary() {
    let scratch = Scratch::new("perf-lines");
    let listener = Listener::new(&scratch, "");
    let file =
        std::fs::File::open(scratch.write("ticket", &format!("  {}\n", listener.ticket.to_uppercase()))).unwrap();
    let output = command(&scratch, "- --time 250ms --interval 0.1").stdin(file).finish();
    let ran = ProgramRun::new("perf -", &output).ok().reports(&["connected to 127.0.0.1:", "1 path, bbr"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].starts_with("[ 0.00-0.10 s] ") && lines[0].contains("bit/s  rtt "), "{ran}");
    assert!(lines[1].starts_with("[ 0.10-0.20 s] "), "{ran}");
    let summary = &lines[lines.len() - 3..];
    assert!(summary[0].starts_with("sender   ") && summary[0].ends_with("packets lost"), "{ran}");
    assert!(summary[1].starts_with("receiver ") && summary[1].contains(" of processor time"), "{ran}");
    // Where a loaded machine loses many in a row, packets are 1,200 bytes long for a while.
    assert!(summary[2].starts_with("path 0: packets of 1") && summary[2].contains(" bytes, rtt "), "{ran}");
    // One ticket, one test: the listener ends by itself.
    let (code, stderr) = listener.ended();
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("24 h") && stderr.contains(": received "), "{stderr}");
}

#[test]
fn unauthorized_clients_are_refused() {
    let scratch = Scratch::new("perf-refused");
    let listener = Listener::new(&scratch, "--ticket-lifetime 1s --reusable");
    let begun = now();
    // A ticket that the client considers valid at every time of the test.
    let (address, ticket) = (listener.address(), Ticket { ends: None, ..listener.read() });
    perf(&scratch, &address).fails(2, &["--fingerprint SHA256:", "--insecure"]);
    // The right key, but no ticket.
    let line = format!("{address} --fingerprint {} --bytes 1k", ticket.fingerprint);
    perf(&scratch, &line).fails(1, &["--allow-key SHA256:"]);
    let wrong = format!("SHA256:{}", "A".repeat(43));
    let expected = ["does not have the key in --fingerprint"];
    perf(&scratch, &format!("{address} --fingerprint {wrong}")).fails(1, &expected);
    let other = Ticket { fingerprint: wrong.parse().unwrap(), ..ticket.clone() };
    perf(&scratch, &other.to_string()).fails(1, &["does not have the key in the ticket"]);
    let other = Ticket { id: [7; 8], ..ticket.clone() };
    perf(&scratch, &other.to_string()).fails(1, &["does not take this ticket"]);
    // The listener decides when its ticket expires, whatever time the client's copy has.
    std::thread::sleep(Duration::from_millis(2_100).saturating_sub(begun.elapsed()));
    perf(&scratch, &listener.ticket).fails(2, &["error: the ticket expired", "by this machine's clock"]);
    perf(&scratch, &ticket.to_string()).fails(1, &["it was used or has expired"]);
    let stderr = listener.interrupted();
    assert_eq!(stderr.matches("refused a client: it does not have this ticket").count(), 2, "{stderr}");
    assert_eq!(stderr.matches("refused a client: the ticket has ended").count(), 1, "{stderr}");
}

#[test]
fn ticket_admits_one_client_unless_reusable() {
    let scratch = Scratch::new("perf-once");
    let listener = Listener::new(&scratch, "");
    let mut first = started(&scratch, &format!("{} --time 2 --interval 50ms", listener.ticket));
    perf(&scratch, &listener.ticket).fails(1, &["does not take this ticket: it was used"]);
    assert_eq!(code(first.output().status), 0);
    let (code, stderr) = listener.ended();
    assert!(code == 0 && stderr.contains("refused a client: one client was admitted already"), "{stderr}");
}

/// Callers at once, some on either thread: all are served, and a ticket admits one of them.
#[test]
fn listeners_serve_clients_on_several_threads() {
    let scratch = Scratch::new("perf-threads");
    let at_once = |listener: &Listener, options: &str| -> Vec<ProgramRun> {
        let line = format!("{} --bytes 2M --json {options}", listener.ticket);
        let start = |_| command(&scratch, &line).piped();
        let clients: Vec<Process> = (0..6).map(start).collect();
        clients.into_iter().map(|mut client| ProgramRun::new(&line, &client.output())).collect()
    };
    let listener = Listener::new(&scratch, "--threads 2 --reusable");
    for ran in at_once(&listener, "--paths 4") {
        assert_consistent(&ran.ok().json(), 2_000_000);
    }
    assert_eq!(listener.interrupted().matches(": received 2.00 MB").count(), 6);
    let listener = Listener::new(&scratch, "--threads 2");
    let ran = at_once(&listener, "--idle-timeout 1");
    assert_eq!(ran.iter().filter(|ran| ran.code == 0).count(), 1);
    let (code, stderr) = listener.ended();
    assert!(code == 0 && stderr.matches(": received 2.00 MB").count() == 1, "{stderr}");
}

#[test]
fn keys_instead_of_tickets() {
    let scratch = Scratch::new("perf-keys");
    let anyone = Listener::new(&scratch, "--insecure");
    perf(&scratch, &format!("{} --insecure --bytes 1k", anyone.address())).ok();
    let (code, stderr) = anyone.ended();
    assert!(code == 0 && stderr.contains("--insecure"), "{stderr}");
    // Both have the same key here, as it is one user's.
    let key = perf(&scratch, "--listen 127.0.0.1:0 --allow-key SHA256:x").fails(2, &["--allow-key SHA256:x"]);
    assert_eq!(key.out, "");
    let own = anyone_key(&scratch);
    let allowed = Listener::new(&scratch, &format!("--allow-key {own}"));
    perf(&scratch, &format!("{} --fingerprint {own} --bytes 1k", allowed.address())).ok();
    assert_eq!(allowed.ended().0, 0);
}

/// The fingerprint of the key in the scratch directory.
fn anyone_key(scratch: &Scratch) -> String {
    Listener::new(scratch, "").read().fingerprint.to_string()
}

#[test]
fn invalid_arguments_are_errors() {
    let scratch = Scratch::new("perf-input");
    for (line, parts) in [
        ("narrows1aaaa", &["error: the ticket"][..]),
        ("narrows1!", &["character 9 of the ticket is `!`"]),
        ("garbage garbage", &["unexpected argument 'garbage'"]),
        ("not_a:ticket", &["error: TICKET|ADDR `not_a:ticket`: expected an address", "or a ticket"]),
        ("@none", &["cannot read `none`"]),
        ("- ", &["error: standard input ended without a ticket"]),
        ("127.0.0.1 --fingerprint SHA256:short", &["--fingerprint SHA256:short: a fingerprint is `SHA256:` and 43"]),
        ("127.0.0.1 --insecure --time 0", &["--time 0: expected 0.001 s to 24 h"]),
        ("127.0.0.1 --insecure --bytes 5Q", &["--bytes 5Q: expected 1 to", "KiB"]),
        ("127.0.0.1 --insecure --bytes 5 --time 3", &["cannot be used with"]),
        ("127.0.0.1 --insecure --streams 0", &["0 is not in 1..=128"]),
        ("127.0.0.1 --insecure --paths 65", &["65 is not in 1..=64"]),
        ("127.0.0.1 --insecure --coding 8,20", &["--coding", "\"8,20\"", "1 to 16"]),
        ("127.0.0.1 --insecure --max-udp-payload 1000", &["1000 is not in 1200..=65527"]),
        ("127.0.0.1 --insecure --idle-timeout 0.5", &["--idle-timeout 0.5: expected 1 s to 600 s"]),
        ("127.0.0.1 --insecure --law rubic", &["--law: no law `rubic`", "did you mean `cubic`?"]),
        ("127.0.0.1 --insecure --law hpcc", &["needs reports of switches (INT)"]),
        ("127.0.0.1 --insecure --law expresspass", &["needs credits"]),
        ("127.0.0.1 --insecure --law dctcp --param ewma_gain=7", &["--param", "it must be"]),
        ("127.0.0.1 --insecure --on-ramp -2ms", &["--on-ramp -2ms: expected 1us to 10s"]),
        ("127.0.0.1 --insecure --line-rate fast", &["--line-rate"]),
        ("127.0.0.1 --insecure --reverse --law bbr", &["cannot be used with"]),
        ("--listen 127.0.0.1:0 --ticket-lifetime never", &["--ticket-lifetime never: expected 1 s to"]),
        ("--listen 127.0.0.1:0 --stream-window 1", &["--stream-window 1: expected 65536 to"]),
        ("--listen 192.0.2.1:0", &["cannot listen at 192.0.2.1:0"]),
        ("--listen 127.0.0.1:0 --threads 65", &["'65' for '--threads <N>': 65 is not in 1..=64"]),
        ("127.0.0.1 --insecure --threads 2", &["'[TICKET|ADDR]' cannot be used with '--threads <N>'"]),
        ("127.0.0.1 --insecure --reusable", &["'[TICKET|ADDR]' cannot be used with '--reusable'"]),
        ("--listen nowhere:port", &["--listen `nowhere:port`: expected an address"]),
        ("", &["TICKET|ADDR"]),
    ] {
        perf(&scratch, line).fails(2, parts);
    }
}

#[test]
fn identity_is_created_once_with_private_permissions() {
    let scratch = Scratch::new("perf-key");
    let first = anyone_key(&scratch);
    let path = scratch.path("state/narrows/identity");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read(&path).unwrap().len(), 32);
    assert_eq!(anyone_key(&scratch), first);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let expected = ["state/narrows/identity` can be used by others (its mode is 640)", "chmod 600"];
    perf(&scratch, "--listen 127.0.0.1:0").fails(2, &expected);
    scratch.write("short", "secret");
    std::fs::set_permissions(scratch.path("short"), std::fs::Permissions::from_mode(0o600)).unwrap();
    perf(&scratch, "--listen 127.0.0.1:0 --identity short").fails(2, &["`short`"]);
    assert_eq!(scratch.read("short"), "secret");
    perf(&scratch, "--listen 127.0.0.1:0 --identity state").fails(2, &["`state`"]);
    let other = Listener::new(&scratch, "--identity new/place/key");
    assert_ne!(other.read().fingerprint.to_string(), first);
}

#[test]
fn dead_peers_are_detected() {
    let scratch = Scratch::new("perf-killed");
    let mut listener = Listener::new(&scratch, "--idle-timeout 1");
    let line = format!("{} --time 60 --idle-timeout 1 --interval 100ms", listener.ticket);
    let mut client = started(&scratch, &line);
    listener.child.kill();
    let begun = now();
    let ran = ProgramRun::new(&line, &client.output());
    assert!(ran.code == 1 && begun.elapsed() < Duration::from_secs(30), "{:?} {ran}", begun.elapsed());
    ran.reports(&["--idle-timeout", "1 s"]);
    // No listener at all.
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let line = format!("{} --insecure --idle-timeout 1", free.local_addr().unwrap());
    perf(&scratch, &line).fails(1, &["127.0.0.1", "firewalls let UDP through"]);
}

#[test]
fn listener_survives_vanished_clients() {
    let scratch = Scratch::new("perf-two");
    let listener = Listener::new(&scratch, "--reusable --idle-timeout 1");
    let line = |options: &str| format!("{} --idle-timeout 1 {options}", listener.ticket);
    let mut killed = started(&scratch, &line("--time 60 --interval 50ms"));
    killed.kill();
    // Ctrl-C closes the connection.
    let mut stopped = started(&scratch, &line("--time 60 --interval 50ms"));
    signal(&stopped, Signal::SIGINT);
    let ran = ProgramRun::new("stopped", &stopped.output_within(Duration::from_secs(30)));
    assert_eq!(ran.code, 130, "{ran}");
    ran.reports(&["interrupted: the test was not finished"]);
    let clients =
        ["--reverse", ""].map(|options| command(&scratch, &line(&format!("--bytes 20M --json {options}"))).piped());
    for mut client in clients {
        assert_consistent(&ProgramRun::new("two", &client.output()).ok().json(), 20_000_000);
    }
    std::thread::sleep(Duration::from_millis(1_200));
    let stderr = listener.interrupted();
    assert!(stderr.contains("the peer does not answer any more"), "{stderr}");
    assert!(stderr.contains("the peer closed the connection: interrupted"), "{stderr}");
    assert!(
        stderr.contains(": sent 20.0 MB on 1 stream") && stderr.contains(": received 20.0 MB on 1 stream"),
        "{stderr}"
    );
}

#[test]
fn listener_ignores_unrelated_packets() {
    let scratch = Scratch::new("perf-noise");
    let mut listener = Listener::new(&scratch, "");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for len in [0, 1, 41, 1_200, 9_000] {
        for fill in [0, 0x40, 0xc0, 0xff] {
            socket.send_to(&vec![fill; len], listener.address()).unwrap();
        }
    }
    let mut polls = 0;
    wait_for(&mut listener.child, "it lives for twenty polls", || {
        polls += 1;
        polls == 20
    });
    perf(&scratch, &format!("{} --bytes 1M", listener.ticket)).ok();
    assert_eq!(listener.ended().0, 0);
}

async fn send_message(stream: &mut SendStream, message: &str) {
    stream.write_all(&(message.len() as u32).to_be_bytes()).await.unwrap();
    stream.write_all(message.as_bytes()).await.unwrap();
}

/// A client that follows the transport protocol but sends false application messages.
#[test]
fn invalid_clients_receive_the_reason() {
    let scratch = Scratch::new("perf-liar");
    let listener = Listener::new(&scratch, "--reusable --idle-timeout 1");
    let law = |path: &laws::PathInfo| laws::catalog::build(laws::catalog::LawKind::NewReno, path, &[]).unwrap();
    let mut settings = Settings::new(Service::named("perf"), Arc::new(law));
    // A client that stays connected and sends no request.
    settings.keep_alive = Some(units::Span::from_ms(200));
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap(), &Config::new(settings).unwrap()).unwrap();
    let ticket = listener.read();
    let connect = async || -> Connection {
        let secret = Some((ticket.id, ticket.secret.clone()));
        let trust = Trust::Fingerprint(ticket.fingerprint);
        endpoint.connect(ticket.addresses[0], trust, secret).await.unwrap()
    };
    let close_reason = |closed: Closed| match closed {
        Closed::ByPeer { code: CloseCode::APPLICATION, reason } => reason,
        other => panic!("{other}"),
    };
    let request = r#"{"version":1,"reverse":false,"streams":1,"amount":{"bytes":10},"window_bytes":65536}"#;
    let reasons = block_on(DEFAULT_TIMEOUT, "the listener ends each connection", async {
        let long = connect().await;
        let mut first = long.open().await.unwrap().0;
        first.write_all(&[0xff; 4]).await.unwrap();
        let mut reasons = vec![close_reason(long.closed().await)];

        let one_way = connect().await;
        let mut wrong = one_way.open_one_way().await.unwrap();
        wrong.write_all(b"data").await.unwrap();
        reasons.push(close_reason(one_way.closed().await));

        let greedy = connect().await;
        let mut first = greedy.open().await.unwrap().0;
        send_message(&mut first, &request.replace(":1,", ":9,")).await;
        reasons.push(close_reason(greedy.closed().await));

        let more = connect().await;
        let mut first = more.open().await.unwrap();
        send_message(&mut first.0, request).await;
        let mut data = more.open_one_way().await.unwrap();
        data.write_all(&[1; 11]).await.unwrap();
        reasons.push(close_reason(more.closed().await));

        let other = connect().await;
        let mut first = other.open().await.unwrap();
        send_message(&mut first.0, request).await;
        let mut data = other.open_one_way().await.unwrap();
        data.write_all(&[1; 10]).await.unwrap();
        data.finish().unwrap();
        send_message(&mut first.0, r#"{"version":1,"bytes":[9],"time_ns":1,"cpu_ns":1,"packets":1,"lost":0}"#).await;
        reasons.push(close_reason(other.closed().await));

        let silent = connect().await;
        reasons.push(close_reason(silent.closed().await));
        reasons
    });
    let expected = [
        "this peer sent a request of 4294967295 bytes; it may have 8192",
        "this peer opened a stream of one direction before it had asked for a test",
        "this peer speaks version 9 of perf, and this end version 1: use one release of narrows",
        "this peer sends more than the 10 bytes that were agreed",
        "this peer reports that it sent 9 bytes of stream 0, and this end counted 10",
        "nothing has moved for 2 s, while this end waited for the client's request",
    ];
    assert_eq!(reasons, expected);
    let stderr = listener.interrupted();
    for reason in expected {
        let words = reason.replace("this peer", "the peer");
        assert!(stderr.contains(&format!("the test did not end well: {words}")), "{reason}: {stderr}");
    }
}
