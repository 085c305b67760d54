//! The format's JSON Schema and its reference in the book, both from the types that read it.

use serde_json::Value as Json;

use crate::config::Config;
use crate::decode::Field;

/// The JSON Schema of scenario files, for editors.
pub fn json_schema() -> Json {
    let mut schema = Config::schema();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
        schema.insert("title".into(), "Narrows scenario".into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::config::{
        AckAggregationTable, Allreduce, Cable, Cause, Clock, Clos, ClosedLoop, CoDelTable, CodingTable, Collective,
        Collectives, ComputeTimes, CustomTopology, Dumbbell, ExternalLaw, Failure, FatTrees, Flow, FlowList,
        FqCoDelTable, Host, ImpairTable, ImportedTraffic, Incast, InterPair, Job, LinkJitterTable, LongFlows,
        LossBursts, Lscc, Model, Monitor, NodeSpec, OnRampTable, Parallel, Permutation, PfcTable, PhantomQueue,
        PlbTable, Poisson, PoliceTable, Port, RandomPoints, Range, RateStepTable, RedMarking, ReorderTable, RepsTable,
        Requests, Scale, Scheme, SingleSwitch, StepMarking, SwingTable, Switch, Trimming, UnoLbTable,
    };

    const BEGIN: &str =
        "<!-- The tables below are made from the code: BLESS=1 cargo test -p narrows-scenario writes them. -->\n";

    #[test]
    fn the_schema_has_nested_keys_and_defaults() {
        let schema = json_schema();
        let text = schema.to_string();
        for key in
            ["border_links_per_core", "control_priority", "ratio_of", "law_sees_timeouts", "stagger", "outstanding"]
        {
            assert!(text.contains(&format!("\"{key}\":")), "{key}");
        }
        assert_eq!(schema["properties"]["host"]["properties"]["mss"]["default"], 4096);
        assert_eq!(schema["properties"]["host"]["properties"]["rto_max"]["default"], "4s");
        assert!(schema["required"].as_array().unwrap().iter().any(|key| key == "topology"));
    }

    /// The reference page has every key with its default, as the code has it.
    #[test]
    fn the_reference_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/src/reference/scenario-file.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (prose, found) = page.split_once(BEGIN).expect("the page has the marker line before its tables");
        let wanted = tables();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, format!("{prose}{BEGIN}{wanted}")).unwrap();
        } else {
            assert_eq!(found, wanted, "run BLESS=1 cargo test -p narrows-scenario");
        }
    }

    fn tables() -> String {
        let mut out = String::new();
        section::<Config>(&mut out, "The file");
        section::<Clock>(&mut out, "`[clock]`");
        section::<FatTrees>(&mut out, "`[topology]` with `kind = \"fat-trees\"`");
        section::<InterPair>(&mut out, "`[[topology.inter]]`");
        section::<Clos>(&mut out, "`[topology]` with `kind = \"clos\"`");
        section::<Dumbbell>(&mut out, "`[topology]` with `kind = \"dumbbell\"`");
        section::<SingleSwitch>(&mut out, "`[topology]` with `kind = \"single-switch\"`");
        section::<CustomTopology>(&mut out, "`[topology]` with `kind = \"custom\"`");
        section::<NodeSpec>(&mut out, "`[[topology.nodes]]`");
        section::<Cable>(&mut out, "`[[topology.links]]`");
        section::<Port>(&mut out, "`[port]`");
        section::<RedMarking>(&mut out, "`ecn` by RED");
        section::<StepMarking>(&mut out, "`ecn` by a step");
        section::<PhantomQueue>(&mut out, "`phantom`");
        section::<Trimming>(&mut out, "`trim`");
        section::<CoDelTable>(&mut out, "`codel`");
        section::<FqCoDelTable>(&mut out, "`fq_codel`");
        section::<LossBursts>(&mut out, "`loss_bursts`");
        section::<ImpairTable>(&mut out, "`impair`");
        section::<LinkJitterTable>(&mut out, "`jitter` of `impair`");
        section::<ReorderTable>(&mut out, "`reorder`");
        section::<PoliceTable>(&mut out, "`police`");
        section::<AckAggregationTable>(&mut out, "`ack_aggregation`");
        section::<RateStepTable>(&mut out, "`rate_steps`");
        section::<Switch>(&mut out, "`[switch]`");
        section::<PfcTable>(&mut out, "`pfc`");
        section::<Host>(&mut out, "`[host]`");
        section::<UnoLbTable>(&mut out, "`load_balancing` with `kind = \"unolb\"`");
        section::<PlbTable>(&mut out, "`load_balancing` with `kind = \"plb\"`");
        section::<RepsTable>(&mut out, "`load_balancing` with `kind = \"reps\"`");
        section::<CodingTable>(&mut out, "`[host.coding]`");
        section::<OnRampTable>(&mut out, "`[host.on_ramp]`");
        section::<Scheme>(&mut out, "`[schemes.NAME]`");
        section::<ExternalLaw>(&mut out, "`[external_laws.NAME]`");
        section::<Lscc>(&mut out, "`[schemes.NAME.lscc]`");
        section::<SwingTable>(&mut out, "`swing`");
        section::<Incast>(&mut out, "`[[traffic]]` with `kind = \"incast\"`");
        section::<LongFlows>(&mut out, "`[[traffic]]` with `kind = \"long\"`");
        section::<Permutation>(&mut out, "`[[traffic]]` with `kind = \"permutation\"`");
        section::<Poisson>(&mut out, "`[[traffic]]` with `kind = \"poisson\"`");
        section::<Requests>(&mut out, "`[[traffic]]` with `kind = \"requests\"`");
        section::<ClosedLoop>(&mut out, "`[[traffic]]` with `kind = \"closed-loop\"`");
        section::<Allreduce>(&mut out, "`[[traffic]]` with `kind = \"allreduce\"`");
        section::<Collective>(&mut out, "`[[traffic]]` with `kind = \"collective\"`");
        section::<FlowList>(&mut out, "`[[traffic]]` with `kind = \"list\"`");
        section::<ImportedTraffic>(&mut out, "`[[traffic]]` with `kind = \"import\"`");
        section::<Flow>(&mut out, "A flow of a list");
        section::<Job>(&mut out, "`[[job]]`");
        section::<Model>(&mut out, "`model` of a job");
        section::<Parallel>(&mut out, "`parallel` of a job");
        section::<ComputeTimes>(&mut out, "`compute` of a job");
        section::<Collectives>(&mut out, "`collectives` of a job");
        section::<Failure>(&mut out, "`[[failure]]`");
        section::<Monitor>(&mut out, "`[monitor]`");
        section::<RandomPoints>(&mut out, "`[random_points]`");
        section::<Range>(&mut out, "A range of a sample");
        section::<Scale>(&mut out, "`[scale.NAME]`");
        section::<Cause>(&mut out, "`[[cause]]`");
        out
    }

    fn section<T: Field>(out: &mut String, heading: &str) {
        let schema = T::schema();
        let text =
            |json: &Json, key: &str| json[key].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
        write!(
            out,
            "\n## {heading}\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
            text(&schema, "description")
        )
        .unwrap();
        for (key, property) in schema["properties"].as_object().unwrap() {
            let required = schema["required"].as_array().unwrap().iter().any(|name| name == key);
            let default = match property.get("default") {
                Some(Json::Object(table)) if table.is_empty() => String::new(),
                Some(Json::Object(_)) if key != "ecn" => "its keys' defaults".into(),
                Some(value) => format!("`{}`", inline(value)),
                None if required => "required".into(),
                None => String::new(),
            };
            writeln!(out, "| `{key}` | {} | {default} | {} |", text(property, "title"), text(property, "description"))
                .unwrap();
        }
    }

    fn inline(value: &Json) -> String {
        match value {
            Json::Object(table) => {
                let items: Vec<String> =
                    table.iter().map(|(key, value)| format!("{key} = {}", inline(value))).collect();
                format!("{{ {} }}", items.join(", "))
            }
            value => value.to_string(),
        }
    }
}
