//! Descriptions of runs from their scenario alone: for manifests, tables and pages.

use std::collections::BTreeSet;

use results::averages::{AveragesTable, ImpossibleColumn, TableSpec};
use results::claims::possible::MetricNames;
use results::claims::{ParseError, SEED};
use results::conditions::{Beginning, ClassConditions, Conditions, LinkLoad};
use results::{
    Class, ImportedSchedule, Ordered, RunInfo, RunResults, SizeBin, SweepColumns, TrainingIteration, TrainingJob,
};
use scenario::{BuiltRun, FlowClass, JobFlows, Node, Run, Scenario, ScheduleFlows, StepKind, TextPart};
use serde_json::Value;
use units::{Bytes, Rate};

use crate::error::Error;
use crate::key::{code_of, key_of};
use crate::page::figure_name;

/// Returns the figure of the paper that a scenario reproduces: `Fig. 8`, `Table II`.
pub fn figure(scenario: &Scenario) -> Option<String> {
    scenario.config.paper.as_ref()?.get("figure")?.as_str().map(figure_name)
}

/// Reads a scenario's `[[table]]` entries.
///
/// # Errors
/// If an entry is wrong, or refers to an unknown variant.
pub fn tables(scenario: &Scenario) -> Result<Vec<TableSpec>, Error> {
    let read = |node: &scenario::Node| {
        let variants = &scenario.config.variants;
        let table = TableSpec::from_json(&node.to_json())
            .map_err(|error| error_at(scenario, node, error.expression(), error.brief()))?;
        match table.only.iter().flatten().chain(&table.without).find(|name| variants.get(name).is_none()) {
            None => Ok(table),
            Some(name) => {
                let known: Vec<&str> = variants.iter().map(|(name, _)| name).collect();
                let similar = scenario::nearest(name, &known)
                    .map_or_else(String::new, |similar| format!(": did you mean `{similar}`?"));
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let what = format!("table `{}`: there is no variant `{name}`; there are {known}{similar}", table.title);
                Err(scenario.error_at(node, Some(TextPart { text: name, bytes: 0..name.len() }), what).into())
            }
        }
    };
    scenario.config.table.iter().map(read).collect()
}

/// Refuses a column of the scenario's tables that none of its runs can have.
///
/// # Errors
/// At the column's expression.
pub(crate) fn possible_tables(scenario: &Scenario, tables: &[TableSpec], names: &MetricNames) -> Result<(), Error> {
    for (node, table) in scenario.config.table.iter().zip(tables) {
        table.check_possible(names).map_err(|ImpossibleColumn { text, error }| {
            let part = TextPart { text, bytes: 0..text.len() };
            scenario.error_at(node, Some(part), format!("table `{}`: {error}", table.title))
        })?;
    }
    Ok(())
}

/// Refuses `[[table]]` entries that are wrong, or have a column that no run can have.
///
/// # Errors
/// At the entry; also if a run cannot be built.
pub fn check_tables(scenario: &Scenario) -> Result<(), Error> {
    let tables = tables(scenario)?;
    if tables.is_empty() { Ok(()) } else { possible_tables(scenario, &tables, &metric_names(scenario)?) }
}

/// Returns names that metrics of a scenario's runs may have, from one run of each point.
///
/// # Errors
/// If a run cannot be built.
pub fn metric_names(scenario: &Scenario) -> Result<MetricNames, Error> {
    let (mut names, mut seen) = (MetricNames::default(), BTreeSet::new());
    let columns = SweepColumns::default();
    for run in scenario.runs() {
        let point: Vec<(String, String)> = run.point.iter().filter(|(key, _)| key != SEED).cloned().collect();
        if seen.insert(point) {
            names.add(MetricNames::of(&info(scenario, "", &columns, &run, &run.build()?)));
        }
    }
    Ok(names)
}

/// Returns an error for a table that the scenario keeps for others to read. It points to the wrong part of an
/// expression, if there is one.
pub fn error_at(scenario: &Scenario, node: &Node, expression: Option<&ParseError>, message: String) -> Error {
    let part = expression.map(|it| TextPart { text: &it.text, bytes: it.span.clone() });
    scenario.error_at(node, part, message).into()
}

/// Replaces the names of variants in a table by their labels.
pub(crate) fn named(scenario: &Scenario, mut table: AveragesTable) -> AveragesTable {
    for (name, variant) in scenario.config.variants.iter().filter(|(_, it)| !it.label.is_empty()) {
        for part in &mut table.parts {
            part.point = part.point.replace(&format!("variant = {name}"), &variant.label);
        }
    }
    table
}

/// Refuses schemes that the scenario does not have.
///
/// # Errors
/// If one is unknown.
pub fn known_schemes(scenario: &Scenario, wanted: &[String]) -> Result<(), Error> {
    // Points of a grid and variants may add some.
    let known: BTreeSet<String> = scenario.runs().into_iter().map(|run| run.scheme).collect();
    match wanted.iter().find(|&name| !known.contains(name)) {
        Some(name) => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Err(Error::unknown(&format!("the scenario has no scheme `{name}`"), name, &known))
        }
        None => Ok(()),
    }
}

/// Returns the description of a run before it is executed. `backend_options` is the request to its backend in addition to the
/// scenario, `columns` are those of its tables.
pub(crate) fn info(
    scenario: &Scenario,
    backend_options: &str,
    columns: &SweepColumns,
    run: &Run,
    built: &BuiltRun,
) -> RunInfo {
    let hash = |input: &scenario::Input| {
        let name = input.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        (name, files::sha256(input.content.bytes()))
    };
    let mut resolved = run.config.to_json();
    let external_laws: Vec<&str> = built.laws.external_laws().map(|law| &*law.name).collect();
    keep_only_scheme(&mut resolved, &run.scheme, &external_laws);
    let mut info = RunInfo {
        scenario: scenario.config.name.value.clone(),
        run: run.id.clone(),
        label: run.label.clone(),
        without: run.without.clone(),
        point: point(run),
        columns: columns.clone(),
        classes: built.classes.iter().copied().map(class_of).collect(),
        traffic: built.traffic.clone(),
        traffic_names: run.config.traffic_names().map(str::to_owned).collect(),
        sizes: size_bins(run),
        laws: [FlowClass::Intra, FlowClass::Inter].map(|class| built.laws.name(class).to_owned()).into(),
        requests: built.requests.clone(),
        collectives: built.collectives.clone(),
        training: built.jobs.iter().map(training_of).collect(),
        schedules: built.schedules.iter().map(|it| schedule_of(run, it)).collect(),
        open_ended: built.open_ended.clone(),
        fairness_window: run.config.monitor.fairness_window.unwrap_or_else(|| {
            built.report.inter_rtt.or(built.report.intra_rtt).map_or(units::Span::ZERO, |rtt| rtt.max)
        }),
        sets_fairness_window: run.config.monitor.fairness_window.is_some(),
        resolved,
        code: code_of(built),
        key: String::new(),
        inputs: built.inputs.iter().map(hash).collect(),
        warnings: built.warnings.clone(),
        notes: built.notes.clone(),
        conditions: conditions(&built.report),
        emulator: None,
        virtual_time: None,
    };
    info.key = key_of(&info, built, backend_options);
    info
}

/// Removes everything but the scheme that ran and its external laws from a manifest: other schemes, and a paper's
/// claims about all of them.
fn keep_only_scheme(resolved: &mut Value, scheme: &str, external_laws: &[&str]) {
    if let Some(schemes) = resolved.get_mut("schemes").and_then(Value::as_object_mut) {
        schemes.retain(|name, _| name == scheme);
    }
    if let Some(laws) = resolved.get_mut("external_laws").and_then(Value::as_object_mut) {
        laws.retain(|name, _| external_laws.contains(&name.as_str()));
    }
    if let Some(root) = resolved.as_object_mut() {
        // A scenario without laws of its own has the same description as before laws of its own existed.
        if external_laws.is_empty() {
            root.remove("external_laws");
        }
        for key in ["grid", "points", "random_points", "variants", "scale", "claim", "cause", "paper", "table"] {
            root.remove(key);
        }
    }
}

fn point(run: &Run) -> Vec<(String, Value)> {
    // A variant's name is a name, also where it looks like a number.
    let value = |key: &String, text: &String| match text.parse::<f64>() {
        Ok(number) if key != "variant" && number.is_finite() => Value::from(number),
        Ok(_) | Err(_) => Value::from(text.as_str()),
    };
    let scheme = ("scheme".to_owned(), Value::from(run.scheme.as_str()));
    if run.point.is_empty() {
        return Vec::new();
    }
    std::iter::once(scheme).chain(run.point.iter().map(|(key, text)| (key.clone(), value(key, text)))).collect()
}

fn conditions(report: &scenario::RunReport) -> Conditions {
    let beginning = |it: &scenario::Beginning| Beginning {
        bdp: it.bdp,
        window: it.send_limits.map_or(Bytes::MAX, |send_limits| send_limits.window),
        pacing: it.send_limits.map_or(Rate::MAX, |send_limits| send_limits.pacing),
    };
    let class = |it: &scenario::ClassLine| {
        (class_of(it.class).name().to_owned(), ClassConditions::of(beginning(&it.least), beginning(&it.most)))
    };
    let load = |it: &scenario::LinkLoad| LinkLoad {
        class: it.class.name().to_owned(),
        link: it.link.clone(),
        load: it.ppm as f64 / 1e6,
    };
    Conditions {
        classes: Ordered(report.classes.iter().map(class).collect()),
        most_loaded: report.most_loaded.iter().map(load).collect(),
    }
}

fn training_of(job: &JobFlows) -> TrainingJob {
    let kind_of = |kind: &StepKind| StepKind::ALL.iter().position(|known| known == kind).unwrap_or_default() as u8;
    let iterations = job.iterations.iter();
    TrainingJob {
        name: job.name.clone(),
        start: units::Time::ZERO + job.start,
        first: job.first,
        kinds: StepKind::ALL.map(|kind| kind.name().to_owned()).to_vec(),
        kind_of: job.kinds.iter().map(kind_of).collect(),
        iterations: iterations.map(|it| TrainingIteration { ends: it.ends.clone(), compute: it.compute }).collect(),
    }
}

fn schedule_of(run: &Run, schedule: &ScheduleFlows) -> ImportedSchedule {
    let name = run.config.traffic_names().nth(schedule.traffic).unwrap_or_default().to_owned();
    ImportedSchedule { name, start: schedule.start, flows: schedule.flows.clone() }
}

const fn class_of(class: FlowClass) -> Class {
    match class {
        FlowClass::Intra => Class::Intra,
        FlowClass::Inter => Class::Inter,
    }
}

pub(crate) fn size_bins(run: &Run) -> Vec<SizeBin> {
    let bin = |(name, range): &(scenario::Located<String>, scenario::config::SizeRange)| SizeBin {
        name: name.value.clone(),
        traffic: range.traffic.clone(),
        class: range.class.map(class_of),
        low: range.low,
        high: range.high,
    };
    run.config.sizes.0.iter().map(bin).collect()
}

/// Returns the summaries of several runs as JSON.
pub fn summaries(runs: &[RunResults]) -> String {
    let summaries: Vec<Value> = runs.iter().map(|run| serde_json::to_value(&run.summary).unwrap_or_default()).collect();
    format!("{:#}\n", serde_json::json!({ "schema": 1, "runs": summaries }))
}
