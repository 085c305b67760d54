//! `narrows size`: the least buffer, or another key, at which objectives hold.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use report::{AverageRow, Averages};
use results::averages::{FEW_SIGN, explain_few};
use results::claims::check_of_a_run;
use results::claims::possible::{MetricNames, comparable};
use results::initial_window_lines;
use results::store::REPORT;
use scenario::{Overrides, Scenario};
use study::size::{self, Choice, Objective, ObjectiveMeasurement, SearchResults, Sizing, SizingResult, TrialResult};
use study::{Finished, Silent, Simulator, Study, SweepObserver, vary};

use crate::args::{Common, FileArgs, SearchArgs, SizeArgs};
use crate::exit::{CommandFailure, print, print_stderr};
use crate::progress::Terminal;
use crate::sheet::{Datum, Sheet, SheetCell, SheetRow, check_csv, print_csv};
use crate::table;

pub(crate) fn size(args: &SizeArgs) -> Result<(), CommandFailure> {
    let SizeArgs { file, objectives, search, common } = args;
    check_csv(&common.csv, &["answers", "tried"])?;
    let request = SizeRequest { command: "size", file, objectives, search, common };
    let loaded = request.read()?;
    let objectives = request.objectives(&study::metric_names(&loaded.plain)?)?;
    let sizing = request.sizing(&loaded, objectives)?;
    let outcome = request.execute(&loaded, sizing)?;
    let shown = outcome.shown();
    if common.json {
        print(&format!("{:#}", shown.json(&outcome.finished.out)))?;
    } else if common.csv.is_requested() {
        print_csv(&[shown.answers(), shown.tried()], common.csv.table())?;
    } else if !common.quiet {
        let kept = size::separately_set_keys(&loaded.plain, &outcome.sizing.key, &outcome.sizing.schemes);
        print(&shown.text(&kept, &outcome.finished))?;
    }
    crate::exit::check_identities(outcome.finished.runs.iter().map(|run| &run.summary))?;
    if outcome.found.sized.iter().any(|it| it.least.is_some()) {
        return Ok(());
    }
    Err(nothing_holds(&outcome.sizing))
}

/// The error of a search in which no scheme holds the objectives.
pub(super) fn nothing_holds(sizing: &Sizing) -> CommandFailure {
    CommandFailure::Run(anyhow::anyhow!("nothing that was tried holds, with {} of {}", sizing.key, range(sizing)))
}

/// Describes the values that are tried.
pub(super) fn range(sizing: &Sizing) -> String {
    let ends = [sizing.ladder.first(), sizing.ladder.last()];
    ends.into_iter().flatten().cloned().collect::<Vec<_>>().join("..")
}

/// A search as specified on the command line.
pub(super) struct SizeRequest<'a> {
    /// The command's word.
    pub(super) command: &'static str,
    pub(super) file: &'a FileArgs,
    pub(super) objectives: &'a [String],
    pub(super) search: &'a SearchArgs,
    pub(super) common: &'a Common,
}

/// The scenario of a search.
pub(super) struct SizingScenario {
    /// The scenario as in the file.
    pub(super) plain: Scenario,
    /// Overrides of its runs: all seeds.
    pub(super) overrides: Overrides,
}

/// Result of a search.
pub(super) struct SearchOutcome {
    pub(super) sizing: Sizing,
    pub(super) found: SearchResults,
    pub(super) finished: Finished,
    /// Display names of the schemes.
    labels: BTreeMap<String, String>,
}

impl SearchOutcome {
    pub(super) fn label(&self, scheme: &str) -> String {
        self.labels.get(scheme).cloned().unwrap_or_else(|| scheme.to_owned())
    }

    fn shown(&self) -> SizeReport<'_> {
        SizeReport { sizing: &self.sizing, labels: &self.labels, found: &self.found }
    }

    /// The tables of the outcome and of all that was tried.
    pub(super) fn sheets(&self) -> [Sheet; 2] {
        [self.shown().answers(), self.shown().tried()]
    }

    /// Returns the result as JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        self.shown().json(&self.finished.out)
    }
}

impl SizeRequest<'_> {
    /// Reads the scenario, and plans its seeds.
    pub(super) fn read(&self) -> Result<SizingScenario, CommandFailure> {
        let mut overrides = super::run::overrides(self.common, self.file.scale.clone());
        let plain = scenario::load(&self.file.scenario, &overrides)?;
        size::check(&plain)?;
        study::known_schemes(&plain, &self.file.schemes)?;
        if vary::has_seeds(&plain) {
            print_stderr("note: the file varies `seed` by itself, so --seeds is not used");
        } else {
            vary::seeds(&mut overrides, &plain, self.search.seeds)?;
        }
        Ok(SizingScenario { plain, overrides })
    }

    /// The objectives that the command line has. Refuses those that no run of the scenario can hold or miss.
    pub(super) fn objectives(&self, names: &MetricNames) -> Result<Vec<Objective>, CommandFailure> {
        let one = |text: &String| {
            let found = objective(text)?;
            if found.check.all.iter().all(|it| it.left.is_constant() && it.right.is_constant()) {
                return Err(CommandFailure::Input(format!("error: --slo `{text}` has no metric")));
            }
            comparable(&found.check, names)
                .map_err(|error| CommandFailure::Input(format!("error: --slo `{text}`: {error}")))?;
            Ok(found)
        };
        self.objectives.iter().map(one).collect()
    }

    /// The schemes that are sized, in the file's order.
    pub(super) fn schemes(&self, plain: &Scenario) -> Vec<String> {
        if !self.file.schemes.is_empty() {
            return self.file.schemes.clone();
        }
        let mut schemes: Vec<String> = Vec::new();
        for run in plain.runs() {
            if !schemes.contains(&run.scheme) {
                schemes.push(run.scheme);
            }
        }
        schemes
    }

    /// Returns the search's definition. Builds the scenario with the ends of its range and each tried value, before anything runs.
    pub(super) fn sizing(&self, loaded: &SizingScenario, objectives: Vec<Objective>) -> Result<Sizing, CommandFailure> {
        let plain = &loaded.plain;
        let mut schemes = self.schemes(plain);
        let (key, range) = match &self.search.minimize {
            Some((key, range)) => (normalized_key(key), range.clone()),
            None => size::default_range(plain)?,
        };
        // A key of one scheme does not apply to the others.
        if let Some(scheme) = size::scheme_of(&key).filter(|scheme| schemes.iter().any(|it| it == scheme)) {
            schemes = vec![scheme.to_owned()];
        }
        let ladder = size::ladder(&scenario::argument::range("--minimize", &range)?, self.search.steps_per_doubling)?;
        let choices = match () {
            () if self.search.no_vary => Vec::new(),
            () if self.search.choices.is_empty() => size::default_choices(plain, &schemes),
            () => self.search.choices.iter().map(|(key, text)| choice(key, text)).collect::<Result<_, _>>()?,
        };
        let steps_per_doubling = self.search.steps_per_doubling as usize;
        let sizing = Sizing { schemes, objectives, key, ladder, steps_per_doubling, choices };
        sizing.check(plain)?;
        self.probe(loaded, &sizing)?;
        Ok(sizing)
    }

    /// Refuses a key or value that the scenario does not take, and names the option that has it. Each value is tried with the first
    /// ones of all other keys: they are run together, too.
    fn probe(&self, loaded: &SizingScenario, sizing: &Sizing) -> Result<(), CommandFailure> {
        let least = if self.search.minimize.is_some() { "--minimize" } else { "the default range" };
        let choice = if self.search.choices.is_empty() { "the default settings" } else { "--vary" };
        // The search begins at the upper end. It may never reach the lower end, so that is checked if the user gave a range.
        let low = sizing.ladder.first().filter(|_| self.search.minimize.is_some());
        let ends: Vec<&String> = sizing.ladder.last().into_iter().chain(low).collect();
        let all: Vec<(&str, Vec<&String>)> = std::iter::once((sizing.key.as_str(), ends))
            .chain(sizing.choices.iter().map(|it| (it.key.as_str(), it.values.iter().collect())))
            .collect();
        let load = |varied: usize, value: &String| {
            let mut overrides = loaded.overrides.clone();
            for (index, (key, values)) in all.iter().enumerate() {
                let value = if index == varied { value } else { values[0] };
                overrides.set.push(((*key).to_owned(), value.clone()));
            }
            scenario::load(&self.file.scenario, &overrides).and_then(|it| built(&it, &sizing.schemes)).map_err(
                |mut error| {
                    if let scenario::Error::Invalid(diagnostic) = &mut error
                        && let Some(place) = diagnostic.location.as_mut().filter(|place| place.file == scenario::SET)
                    {
                        let is_least = place.text.starts_with(&format!("{}=", sizing.key));
                        if is_least { least } else { choice }.clone_into(&mut place.file);
                    }
                    error
                },
            )
        };
        for (varied, (_, values)) in all.iter().enumerate() {
            for value in values {
                load(varied, value).map_err(|error| {
                    let tried = all.iter().enumerate().map(|(index, (key, values))| {
                        format!("{key}={}", if index == varied { value } else { values[0] })
                    });
                    CommandFailure::Input(format!("{error}\nnote: with {}", tried.collect::<Vec<_>>().join(", ")))
                })?;
            }
        }
        Ok(())
    }

    fn location(&self, plain: &Scenario) -> RunLocation<'_> {
        let out = self.common.out.clone().unwrap_or_else(|| default_out(plain));
        RunLocation { request: self, out, of: plain.resolved_toml() }
    }

    /// Runs all schemes as the file has them.
    pub(super) fn as_written(&self, loaded: &SizingScenario) -> Result<Vec<results::RunResults>, CommandFailure> {
        let scenario = scenario::load(&self.file.scenario, &loaded.overrides)?;
        let schemes = self.schemes(&loaded.plain);
        let runs = scenario.runs().into_iter().filter(|run| schemes.contains(&run.scheme));
        let names: Vec<String> = runs.map(|run| run.id).collect();
        Ok(self.location(&loaded.plain).round(&scenario, &names)?)
    }

    /// Searches, and combines all trials into the outcome.
    pub(super) fn execute(&self, loaded: &SizingScenario, sizing: Sizing) -> Result<SearchOutcome, CommandFailure> {
        let location = self.location(&loaded.plain);
        let load = |overrides: &Overrides| Ok(scenario::load(&self.file.scenario, overrides)?);
        let found = sizing.search(load, &loaded.overrides, |scenario, names| location.round(scenario, names))?;
        let labels = sizing.schemes.iter().map(|scheme| (scheme.clone(), label(&loaded.plain, scheme))).collect();
        let table = SizeReport { sizing: &sizing, labels: &labels, found: &found }.table();
        let finished = location.all(&sizing, &found, &[table])?;
        Ok(SearchOutcome { sizing, found, finished, labels })
    }
}

/// An objective as the command line has it.
pub(super) fn objective(text: &str) -> Result<Objective, CommandFailure> {
    match check_of_a_run(text) {
        Ok(check) => Ok(Objective { text: text.trim().to_owned(), check }),
        Err(error) => Err(CommandFailure::Input(format!(
            "error: --slo `{text}`: {error}\nhelp: expected a comparison about one run, as in 'p99(intra.slowdown) <= 5'"
        ))),
    }
}

/// Builds one run of each scheme, and runs none.
fn built(scenario: &Scenario, schemes: &[String]) -> Result<(), scenario::Error> {
    let runs = scenario.runs();
    let mut first = schemes.iter().filter_map(|scheme| runs.iter().find(|run| run.scheme == *scheme));
    first.try_for_each(|run| run.build().map(drop))
}

fn default_out(scenario: &Scenario) -> PathBuf {
    Path::new("out").join(format!("{}-size", scenario.config.name.as_str()))
}

/// A key as points have it: without the quotes that TOML allows around its parts, and with dots for indices in brackets.
fn normalized_key(key: &str) -> String {
    key.replace(['"', ']'], "").replace('[', ".")
}

/// A choice as the command line has it: values between commas, or an array in TOML, as for `--vary`.
fn choice(key: &str, text: &str) -> Result<Choice, CommandFailure> {
    let values: Vec<String> = match text.trim().parse::<toml_edit::Value>() {
        Ok(toml_edit::Value::Array(array)) => array.iter().map(unquoted).collect(),
        _ => text.split(',').map(|it| it.trim().to_owned()).collect(),
    };
    if values.is_empty() || values.iter().any(String::is_empty) {
        return Err(CommandFailure::Input(format!(
            "error: --vary {key}={} has an empty value\nhelp: expected values with commas between them, as in \
             port.ecn.min=10%,25%",
            values.join(",")
        )));
    }
    Ok(Choice { key: normalized_key(key), values })
}

/// A value without the quotes of a string, as options have it.
fn unquoted(value: &toml_edit::Value) -> String {
    value.as_str().map_or_else(|| value.to_string().trim().to_owned(), str::to_owned)
}

fn label(scenario: &Scenario, scheme: &str) -> String {
    let of = scenario.runs().into_iter().find(|run| run.scheme == scheme);
    of.map_or_else(|| scheme.to_owned(), |run| run.label)
}

/// The directories of the runs. `tried` has those of each round, in directories that nothing else is written to, so
/// that other objectives find them again; the requested result has a directory named after it.
struct RunLocation<'a> {
    request: &'a SizeRequest<'a>,
    out: PathBuf,
    /// The scenario.
    of: String,
}

/// The number of runs from which putting them together takes a while.
const PROGRESS_MIN_RUNS: usize = 200;

/// A round's progress. Runs in directories of several rounds are not reported.
struct RoundObserver(Terminal);

impl SweepObserver for RoundObserver {
    fn tell(&self, _: &str) {}

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }

    fn listen(&self) {
        self.0.listen();
    }

    fn board<'a>(&'a self, names: &[String], kept: usize) -> Box<dyn study::ProgressDisplay + 'a> {
        if kept == names.len() { Silent.board(names, kept) } else { self.0.board(names, 0) }
    }
}

impl RunLocation<'_> {
    fn hash(&self, words: &impl serde::Serialize) -> String {
        let text = serde_json::json!([self.of, words]).to_string();
        files::sha256(text.as_bytes())[..10].to_owned()
    }

    /// The directories of all rounds, of earlier calls too.
    fn rounds(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.out.join("tried")).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        found.sort();
        found
    }

    fn words(&self) -> Vec<String> {
        let SizeRequest { command, file, objectives, search, .. } = self.request;
        let mut words = vec!["narrows".to_owned(), (*command).to_owned()];
        words.extend(file.words());
        let mut say = |option: &str, value: String| words.extend([option.to_owned(), value]);
        objectives.iter().for_each(|it| say("--slo", it.clone()));
        search.minimize.iter().for_each(|(key, range)| say("--minimize", format!("{key}={range}")));
        search.choices.iter().for_each(|(key, values)| say("--vary", format!("{key}={values}")));
        say("--steps-per-doubling", search.steps_per_doubling.to_string());
        say("--seeds", search.seeds.to_string());
        words.extend(search.no_vary.then(|| "--no-vary".to_owned()));
        words
    }

    /// Does some runs, or takes them from where they are.
    fn round(&self, scenario: &Scenario, names: &[String]) -> Result<Vec<results::RunResults>, study::Error> {
        let out = self.out.join("tried").join(self.hash(&names));
        let from: Vec<PathBuf> = self.rounds().into_iter().filter(|it| *it != out).collect();
        let watch = RoundObserver(self.terminal());
        let (notes, simulator) = (super::run::notes(), self.simulator());
        let study = Study {
            only: names,
            from: &from,
            watch: &watch,
            out,
            ..super::run::of(scenario, &simulator, &watch.0, &notes, self.request.common, self.words())
        };
        Ok(study.run()?.runs)
    }

    /// Puts together all that was tried, with its report.
    fn all(&self, sizing: &Sizing, found: &SearchResults, tables: &[Averages]) -> Result<Finished, study::Error> {
        if !self.terminal().quiet && found.runs.len() > PROGRESS_MIN_RUNS {
            print_stderr(&format!("putting {} together", study::count(found.runs.len(), "run")));
        }
        let sizing = serde_json::json!([sizing.objectives.iter().map(|it| &it.text).collect::<Vec<_>>(), found.runs]);
        let watch = RoundObserver(self.terminal());
        let (notes, simulator, from) = (super::run::notes(), self.simulator(), self.rounds());
        let study = Study {
            only: &found.runs,
            from: &from,
            watch: &watch,
            out: self.out.join(self.hash(&sizing)),
            tables,
            runs_missing: false,
            force: false,
            ..super::run::of(&found.scenario, &simulator, &watch.0, &notes, self.request.common, self.words())
        };
        study.run()
    }

    fn simulator(&self) -> Simulator {
        Simulator { checked: self.request.common.check_invariants }
    }

    fn terminal(&self) -> Terminal {
        Terminal { quiet: self.request.common.is_silent() }
    }
}

/// The result, for people and programs.
struct SizeReport<'a> {
    sizing: &'a Sizing,
    labels: &'a BTreeMap<String, String>,
    found: &'a SearchResults,
}

impl SizeReport<'_> {
    fn label(&self, scheme: &str) -> String {
        self.labels.get(scheme).cloned().unwrap_or_else(|| scheme.to_owned())
    }

    /// Returns the other keys that are tried.
    fn keys(&self) -> Vec<String> {
        self.sizing.choices.iter().map(|it| it.key.clone()).collect()
    }

    /// Describes the value that a scheme needs.
    fn value(&self, sized: &SizingResult) -> String {
        let none = || format!("none of {}", range(self.sizing));
        sized.least.as_ref().map_or_else(none, |it| it.value.clone())
    }

    /// Returns the smallest value that meets the objectives, or else the closest one.
    fn at(sized: &SizingResult) -> Option<&TrialResult> {
        sized.least.as_ref().or(sized.fails.as_ref())
    }

    fn setting(sized: &SizingResult, key: &str) -> String {
        let setting = Self::at(sized).into_iter().flat_map(|it| &it.setting);
        setting.filter(|(of, _)| of == key).map(|(_, value)| value.clone()).next().unwrap_or_default()
    }

    fn measured(sized: &SizingResult, objective: usize) -> String {
        Self::at(sized).and_then(|it| it.measured.get(objective)).map_or_else(String::new, in_words)
    }

    /// Returns the objectives that fail just below, in words.
    fn binds(&self, sized: &SizingResult) -> String {
        let Some(fails) = &sized.fails else {
            return format!("nothing: {} holds, the least that was tried", self.value(sized));
        };
        let texts =
            |&index: &usize| format!("{}: {}", self.sizing.objectives[index].text, in_words(&fails.measured[index]));
        let texts: Vec<String> = sized.binds().iter().map(texts).collect();
        format!("at {}: {}", fails.value, texts.join("; "))
    }

    fn heads(&self) -> Vec<String> {
        let objectives = self.sizing.objectives.iter().map(|it| it.text.clone());
        let keys = std::iter::once(self.sizing.key.clone()).chain(self.keys());
        keys.chain(objectives).chain(["fails".to_owned()]).collect()
    }

    fn cells(&self, sized: &SizingResult) -> Vec<String> {
        let keys = self.keys().into_iter().map(|key| Self::setting(sized, &key));
        let objectives = (0..self.sizing.objectives.len()).map(|index| Self::measured(sized, index));
        std::iter::once(self.value(sized)).chain(keys).chain(objectives).chain([self.binds(sized)]).collect()
    }

    /// Returns the sort keys of the cells.
    fn amounts(&self, sized: &SizingResult) -> Vec<f64> {
        let at = sized.least.as_ref().and_then(|it| self.sizing.ladder.iter().position(|value| *value == it.value));
        let value = at.map_or(f64::MAX, |at| at as f64);
        let worst =
            |index: usize| Self::at(sized).and_then(|it| it.measured[index].worst).map_or(f64::MAX, |it| it.amount);
        let keys = self.sizing.choices.iter().map(|_| 0.0);
        std::iter::once(value).chain(keys).chain((0..self.sizing.objectives.len()).map(worst)).chain([0.0]).collect()
    }

    /// The table of the report.
    fn table(&self) -> Averages {
        let row = |sized: &SizingResult| {
            let cells = self.amounts(sized).into_iter().zip(self.cells(sized));
            let cells: Vec<_> = cells.map(|(amount, text)| (!text.is_empty()).then_some((amount, text))).collect();
            AverageRow { label: self.label(&sized.scheme), best: vec![false; cells.len()], cells }
        };
        Averages {
            title: format!("The least {} found that holds the objectives in every run", self.sizing.key),
            columns: self.heads(),
            parts: vec![(String::new(), self.found.sized.iter().map(row).collect())],
        }
    }

    /// One row per scheme and objective.
    fn answers(&self) -> Sheet {
        let rows = self.found.sized.iter().flat_map(|sized| {
            let least = sized.least.as_ref().map_or(Datum::Absent, |it| Datum::Text(it.value.clone()));
            Self::at(sized).into_iter().flat_map(move |it| self.rows(sized, it, &least))
        });
        Sheet { name: "answers", rows: rows.collect(), ..empty_sheet() }
    }

    /// The same of all that was tried.
    fn tried(&self) -> Sheet {
        let all = self.found.sized.iter().flat_map(|sized| sized.tried.iter().map(move |it| (sized, it)));
        let rows = all.flat_map(|(sized, it)| self.rows(sized, it, &Datum::Text(it.value.clone())));
        Sheet { name: "tried", rows: rows.collect(), ..empty_sheet() }
    }

    fn rows(&self, sized: &SizingResult, tried: &TrialResult, value: &Datum) -> Vec<SheetRow> {
        let mut keys = vec![keyed(&self.sizing.key, value)];
        keys.extend(tried.setting.iter().map(|(key, value)| keyed(key, &Datum::Text(value.clone()))));
        let row = |(objective, it): (&Objective, &ObjectiveMeasurement)| {
            let (worst, unit) = it.worst.map_or((None, String::new()), |worst| {
                let (amount, unit) = worst.as_in_tables();
                (Some(amount), unit)
            });
            let cells = vec![
                SheetCell::text(&objective.text),
                SheetCell::new("", &unit, worst),
                SheetCell::new("", "", it.margin),
                SheetCell::new("", "", Datum::Whole(u64::from(it.holds))),
            ];
            SheetRow { name: self.label(&sized.scheme), keys: keys.clone(), cells }
        };
        self.sizing.objectives.iter().zip(&tried.measured).map(row).collect()
    }

    fn text(&self, kept: &[String], finished: &Finished) -> String {
        let mut shown = table::prose();
        let has_others = !self.sizing.choices.is_empty();
        let others = has_others.then(|| "varied with it".to_owned());
        let heads = ["scheme".to_owned(), self.sizing.key.clone()].into_iter().chain(others);
        shown.set_header(heads.chain(["objective", "worst run", "next value below"].map(str::to_owned)));
        for sized in &self.found.sized {
            let setting = Self::at(sized).into_iter().flat_map(|it| &it.setting);
            let setting: Vec<String> = setting.map(|(key, value)| format!("{key}={value}")).collect();
            // Values of the scheme are in its first row only.
            let mut first = vec![self.label(&sized.scheme), self.value(sized)];
            first.extend(has_others.then(|| setting.join("\n")));
            for (index, objective) in self.sizing.objectives.iter().enumerate() {
                let fails = match (&sized.least, &sized.fails) {
                    (Some(_), Some(fails)) => format!("{}: {}", fails.value, in_words(&fails.measured[index])),
                    (Some(_), None) => "none was tried".to_owned(),
                    (None, _) => String::new(),
                };
                let measured_text = Self::measured(sized, index);
                shown.add_row(first.iter().cloned().chain([objective.text.clone(), measured_text, fails]));
                first.iter_mut().for_each(String::clear);
            }
        }
        let mut text = format!("{shown}\n");
        let tried: usize = self.found.sized.iter().map(|it| it.tried.len()).sum();
        let all: usize = self.found.sized.iter().map(|it| it.settings * self.sizing.ladder.len()).sum();
        let _ = writeln!(
            text,
            "tried {tried} of {all} combinations, {} values of {} and {}; {} in all",
            self.sizing.ladder.len(),
            self.sizing.key,
            study::count(self.found.sized.iter().map(|it| it.settings).sum(), "setting"),
            study::count(self.found.runs.len(), "run")
        );
        for key in kept {
            let _ = writeln!(text, "note: `{key}` is set apart and stays as it is");
        }
        for (sized, above) in self.found.sized.iter().filter_map(|it| it.fails_above.as_ref().map(|above| (it, above)))
        {
            let _ = writeln!(
                text,
                "warning: {}: the objectives hold at {} and fail again at {above}: a larger value is not always better here",
                self.label(&sized.scheme),
                self.value(sized)
            );
        }
        let measured = self.found.sized.iter().filter_map(Self::at).flat_map(|it| &it.measured);
        if measured.into_iter().any(|it| it.is_of_few) {
            let _ = writeln!(text, "{}", explain_few());
        }
        let holding: Vec<&String> =
            self.found.sized.iter().filter_map(|it| it.least.as_ref()).flat_map(|it| &it.runs).collect();
        let runs: Vec<results::RunResults> =
            finished.runs.iter().filter(|run| holding.contains(&&run.summary.run)).cloned().collect();
        for line in initial_window_lines(&runs) {
            let _ = writeln!(text, "{line}");
        }
        for warning in study::warnings(&runs) {
            let _ = writeln!(text, "{warning}");
        }
        let _ = write!(text, "report: {}", finished.out.join(REPORT).display());
        text
    }

    fn json(&self, out: &Path) -> serde_json::Value {
        let tried = |it: &TrialResult| {
            let measured = |(objective, it): (&Objective, &ObjectiveMeasurement)| {
                let amount = it.worst.map(|worst| worst.amount);
                serde_json::json!({
                    "objective": objective.text, "holds": it.holds, "worst": amount, "margin": it.margin, "run": it.run,
                    "why": it.reason,
                })
            };
            let setting: serde_json::Map<_, _> =
                it.setting.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
            serde_json::json!({
                "value": it.value, "setting": setting, "holds": it.holds, "runs": it.runs,
                "objectives": self.sizing.objectives.iter().zip(&it.measured).map(measured).collect::<Vec<_>>(),
            })
        };
        let scheme = |it: &SizingResult| {
            let binds: Vec<&str> = it.binds().into_iter().map(|at| self.sizing.objectives[at].text.as_str()).collect();
            serde_json::json!({
                "scheme": it.scheme, "least": it.least.as_ref().map(tried), "fails": it.fails.as_ref().map(tried),
                "binds": binds, "fails_above": it.fails_above,
                "tried": it.tried.iter().map(tried).collect::<Vec<_>>(),
            })
        };
        serde_json::json!({
            "schema": 1, "key": self.sizing.key, "directory": out,
            "schemes": self.found.sized.iter().map(scheme).collect::<Vec<_>>(),
        })
    }
}

/// A column of a key: a quantity in base units, with the unit behind the key.
fn keyed(key: &str, value: &Datum) -> (String, Datum) {
    let found = if let Datum::Text(text) = value { scenario::amount(text) } else { None };
    match found {
        Some((amount, "")) => (key.to_owned(), Datum::Real(amount)),
        Some((amount, unit)) => (format!("{key}_{unit}"), Datum::Real(amount)),
        None => (key.to_owned(), value.clone()),
    }
}

fn empty_sheet() -> Sheet {
    let columns = ["objective", "worst", "margin", "holds"].map(str::to_owned).into();
    Sheet { name: "", title: String::new(), first: "scheme", columns, rows: Vec::new() }
}

/// Returns an objective's value in the worst run, and its distance from the bound.
pub(super) fn in_words(measured: &ObjectiveMeasurement) -> String {
    let few = if measured.is_of_few { FEW_SIGN } else { "" };
    match (measured.worst, measured.margin) {
        (None, _) => measured.reason.clone(),
        (Some(worst), None) => format!("{worst}{few}"),
        (Some(worst), Some(margin)) if margin < 0.0 => format!("{worst}{few}, {:.0} % over", -100.0 * margin),
        (Some(worst), Some(margin)) => format!("{worst}{few}, {:.0} % left", 100.0 * margin),
    }
}
