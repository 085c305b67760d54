//! `narrows clocks`.

use serde_json::Value;

use crate::support::Scratch;

#[test]
fn a_mesh_is_simulated() {
    let scratch = Scratch::new("clocks-simulate");
    let command = "clocks simulate --hosts 4 --load 0 --duration 3s --warm-up 15s";
    let text = scratch.narrows(command).ok().out;
    for part in ["4 members, 0 % load", "error", "bound", "none outside"] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    let json: Value = serde_json::from_str(&scratch.narrows(&format!("{command} --json")).ok().out).unwrap();
    assert_eq!((&json["schema"], &json["hosts"], &json["bound_held"]), (&1.into(), &4.into(), &true.into()));
    assert!(json["error_ns"]["p99"].as_i64().unwrap() < 1_000, "{json}");
    assert_eq!(scratch.narrows(&format!("{command} --quiet")).ok().out, "");
}

#[test]
fn impossible_meshes_are_refused() {
    let scratch = Scratch::new("clocks-refused");
    for (options, parts) in [
        ("--hosts 1", ["--hosts", "2..=1000"]),
        ("--load 100", ["--load", "0..=95"]),
        ("--hosts 4 --liars 2", ["--liars 2", "fewer than half"]),
        ("--duration 3", ["--duration", "3"]),
        ("--warm-up 1s", ["--warm-up 1s", "15"]),
        ("--steps-every 0s", ["--steps-every 0s", "100"]),
    ] {
        scratch.narrows(&format!("clocks simulate {options}")).fails(2, &parts);
    }
}

/// Two members on the loopback synchronise, answer `status`, and end in order.
#[cfg(target_os = "linux")]
#[test]
fn members_run_and_report_their_state() {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Stdio;
    use std::time::Duration;

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    use testing::{Process, eventually, skipped_here};

    let scratch = Scratch::new("clocks-run");
    let key = scratch.write("mesh.key", "0123456789abcdef0123456789abcdef");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let [low, high, ..] = std::process::id().to_le_bytes();
    let peers = |own: &str| {
        let paths = format!("key = \"mesh.key\"\npage = \"page-{own}\"\nstatus = \"{own}.sock\"\n");
        let member = |name: &str, last: u8| {
            let address = format!("127.{}.{low}.{last}:7123", 1 + high % 60);
            format!("[[member]]\nname = \"{name}\"\naddress = \"{address}\"\nsite = \"here\"\n")
        };
        scratch.write(&format!("{own}.toml"), &(paths + &member("a", 1) + &member("b", 2)));
    };
    let start = |own: &str| {
        peers(own);
        let arguments = ["clocks", "run", "--peers", &format!("{own}.toml"), "--name", own];
        Process::start(scratch.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()))
    };
    let mut members = ["a", "b"].map(start);
    // Where the kernel refuses timestamps, the command ends with an error that names them.
    std::thread::sleep(Duration::from_millis(300));
    if members[0].try_status().is_some() {
        members[0].says("timestamps");
        return skipped_here("the kernel refuses timestamps of packets");
    }
    eventually(Duration::from_mins(1), "the members know mesh time", || {
        let status = scratch.narrows("clocks status --socket b.sock --json").ok().json();
        status["state"] == "synchronised"
    });
    let text = scratch.narrows("clocks status --socket b.sock").ok().out;
    assert!(text.contains("b: synchronised; reference a") && text.contains("round trip"), "{text}");
    let metrics = scratch.narrows("clocks status --socket b.sock --prometheus").ok().out;
    assert!(metrics.contains("synchronised"), "{metrics}");
    for member in &mut members {
        kill(Pid::from_raw(member.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert_eq!(member.status().code(), Some(0));
    }
    scratch.narrows("clocks status --socket b.sock").fails(1, &["b.sock", "clocks run"]);
    scratch.narrows("clocks run --peers a.toml --name c").fails(2, &["a.toml", "c", "a, b"]);
}
