//! The least buffer: against the queue that a run without losses shows, and against every value by itself.

mod common;

use results::RunResults;
use results::claims::check_of_a_run;
use scenario::argument::range;
use scenario::{Overrides, Scenario, parse};
use study::size::{
    Choice, Objective, SearchResults, Sizing, check, default_choices, default_range, ladder, separately_set_keys,
};
use study::{Error, NullRecorder, Others, Silent, Simulator, Study};

use common::Scratch;

/// Four hosts send windows of eight packets to one at once: the queue is the same in every run that loses nothing.
const INCAST: &str = r#"
schema = 1
name = "incast"
stop = "20ms"
topology = { kind = "single-switch", hosts = 5, rate = "10Gbps" }
port = { buffer = "64KB", ecn = "off" }
schemes.fixed = { law = "fixed", params.fixed = { window = "12KB" } }
traffic = [{ kind = "incast", intra = 4, size = "60KB" }]
"#;

fn load(text: &str) -> impl Fn(&Overrides) -> Result<Scenario, Error> {
    let text = text.to_owned();
    move |overrides| Ok(parse(&text, "incast.toml", overrides)?)
}

fn objective(text: &str) -> Objective {
    Objective { text: text.to_owned(), check: check_of_a_run(text).unwrap_or_else(|error| panic!("{error}")) }
}

fn runs(scratch: &Scratch, place: &str, scenario: &Scenario, only: &[String]) -> Result<Vec<RunResults>, Error> {
    let study = Study {
        scenario,
        backend: &Simulator { checked: true },
        watch: &Silent,
        notes: &NullRecorder,
        schemes: &[],
        shard: None,
        only,
        from: &[],
        runs_missing: true,
        threads: Some(2),
        out: scratch.0.join(place),
        replay: vec!["narrows size incast.toml".into()],
        claims: &[],
        tables: &[],
        force: false,
        others: Others::Keep,
    };
    Ok(study.run()?.runs)
}

fn found(name: &str, text: &str, sizing: &Sizing) -> (SearchResults, usize) {
    let scratch = Scratch::new(name);
    let mut rounds = 0;
    let found = sizing.search(load(text), &Overrides::default(), |scenario, only| {
        rounds += 1;
        runs(&scratch, &rounds.to_string(), scenario, only)
    });
    (found.unwrap_or_else(|error| panic!("{error}")), rounds)
}

fn sizing(range_of: &str, slo: &str, choices: Vec<Choice>) -> Sizing {
    let ends = range("--minimize", range_of).unwrap_or_else(|error| panic!("{error}"));
    Sizing {
        schemes: vec!["fixed".into()],
        objectives: vec![objective(slo)],
        key: "port.buffer".into(),
        ladder: ladder(&ends, 8).unwrap_or_else(|error| panic!("{error}")),
        steps_per_doubling: 8,
        choices,
    }
}

/// Returns a value of the ladder in bytes.
fn bytes(value: &str) -> u64 {
    scenario::argument::bytes("value", value).unwrap_or_else(|error| panic!("{error}")).get()
}

#[test]
fn minimum_buffer_without_drops_equals_the_max_queue() {
    // The longest queue where there is room for all.
    let scratch = Scratch::new("size-queue");
    let scenario =
        load(INCAST)(&Overrides { set: vec![("port.buffer".into(), "unlimited".into())], ..Overrides::default() });
    let all = runs(&scratch, "all", &scenario.unwrap(), &[]).unwrap();
    let queue = all[0].summary.network.links.iter().map(|link| link.max_queue_bytes).max().unwrap();
    let sought = sizing("4KB..256KB", "network.drops == 0", Vec::new());
    let (found, rounds) = found("size-least", INCAST, &sought);
    let sized = &found.sized[0];
    let (least, fails) = (sized.least.as_ref().unwrap(), sized.fails.as_ref().unwrap());
    // A packet is refused if it does not fit completely, and one in service counts by its remainder.
    let packet = 4_160;
    assert!(bytes(&fails.value) < queue && queue <= bytes(&least.value) + packet, "{queue}: {fails:?}, {least:?}");
    assert!(bytes(&fails.value) + 2 * packet > queue, "{queue}: {fails:?}");
    assert_eq!((sized.binds(), &sized.fails_above), (vec![0], &None));
    // 49 values: the last, then halves of the rest.
    assert_eq!(sought.ladder.len(), 49);
    assert!(rounds <= 8 && found.runs.len() <= 8, "{rounds} rounds of {:?}", found.runs);
    assert_eq!(sized.tried.len(), found.runs.len());
}

#[test]
fn search_agrees_with_exhaustive_search() {
    let choice = Choice {
        key: "schemes.fixed.params.fixed.window".into(),
        values: vec!["12KB".into(), "6KB".into(), "3KB".into()],
    };
    let sought = sizing("4KB..64KB", "p99(slowdown) <= 4 and network.drops == 0", vec![choice.clone()]);
    let (found, _) = found("size-every", INCAST, &sought);
    let scratch = Scratch::new("size-grid");
    let holds = |window: &str, buffer: &str| {
        let set = [(choice.key.as_str(), window), ("port.buffer", buffer)];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let scenario = load(INCAST)(&Overrides { set, ..Overrides::default() }).unwrap();
        let run = &runs(&scratch, &format!("{window}-{buffer}"), &scenario, &[]).unwrap()[0].summary;
        let slowdown = run.flows.all.slowdown.p99;
        run.network.drops == 0 && slowdown.is_some_and(|it| it <= 4.0)
    };
    let least = choice.values.iter().filter_map(|window| {
        sought.ladder.iter().position(|buffer| holds(window, buffer)).map(|place| (place, window.clone()))
    });
    let (place, window) = least.min_by_key(|(place, _)| *place).unwrap();
    let sized = found.sized[0].least.as_ref().unwrap();
    assert_eq!((&sized.value, &sized.setting[0].1), (&sought.ladder[place], &window));
    assert!(found.runs.len() < choice.values.len() * sought.ladder.len() / 2, "{} runs", found.runs.len());
}

#[test]
fn unmet_objectives_report_their_distance() {
    let (found, _) = found("size-never", INCAST, &sizing("4KB..64KB", "p99(slowdown) <= 1.01", Vec::new()));
    let sized = &found.sized[0];
    assert!(sized.least.is_none());
    let measured = &sized.fails.as_ref().unwrap().measured[0];
    assert!(!measured.holds && measured.margin.unwrap() < 0.0 && measured.worst.unwrap().amount > 1.01);
    assert_eq!(found.runs.len(), 5, "the greatest value and its halves are run");
    // Of failing objectives, the one with the smallest excess is shown, even if the bound is 0.
    let (found, _) = self::found("size-closest", INCAST, &sizing("4KB..16KB", "network.drops == 0", Vec::new()));
    let drops = |tried: &study::size::TrialResult| tried.measured[0].worst.unwrap().amount;
    let closest = drops(found.sized[0].fails.as_ref().unwrap());
    assert!(found.sized[0].tried.iter().all(|tried| closest <= drops(tried)));
}

#[test]
fn search_finds_a_value_that_holds_in_the_middle_only() {
    // A queue of at most 30 KB, and no drops: large buffers break the one, small ones the other.
    let free = INCAST.replace("window = \"12KB\"", "window = \"60KB\"");
    let (found, _) = found(
        "size-middle",
        &free,
        &sizing("4KB..1024KB", "network.max_queue <= 60KB and p99(fct) <= 5ms", Vec::new()),
    );
    let sized = &found.sized[0];
    let (least, above) = (sized.least.as_ref().unwrap(), sized.fails_above.as_ref().unwrap());
    assert!(bytes(&least.value) <= 60_000 && bytes(above) > 60_000, "{least:?}, {above}");
}

#[test]
fn minimum_is_tested_if_the_maximum_fails() {
    // Windows above 12 KB overflow the port, and 10 to 64 KB is no whole number of doublings.
    let ends = range("--minimize", "10KB..64KB").unwrap();
    let sought = Sizing {
        key: "schemes.fixed.params.fixed.window".into(),
        ladder: ladder(&ends, 4).unwrap(),
        steps_per_doubling: 4,
        ..sizing("1KB..2KB", "network.drops == 0", Vec::new())
    };
    let (found, _) = found("size-low", &INCAST.replace("64KB", "40KB"), &sought);
    assert_eq!(found.sized[0].least.as_ref().unwrap().value, "10KB");
    assert!(found.sized[0].fails_above.is_some());
}

#[test]
fn search_defaults_come_from_the_scenario() {
    let scenario = load(INCAST)(&Overrides::default()).unwrap();
    assert_eq!(default_range(&scenario).unwrap(), ("port.buffer".into(), "2KB..256KB".into()));
    assert_eq!(default_choices(&scenario, &["fixed".into()]), Vec::new());
    let marked = INCAST.replace("ecn = \"off\"", "ecn = { step = \"10%\" }");
    let scenario = load(&marked)(&Overrides::default()).unwrap();
    assert_eq!(default_choices(&scenario, &["fixed".into()])[0].key, "port.ecn.step");
    let apart = INCAST.replace("ecn = \"off\"", "ecn = \"off\", host = { buffer = \"32KB\" }");
    let apart = apart.replace("law = \"fixed\",", "law = \"fixed\", port.buffer = \"8KB\",");
    let kept = separately_set_keys(&load(&apart)(&Overrides::default()).unwrap(), "port.buffer", &["fixed".into()]);
    assert_eq!(kept, ["port.host.buffer", "schemes.fixed.port.buffer"]);
    let endless = INCAST.replace("64KB", "unlimited");
    let error = default_range(&load(&endless)(&Overrides::default()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("`port.buffer` is unlimited") && error.contains("--minimize port.buffer="), "{error}");
    let sampled = format!("{INCAST}\nrandom_points = {{ points = 2, keys.seed = {{ from = 1, to = 9 }} }}");
    let error = check(&load(&sampled)(&Overrides::default()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("has [random_points]"), "{error}");
    assert!(ladder(&range("--minimize", "0..4").unwrap(), 4).is_err());
}
