//! `narrows choose`: a law, a buffer and thresholds for a scenario. Joins the answers of `size` and `score`.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};

use results::averages::explain_few;
use results::claims::possible::dimension;
use results::claims::{Dimension, Runs, expression_of_a_run, value};
use results::score::{Reference, Score, ScoreError, usual_cells};
use results::{RunResults, initial_window_lines, load_lines};
use study::size::{self, Objective, SizingResult, TrialResult};

use super::size::{SearchOutcome, SizeRequest, SizingScenario, in_words, nothing_holds, objective, range};
use crate::args::ChooseArgs;
use crate::exit::{CommandFailure, print, print_stderr};
use crate::sheet::{Datum, Sheet, SheetCell, SheetRow, check_csv, print_csv};
use crate::table;

pub(crate) fn choose(args: &ChooseArgs) -> Result<(), CommandFailure> {
    let ChooseArgs { file, objectives, within, metric: cell, search, common } = args;
    check_csv(&common.csv, &["choices", "answers", "tried"])?;
    let request = SizeRequest { command: "choose", file, objectives, search, common };
    let loaded = request.read()?;
    // Metrics are checked before any run.
    let names = study::metric_names(&loaded.plain)?;
    let given = request.objectives(&names)?;
    for metric in cell {
        let wrong = |error: &dyn Display| CommandFailure::Input(format!("error: --metric `{metric}`: {error}"));
        let expr = expression_of_a_run(metric).map_err(|error| wrong(&error))?;
        if expr.is_constant() {
            return Err(wrong(&"no metric"));
        }
        dimension(&expr, &names).map_err(|error| wrong(&error))?;
    }
    let mut sizing = request.sizing(&loaded, given)?;
    let written = request.as_written(&loaded)?;
    let cells = cells(cell, &written)?;
    let reference = Reference::of(&cells, &written, &[]).map_err(|error| wrong(&error))?;
    let as_written = reference.scores(&written).map_err(|error| wrong(&error))?;
    if sizing.objectives.is_empty() {
        sizing.objectives = objectives_near_best(&reference, &written, *within)?;
    }
    let outcome = request.execute(&loaded, sizing)?;
    let at_settings = at_settings(&outcome, &cells);
    let choice = Choice { outcome: &outcome, as_written: &as_written, at_settings: &at_settings };
    if common.json {
        print(&format!("{:#}", choice.json(&request, &loaded, &cells)))?;
    } else if common.csv.is_requested() {
        let sheets: Vec<Sheet> = std::iter::once(choice.sheet()).chain(outcome.sheets()).collect();
        print_csv(&sheets, common.csv.table())?;
    } else if !common.quiet {
        print(choice.text(&request, &loaded, &cells).trim_end())?;
    }
    crate::exit::check_identities(outcome.finished.runs.iter().map(|run| &run.summary))?;
    if choice.first().is_some() { Ok(()) } else { Err(nothing_holds(&outcome.sizing)) }
}

fn wrong(error: &ScoreError) -> CommandFailure {
    CommandFailure::Input(format!(
        "error: {error}\nhelp: --metric names what is scored, as in --metric 'p99(inter.slowdown)'"
    ))
}

/// Given metrics, or the usual ones.
fn cells(given: &[String], runs: &[RunResults]) -> Result<Vec<String>, CommandFailure> {
    if !given.is_empty() {
        return Ok(given.to_vec());
    }
    let (cells, without) = usual_cells(runs);
    if cells.is_empty() {
        let help = "--metric names what is scored, as in --metric 'p50(all.fct)'";
        return Err(CommandFailure::Input(format!("error: {}\nhelp: {help}", without.join("\nerror: "))));
    }
    for reason in without {
        print_stderr(&format!("warning: {reason}"));
    }
    Ok(cells)
}

/// The default objectives: each 99th percentile, or each metric where there is none, within a share of the best
/// scheme's mean at the worst point.
fn objectives_near_best(
    reference: &Reference,
    runs: &[RunResults],
    within: f64,
) -> Result<Vec<Objective>, CommandFailure> {
    let is_tail = |cell: &String| cell.contains("p99");
    let all = !reference.cells.iter().any(is_tail);
    let bound = |index: usize| {
        let means = reference.points.iter().map(|point| {
            let by_seed = &point.cells[index].by_seed;
            by_seed.iter().sum::<f64>() / by_seed.len() as f64
        });
        means.fold(0.0, f64::max) * (1.0 + within)
    };
    let chosen = reference.cells.iter().enumerate().filter(|(_, cell)| all || is_tail(cell));
    chosen.map(|(index, cell)| objective(&format!("{cell} <= {}", literal(cell, bound(index), runs)))).collect()
}

/// A bound with three digits, in the unit of the metric's values.
fn literal(metric: &str, bound: f64, runs: &[RunResults]) -> String {
    let digits = (2.0 - bound.abs().max(1e-12).log10().floor()).clamp(0.0, 9.0) as usize;
    let found = expression_of_a_run(metric).ok().zip(runs.first());
    let found = found.and_then(|(expr, run)| value(&expr, &Runs::named("", run)).ok());
    let unit = match found.map(|found| found.dimension) {
        Some(Dimension::TIME) => "ns",
        Some(Dimension::DATA) => "B",
        Some(Dimension::RATE) => "bps",
        _ => "",
    };
    format!("{bound:.digits$}{unit}")
}

/// The schemes' scores, each at the setting that was found for it; none where no scheme holds, or a metric has no value there.
fn at_settings(outcome: &SearchOutcome, cells: &[String]) -> Vec<Score> {
    let sized_keys: Vec<&str> = std::iter::once(&outcome.sizing.key)
        .chain(outcome.sizing.choices.iter().map(|it| &it.key))
        .map(String::as_str)
        .collect();
    let mut runs = Vec::new();
    for least in outcome.found.sized.iter().filter_map(|it| it.least.as_ref()) {
        for run in outcome.finished.runs.iter().filter(|run| least.runs.contains(&run.summary.run)) {
            let mut run = run.clone();
            // Settings differ from scheme to scheme, and are no points at which schemes are compared.
            run.manifest.point.0.retain(|(key, _)| !sized_keys.contains(&key.as_str()));
            runs.push(run);
        }
    }
    if runs.is_empty() {
        return Vec::new();
    }
    Reference::of(cells, &runs, &[]).and_then(|reference| reference.scores(&runs)).unwrap_or_else(|error| {
        print_stderr(&format!("warning: the schemes are not scored at their settings: {error}"));
        Vec::new()
    })
}

/// The joined outcome.
struct Choice<'a> {
    outcome: &'a SearchOutcome,
    as_written: &'a [Score],
    at_settings: &'a [Score],
}

impl Choice<'_> {
    /// The scheme that holds the objectives with the least score at its setting.
    fn first(&self) -> Option<(&SizingResult, &TrialResult)> {
        let holding = self.outcome.found.sized.iter().filter_map(|it| Some((it, it.least.as_ref()?)));
        holding.min_by(|(a, _), (b, _)| self.score_at_setting(a).total_cmp(&self.score_at_setting(b)))
    }

    fn score_at_setting(&self, sized: &SizingResult) -> f64 {
        g_of(self.at_settings, &sized.scheme).unwrap_or(f64::INFINITY)
    }

    /// Other schemes that hold the objectives and cannot be distinguished from the first choice: the 95 % intervals overlap, or
    /// the scores differ by less than 0.0005.
    fn ties(&self) -> Vec<&Score> {
        let Some((first, _)) = self.first() else { return Vec::new() };
        let score = |scheme: &str| self.at_settings.iter().find(|score| score.scheme == scheme);
        let Some(best) = score(&first.scheme) else { return Vec::new() };
        let is_close = |other: &&Score| {
            let overlap = best.interval.zip(other.interval).is_some_and(|(best, other)| other[0] <= best[1]);
            overlap || (other.g - best.g).abs() < 5e-4
        };
        let others = self.outcome.found.sized.iter().filter(|it| it.least.is_some() && it.scheme != first.scheme);
        others.filter_map(|it| score(&it.scheme)).filter(is_close).collect()
    }

    /// Limits of the first choice: schemes as good as it, and those that were not searched.
    fn caveats(&self, request: &SizeRequest<'_>, loaded: &SizingScenario) -> Vec<String> {
        let mut lines = Vec::new();
        let ties: Vec<String> = self.ties().iter().map(|it| format!("{} ({:.3})", it.label, it.g)).collect();
        if !ties.is_empty() {
            lines.push(format!("not distinguishable from it: {}", ties.join(", ")));
        }
        let holding = self.outcome.found.sized.iter().filter(|it| it.least.is_some()).count();
        if holding > 1 && self.at_settings.is_empty() {
            lines.push(format!("there are no scores: it is the first of {holding} schemes that hold"));
        }
        let left = self.not_searched(request, loaded);
        if !left.is_empty() {
            let key = &self.outcome.sizing.key;
            lines.push(format!("not searched, because `{key}` is a key of one scheme: {}", left.join(", ")));
        }
        lines
    }

    /// Schemes that lack the key to be minimised.
    fn not_searched(&self, request: &SizeRequest<'_>, loaded: &SizingScenario) -> Vec<String> {
        let sized = &self.outcome.sizing.schemes;
        request.schemes(&loaded.plain).into_iter().filter(|it| !sized.contains(it)).collect()
    }

    fn sheet(&self) -> Sheet {
        let sizing = &self.outcome.sizing;
        let row = |sized: &SizingResult| {
            let at = sized.least.as_ref().or(sized.fails.as_ref());
            let value = sized.least.as_ref().map_or_else(
                || SheetCell::new(format!("none of {}", range(sizing)), "", Datum::Absent),
                |it| SheetCell::text(it.value.clone()),
            );
            let setting = at.map_or_else(Vec::new, |it| it.setting.clone());
            let setting: Vec<String> = setting.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let closest =
                at.and_then(|it| (0..it.measured.len()).min_by(|&a, &b| margin(it, a).total_cmp(&margin(it, b))));
            let closest = closest.zip(at).map_or_else(
                || SheetCell::text(""),
                |(index, it)| {
                    let (objective, measured) = (&sizing.objectives[index].text, &it.measured[index]);
                    let (worst, unit) = measured.worst.map_or((None, String::new()), |worst| {
                        let (amount, unit) = worst.as_in_tables();
                        (Some(amount), unit)
                    });
                    let worst_key = if unit.is_empty() { "worst".to_owned() } else { format!("worst_{unit}") };
                    let shown = format!("{objective}: {}", in_words(measured));
                    let cell = SheetCell::new(shown, "", Datum::Text(objective.clone()));
                    cell.with(&worst_key, worst).with("margin", measured.margin)
                },
            );
            let score = |scores: &[Score]| {
                let g = g_of(scores, &sized.scheme);
                SheetCell::new(g.map_or("-".into(), |g| format!("{g:.3}")), "", g)
            };
            let score_at_setting =
                if sized.least.is_some() { score(self.at_settings) } else { SheetCell::new("-", "", None) };
            let other = SheetCell::new(setting.join("\n"), "", Datum::Text(setting.join(" ")));
            let cells = vec![value, other, closest, score_at_setting, score(self.as_written)];
            SheetRow { name: self.outcome.label(&sized.scheme), keys: Vec::new(), cells }
        };
        let heads = [&sizing.key, "other settings", "tightest objective", "score there", "score as written"];
        let columns = heads.map(ToString::to_string).into();
        let rows = self.outcome.found.sized.iter().map(row).collect();
        Sheet { name: "choices", title: String::new(), first: "scheme", columns, rows }
    }

    fn text(&self, request: &SizeRequest<'_>, loaded: &SizingScenario, cells: &[String]) -> String {
        let sizing = &self.outcome.sizing;
        let mut text = format!("{}\n", table::wrapped(&self.sheet()));
        let measured = self.outcome.found.sized.iter().filter_map(|it| it.least.as_ref().or(it.fails.as_ref()));
        if measured.flat_map(|it| &it.measured).any(|it| it.is_of_few) {
            let _ = writeln!(text, "{}", explain_few());
        }
        let _ = match self.first() {
            Some((sized, least)) => {
                let setting = std::iter::once((&sizing.key, &least.value));
                let others = least.setting.iter().map(|(key, value)| (key, value));
                let setting: Vec<String> = setting.chain(others).map(|(key, value)| format!("{key}={value}")).collect();
                writeln!(text, "first choice: {} with {}", self.outcome.label(&sized.scheme), setting.join(", "))
            }
            None => writeln!(text, "first choice: none, no scheme holds all objectives"),
        };
        for line in self.caveats(request, loaded) {
            let _ = writeln!(text, "  {line}");
        }
        text.push_str("\nassumed\n");
        let mut assume = |line: String| {
            let _ = writeln!(text, "  {line}");
        };
        let scale = request.file.scale.as_ref().map(|scale| format!(" at the scale {scale}"));
        let set: Vec<String> = request.common.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let overrides = if set.is_empty() { String::new() } else { format!(", but {}", set.join(", ")) };
        let file = request.file.scenario.display();
        assume(format!("network, traffic and all other keys as in {file}{}{overrides}", scale.unwrap_or_default()));
        let seeds: BTreeSet<u64> = self.outcome.finished.runs.iter().map(|run| run.summary.seed).collect();
        assume(format!("seeds: {}", seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")));
        let objectives: Vec<&str> = sizing.objectives.iter().map(|it| it.text.as_str()).collect();
        let origin =
            if request.objectives.is_empty() { " (near the best scheme of the file as it is written)" } else { "" };
        assume(format!("objectives hold in every run{origin}: {}", objectives.join("; ")));
        let settings: usize = self.outcome.found.sized.iter().map(|it| it.settings).sum();
        let tried = if sizing.choices.is_empty() {
            "no other keys were tried".to_owned()
        } else {
            format!("{} in all, of {}", study::count(settings, "setting"), varied_keys(sizing))
        };
        let (key, values) = (&sizing.key, sizing.ladder.len());
        assume(format!("{key} from {} in {values} values; {tried}", range(sizing)));
        assume("parameters of laws as the file has them: `narrows tune` searches them".to_owned());
        assume(format!("score: the geometric mean over the best scheme of {}; 1 is the best", cells.join(", ")));
        for key in size::separately_set_keys(&loaded.plain, &sizing.key, &sizing.schemes) {
            assume(format!("`{key}` is set separately and stays as it is"));
        }
        let runs = &self.outcome.finished.runs;
        initial_window_lines(runs).into_iter().chain(load_lines(runs)).for_each(&mut assume);
        let holding: Vec<&String> =
            self.outcome.found.sized.iter().filter_map(|it| it.least.as_ref()).flat_map(|it| &it.runs).collect();
        let shown: Vec<RunResults> = runs.iter().filter(|run| holding.contains(&&run.summary.run)).cloned().collect();
        for warning in study::warnings(&shown) {
            let _ = writeln!(text, "{warning}");
        }
        let _ = write!(text, "report: {}", self.outcome.finished.out.join(results::store::REPORT).display());
        text
    }

    fn json(&self, request: &SizeRequest<'_>, loaded: &SizingScenario, cells: &[String]) -> serde_json::Value {
        let first = self.first().map(|(sized, least)| {
            let setting: serde_json::Map<_, _> =
                least.setting.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
            serde_json::json!({ "scheme": sized.scheme, "value": least.value, "setting": setting })
        });
        let mut json = self.outcome.json();
        json["first_choice"] = first.unwrap_or_default();
        json["ties"] = self.ties().iter().map(|it| it.scheme.as_str()).collect();
        json["not_searched"] = serde_json::json!(self.not_searched(request, loaded));
        json["cells"] = serde_json::json!(cells);
        json["scores_as_written"] = serde_json::json!(self.as_written);
        json["scores_at_settings"] = serde_json::json!(self.at_settings);
        json
    }
}

/// The other keys that are tried along with the minimised key, and their values.
fn varied_keys(sizing: &size::Sizing) -> String {
    sizing.choices.iter().map(|it| format!("{}={}", it.key, it.values.join(","))).collect::<Vec<_>>().join(" ")
}

fn margin(tried: &TrialResult, objective: usize) -> f64 {
    tried.measured[objective].margin.unwrap_or(if tried.measured[objective].holds {
        f64::INFINITY
    } else {
        f64::NEG_INFINITY
    })
}

fn g_of(scores: &[Score], scheme: &str) -> Option<f64> {
    scores.iter().find(|score| score.scheme == scheme).map(|score| score.g)
}
