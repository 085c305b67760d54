//! `narrows kernel`: arguments that it refuses on any machine, and, as root, laws in this machine's TCP.

use crate::support::Scratch;

#[test]
fn doctor_reports_its_findings() {
    let scratch = Scratch::new("doctor");
    let ran = scratch.narrows("kernel doctor --json");
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let checks = json["checks"].as_array().unwrap();
    let names: Vec<&str> = checks.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"kernel") && names.contains(&"type information"), "{names:?}");
    // It performs the loads: its word is that of the tests, which load laws themselves.
    if cfg!(feature = "bpf") {
        let load = checks.iter().find(|check| check["name"].as_str().unwrap().contains("struct_ops")).unwrap();
        match kernel::doctor::may_load() {
            Ok(()) => assert_ne!(load["verdict"], "missing", "{load:#}"),
            Err(reason) => assert!(load["found"].as_str().unwrap().contains(&reason), "{load:#}: {reason}"),
        }
    }
    // Ready or not is for the exit code as well as for the JSON.
    assert_eq!(ran.code, i32::from(json["ready"] == false));
}

#[cfg(not(feature = "bpf"))]
#[test]
fn build_without_bpf_is_an_error() {
    let ran = Scratch::new("nobpf").narrows("kernel load gemini");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("no BPF part") && ran.err.contains("narrows kernel doctor"), "{}", ran.err);
}

#[cfg(feature = "bpf")]
mod with_bpf {
    use std::fs;
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use testing::skipped_without;

    use crate::support::{ProgramRun, Scratch, skipped};

    #[test]
    fn invalid_arguments_fail_before_loading() {
        let scratch = Scratch::new("kernel-errors");
        for (line, expected) in [
            ("kernel load gemni", "did you mean `gemini`?"),
            ("kernel load bbr", "`bbr` is not built for the kernel"),
            ("kernel load gemini --param bta=0.1", "did you mean `beta`?"),
            ("kernel load gemini --param beta=2", "it must be 0 to 1"),
            ("kernel load gemini --param h_min=6", "must not be over `h_max`, which is 5"),
            ("kernel load gemini --param beta", "NAME=VALUE"),
            ("kernel load gemini --line-rate fast", "--line-rate"),
            ("kernel load gemini --base-rtt 1ps", "--base-rtt 1ps: expected 1us to 10s; the kernel measures"),
            ("kernel load gemini --intra-rtt 0s", "--intra-rtt 0s: expected 1us to 10s"),
            ("kernel load gemini --route=", "expected a prefix alone"),
            ("kernel status gemni", "did you mean `gemini`?"),
        ] {
            let ran = scratch.narrows(line);
            assert_eq!(ran.code, 2, "{line}: {}", ran.err);
            assert!(ran.err.contains(expected), "{line}: {}", ran.err);
        }
    }

    /// Several loads of one law at once: one succeeds, and each other reports that the law is loaded.
    #[test]
    fn concurrent_loads_load_the_law_once() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("at-once");
        let name = name('t');
        let ran = isolated(
            &scratch,
            &format!(
                "for i in 1 2 3 4; do $NARROWS kernel load gemini --name {name} >out$i 2>&1 & done\nwait\n\
                 cat out1 out2 out3 out4\n$NARROWS kernel unload gemini || exit 9\n"
            ),
        );
        assert_eq!(ran.code, 0, "{ran}");
        let count = |text: &str| ran.out.matches(text).count();
        assert_eq!((count("is in the kernel as"), count("gemini is loaded already")), (1, 3), "{ran}");
        assert!(!available().contains(&name));
    }

    #[test]
    fn objects_are_exported() {
        let scratch = Scratch::new("export");
        assert_eq!(scratch.narrows("kernel export objects").code, 0);
        let files = scratch.files("objects");
        assert!(files.contains(&"gemini.bpf.o".to_owned()), "{files:?}");
        assert_eq!(&fs::read(scratch.path("objects/gemini.bpf.o")).unwrap()[..4], b"\x7fELF");
        // They are replaced, and a person's file is not.
        scratch.narrows("kernel export objects").ok();
        for (name, theirs) in [("gemini.bpf.o", "\u{7f}ELF mine"), ("sources", "1\n")] {
            let file = format!("objects/{name}");
            let ours = fs::read(scratch.path(&file)).unwrap();
            scratch.write(&file, theirs);
            scratch
                .narrows("kernel export objects")
                .fails(2, &["will not replace", &file, "`narrows kernel export` wrote"]);
            assert_eq!(scratch.read(&file), theirs);
            fs::write(scratch.path(&file), ours).unwrap();
        }
        scratch.narrows("kernel export objects").ok();
    }

    /// Deadline of a script, in seconds: a hundred times the duration of any of them on an idle machine.
    const PATIENCE_S: u64 = 300;

    /// Returns true if laws can be loaded, in a mount namespace of the test's own: a user's pins are not touched. Otherwise
    /// reports the test of this thread as skipped, with the refused program type and errno.
    fn can_load() -> bool {
        let unshare = || {
            let tried = Command::new("unshare").args(["--mount", "true"]).output();
            tried.is_ok_and(|it| it.status.success()).then_some(()).ok_or("there is no `unshare --mount`".to_owned())
        };
        let can = kernel::doctor::may_load().and_then(|()| unshare());
        if let Err(reason) = &can {
            let test = thread::current();
            skipped(test.name().unwrap_or("a test"), reason);
        }
        can.is_ok()
    }

    /// Runs lines of shell with a BPF file system and a /run of their own; `$NARROWS` is the program. At the deadline
    /// `timeout` kills all of them.
    fn isolated(scratch: &Scratch, lines: &str) -> ProgramRun {
        let setup = "set -e\nmount -t tmpfs none /run\nmount -t bpf none /sys/fs/bpf\nset +e\n";
        let output = Command::new("timeout")
            .args(["--signal=KILL", &PATIENCE_S.to_string(), "unshare"])
            .args(["--mount", "--net", "sh", "-c", &format!("{setup}{lines}")])
            .env("NARROWS", env!("CARGO_BIN_EXE_narrows"))
            .env("COLUMNS", "200")
            .current_dir(scratch.path("."))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let ran = ProgramRun::new(lines, &output);
        assert_ne!(ran.code, 128 + 9, "not done within {PATIENCE_S} s, or killed: {ran}");
        ran
    }

    fn available() -> String {
        fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
    }

    /// A name for this process alone, at most 15 bytes.
    fn name(letter: char) -> String {
        format!("nwt{letter}{}", std::process::id())
    }

    #[test]
    fn a_law_is_loaded_shown_and_unloaded() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-load");
        let name = name('a');
        let ran = isolated(
            &scratch,
            &format!(
                "ip link set lo up
                 cat /proc/sys/net/ipv4/tcp_congestion_control
                 $NARROWS kernel load gemini --name {name} --set-default --line-rate 1Gbps --param k=75KB || exit 9
                 cat /proc/sys/net/ipv4/tcp_congestion_control
                 $NARROWS kernel load gemini; echo again $?
                 $NARROWS kernel status --json > status.json || exit 8
                 $NARROWS kernel status --csv=laws > laws.csv || exit 5
                 $NARROWS kernel status --csv > sockets.csv || exit 4
                 $NARROWS kernel doctor --csv > doctor.csv || exit 3
                 $NARROWS kernel status
                 # Earlier builds pinned a program of this name.
                 ln -s flows /sys/fs/bpf/narrows/gemini/list_sockets || exit 6
                 $NARROWS kernel unload gemini || exit 7
                 $NARROWS kernel unload gemini; echo gone $?
                 cat /proc/sys/net/ipv4/tcp_congestion_control
                 ls /sys/fs/bpf | grep narrows; ls /run/narrows/kernel
                 $NARROWS kernel status"
            ),
        );
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let lines: Vec<&str> = ran.out.lines().collect();
        let (first, last) = (lines[0], lines[lines.len() - 2]);
        assert_eq!(first, last, "the default is as it was: {}", ran.out);
        for expected in [
            &format!("GEMINI is in the kernel as `{name}`"),
            "used by new connections of: default",
            &format!("\n{name}\n"),
            "again 2",
            "line rate 1 Gbps",
            "k 75000 B",
            "GEMINI is out of the kernel",
            "gone 2",
            "no law is loaded to stay",
        ] {
            assert!(ran.out.contains(expected), "no `{expected}` in\n{}", ran.out);
        }
        assert!(ran.err.contains("loaded already"), "{}", ran.err);
        let status: serde_json::Value = serde_json::from_str(&scratch.read("status.json")).unwrap();
        let law = &status["laws"][0];
        assert_eq!((&law["law"], &law["tcp_name"]), (&"gemini".into(), &name.as_str().into()));
        assert_eq!(law["line_rate_bps"], 1_000_000_000);
        assert_eq!(law["refused"], 0);
        let laws = scratch.read("laws.csv");
        assert!(laws.starts_with("law,tcp_name,") && laws.contains(&format!("gemini,{name},1000000000,")), "{laws}");
        assert!(scratch.read("sockets.csv").starts_with("law,local,remote,"));
        assert!(scratch.read("doctor.csv").starts_with("name,verdict,found,remedy\n"));
        assert!(!available().contains(&name));
    }

    #[test]
    fn default_is_restored_from_another_namespace() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-elsewhere");
        let name = name('e');
        let ran = isolated(
            &scratch,
            &format!(
                "ip link set lo up; ip route add 203.0.113.0/24 dev lo || exit 9
                 cat /proc/sys/net/ipv4/tcp_congestion_control
                 $NARROWS kernel load dctcp --name {name} --set-default --route 203.0.113.0/24 >/dev/null || exit 8
                 unshare --net $NARROWS kernel unload dctcp >/dev/null || exit 7
                 cat /proc/sys/net/ipv4/tcp_congestion_control
                 ip route show 203.0.113.0/24 | grep -c congctl"
            ),
        );
        let lines: Vec<&str> = ran.out.lines().collect();
        assert!(matches!(lines[..], [before, after, "0"] if before == after), "{}{}", ran.out, ran.err);
        assert_eq!(ran.err, "");
    }

    #[test]
    fn pins_in_a_private_mount_namespace_are_refused() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-mounts");
        let ran = isolated(
            &scratch,
            "ip netns add other || exit 9
             for command in 'load dctcp' status 'unload dctcp'; do
                 ip netns exec other $NARROWS kernel $command; echo code $?
             done
             ip netns del other",
        );
        assert_eq!(ran.out, "code 2\ncode 2\ncode 2\n", "{}", ran.err);
        assert_eq!(ran.err.matches("`--netns NAME` for a namespace").count(), 3, "{}", ran.err);
    }

    #[test]
    fn unload_works_after_a_killed_load() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-kill");
        let name = name('k');
        let ran = isolated(
            &scratch,
            &format!(
                r#"ip link set lo up; ip route add 203.0.113.0/24 dev lo || exit 9
                 before=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
                 # The route is taken after the default, by an `ip` that kills whoever changes a route by it.
                 mkdir fake
                 printf '#!/bin/sh\n[ "$3" != replace ] || {{ kill -KILL $PPID; exit 1; }}\nexec %s "$@"\n' \
                     "$(command -v ip)" > fake/ip
                 chmod +x fake/ip
                 PATH=$PWD/fake:$PATH $NARROWS kernel load dctcp --name {name} --set-default --route 203.0.113.0/24 \
                     > /dev/null 2>&1
                 [ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = {name} ] || exit 8
                 $NARROWS kernel unload dctcp > /dev/null || exit 7
                 [ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = "$before" ] || exit 6"#
            ),
        );
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert!(!available().contains(&name));
    }

    #[test]
    fn sockets_without_the_law_are_counted() {
        if !can_load() {
            return;
        }
        if !Command::new("perl").arg("-v").output().is_ok_and(|it| it.status.success()) {
            return skipped_without("sockets_without_the_law_are_counted", "perl");
        }
        let scratch = Scratch::new("kernel-refused");
        let name = name('r');
        let ran = isolated(
            &scratch,
            &format!(
                "ip link set lo up
                 $NARROWS kernel load dctcp --name {name} --set-default || exit 9
                 $NARROWS kernel status
                 echo 300 2>/dev/null > /proc/sys/net/core/optmem_max || exit 77
                 perl -MIO::Socket::INET -e '
                     $l = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1:5000\") or die;
                     $c = IO::Socket::INET->new(\"127.0.0.1:5000\") or die;
                     $l->accept or die' || exit 8
                 $NARROWS kernel status
                 $NARROWS kernel status --json > status.json
                 $NARROWS kernel unload dctcp"
            ),
        );
        if ran.code == 77 {
            return skipped(
                "sockets_without_the_law_are_counted",
                "before Linux 6.8 optmem_max is the whole machine's",
            );
        }
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let warnings: Vec<&str> = ran.out.lines().filter(|line| line.contains("without the law")).collect();
        assert!(
            matches!(warnings[..], [one] if one.contains("warning: 2 sockets run or ran without the law")),
            "{}",
            ran.out
        );
        let status: serde_json::Value = serde_json::from_str(&scratch.read("status.json")).unwrap();
        assert_eq!(status["laws"][0]["refused"], 2);
    }

    /// The connection runs in a namespace without a name, which only its sockets keep while `status` polls.
    #[test]
    fn status_shows_sockets_of_a_namespace_without_a_name() {
        const TEST: &str = "status_shows_sockets_of_a_namespace_without_a_name";
        if !can_load() {
            return;
        }
        if let Err(reason) = &kernel::probe::KernelProbe::get().sockets {
            return skipped(TEST, reason);
        }
        if !Command::new("perl").arg("-v").output().is_ok_and(|it| it.status.success()) {
            return skipped_without(TEST, "perl");
        }
        let scratch = Scratch::new("kernel-sockets");
        let name = name('s');
        let ran = isolated(
            &scratch,
            &format!(
                r#"$NARROWS kernel load dctcp --name {name} >/dev/null || exit 9
                 # The law is the default of the other namespace alone. CLONE_NEWNET is 0x40000000; of two processes, the
                 # one that leaves the namespace keeps the sockets.
                 cat > connect.pl <<'END'
use IO::Socket::INET;
open(my $own, "<", "/proc/self/ns/net") or die;
syscall(272, 0x40000000) == 0 or die "unshare: $!";
system("ip link set lo up") == 0 or die;
open(my $default, ">", "/proc/sys/net/ipv4/tcp_congestion_control") or die;
print $default $ARGV[0];
close($default) or die "default: $!";
$l = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1:5000") or die;
$c = IO::Socket::INET->new("127.0.0.1:5000") or die;
$a = $l->accept or die;
syswrite($c, "x" x 100000) == 100000 or die;
read($a, my $all, 100000) == 100000 or die;
syscall(308, fileno($own), 0x40000000) == 0 or die "setns: $!";
system("\$NARROWS kernel status --json > status.json; \$NARROWS kernel status") == 0 or die;
END
                 perl connect.pl {name} || exit 8
                 $NARROWS kernel unload dctcp > /dev/null || exit 7"#
            ),
        );
        if ran.code == 8 && cfg!(not(target_arch = "x86_64")) {
            return skipped(TEST, "its numbers of system calls are those of x86-64");
        }
        assert_eq!(ran.code, 0, "{ran}");
        let status: serde_json::Value = serde_json::from_str(&scratch.read("status.json")).unwrap();
        let law = &status["laws"][0];
        let sockets = law["sockets"].as_array().unwrap();
        assert_eq!(sockets.len(), 2, "{status:#}");
        let sender = sockets.iter().find(|socket| socket["remote"] == "127.0.0.1:5000").unwrap();
        assert!(sender["acked_bytes"].as_u64().unwrap() >= 100_000, "{sender:#}");
        assert!(sender["law"]["delivered_bytes"].as_u64().unwrap() > 50_000, "{sender:#}");
        assert!(ran.out.contains("  2 sockets\n") && ran.out.contains("alpha_ppm"), "{ran}");
        assert!(law["not_listed"].is_array(), "{law:#}");
    }

    #[test]
    fn missing_scopes_leave_nothing_attached() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-place");
        let name = name('b');
        let ran = isolated(
            &scratch,
            &format!(
                "$NARROWS kernel load dctcp --name {name} --set-default --netns there-is-none; echo code $?
                 $NARROWS kernel load dctcp --name {name} --route 203.0.113.0/24; echo code $?
                 $NARROWS kernel load dctcp --name {name} --cgroup /proc; echo code $?
                 ls /sys/fs/bpf | grep narrows
                 cat /proc/sys/net/ipv4/tcp_congestion_control"
            ),
        );
        let codes: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("code")).collect();
        assert_eq!(codes, ["code 2", "code 2", "code 2"], "{}{}", ran.out, ran.err);
        assert!(!ran.out.contains("narrows") && !ran.out.contains(&name), "{}", ran.out);
        assert!(ran.err.contains("/run/netns/there-is-none") && ran.err.contains("203.0.113.0/24"), "{}", ran.err);
        assert!(!available().contains(&name));
    }

    #[test]
    fn routes_are_restored_unless_changed() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-route");
        let name = name('q');
        let ran = isolated(
            &scratch,
            &format!(
                "ip link set lo up
                 ip route add 203.0.113.0/24 dev lo mtu 1400 || exit 9
                 $NARROWS kernel load dctcp --name {name} --route 203.0.113.0/24 || exit 8
                 echo route with $(ip route show 203.0.113.0/24)
                 $NARROWS kernel unload dctcp || exit 7
                 echo route back $(ip route show 203.0.113.0/24)
                 $NARROWS kernel load dctcp --name {name} --route 203.0.113.0/24 || exit 6
                 ip route del 203.0.113.0/24
                 $NARROWS kernel unload dctcp || exit 5
                 echo route gone $(ip route show 203.0.113.0/24)"
            ),
        );
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        let routes: Vec<&str> = ran.out.lines().filter_map(|line| line.strip_prefix("route ")).map(str::trim).collect();
        let [with, back, gone] = routes[..] else { panic!("{}", ran.out) };
        assert!(with.contains(&format!("congctl {name}")) && with.contains("mtu 1400"), "{with}");
        assert!(!back.contains("congctl") && back.contains("mtu 1400"), "{back}");
        assert_eq!(gone, "gone", "what was deleted is not made again");
    }

    #[test]
    fn stacked_laws_unload_in_any_order() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-order");
        let (first, second) = (name('e'), name('f'));
        let ran = isolated(
            &scratch,
            &format!(
                "ip link set lo up
                 ip route add 203.0.113.0/24 dev lo || exit 9
                 ip route add fd00:9::/64 dev lo || exit 8
                 used() {{
                     echo $1: $(cat /proc/sys/net/ipv4/tcp_congestion_control) \
                         $(ip -4 route show 203.0.113.0/24), $(ip -6 route show fd00:9::/64)
                 }}
                 places='--set-default --route 203.0.113.0/24 --route fd00:9::/64'
                 used before
                 $NARROWS kernel load dctcp --name {first} $places > /dev/null || exit 7
                 used first
                 $NARROWS kernel load gemini --name {second} $places > /dev/null || exit 6
                 used second
                 $NARROWS kernel unload dctcp > /dev/null || exit 5
                 used second
                 $NARROWS kernel unload gemini > /dev/null || exit 4
                 used before
                 # Both at once: whichever comes first.
                 $NARROWS kernel load dctcp --name {first} $places > /dev/null &
                 $NARROWS kernel load gemini --name {second} $places > /dev/null &
                 wait
                 $NARROWS kernel unload dctcp > /dev/null &
                 $NARROWS kernel unload gemini > /dev/null &
                 wait
                 used before"
            ),
        );
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
        let lines: Vec<&str> = ran.out.lines().collect();
        let [before, with_first, with_second, still_second, after, at_last] = lines[..] else { panic!("{}", ran.out) };
        assert_eq!(with_first.matches(&first).count(), 3, "{with_first}");
        assert_eq!(with_second.matches(&second).count(), 3, "{with_second}");
        assert_eq!(still_second, with_second);
        assert_eq!((after, at_last), (before, before));
    }

    #[test]
    fn terminated_foreground_load_restores_the_default() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-term");
        let name = name('d');
        let ran = isolated(
            &scratch,
            &format!(
                "cat /proc/sys/net/ipv4/tcp_congestion_control
                 $NARROWS kernel load mprdma --name {name} --foreground --set-default >held & holder=$!
                 polls=0
                 until [ -s held ]; do
                     kill -0 $holder && [ $((polls += 1)) -lt 1200 ] || exit 9
                     sleep 0.05
                 done
                 cat /proc/sys/net/ipv4/tcp_congestion_control
                 kill -TERM $holder; wait $holder
                 cat /proc/sys/net/ipv4/tcp_congestion_control"
            ),
        );
        assert_ne!(ran.code, 9, "the law was not held within 60 s: {ran}");
        let lines: Vec<&str> = ran.out.lines().collect();
        assert_eq!((lines[0], lines[1]), (lines[2], name.as_str()), "{}{}", ran.out, ran.err);
        assert!(!available().contains(&name));
    }

    #[test]
    fn watching_ends_with_its_reader() {
        if !can_load() {
            return;
        }
        let ran =
            isolated(&Scratch::new("watch"), "(timeout 20 $NARROWS kernel status --watch; echo code $? >&2) | head -1");
        assert!(ran.err.contains("code 0"), "{}{}", ran.out, ran.err);
    }

    #[test]
    fn killed_foreground_load_leaves_no_law() {
        if !can_load() {
            return;
        }
        let scratch = Scratch::new("kernel-kill");
        let name = name('c');
        let mut child = scratch
            .command(["kernel", "load", "unocc", "--foreground", "--name", &name])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            let _ = sender.send(line);
        });
        let line = lines.recv_timeout(Duration::from_mins(1));
        if line.is_err() {
            child.kill().unwrap();
        }
        let line = line.expect("the command says within 60 s that it holds the law");
        assert!(line.contains("until Ctrl-C"), "{line}");
        assert!(available().contains(&name));
        child.kill().unwrap();
        child.wait().unwrap();
        // The kernel removes it late.
        let mut polls = 0;
        while available().contains(&name) {
            assert!(polls < 3_000, "the law is still there after 60 s");
            thread::sleep(Duration::from_millis(20));
            polls += 1;
        }
    }
}
