//! Laws under real TCP, in network namespaces of this test's own: taken out under running flows, two at once, a
//! namespace deleted under them, bad settings. Nothing crashes, nothing stays behind. Every wait has a deadline.
#![cfg(feature = "bpf")]
#![allow(unsafe_code, reason = "a thread enters a namespace")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::attach_scope::{AttachScope, AttachedScope};
use kernel::probe::KernelProbe;
use kernel::{Error, KernelLaw, Loaded, Programs, Settings};
use laws::catalog::ParamValue;
use testing::skipped;
use units::{Frac, Span};

/// Names of congestion controls are global to the machine, and leftovers are counted: one test at a time.
static EXCLUSIVE: Mutex<()> = Mutex::new(());

/// Deadline of every wait of these tests: a hundred times the longest on an idle machine.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Waits for this test's turn. None, after reporting the skip, if the kernel refuses a program that the test needs.
fn exclusive(test: &str) -> Option<MutexGuard<'static, ()>> {
    let guard = EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner);
    let needs = kernel::doctor::may_load().and_then(|()| {
        let iproute = Command::new("ip").arg("-V").output();
        iproute.map(drop).map_err(|error| format!("`ip` of iproute2: {error}"))
    });
    match needs {
        Ok(()) => Some(guard),
        Err(reason) => {
            skipped(test, &reason);
            None
        }
    }
}

/// The same for a test that lists sockets.
fn exclusive_with_sockets(test: &str) -> Option<MutexGuard<'static, ()>> {
    let guard = exclusive(test)?;
    match &KernelProbe::get().sockets {
        Ok(()) => Some(guard),
        Err(reason) => {
            skipped(test, reason);
            None
        }
    }
}

/// A name that no other process has.
fn unique(label: &str) -> String {
    format!("nw{label}{}", std::process::id())
}

fn load(law: &str) -> Loaded {
    let row = KernelLaw::of_name(law).expect("a row");
    Loaded::load(row, &Settings::default(), Some(&unique(&law[..3])), Programs::Law).expect("the kernel takes it")
}

fn available() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("a kernel with TCP")
}

/// The numbers of the laws' programs that the kernel holds, those of other processes included.
fn programs() -> BTreeSet<u32> {
    let of_law = |program: &libbpf_rs::query::ProgramInfo| program.name.to_string_lossy().starts_with("hook_");
    libbpf_rs::query::ProgInfoIter::default().filter(of_law).map(|program| program.id).collect()
}

/// Loads a law and returns it with its programs: numbers are not used again.
fn load_with_programs(law: &str) -> (Loaded, BTreeSet<u32>) {
    let before = programs();
    let law = load(law);
    let own = &programs() - &before;
    assert!(own.len() >= 4, "{own:?}");
    (law, own)
}

/// Waits until something holds; the kernel frees sockets and programs late.
fn eventually(condition: &str, holds: impl Fn() -> bool) {
    let pause = Duration::from_millis(20);
    for _ in 0..TIMEOUT.as_millis() / pause.as_millis() {
        if holds() {
            return;
        }
        thread::sleep(pause);
    }
    panic!("not after {TIMEOUT:?}: {condition}");
}

/// A network namespace with loopback.
struct Netns(String);

impl Netns {
    fn new(label: &str) -> Self {
        let name = unique(label);
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

/// Runs `ip`, which `timeout` ends with 124 at the deadline, and returns its output.
fn ip(arguments: &[&str]) -> String {
    let deadline = TIMEOUT.as_secs().to_string();
    let output = Command::new("timeout").args([&deadline, "ip"]).args(arguments).output().expect("coreutils");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments:?}: {}, {error}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Calls `act` on a thread inside a namespace.
fn inside<T: Send>(netns: &Netns, act: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{}", netns.0)).expect("the namespace");
    let enter = || {
        // SAFETY: a valid descriptor; only this thread enters.
        assert_eq!(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, 0, "root enters");
        act()
    };
    thread::scope(|scope| scope.spawn(enter).join().expect("it does not panic"))
}

/// A listener on a namespace's loopback under a law, which must stand before the SYN: it becomes the default.
fn listen(netns: &Netns, law: &str) -> TcpListener {
    inside(netns, || {
        fs::write("/proc/sys/net/ipv4/tcp_congestion_control", law).expect("a law for all namespaces");
        TcpListener::bind("127.0.0.1:0").expect("a port")
    })
}

/// Both ends of a connection over a namespace's loopback, under a law.
fn connected(netns: &Netns, law: &str) -> (TcpStream, TcpStream) {
    let listener = listen(netns, law);
    let address = listener.local_addr().expect("bound");
    let to = inside(netns, || TcpStream::connect_timeout(&address, TIMEOUT)).expect("a connection");
    (with_timeouts(to), accepted(&listener))
}

/// Accepts a connection before the deadline.
fn accepted(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("a socket of this process");
    let connection = RefCell::new(None);
    eventually("a connection is accepted", || {
        *connection.borrow_mut() = listener.accept().ok();
        connection.borrow().is_some()
    });
    let connection = connection.into_inner().expect("accepted").0;
    connection.set_nonblocking(false).expect("a socket of this process");
    with_timeouts(connection)
}

/// Sets a deadline for every read and write of a connection, at which it fails.
fn with_timeouts(connection: TcpStream) -> TcpStream {
    connection.set_read_timeout(Some(TIMEOUT)).expect("over zero");
    connection.set_write_timeout(Some(TIMEOUT)).expect("over zero");
    connection
}

/// Sets a socket's option.
fn set<T>(socket: &impl AsRawFd, level: i32, option: i32, value: &T) {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the option is read from `value`, and the stated length is its size.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), length) };
    assert_eq!(result, 0, "option {option}: {}", std::io::Error::last_os_error());
}

/// Connects a socket that was set up before.
fn connect_with(netns: &Netns, listener: &TcpListener, prepare: impl FnOnce(&TcpStream) + Send) -> TcpStream {
    let port = listener.local_addr().expect("bound").port();
    inside(netns, || {
        // SAFETY: the arguments are numbers; the returned descriptor is new, so nothing else owns it.
        let socket =
            unsafe { TcpStream::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0)) };
        prepare(&socket);
        // The deadline of writes is that of the handshake, too.
        let socket = with_timeouts(socket);
        let at = libc::sockaddr_in {
            sin_family: libc::AF_INET as u16,
            sin_port: port.to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
            sin_zero: [0; 8],
        };
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        // SAFETY: the stated length is the size of the address.
        let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const at).cast(), length) };
        assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
        socket
    })
}

/// A law's name as an option's value.
fn option_of(law: &Loaded) -> [u8; 15] {
    std::array::from_fn(|at| law.tcp_name().as_bytes().get(at).copied().unwrap_or(0))
}

/// Sends `length` bytes and waits until they have arrived.
fn transfer(to: &mut TcpStream, from: &mut TcpStream, length: usize) {
    thread::scope(|scope| {
        scope.spawn(|| from.read_exact(&mut vec![0; length]).expect("the bytes"));
        to.write_all(&vec![0; length]).expect("the flow goes on");
    });
}

/// A connection over a namespace's loopback that sends until it is stopped, under a law of that name.
struct Transfer {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Transfer {
    fn start(netns: &Netns, law: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut to, mut from) = connected(netns, law);
        let stopped = Arc::clone(&stop);
        let sender = thread::spawn(move || {
            let bytes = vec![0; 1 << 16];
            while !stopped.load(Ordering::Relaxed) {
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
        Self { stop, threads: vec![sender, receiver] }
    }

    /// Ends it and returns the number of bytes that arrived.
    fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().expect("the flow ends well")).sum()
    }
}

/// The sockets of a law.
fn listed(law: &Loaded) -> Vec<kernel::LawSocket> {
    law.sockets().expect("the kernel lists them").sockets
}

/// The sockets of a law that send.
fn senders(law: &Loaded) -> Vec<kernel::LawSocket> {
    let sockets = listed(law);
    sockets.into_iter().filter(|socket| socket.law.as_ref().is_some_and(|law| law.acks > 10)).collect()
}

#[test]
fn flows_survive_unloading_their_law() {
    let Some(_guard) = exclusive_with_sockets("flows_survive_unloading_their_law") else { return };
    let netns = Netns::new("out");
    let (law, own) = load_with_programs("gemini");
    let flow = Transfer::start(&netns, law.tcp_name());
    eventually("the law has received ACKs", || !senders(&law).is_empty());
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
    eventually("no program stays behind", || programs().is_disjoint(&own));
}

#[test]
fn two_laws_run_concurrently() {
    let Some(_guard) = exclusive_with_sockets("two_laws_run_concurrently") else { return };
    let netns = Netns::new("two");
    let laws = [load("unocc"), load("dctcp")];
    let flows = laws.each_ref().map(|law| Transfer::start(&netns, law.tcp_name()));
    for law in &laws {
        eventually("the law has received ACKs", || !senders(law).is_empty());
        let state = senders(law)[0].law.clone().expect("it has begun");
        let own = if law.tcp_name().starts_with("nwuno") { "marked_ewma_ppm" } else { "alpha_ppm" };
        assert!(state.trace.iter().any(|(name, _)| *name == own), "{}: {state:?}", law.tcp_name());
    }
    for flow in flows {
        assert!(flow.finish() > 0);
    }
}

#[test]
fn kernel_names_are_unique() {
    let Some(_guard) = exclusive("kernel_names_are_unique") else { return };
    let law = load("dctcp");
    let load =
        |name| Loaded::load(KernelLaw::of_name("dctcp").unwrap(), &Settings::default(), Some(name), Programs::Law);
    let again = load(law.tcp_name());
    assert!(matches!(again, Err(Error::NameTaken { .. })), "{again:?}");
    let long = load("sixteen-letters-");
    assert!(matches!(long, Err(Error::LongName { .. })), "{long:?}");
}

#[test]
fn a_bad_parameter_leaves_nothing_behind() {
    let Some(_guard) = exclusive("a_bad_parameter_leaves_nothing_behind") else { return };
    let beta = ParamValue::Fraction(Frac::from_bits(2 << 32));
    let settings = Settings { params: vec![("beta".into(), beta)], ..Settings::default() };
    let error =
        Loaded::load(KernelLaw::of_name("gemini").unwrap(), &settings, Some("nwbad"), Programs::Law).unwrap_err();
    assert_eq!(error.to_string(), "GEMINI's `beta` is 2; it must be 0 to 1");
    assert!(!available().contains("nwbad"));
}

#[test]
fn flows_survive_deleting_their_namespace() {
    let Some(_guard) = exclusive_with_sockets("flows_survive_deleting_their_namespace") else { return };
    let netns = Netns::new("del");
    let (law, own) = load_with_programs("dctcp");
    let scope = AttachedScope::find(&AttachScope::Netns(netns.0.clone())).expect("the namespace is there");
    scope.attach(law.tcp_name()).expect("the namespace takes it");
    let flow = Transfer::start(&netns, law.tcp_name());
    eventually("the law has received ACKs", || !senders(&law).is_empty());
    drop(netns);
    assert!(!senders(&law).is_empty(), "its sockets live on");
    let message = scope.restore(law.tcp_name()).expect("there is no such namespace any more");
    assert!(message.contains("netns nwdel"), "{message}");
    assert!(flow.finish() > 0);
    drop(law);
    eventually("no program stays behind", || programs().is_disjoint(&own));
}

#[test]
fn previous_law_is_restored() {
    let Some(_guard) = exclusive("previous_law_is_restored") else { return };
    let netns = Netns::new("back");
    let now = || {
        let shown = ip(&["netns", "exec", &netns.0, "cat", "/proc/sys/net/ipv4/tcp_congestion_control"]);
        shown.trim().to_owned()
    };
    let before = now();
    let law = load("unocc");
    let scope = AttachedScope::find(&AttachScope::Netns(netns.0.clone())).expect("the namespace is there");
    scope.attach(law.tcp_name()).expect("the namespace takes it");
    assert_eq!((now(), &scope.previous), (law.tcp_name().to_owned(), &before));
    assert_eq!(scope.restore(law.tcp_name()), None);
    assert_eq!(now(), before);
    let missing = AttachedScope::find(&AttachScope::Netns("there-is-none".into())).unwrap_err();
    assert!(missing.to_string().contains("/run/netns/there-is-none"), "{missing}");
}

#[test]
fn sockets_without_memory_for_the_law_are_counted() {
    let Some(_guard) = exclusive_with_sockets("sockets_without_memory_for_the_law_are_counted") else { return };
    let netns = Netns::new("mem");
    let law = load("gemini");
    drop(connected(&netns, law.tcp_name()));
    assert_eq!(law.refused().expect("a count"), 0);
    let optmem = "/proc/sys/net/core/optmem_max";
    let is_own = inside(&netns, || fs::write(optmem, "300").is_ok());
    if !is_own {
        return skipped(
            "sockets_without_memory_for_the_law_are_counted",
            &format!("before Linux 6.8 {optmem} is the whole machine's"),
        );
    }
    let (mut to, mut from) = connected(&netns, law.tcp_name());
    assert_eq!(law.refused().expect("a count"), 2, "both ends");
    transfer(&mut to, &mut from, 1 << 20);
    assert!(listed(&law).is_empty());
    // As soon as there is memory the law begins, in the middle of the flow.
    assert!(inside(&netns, || fs::write(optmem, "131072").is_ok()));
    transfer(&mut to, &mut from, 1 << 20);
    let port = to.local_addr().expect("connected").port();
    let sockets = listed(&law);
    let sender = sockets.iter().find(|socket| socket.local.port() == port).expect("it is listed");
    assert!(sockets.len() == 2 && sender.law.is_some(), "{sockets:?}");
}

#[test]
fn sockets_that_change_their_law_are_unlisted() {
    let Some(_guard) = exclusive_with_sockets("sockets_that_change_their_law_are_unlisted") else { return };
    let netns = Netns::new("oth");
    let law = load("dctcp");
    let (mut to, mut from) = connected(&netns, law.tcp_name());
    transfer(&mut to, &mut from, 1 << 20);
    assert_eq!(listed(&law).len(), 2);
    set(&to, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"reno");
    assert_eq!(listed(&law).len(), 1, "the other end still runs it");
    transfer(&mut to, &mut from, 1 << 20);
    // And back: the law begins again.
    set(&to, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &option_of(&law));
    transfer(&mut to, &mut from, 1 << 20);
    let port = to.local_addr().expect("connected").port();
    let sockets = listed(&law);
    let socket = sockets.into_iter().find(|socket| socket.local.port() == port).expect("it is listed again");
    let state = socket.law.expect("it has begun");
    assert!(socket.acked.get() > 2 << 20 && state.delivered.get() < 2 << 20, "{}: {state:?}", socket.acked);
}

#[test]
fn max_pacing_rate_is_respected() {
    let Some(_guard) = exclusive("max_pacing_rate_is_respected") else { return };
    let netns = Netns::new("pac");
    let law = load("unocc");
    let (mut to, mut from) = connected(&netns, law.tcp_name());
    set(&to, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &1_000_000_000u64);
    transfer(&mut to, &mut from, 1 << 20);
    // Of `struct tcp_info`: up to `tcpi_pacing_rate`.
    let (mut info, mut length) = ([0u8; 112], 112);
    let target = info.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `length` bytes to `info`, which is as long.
    let result =
        unsafe { libc::getsockopt(to.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, target, &raw mut length) };
    assert_eq!((result, length), (0, 112));
    assert_eq!(u64::from_ne_bytes(info[104..].try_into().expect("8 bytes")), 1_000_000_000);
}

#[test]
fn law_begins_at_the_first_rtt_sample() {
    let Some(_guard) = exclusive_with_sockets("law_begins_at_the_first_rtt_sample") else { return };
    let netns = Netns::new("tfo");
    let law = load("unocc");
    // TCP Fast Open without cookies: the server has a connection before it has a round trip.
    inside(&netns, || fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1543").expect("fast open"));
    let listener = listen(&netns, law.tcp_name());
    let address = listener.local_addr().expect("bound");
    let mut to = connect_with(&netns, &listener, |socket| {
        set(socket, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, &1);
    });
    to.write_all(&[1]).expect("with the SYN");
    let mut from = accepted(&listener);
    from.read_exact(&mut [0]).expect("the byte");
    let server = |socket: &kernel::LawSocket| socket.local.port() == address.port();
    let state = || listed(&law).into_iter().find(server).expect("it is listed").law;
    assert_eq!(state(), None, "it has sent nothing yet");
    transfer(&mut from, &mut to, 1 << 20);
    let base = state().expect("it has begun").base_rtt;
    assert!(!base.is_zero() && base < Span::from_ms(1), "a loopback's round trip, not the one of none: {base}");
}

#[test]
fn ecn_requires_the_law_at_the_listener() {
    let Some(_guard) = exclusive_with_sockets("ecn_requires_the_law_at_the_listener") else {
        return;
    };
    let netns = Netns::new("ecn");
    let law = load("gemini");
    inside(&netns, || fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").expect("a namespace's own"));
    for (listens, agreed) in [("reno", false), (law.tcp_name(), true)] {
        let listener = listen(&netns, listens);
        let to = connect_with(&netns, &listener, |socket| {
            set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, &option_of(&law));
        });
        let port = to.local_addr().expect("connected").port();
        let sockets = listed(&law);
        let socket = sockets.into_iter().find(|socket| socket.local.port() == port).expect("it is listed");
        assert_eq!(socket.ecn, agreed, "a listener under {listens}");
    }
}
