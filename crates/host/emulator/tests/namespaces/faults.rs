//! Cleanup and remaining function after failures.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};

use emulator::{DEVICE, Error, HostNamespaces};
use testing::{Bounded, DEFAULT_TIMEOUT, skipped_here};

use crate::set::{ALICE, BOB, exclusive, left_behind, middle, network, options, set};

fn own_leftovers() -> Vec<String> {
    left_behind(std::process::id())
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).start().status().success(), "{arguments:?}");
}

#[test]
fn nothing_is_left_when_dropped() {
    let Some(set) = set(&middle()) else { return };
    let router = set.route(Vec::new());
    set.transfer(100_000);
    // Two namespaces, two overlays of /etc, one claim.
    assert_eq!(own_leftovers().len(), 5);
    drop(router);
    drop(set);
    let _guard = exclusive();
    assert_eq!(own_leftovers(), Vec::<String>::new());
}

#[test]
fn nothing_is_left_after_a_panic() {
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let Some(set) = set(&middle()) else { return };
        let _router = set.route(Vec::new());
        set.transfer(10_000);
        let _ = set.hosts.enter(ALICE, || panic!("on purpose"));
    }));
    let _guard = exclusive();
    assert_eq!(own_leftovers(), Vec::<String>::new());
    if let Err(panic) = panicked {
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"), "a panic inside goes on outside");
    }
}

#[test]
fn second_set_of_hosts_is_an_error() {
    let Some(set) = set(&middle()) else { return };
    assert!(matches!(HostNamespaces::create(&set.network, &options()), Err(Error::Busy)));
    // And takes nothing of the first with it.
    let router = set.route(Vec::new());
    set.transfer(10_000);
    router.stop().unwrap();
}

#[test]
fn an_mtu_under_ipv6s_is_refused() {
    let _guard = exclusive();
    let options = emulator::NamespaceOptions { mtu: 1279, ..options() };
    assert!(matches!(HostNamespaces::create(&network(&middle()), &options), Err(Error::Mtu { mtu: 1279 })));
}

#[test]
fn an_unknown_congestion_control_leaves_nothing() {
    let Some(first) = set(&middle()) else { return };
    drop(first);
    let _guard = exclusive();
    let options = emulator::NamespaceOptions { congestion: Some("nonesuch".into()), ..options() };
    let error = HostNamespaces::create(&network(&middle()), &options).unwrap_err();
    assert!(matches!(&error, Error::Congestion { name, .. } if name == "nonesuch"), "{error}");
    assert_eq!(own_leftovers(), Vec::<String>::new());
}

#[test]
fn deleting_a_namespaces_name_keeps_the_emulation() {
    let Some(set) = set(&middle()) else { return };
    let router = set.route(Vec::new());
    ip(&["netns", "delete", set.hosts.namespace(BOB).unwrap()]);
    // The namespace lives on without its name.
    set.transfer(100_000);
    router.stop().unwrap();
    drop(set);
    let _guard = exclusive();
    assert_eq!(own_leftovers(), Vec::<String>::new());
}

#[test]
fn deleting_a_device_affects_only_its_host() {
    let Some(set) = set(&middle()) else { return };
    let router = set.route(Vec::new());
    set.hosts.enter(BOB, || ip(&["link", "delete", DEVICE])).unwrap();
    let ping = set.hosts.enter(ALICE, || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
        (0..50).try_for_each(|_| socket.send_to(&[1; 100], (set.plan(BOB).v4, 9)).map(drop))
    });
    ping.unwrap().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let outcome = router.stop().unwrap();
    assert_eq!(outcome.refused.unwritable, 50, "{:?}", outcome.refused);
    // It does not spin on a removed device.
    assert!(outcome.cpu.ps() < outcome.wall.ps() / 2, "{} of {}", outcome.cpu, outcome.wall);
}

/// Not a test: the program that [`leftovers_of_a_killed_process_are_found`] starts as another process, and kills.
#[test]
fn process_to_be_killed() {
    if std::env::var_os("NARROWS_TO_BE_KILLED").is_none() {
        return;
    }
    let Some(set) = set(&middle()) else { return };
    let _router = set.route(Vec::new());
    println!("\nready");
    std::thread::sleep(2 * DEFAULT_TIMEOUT);
    panic!("nobody killed this process within {:?}", 2 * DEFAULT_TIMEOUT);
}

#[test]
fn leftovers_of_a_killed_process_are_found() {
    // Exclusive in this process, too, because its hosts must not be mistaken for stale ones either.
    let Some(own) = set(&middle()) else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::process_to_be_killed", "--nocapture"])
        .env("NARROWS_TO_BE_KILLED", "1")
        .stdout(Stdio::piped())
        .start();
    // The harness prints some before it.
    let lines: Vec<String> = (0..20).map(|_| child.line()).take_while(|line| line != "ready").collect();
    assert!(lines.len() < 20, "{lines:?}");
    let left = left_behind(child.id());
    assert_eq!(left.len(), 5, "{left:?}");
    let removed = HostNamespaces::clean_stale().unwrap();
    assert!(!removed.iter().any(|name| left.contains(name)), "it is still alive: {removed:?}");

    child.kill();
    assert_eq!(left_behind(child.id()), left, "killed, it removes nothing");
    let removed = HostNamespaces::clean_stale().unwrap();
    for host in ["alice", "bob"] {
        assert!(removed.contains(&format!("narrows-{}-{host}", child.id())), "{removed:?}");
    }
    assert_eq!(left_behind(child.id()), Vec::<String>::new());
    assert_eq!(own_leftovers().len(), 5, "this process's own are untouched");
    drop(own);
}

#[test]
fn connection_tables_are_small_on_every_machine() {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok();
    if read("tcp_child_ehash_entries").is_none() {
        return skipped_here("this kernel's namespaces have no tables of their own (Linux 6.2 and later)");
    }
    let Some(set) = set(&middle()) else { return };
    for host in [ALICE, BOB] {
        let entries = set.hosts.enter(host, || read("tcp_ehash_entries")).unwrap();
        // A shared table's size is negative there.
        assert_eq!(entries.as_deref().map(str::trim), Some("4096"));
    }
    assert_ne!(read("tcp_child_ehash_entries").as_deref().map(str::trim), Some("4096"), "the machine's own setting");
}
