//! Checks of this machine: its ability to run laws in its kernel, and anything missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use files::process::{HELPER_DEADLINE, output_within};

/// The oldest kernel with hooks of the form that the adapter uses (`cong_control` with the acknowledgement).
const MIN_VERSION: (u32, u32) = (6, 10);

/// Result of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckResult {
    /// Meets the requirements.
    Good,
    /// Works, but worth knowing.
    Note,
    /// Laws cannot be loaded.
    Missing,
}

/// One check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// Subject.
    pub name: &'static str,
    /// Result.
    pub verdict: CheckResult,
    /// Finding.
    pub found: String,
    /// Remedy, or the price of doing without; empty if there is none.
    pub remedy: &'static str,
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: CheckResult::Good, found: found.into(), remedy: "" }
    }

    fn note(name: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { name, verdict: CheckResult::Note, found: found.into(), remedy }
    }

    fn missing(name: &'static str, found: impl Into<String>, remedy: &'static str) -> Self {
        Self { name, verdict: CheckResult::Missing, found: found.into(), remedy }
    }
}

/// Tries to load a law, once per process.
///
/// # Errors
/// The reason for which no law can be loaded: a refusal names the type of the program or map, and the errno.
pub fn may_load() -> Result<(), String> {
    #[cfg(feature = "bpf")]
    return crate::probe::KernelProbe::get().law.clone();
    #[cfg(not(feature = "bpf"))]
    Err("this build has no BPF part".to_owned())
}

/// Does all checks, and loads every law for a moment.
pub fn examine() -> Vec<Check> {
    let mut checks = vec![this_build(), kernel(&text("/proc/sys/kernel/osrelease")), privileges()];
    checks.push(if Path::new(BTF).exists() {
        Check::good("type information", BTF)
    } else {
        Check::missing("type information", format!("no {BTF}"), "a kernel built with CONFIG_DEBUG_INFO_BTF=y")
    });
    checks.extend(options(kernel_config().as_deref()));
    #[cfg(feature = "bpf")]
    checks.extend(loads());
    checks.push(bpf_file_system(&text("/proc/mounts")));
    checks.push(cgroups(&text("/proc/mounts")));
    checks.push(ecn(text("/proc/sys/net/ipv4/tcp_ecn").trim()));
    checks.push(Check::good(
        "congestion controls",
        text("/proc/sys/net/ipv4/tcp_available_congestion_control").trim().to_owned(),
    ));
    checks.push(tun());
    checks.push(iproute());
    checks.push(offload());
    checks
}

const BTF: &str = "/sys/kernel/btf/vmlinux";

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn is_root() -> bool {
    let second = |ids: &str| ids.split_whitespace().nth(1) == Some("0");
    text("/proc/self/status").lines().any(|line| line.strip_prefix("Uid:").is_some_and(second))
}

/// Loads everything that laws need.
#[cfg(feature = "bpf")]
fn loads() -> Vec<Check> {
    use crate::probe::{KernelProbe, refused_laws};

    const LAWS: &str = "loading laws (struct_ops, sk_storage)";
    const CGROUP: &str = "cgroup program (sock_ops)";
    const TRIAL: &str = "test program (syscall)";
    const SOCKETS: &str = "laws' state (inet_diag, sk_storage)";
    let probe = KernelProbe::get();
    if let Err(reason) = &probe.law {
        // The other loads contain this one.
        return vec![Check::missing(LAWS, reason.clone(), "a kernel that takes it: no law can be loaded")];
    }
    let refused = refused_laws();
    let laws = if refused.is_empty() {
        Check::good(LAWS, format!("all {} laws", crate::rows().len()))
    } else {
        let reasons: Vec<String> = refused.iter().map(|(_, error)| error.to_string()).collect();
        Check::note(LAWS, reasons.join("; "), "these laws cannot be loaded, the others can")
    };
    let optional = |name, attempt: &crate::probe::Attempt, price| match attempt {
        Ok(()) => Check::good(name, "taken"),
        Err(reason) => Check::note(name, reason.clone(), price),
    };
    vec![
        laws,
        optional(CGROUP, &probe.cgroup, "`--cgroup` is not available"),
        optional(SOCKETS, &probe.sockets, "`status` lists no sockets, `emulate` records no state of laws"),
        optional(TRIAL, &probe.trial, "only tests of Narrows itself need it"),
    ]
}

fn this_build() -> Check {
    let laws: Vec<&str> = crate::rows().iter().map(|row| row.name).collect();
    if cfg!(feature = "bpf") {
        Check::good("this build", format!("has {}", laws.join(", ")))
    } else {
        Check::missing(
            "this build",
            "was made without the kernel's part",
            "install clang, libelf and zlib (Debian: apt-get install clang libelf-dev zlib1g-dev pkg-config) and run `make build` again",
        )
    }
}

fn kernel(release: &str) -> Check {
    let release = release.trim();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) if (major, minor) >= MIN_VERSION => Check::good("kernel", release),
        (Some(_), Some(_)) => Check::missing("kernel", release, "Linux 6.10 or later (Debian 13 has 6.12)"),
        _ => Check::missing("kernel", format!("`{release}` is no release that can be read"), "Linux 6.10 or later"),
    }
}

fn privileges() -> Check {
    if is_root() {
        Check::good("privileges", "root")
    } else {
        Check::missing(
            "privileges",
            "not root",
            "run it with sudo: loading a program into the kernel needs CAP_BPF and CAP_NET_ADMIN",
        )
    }
}

/// The kernel's configuration, from where distributions keep it.
fn kernel_config() -> Option<String> {
    let release = text("/proc/sys/kernel/osrelease");
    let release = release.trim();
    let paths = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    if let Some(config) = paths.iter().find_map(|path| fs::read_to_string(path).ok()) {
        return Some(config);
    }
    // zcat rather than a library for one file that is only looked at.
    let output = output_within(Command::new("zcat").arg("/proc/config.gz"), &[], HELPER_DEADLINE).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Required options of the kernel's build, and their purposes.
const OPTIONS: [(&str, &str); 5] = [
    ("CONFIG_BPF_SYSCALL", "loads programs"),
    ("CONFIG_BPF_JIT", "struct_ops need the compiler in the kernel"),
    ("CONFIG_NET", "TCP"),
    ("CONFIG_CGROUP_BPF", "`--cgroup`"),
    ("CONFIG_TUN", "`narrows emulate`"),
];

fn options(config: Option<&str>) -> Vec<Check> {
    const NAME: &str = "kernel options";
    let Some(config) = config else {
        return vec![Check::note(NAME, "not in /boot, /lib/modules or /proc/config.gz", "")];
    };
    let is_set = |option: &str| {
        config.lines().any(|line| line.strip_prefix(option).is_some_and(|rest| rest == "=y" || rest == "=m"))
    };
    let absent: Vec<_> = OPTIONS.iter().filter(|(option, _)| !is_set(option)).collect();
    if absent.is_empty() {
        return vec![Check::good(NAME, "all there")];
    }
    let describe = |(option, purpose): &&(&str, &str)| {
        Check::missing(NAME, format!("{option} is off: {purpose}"), "a kernel with it")
    };
    absent.iter().map(describe).collect()
}

fn mounted(mounts: &str, kind: &str) -> Option<String> {
    let mut entries = mounts.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    entries.find_map(|words| (words.get(2) == Some(&kind)).then(|| words[1].to_owned()))
}

fn bpf_file_system(mounts: &str) -> Check {
    match mounted(mounts, "bpf") {
        Some(path) => Check::good("BPF file system", path),
        None => Check::note("BPF file system", "not mounted", "`narrows kernel load` mounts it at /sys/fs/bpf"),
    }
}

fn cgroups(mounts: &str) -> Check {
    match mounted(mounts, "cgroup2") {
        Some(path) => Check::good("cgroups, version 2", path),
        None => Check::note("cgroups, version 2", "not mounted", "`--cgroup` needs it; the other choices do not"),
    }
}

fn ecn(value: &str) -> Check {
    const NAME: &str = "ECN (net.ipv4.tcp_ecn)";
    match value {
        "0" => Check::note(
            NAME,
            "0: only where a law asks for it",
            "laws ask for it on both ends; the listener must run the law before the SYN arrives",
        ),
        "1" => Check::good(NAME, "1: asked for and agreed to"),
        "2" => Check::good(NAME, "2: agreed to; laws ask for it themselves"),
        "" => Check::note(NAME, "cannot be read", ""),
        other => Check::note(NAME, format!("{other}: accurate ECN"), "laws count the classic echo: set it to 1 or 2"),
    }
}

fn tun() -> Check {
    if Path::new("/dev/net/tun").exists() {
        Check::good("TUN devices", "/dev/net/tun")
    } else {
        Check::note("TUN devices", "no /dev/net/tun", "`narrows emulate` needs it: modprobe tun")
    }
}

fn iproute() -> Check {
    match output_within(Command::new("ip").arg("-V"), &[], HELPER_DEADLINE) {
        Ok(output) => Check::good("iproute2", String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Err(error) => Check::note(
            "iproute2",
            format!("no `ip`: {error}"),
            "`--route` and `narrows emulate` need it (Debian: apt-get install iproute2)",
        ),
    }
}

/// Bursts of 64 KB defeat a marking threshold that is not much larger.
fn offload() -> Check {
    Check::note(
        "bursts",
        "TCP hands devices up to 64 KB at once",
        "with a marking threshold under about 200 KB, lower it: ip link set dev DEVICE gso_max_size 9000",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_before_6_10_are_missing_requirements() {
        for (release, verdict) in [
            ("6.12.1-amd64", CheckResult::Good),
            ("6.10.0", CheckResult::Good),
            ("7.2.0-rc1\n", CheckResult::Good),
            ("6.9.12", CheckResult::Missing),
            ("5.15.0-91-generic", CheckResult::Missing),
            ("", CheckResult::Missing),
        ] {
            assert_eq!(kernel(release).verdict, verdict, "{release}");
        }
    }

    #[test]
    fn absent_options_are_named() {
        let config =
            "CONFIG_BPF_SYSCALL=y\nCONFIG_BPF_JIT=y\nCONFIG_NET=y\n# CONFIG_CGROUP_BPF is not set\nCONFIG_TUN=m\n";
        let checks = options(Some(config));
        assert_eq!(checks.len(), 1);
        assert!(checks[0].found.contains("CONFIG_CGROUP_BPF"), "{}", checks[0].found);
        assert_eq!(options(None)[0].verdict, CheckResult::Note);
    }

    #[test]
    fn mounts_are_found_by_kind() {
        let mounts = "proc /proc proc rw 0 0\nnone /sys/fs/bpf bpf rw 0 0\n";
        assert_eq!(bpf_file_system(mounts).verdict, CheckResult::Good);
        assert_eq!(cgroups(mounts).verdict, CheckResult::Note);
    }

    #[test]
    fn accurate_ecn_is_noted() {
        assert_eq!(ecn("1").verdict, CheckResult::Good);
        assert_eq!(ecn("3").verdict, CheckResult::Note);
    }

    #[test]
    fn examine_includes_kernel_and_privileges() {
        let names: Vec<_> = examine().iter().map(|check| check.name).collect();
        assert!(names.contains(&"kernel") && names.contains(&"privileges"), "{names:?}");
    }
}
