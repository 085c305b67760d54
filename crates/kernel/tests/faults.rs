//! Laws under real TCP, in network namespaces of this test's own: taken out under running flows, two at once, a
//! namespace deleted under them, bad settings. Nothing crashes, nothing stays behind.
#![cfg(feature = "bpf")]
#![allow(unsafe_code, reason = "a thread enters a namespace")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::places::{Place, Taken};
use kernel::{Error, Loaded, Row, Settings};
use laws::catalog::Value;
use units::Frac;

/// Names of congestion controls are the whole machine's, and what is left behind is counted: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> Option<MutexGuard<'static, ()>> {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if kernel::doctor::may_load() && Command::new("ip").arg("-V").output().is_ok() {
        return Some(turn);
    }
    eprintln!("skipped: this needs root, the kernel's type information and iproute2");
    None
}

/// A name that no other process has.
fn unique(what: &str) -> String {
    format!("nw{what}{}", std::process::id())
}

fn load(law: &str) -> Loaded {
    let row = Row::of_name(law).expect("a row");
    Loaded::load(row, &Settings::default(), Some(&unique(&law[..3]))).expect("the kernel takes it")
}

fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("a kernel with TCP")
}

/// Programs of laws that the kernel holds.
fn programs() -> usize {
    let of_law = |program: &libbpf_rs::query::ProgramInfo| program.name.to_string_lossy().starts_with("hook_");
    libbpf_rs::query::ProgInfoIter::default().filter(of_law).count()
}

/// Waits until something holds; sockets and programs go when the kernel gets to it.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let mut looks = 0;
    while !holds() {
        assert!(looks < 1_000, "not after 20 s: {what}");
        thread::sleep(Duration::from_millis(20));
        looks += 1;
    }
}

/// A network namespace with loopback.
struct Netns(String);

impl Netns {
    fn new(what: &str) -> Self {
        let name = unique(what);
        ip(&["netns", "add", &name]);
        ip(&["-n", &name, "link", "set", "lo", "up"]);
        Self(name)
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("iproute2");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A connection over a namespace's loopback that sends until told to stop, under a law of that name.
struct Transfer {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Transfer {
    fn start(netns: &Netns, law: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (name, law, told) = (netns.0.clone(), law.to_owned(), Arc::clone(&stop));
        let begin = thread::spawn(move || {
            let file = File::open(format!("/run/netns/{name}")).expect("the namespace");
            // SAFETY: a valid descriptor; only this thread enters.
            assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0, "root enters");
            // The listener's law must stand before the SYN: the namespace's default.
            fs::write("/proc/sys/net/ipv4/tcp_congestion_control", law).expect("a law for all namespaces");
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let mut to = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
            let (mut from, _) = listener.accept().expect("a connection");
            let sender = thread::spawn(move || {
                let bytes = vec![0; 1 << 16];
                while !told.load(Ordering::Relaxed) {
                    to.write_all(&bytes).expect("the flow goes on");
                    thread::sleep(Duration::from_millis(1));
                }
                0
            });
            let receiver = thread::spawn(move || {
                let (mut bytes, mut all) = (vec![0; 1 << 16], 0);
                while let Ok(some @ 1..) = from.read(&mut bytes) {
                    all += some as u64;
                }
                all
            });
            vec![sender, receiver]
        });
        Self { stop, threads: begin.join().expect("the flow begins") }
    }

    /// Ends it and says how much arrived.
    fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("the flow ends well")).sum()
    }
}

/// The sockets of a law that send.
fn senders(law: &Loaded) -> Vec<kernel::Socket> {
    let sockets = law.sockets().expect("the kernel lists them");
    sockets.into_iter().filter(|socket| socket.law.as_ref().is_some_and(|law| law.acks > 10)).collect()
}

#[test]
fn a_law_is_taken_out_under_its_flows() {
    let Some(_turn) = turn() else { return };
    let before = programs();
    let netns = Netns::new("out");
    let law = load("gemini");
    let flow = Transfer::start(&netns, law.tcp_name());
    eventually("acknowledgements are heard of", || !senders(&law).is_empty());
    let socket = &senders(&law)[0];
    let state = socket.law.as_ref().expect("it has begun");
    assert!(socket.ecn, "both ends run the law: ECN is agreed on");
    assert!(state.delivered.get() > 0 && state.trace.iter().any(|(name, _)| *name == "alpha_ppm"), "{state:?}");
    let name = law.tcp_name().to_owned();
    drop(law);
    assert!(!available().contains(&name));
    thread::sleep(Duration::from_millis(100));
    assert!(flow.finish() > 1 << 20, "the flow went on");
    drop(netns);
    eventually("no program stays behind", || programs() == before);
}

#[test]
fn two_laws_run_at_once() {
    let Some(_turn) = turn() else { return };
    let netns = Netns::new("two");
    let laws = [load("unocc"), load("dctcp")];
    let flows = laws.each_ref().map(|law| Transfer::start(&netns, law.tcp_name()));
    for law in &laws {
        eventually("acknowledgements are heard of", || !senders(law).is_empty());
        let state = senders(law)[0].law.clone().expect("it has begun");
        let own = if law.tcp_name().starts_with("nwuno") { "marked_ewma_ppm" } else { "alpha_ppm" };
        assert!(state.trace.iter().any(|(name, _)| *name == own), "{}: {state:?}", law.tcp_name());
    }
    for flow in flows {
        assert!(flow.finish() > 0);
    }
}

#[test]
fn a_name_is_taken_once() {
    let Some(_turn) = turn() else { return };
    let law = load("dctcp");
    let again = Loaded::load(Row::of_name("dctcp").unwrap(), &Settings::default(), Some(law.tcp_name()));
    assert!(matches!(again, Err(Error::NameTaken { .. })), "{again:?}");
    let long = Loaded::load(Row::of_name("dctcp").unwrap(), &Settings::default(), Some("sixteen-letters-"));
    assert!(matches!(long, Err(Error::LongName { .. })), "{long:?}");
}

#[test]
fn a_bad_parameter_leaves_nothing_behind() {
    let Some(_turn) = turn() else { return };
    let (before, names) = (programs(), available());
    let beta = Value::Fraction(Frac::from_bits(2 << 32));
    let settings = Settings { params: vec![("beta".into(), beta)], ..Settings::default() };
    let error = Loaded::load(Row::of_name("gemini").unwrap(), &settings, Some("nwbad")).unwrap_err();
    assert_eq!(error.to_string(), "GEMINI's `beta` is 2; it must be 0 to 1");
    assert_eq!((programs(), available()), (before, names));
}

#[test]
fn a_namespace_is_deleted_under_a_law() {
    let Some(_turn) = turn() else { return };
    let before = programs();
    let netns = Netns::new("del");
    let law = load("dctcp");
    let taken = Taken::take(&Place::Netns(netns.0.clone()), law.tcp_name()).expect("the namespace takes it");
    let flow = Transfer::start(&netns, law.tcp_name());
    eventually("acknowledgements are heard of", || !senders(&law).is_empty());
    drop(netns);
    assert!(!senders(&law).is_empty(), "its sockets live on");
    let complaint = taken.give_back(law.tcp_name()).expect("there is no such namespace any more");
    assert!(complaint.contains("netns nwdel"), "{complaint}");
    assert!(flow.finish() > 0);
    drop(law);
    eventually("no program stays behind", || programs() == before);
}

#[test]
fn a_place_gets_back_what_it_had() {
    let Some(_turn) = turn() else { return };
    let netns = Netns::new("back");
    let now = || {
        let output = Command::new("ip")
            .args(["netns", "exec", &netns.0, "cat", "/proc/sys/net/ipv4/tcp_congestion_control"])
            .output();
        String::from_utf8_lossy(&output.expect("iproute2").stdout).trim().to_owned()
    };
    let before = now();
    let law = load("unocc");
    let taken = Taken::take(&Place::Netns(netns.0.clone()), law.tcp_name()).expect("the namespace takes it");
    assert_eq!((now(), &taken.before), (law.tcp_name().to_owned(), &before));
    assert_eq!(taken.give_back(law.tcp_name()), None);
    assert_eq!(now(), before);
    let missing = Taken::take(&Place::Netns("there-is-none".into()), law.tcp_name()).unwrap_err();
    assert!(missing.to_string().contains("/run/netns/there-is-none"), "{missing}");
}
