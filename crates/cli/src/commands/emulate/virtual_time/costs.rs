//! The option `--host-costs`: processing times of virtual hosts.

use units::Span;
use virtual_time::HostCosts;

use crate::exit::CommandFailure;

/// The option's name.
const OPTION: &str = "--host-costs";
/// The keys that it accepts.
const KEYS: [&str; 5] = ["wake_up", "packet", "batch", "batch_packets", "timer_slack"];
/// Maximum of each time.
const MAX_COST: Span = Span::from_ms(100);

/// Reads `KEY=VALUE,...`; without text, hosts take no time.
pub(super) fn host_costs(text: Option<&str>) -> Result<HostCosts, CommandFailure> {
    let mut costs = HostCosts::default();
    let mut given: Vec<&str> = Vec::new();
    if text.is_some_and(|text| text.trim().is_empty()) {
        return Err(refused(&format!("the value is empty; expected KEY=VALUE,... with keys of {}", KEYS.join(", "))));
    }
    for word in text.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        let Some((key, value)) = word.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
            return Err(refused(&format!("`{word}` has no `=`; expected KEY=VALUE with a key of {}", KEYS.join(", "))));
        };
        if given.contains(&key) {
            return Err(refused(&format!("`{key}` is given twice")));
        }
        let cost = match key {
            "wake_up" => &mut costs.wake_up,
            "packet" => &mut costs.packet,
            "batch" => &mut costs.batch,
            "timer_slack" => &mut costs.timer_slack,
            "batch_packets" => {
                let packets = value.parse().ok().filter(|packets| (1..=65_535).contains(packets));
                let expected =
                    || refused(&format!("batch_packets is `{value}`; expected a whole number from 1 to 65535"));
                costs.batch_packets = packets.ok_or_else(expected)?;
                given.push(key);
                continue;
            }
            _ => return Err(CommandFailure::unknown(&format!("{OPTION}: there is no key `{key}`"), key, &KEYS)),
        };
        *cost = scenario::argument::span(&format!("{OPTION}: {key}"), value)?;
        if !(Span::ZERO..=MAX_COST).contains(cost) {
            return Err(refused(&format!("{key} is {value}; expected 0s to 100ms")));
        }
        given.push(key);
    }
    Ok(costs)
}

fn refused(reason: &str) -> CommandFailure {
    CommandFailure::Input(format!("error: {OPTION}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read() {
        assert_eq!(host_costs(None).unwrap(), HostCosts::default());
        let costs = host_costs(Some("packet=2us, wake_up=50us,batch=1us,batch_packets=16,timer_slack=0s")).unwrap();
        let expected = HostCosts {
            wake_up: Span::from_us(50),
            packet: Span::from_us(2),
            batch: Span::from_us(1),
            batch_packets: 16,
            timer_slack: Span::ZERO,
        };
        assert_eq!(costs, expected);
    }

    #[test]
    fn errors_name_the_key_and_what_is_accepted() {
        for (text, expected) in [
            ("packet", "`packet` has no `=`; expected KEY=VALUE with a key of wake_up, packet"),
            (" ", "the value is empty; expected KEY=VALUE,... with keys of wake_up, packet"),
            ("packets=1us", "there is no key `packets`"),
            ("packet=1us,packet=2us", "`packet` is given twice"),
            ("packet=1s", "packet is 1s; expected 0s to 100ms"),
            ("batch_packets=0", "batch_packets is `0`; expected a whole number from 1 to 65535"),
            ("wake_up=fast", "wake_up"),
        ] {
            let message = host_costs(Some(text)).unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
