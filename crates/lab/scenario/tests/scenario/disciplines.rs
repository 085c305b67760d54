//! `codel` and `fq_codel` of `[port]`.

use fabric::{CoDel, Discipline, EcnResponse, FqCoDel, LinkClass, LinkId, PortConfig};
use scenario::{Overrides, parse};
use units::Span;

/// The ports of a fat tree with these keys in `[port]`, or the message. The keys begin in line 8.
fn ports(keys: &str, more: &str) -> Result<impl Fn(LinkClass) -> PortConfig, String> {
    let text = format!(
        "name = \"t\"\nstop = \"10ms\"\n[topology]\nkind = \"fat-trees\"\nk = 4\nrate = \"100Gbps\"\n[port]\n{keys}\n\
         [schemes.a]\nlaw = \"dctcp\"\n[[traffic]]\nkind = \"incast\"\nreceiver = 3\nintra = 2\nsize = \"1MiB\"\n{more}"
    );
    let scenario = parse(&text, "t.toml", &Overrides::default()).map_err(|error| error.to_string())?;
    let built: Result<Vec<_>, _> = scenario.runs().iter().map(scenario::Run::build).collect();
    let network = built.map_err(|error| error.to_string())?.swap_remove(0).setup.network;
    Ok(move |class| {
        let link = network.links().iter().position(|link| link.class == class).unwrap();
        *network.port(LinkId(link as u32)).config()
    })
}

#[test]
fn queue_discipline_replaces_default_marking() {
    let ports = ports(
        "codel = { target = \"50us\", interval = \"1ms\", ecn = false }\nhost = { codel = false, fq_codel = true }",
        "",
    )
    .unwrap();
    let codel = CoDel { target: Span::from_us(50), interval: Span::from_ms(1), response: EcnResponse::Drop };
    assert_eq!((ports(LinkClass::Edge).discipline, ports(LinkClass::Edge).ecn), (Discipline::CoDel(codel), None));
    assert_eq!(ports(LinkClass::Host).discipline, Discipline::FqCoDel(FqCoDel::RFC));
    assert_eq!(ports(LinkClass::Nic).discipline, Discipline::Fifo);
}

/// Every setting that a discipline does not go with is rejected where it stands, with the key.
#[test]
fn incompatible_queue_disciplines_are_errors() {
    let cases = [
        ("codel = true\necn = { step = \"100KB\" }", "", "`ecn`"),
        ("codel = true\nphantom = { size = \"1MB\" }", "", "`phantom`"),
        ("fq_codel = true\nmark_at = \"dequeue\"\necn = \"off\"", "", "`mark_at`"),
        ("fq_codel = true\ncontrol_priority = true", "", "`control_priority`"),
        ("fq_codel = true\ntrim = true", "", "`trim`"),
        ("codel = true\nfq_codel = true", "", "one queue discipline"),
        ("codel = true\ncredit_queue = { limit = 9 }", "", "credit queue"),
        ("codel = true", "[switch]\nbuffer = \"32MiB\"\n", "decide together"),
        ("codel = { target = \"0s\" }", "", "no time"),
        ("codel = { target = \"2s\" }", "", "longer than the interval"),
        ("codel = { interval = \"200s\" }", "", "at most 100.000 s"),
        ("fq_codel = { queues = 0 }", "", "queues"),
        ("fq_codel = { queues = 100000 }", "", "65536"),
        ("fq_codel = { quantum = 1 }", "", "at least 64"),
        ("codel = { interval = \"1ms\" }", "", "or give `target`"),
        ("codel = true\nin_service_bytes = \"all\"", "", "`in_service_bytes`"),
        ("inter = { codel = true }", "[switch]\nbuffer = \"32MiB\"\n", "decide together"),
        (
            "",
            "[schemes.b]\nlaw = \"dctcp\"\nswitch = { buffer = \"1MiB\" }\nport.core.fq_codel = true\n",
            "decide together",
        ),
    ];
    for (keys, more, part) in cases {
        let Err(message) = ports(keys, more) else { panic!("{keys}\n{more} is accepted") };
        assert!(message.contains(part) && message.contains("t.toml:"), "no `{part}` in {message}");
    }
}

/// CoDel that marks is a marking port for laws that use ECN, and of no use to others, which a warning states.
#[test]
fn laws_that_ignore_marks_are_warned_of_codel_that_marks() {
    let warnings = |law: &str, codel: &str| {
        let text = format!(
            "name = \"t\"\nstop = \"10ms\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\nrate = \"1Gbps\"\n[port]\ncodel = {codel}\n\
             [schemes.a]\nlaw = \"{law}\"\n[[traffic]]\nkind = \"incast\"\nreceiver = 3\nintra = 2\nsize = \"1MiB\"\n"
        );
        let scenario = parse(&text, "t.toml", &Overrides::default()).unwrap();
        scenario.runs()[0].build().unwrap().warnings.iter().filter(|it| it.contains("ark")).count()
    };
    let with = "{ target = \"50us\", interval = \"1ms\" }";
    let without = "{ target = \"50us\", interval = \"1ms\", ecn = false }";
    assert_eq!([warnings("dctcp", with), warnings("cubic", with), warnings("cubic", without)], [0, 1, 0]);
    // DCTCP without a port that marks.
    assert_eq!(warnings("dctcp", without), 1);
}
