//! `narrows proxy`: two processes of the program, and real programs through them.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testing::{Bounded, DEFAULT_TIMEOUT, Process, eventually};

use testing::skipped_without;

use crate::support::{ProgramRun, Scratch, code, skipped, wait_for};

/// An end that runs, and its output.
struct ProxyProcess {
    child: Process,
    /// The ticket of a proxy server.
    ticket: String,
}

fn proxy(scratch: &Scratch, line: &str) -> Command {
    let mut command = scratch.command(["proxy"]);
    command.args(line.split_whitespace()).env("XDG_STATE_HOME", scratch.path("state"));
    command
}

impl ProxyProcess {
    /// Starts it. `command` is whatever runs the program.
    fn start(mut command: Command) -> Self {
        Self { child: command.piped(), ticket: String::new() }
    }

    fn server(scratch: &Scratch, options: &str) -> Self {
        let mut proxy_server = Self::start(proxy(scratch, &format!("server {options}")));
        proxy_server.child.line().trim().clone_into(&mut proxy_server.ticket);
        assert!(proxy_server.ticket.starts_with("narrows1"), "{}", proxy_server.ended().1);
        proxy_server
    }

    fn client(scratch: &Scratch, options: &str) -> Self {
        Self::start(proxy(scratch, &format!("client {options}")))
    }

    /// Waits for a line that has these words.
    #[track_caller]
    fn says(&self, words: &str) -> String {
        self.child.says(words)
    }

    /// Returns the address of its next entrance.
    fn entrance(&self, words: &str) -> SocketAddr {
        let line = self.says(words);
        line.split_whitespace().find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    }

    fn ended(&mut self) -> (i32, String) {
        let output = self.child.output();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        (code(output.status), stderr)
    }

    /// Ends it with a signal. Returns its output.
    fn stopped(mut self, signal: Signal) -> String {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        let (code, stderr) = self.ended();
        assert_eq!(code, 130, "{stderr}");
        stderr
    }
}

/// Both ends. The client has these entrances.
fn start_pair(scratch: &Scratch, rules: &str, entrances: &str) -> (ProxyProcess, ProxyProcess) {
    let proxy_server = ProxyProcess::server(scratch, &format!("--listen 127.0.0.1:0 --verbose {rules}"));
    scratch.write("ticket", &proxy_server.ticket);
    (proxy_server, ProxyProcess::client(scratch, &format!("@ticket --verbose {entrances}")))
}

/// Echoes the data of one client.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((mut tcp, _)) = listener.accept() {
            thread::spawn(move || {
                let mut all = Vec::new();
                tcp.read_to_end(&mut all).and_then(|_| tcp.write_all(&all))
            });
        }
    });
    address
}

fn assert_echoed(mut tcp: TcpStream, data: &[u8]) {
    tcp.set_read_timeout(Some(DEFAULT_TIMEOUT)).unwrap();
    tcp.write_all(data).unwrap();
    tcp.shutdown(Shutdown::Write).unwrap();
    let mut back = Vec::new();
    tcp.read_to_end(&mut back).unwrap();
    assert!(back == data);
}

/// Asks for a connection. Returns it, and SOCKS's reply.
fn socks(entrance: SocketAddr, to: SocketAddr) -> (TcpStream, u8) {
    let mut tcp = TcpStream::connect(entrance).unwrap();
    tcp.set_read_timeout(Some(DEFAULT_TIMEOUT)).unwrap();
    let SocketAddr::V4(v4) = to else { panic!("{to}") };
    let port = v4.port().to_be_bytes();
    tcp.write_all(&[&[5, 1, 0, 5, 1, 0, 1][..], &v4.ip().octets(), &port].concat()).unwrap();
    let mut response = [0; 12];
    tcp.read_exact(&mut response).unwrap();
    (tcp, response[3])
}

#[test]
fn programs_connect_and_other_destinations_are_refused() {
    let (scratch, server) = (Scratch::new("proxy"), echo());
    let rules = format!("--threads 2 --allow 127.0.0.1:{}", server.port());
    let entrances = format!("--paths 4 --socks 0 --forward 127.0.0.1:0={server} --law cubic");
    let (proxy_server, proxy_client) = start_pair(&scratch, &rules, &entrances);
    let (entrance, forward) = (proxy_client.entrance("SOCKS 5 at "), proxy_client.entrance(" at the proxy server"));
    let (tcp, reply) = socks(entrance, server);
    assert_eq!(reply, 0);
    assert_echoed(tcp, &vec![7; 1_000_000]);
    proxy_client.says(": opened 127.0.0.1:");
    assert_echoed(TcpStream::connect(forward).unwrap(), b"hello");
    let (_, reply) = socks(entrance, "127.0.0.2:9".parse().unwrap());
    assert_eq!(reply, 2);
    proxy_server.says("127.0.0.2:9 refused: the proxy server does not allow this destination");
    let stderr = proxy_client.stopped(Signal::SIGINT);
    assert!(stderr.contains("1.00 MB"), "{stderr}");
    let stderr = proxy_server.stopped(Signal::SIGTERM);
    assert!(stderr.contains("the proxy client disconnected: the peer closed the connection"), "{stderr}");
}

#[test]
fn clients_reconnect_to_a_restarted_server() {
    let (scratch, server) = (Scratch::new("proxy-again"), echo());
    let rules = format!("--allow 127.0.0.1:{} --ticket kept", server.port());
    let (proxy_server, proxy_client) = start_pair(&scratch, &rules, "--socks 0");
    let (entrance, ticket) = (proxy_client.entrance("SOCKS 5 at "), proxy_server.ticket.clone());
    assert_eq!(scratch.read("kept").trim(), ticket);
    assert_eq!(scratch.path("kept").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let (mut tcp, _) = socks(entrance, server);
    let address = ticket.parse::<proto::ticket::Ticket>().unwrap().addresses[0];
    proxy_server.stopped(Signal::SIGINT);
    // Open connections are reset.
    assert_eq!(tcp.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    proxy_client.says("no connection to the proxy server: the peer closed the connection");
    let proxy_server = ProxyProcess::server(&scratch, &format!("--listen {address} {rules}"));
    assert_eq!(proxy_server.ticket, ticket);
    proxy_client.says("connected to the proxy server");
    assert_echoed(socks(entrance, server).0, b"again");
    proxy_server.stopped(Signal::SIGINT);
    // Without the ticket it is another proxy server.
    let mut proxy_client = proxy_client;
    let proxy_server = ProxyProcess::server(&scratch, &format!("--listen {address}"));
    proxy_server.says("warning: without --allow HOST:PORTS this end connects to nothing");
    let (code, stderr) = proxy_client.ended();
    assert!(code == 1 && stderr.contains("does not take this ticket") && stderr.contains("--ticket FILE"), "{stderr}");
}

#[test]
fn invalid_arguments_are_errors() {
    let scratch = Scratch::new("proxy-wrong");
    let ran = |line: &str| ProgramRun::new(line, &proxy(&scratch, line).finish());
    ran("client 127.0.0.1 --insecure").fails(2, &["--socks <ADDR>|--forward <ADDR=HOST:PORT>|--transparent <ADDR>"]);
    ran("client 127.0.0.1 --socks 1080").fails(2, &["does not authenticate the listener"]);
    ran("client 127.0.0.1 --insecure --socks here").fails(2, &["--socks here"]);
    ran("client 127.0.0.1 --insecure --forward 1").fails(2, &["error: --forward 1: expected ADDR=HOST:PORT"]);
    ran("client 127.0.0.1 --insecure --forward 1=a").fails(2, &["--forward 1=a", "`a`", "65535"]);
    ran("server --listen 127.0.0.1:0 --allow a").fails(2, &["--allow `a`", "HOST:PORTS"]);
    ran("server --listen 127.0.0.1:0 --allow ::1:80").fails(2, &["IPv6"]);
    ran("server --listen 127.0.0.1:0 --allow-key x").fails(2, &["--allow-key x"]);
    ran("server --listen 127.0.0.1:0 --ticket-lifetime x").fails(2, &["error: --ticket-lifetime x: expected 1 s to"]);
    ran("server --listen 127.0.0.1:0 --threads 65").fails(2, &["65", "--threads", "64"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("client 127.0.0.1 --insecure --socks {}", taken.local_addr().unwrap());
    ran(&line).fails(2, &["error: --socks 127.0.0.1:"]);
    let kept = scratch.write("kept", "narrows1abc\n");
    ran("server --listen 127.0.0.1:0 --ticket kept").fails(2, &["`kept`", "chmod 600"]);
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o600)).unwrap();
    ran("server --listen 127.0.0.1:0 --ticket kept").fails(2, &["`kept`", "help: remove it"]);
    let proxy_client = ProxyProcess::client(&scratch, "127.0.0.1:9 --insecure --socks 0.0.0.0:0");
    proxy_client.says("warning: --socks 0.0.0.0:");
    proxy_client.says("no connection to the proxy server: nothing answers at 127.0.0.1:9");
}

fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).chain(["/usr/sbin".into()]).any(|path| path.join(program).is_file())
}

/// Returns whether these programs are installed. If not, prints so.
fn are_installed(test: &str, programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_installed(program)).collect();
    if !missing.is_empty() {
        skipped_without(test, &missing.join(", "));
    }
    missing.is_empty()
}

/// A port that is free now. Programs that cannot choose one take it soon.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Starts a program in the background, and waits until it listens on this port.
fn listening(mut command: Command, port: u16) -> Process {
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).start();
    wait_for(&mut process, "the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    process
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn iperf3_runs_through_a_forward() {
    if !are_installed("iperf3_runs_through_a_forward", &["iperf3"]) {
        return;
    }
    let (scratch, port) = (Scratch::new("proxy-iperf3"), free_port());
    let mut server = Command::new("iperf3");
    server.args(["-s", "-p", &port.to_string()]);
    let _server = listening(server, port);
    let entrances = format!("--forward 0=127.0.0.1:{port}");
    let (_far, proxy_client) = start_pair(&scratch, &format!("--allow 127.0.0.1:{port}"), &entrances);
    let entrance = proxy_client.entrance(" at the proxy server").port().to_string();
    proxy_client.says("connected to the proxy server");
    for options in [&["-t", "1", "-P", "2"][..], &["-n", "20M", "-R"]] {
        let mut client = Command::new("iperf3");
        client.args(["-c", "127.0.0.1", "-p", &entrance, "-J"]).args(options);
        // A server needs a moment to finish with the previous client, and meanwhile reports that it is busy, or hangs up.
        let mut attempts = 0;
        let json = loop {
            let json: Value = serde_json::from_str(&succeeded(&client.finish())).unwrap();
            if !json["error"].is_string() || {
                attempts += 1;
                attempts
            } == 50
            {
                break json;
            }
            thread::sleep(Duration::from_millis(100));
        };
        // Both programs' own counts, also exchanged over the proxy. At its end iperf3 resets the connection with data still
        // in flight.
        let bytes = |end: &str| json["end"][end]["bytes"].as_u64().unwrap_or_else(|| panic!("{json:#}"));
        assert!(bytes("sum_received") >= 5_000_000, "{json:#}");
        assert!(bytes("sum_sent") >= bytes("sum_received"), "{json:#}");
    }
}

#[test]
fn rsync_copies_through_a_forward() {
    if !are_installed("rsync_copies_through_a_forward", &["rsync"]) {
        return;
    }
    let (scratch, port) = (Scratch::new("proxy-rsync"), free_port());
    for at in 0..20 {
        scratch.write(&format!("from/{at}/file"), &format!("{at} ").repeat(10_000 * at));
    }
    let (from, config) = (scratch.path("from"), scratch.path("rsyncd.conf"));
    let text = format!("use chroot = no\n[files]\npath = {}\nread only = yes\n", from.display());
    scratch.write("rsyncd.conf", &text);
    let mut server = Command::new("rsync");
    server.args(["--daemon", "--no-detach", "--address=127.0.0.1"]).arg(format!("--port={port}"));
    server.arg(format!("--config={}", config.display()));
    let _server = listening(server, port);
    let entrances = format!("--forward 0=127.0.0.1:{port}");
    let (_far, proxy_client) = start_pair(&scratch, &format!("--allow 127.0.0.1:{port}"), &entrances);
    let source = format!("rsync://127.0.0.1:{}/files/", proxy_client.entrance(" at the proxy server").port());
    let copied = Command::new("rsync").args(["-rz", &source]).arg(scratch.path("to")).finish();
    succeeded(&copied);
    assert_eq!(scratch.files("to"), scratch.files("from"));
    for at in 0..20 {
        assert!(scratch.read(&format!("to/{at}/file")) == scratch.read(&format!("from/{at}/file")));
    }
}

/// Two hosts with UDP alone between them: their TCP is redirected to a proxy client.
struct HostPair {
    names: [String; 2],
}

impl HostPair {
    /// None, with a word about it, where they cannot be made.
    fn new(test: &str) -> Option<Self> {
        let names = [1, 2].map(|at| format!("nwp{}-{at}", std::process::id()));
        let hosts = Self { names };
        let set_up = |line: &str| {
            let line = line.replace("A1", &hosts.names[0]).replace("A2", &hosts.names[1]);
            let (program, args) = line.split_once(' ').unwrap();
            let output = Command::new(program).args(args.split(' ')).try_finish();
            match output {
                Ok(output) if output.status.success() => Ok(()),
                Ok(output) => Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim())),
                Err(error) => Err(format!("{line}: {error}")),
            }
        };
        let mut lines: Vec<String> =
            ["ip netns add A1", "ip netns add A2", "ip link add nwp netns A1 type veth peer name nwp netns A2"]
                .map(str::to_owned)
                .into();
        for (at, other) in [(1, 2), (2, 1)] {
            lines.extend([
                format!("ip -n A{at} link set lo up"),
                format!("ip -n A{at} addr add 10.77.0.{at}/24 dev nwp"),
                format!("ip -n A{at} link set nwp up"),
            ]);
            let nft = format!("ip netns exec A{at} nft");
            lines.extend([
                format!("{nft} add table ip proxy"),
                format!("{nft} add chain ip proxy out {{ type nat hook output priority -100; }}"),
                format!("{nft} add rule ip proxy out ip daddr 10.77.0.{other} meta l4proto tcp redirect to :1081"),
                format!("{nft} add chain ip proxy only {{ type filter hook postrouting priority 0; }}"),
                format!("{nft} add rule ip proxy only oifname nwp meta l4proto tcp drop"),
            ]);
        }
        for line in lines {
            if let Err(reason) = set_up(&line) {
                skipped(test, &format!("hosts cannot be made here: {reason}"));
                return None;
            }
        }
        // The kernel reports a little later that a link is up, and MPI checks that.
        let is_up = |name: &String| {
            let shown = Command::new("ip").args(["-n", name, "link", "show", "nwp"]).finish();
            String::from_utf8_lossy(&shown.stdout).contains("state UP")
        };
        eventually(DEFAULT_TIMEOUT, "the link between the hosts is up", || hosts.names.iter().all(is_up));
        Some(hosts)
    }

    /// A command on one of them, counted from 1.
    fn on(&self, at: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[at - 1]]).arg(program);
        command
    }
}

impl Drop for HostPair {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).try_finish();
        }
    }
}

/// Each rank receives its neighbour's data, a megabyte ten times, and all agree on a sum.
const RING: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    static char data[1 << 20];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long sum = 0, own = rank + 1;
    MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++)
        MPI_Sendrecv_replace(data, sizeof data, MPI_CHAR, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0) printf("%d ranks, sum %ld\n", size, sum);
    MPI_Finalize();
    return 0;
}
"#;

/// The program that hydra calls instead of ssh: the host's address ends in the number of its namespace.
const LAUNCH: &str = r#"#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "NAME-${host##*.}" sh -c "$*"
"#;

#[test]
fn mpi_runs_through_redirected_connections() {
    let test = "mpi_runs_through_redirected_connections";
    if !are_installed(test, &["mpicc.mpich", "mpiexec.hydra", "ip", "nft"]) {
        return;
    }
    let Some(hosts) = HostPair::new(test) else { return };
    let scratch = Scratch::new("proxy-mpi");
    let source = scratch.write("ring.c", RING);
    succeeded(&Command::new("mpicc.mpich").arg("-o").arg(scratch.path("ring")).arg(source).finish());
    let prefix = hosts.names[0].rsplit_once('-').unwrap().0;
    let launch = scratch.write("launch", &LAUNCH.replace("NAME", prefix));
    fs::set_permissions(&launch, fs::Permissions::from_mode(0o755)).unwrap();
    // Each host has connections to make, so each has a proxy client, and a proxy server for the other one.
    let program = Path::new(env!("CARGO_BIN_EXE_narrows"));
    let end = |at: usize, line: &str| {
        let mut command = hosts.on(at, program);
        command.arg("proxy").args(line.split(' ')).env("XDG_STATE_HOME", scratch.path("state"));
        ProxyProcess::start(command)
    };
    let proxy_server = |at: usize| end(at, &format!("server --listen 10.77.0.{at} --insecure --allow 10.77.0.{at}:*"));
    let proxy_client = |to: usize| end(3 - to, &format!("client 10.77.0.{to} --insecure --transparent 1081 -v"));
    let (proxy_servers, proxy_clients) = ([1, 2].map(proxy_server), [2, 1].map(proxy_client));
    for proxy_client in &proxy_clients {
        proxy_client.says("connected to the proxy server");
    }
    let mut ring = hosts.on(1, "timeout");
    // MPICH's UCX hangs at its end in one of fifty runs, also without a proxy: only the ranks' output counts.
    ring.args(["20", "mpiexec.hydra"]);
    ring.args(["-launcher", "ssh", "-launcher-exec"]).arg(&launch).args(["-localhost", "10.77.0.1"]);
    ring.args(["-hosts", "10.77.0.1,10.77.0.2", "-n", "2", "-ppn", "1"]).arg(scratch.path("ring"));
    // Ranks on one kernel would use its memory otherwise.
    ring.env("MPIR_CVAR_NOLOCAL", "1")
        .env("UCX_TLS", "tcp,self")
        .env("UCX_NET_DEVICES", "nwp")
        .env("FI_PROVIDER", "tcp");
    let output = ring.stdin(Stdio::null()).finish();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2 ranks, sum 3\n", "{output:?}");
    let [proxy_client, _] = proxy_clients;
    assert!(proxy_client.stopped(Signal::SIGINT).contains(": opened 10.77.0.2:"));
    drop(proxy_servers);
}
