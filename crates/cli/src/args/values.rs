//! Parsers of option values.

use std::path::PathBuf;

pub(super) fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("`{text}` is not KEY=VALUE, as in topology.k=4")),
    }
}

/// Parses a number or a percentage.
pub(super) fn number_or_percentage(text: &str) -> Option<f64> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
    number.trim().parse::<f64>().ok().map(|number| number / unit)
}

/// Parses a fraction, over 0 and at most 1, as a number or a percentage.
pub(super) fn fraction(text: &str) -> Result<f64, String> {
    let error = || format!("{text} is not a fraction over 0 and at most 1, such as 0.05 or 5%");
    number_or_percentage(text).filter(|fraction| *fraction > 0.0 && *fraction <= 1.0).ok_or_else(error)
}

/// Parses a relative difference, from 0 to 10, as a number or a percentage.
pub(super) fn relative_difference(text: &str) -> Result<f64, String> {
    let error = || format!("{text} is not a relative difference from 0 to 10, such as 0.05 or 5%");
    number_or_percentage(text).filter(|share| (0.0..=10.0).contains(share)).ok_or_else(error)
}

/// Parses a seed from 0 to 2^63 - 1, the largest integer that a scenario file can hold.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    let max = i64::MAX as u64;
    text.parse().ok().filter(|&seed| seed <= max).ok_or_else(|| format!("a seed is a whole number from 0 to {max}"))
}

pub(super) fn host_command(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((host, command)) if !host.is_empty() && !command.trim().is_empty() => {
            Ok((host.to_owned(), command.to_owned()))
        }
        _ => Err(format!("`{text}` is not HOST=COMMAND, as in 'right.host0=iperf3 -s'")),
    }
}

pub(super) fn port_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((port, file)) if !port.is_empty() && !file.is_empty() => Ok((port.to_owned(), file.into())),
        _ => Err(format!("`{text}` is not PORT=FILE, as in 'left>right=long-haul.pcapng'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    use crate::args::Cli;

    #[test]
    fn command_definition_passes_clap_checks() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_override_needs_a_key() {
        assert_eq!(key_value("a.b = 3"), Ok(("a.b".into(), "3".into())));
        assert!(key_value("=3").is_err() && key_value("ab").is_err());
    }
}
