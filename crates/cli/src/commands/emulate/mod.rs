//! `narrows emulate`: a scenario on packets of a protocol, in real or in virtual time.

#[cfg(target_os = "linux")]
mod real_time;
#[cfg(feature = "virtual")]
mod transport_plan;
#[cfg(feature = "virtual")]
mod virtual_time;

use std::path::PathBuf;

use router::IpVersion;
use scenario::Overrides;

use crate::args::{Common, EmulateArgs, Stack};
use crate::exit::CommandFailure;
use crate::sheet::check_csv;

pub(crate) fn emulate(args: &EmulateArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &super::run::TABLES)?;
    let common = Common {
        set: args.set.clone(),
        seed: args.seed,
        threads: if args.virtual_time { args.threads } else { Some(1) },
        out: args.out.clone(),
        force: args.force,
        check_invariants: false,
        json: args.json,
        csv: args.csv.clone(),
        quiet: args.quiet,
        wide: args.wide,
    };
    let overrides =
        Overrides { without: args.without.clone(), ..super::run::overrides(&common, args.file.scale.clone()) };
    let scenario = scenario::load(&args.file.scenario, &overrides)?;
    let kind = if args.virtual_time { "virtual" } else { "emulated" };
    let out =
        args.out.clone().unwrap_or_else(|| PathBuf::from(format!("out/{}-{kind}", scenario.config.name.as_str())));
    let common = Common { out: Some(out), ..common };
    if args.virtual_time { in_virtual_time(args, &scenario, &common) } else { in_real_time(args, &scenario, &common) }
}

#[cfg(feature = "virtual")]
fn in_virtual_time(args: &EmulateArgs, scenario: &scenario::Scenario, common: &Common) -> Result<(), CommandFailure> {
    virtual_time::emulate(args, scenario, common)
}

#[cfg(not(feature = "virtual"))]
fn in_virtual_time(_: &EmulateArgs, _: &scenario::Scenario, _: &Common) -> Result<(), CommandFailure> {
    Err(CommandFailure::Input(
        "error: this build has no transport: it needs the feature `virtual` or `transport`, which is on by default"
            .into(),
    ))
}

#[cfg(target_os = "linux")]
fn in_real_time(args: &EmulateArgs, scenario: &scenario::Scenario, common: &Common) -> Result<(), CommandFailure> {
    real_time::emulate(args, scenario, common)
}

#[cfg(not(target_os = "linux"))]
fn in_real_time(_: &EmulateArgs, _: &scenario::Scenario, _: &Common) -> Result<(), CommandFailure> {
    Err(CommandFailure::Input(
        "error: real packets need Linux: its network namespaces and TUN devices\nhelp: --virtual runs the transport on \
         any machine"
            .into(),
    ))
}

/// Returns the IP version of the scenario's flows.
fn ip_version(args: &EmulateArgs) -> IpVersion {
    if args.ipv6 { IpVersion::V6 } else { IpVersion::V4 }
}

/// Returns the command line that repeats this run, without the options that all commands share.
fn replay(args: &EmulateArgs) -> Vec<String> {
    let mut words = vec!["narrows".to_owned(), "emulate".to_owned()];
    words.extend(args.file.words());
    let mut push_option = |option: &str, value: String| words.extend([option.to_owned(), value]);
    args.without.iter().for_each(|key| push_option("--without", key.clone()));
    args.gso_max_size.iter().for_each(|burst| push_option("--gso-max-size", burst.clone()));
    args.host_costs.iter().for_each(|costs| push_option("--host-costs", costs.clone()));
    args.command_host.iter().for_each(|host| push_option("--command-host", host.clone()));
    args.background.iter().for_each(|(host, command)| push_option("--background", format!("{host}={command}")));
    args.pcap.iter().for_each(|(port, file)| push_option("--pcap", format!("{port}={}", file.display())));
    if args.stack == Some(Stack::Narrows) {
        push_option("--stack", "narrows".to_owned());
    }
    #[cfg(feature = "null-crypto")]
    if args.null_crypto {
        words.push("--null-crypto".to_owned());
    }
    for (given, option) in
        [(args.virtual_time, "--virtual"), (args.ipv6, "--ipv6"), (args.no_real_time, "--no-real-time")]
    {
        if given {
            words.push(option.to_owned());
        }
    }
    if !args.command.is_empty() {
        words.push("--".to_owned());
        words.extend(args.command.iter().map(|word| word.to_string_lossy().into_owned()));
    }
    words
}

/// Returns the value of `--gso-max-size` in bytes, if given: the maximum size of a TCP packet at the device (GSO), or
/// the transport's maximum burst.
fn burst(args: &EmulateArgs) -> Result<Option<u32>, CommandFailure> {
    let Some(text) = &args.gso_max_size else { return Ok(None) };
    let burst = scenario::argument::bytes("--gso-max-size", text)?.get();
    if (1_500..=65_536).contains(&burst) {
        return Ok(Some(burst as u32));
    }
    Err(CommandFailure::Input(format!("error: --gso-max-size {text}: expected 1500 B to 64 KiB")))
}
