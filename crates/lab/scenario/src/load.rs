//! From text to a scenario and its runs.

use std::path::Path as FilePath;
use std::sync::Arc;

use crate::config::{Cause, Config};
use crate::decode::{Field, Located};
use crate::error::{Error, SourceSpan, Sources, SpannedError, nearest};
use crate::extends::merge_extends;
use crate::inputs::{Input, Inputs, SCENARIO};
use crate::kind::{FileHead, FileKind};
use crate::overlay::{KeyPath, set};
use crate::overrides::{Overrides, apply_arguments};
use crate::points::{GridPoint, points, varies};
use crate::run::Run;
use crate::run_keys::Without;
use crate::tree::{Node, Value, parse as parse_tree};
use crate::write::to_toml;

pub(crate) const SCENARIO_FILE: FileKind = FileKind {
    name: "a scenario",
    expected: "expected TOML with keys such as `name`, `topology`, `schemes` and `traffic`",
    matches: is_scenario,
};

/// A file called .toml may have any mistake.
fn is_scenario(file: &FileHead<'_>) -> bool {
    let key = |line: &str| {
        let key = line.trim_start_matches('[').split(['.', ' ', '=', ']']).next().unwrap_or_default();
        line.contains(['=', '[']) && Config::KEYS.contains(&key)
    };
    file.is_called("toml") || file.lines().any(key)
}

/// A scenario, read and resolved.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's settings, defaults filled in. With a grid, its first point.
    pub config: Arc<Config>,
    /// The scale that `--scale` chose.
    pub scale: Option<AppliedScale>,
    points: Vec<GridPoint>,
    root: Arc<Node>,
    pub(crate) inputs: Inputs,
}

/// Part of a text in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextPart<'a> {
    /// The whole text.
    pub text: &'a str,
    /// The bytes in question.
    pub bytes: std::ops::Range<usize>,
}

/// A chosen `[scale.*]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppliedScale {
    /// Its name.
    pub name: String,
    /// The scaled values, in words.
    pub note: String,
}

/// Reads a scenario from a file.
///
/// # Errors
/// When the file cannot be read, is not TOML, or has invalid contents.
pub fn load(path: impl AsRef<FilePath>, overrides: &Overrides) -> Result<Scenario, Error> {
    let path = path.as_ref();
    let shown = path.display().to_string();
    parse(&text_of(path)?, &shown, overrides)
}

/// The text of a scenario file.
///
/// # Errors
/// When it cannot be read, or is no text.
pub fn text_of(path: &FilePath) -> Result<String, Error> {
    files::text(path, SCENARIO).map_err(|error| {
        let help = near_file(path).map_or(String::new(), |near| format!("\nhelp: did you mean `{near}`?"));
        Error::Unreadable(format!("{error}{help}"))
    })
}

/// Returns an existing file with a name like that of a missing one in its folder: first of all the same name with its
/// ending.
fn near_file(path: &FilePath) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let file = path.with_file_name(format!("{name}.toml"));
    if file.is_file() && !path.is_file() {
        return Some(file.display().to_string());
    }
    if path.symlink_metadata().is_ok() {
        return None;
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(FilePath::new("."));
    let entries = std::fs::read_dir(directory).ok()?.flatten().filter(|entry| entry.path().is_file());
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Some(path.with_file_name(nearest(name, &names)?).display().to_string())
}

/// Reads a scenario from text. `origin` is the text's file: errors name it, and files that the scenario names are found
/// next to it.
///
/// # Errors
/// If the text is not TOML, or has invalid contents.
pub fn parse(text: &str, origin: &str, overrides: &Overrides) -> Result<Scenario, Error> {
    let mut sources = Sources::default();
    match read(text, origin, overrides, &mut sources) {
        Ok(ParsedScenario { config, scale, points, root }) => {
            Ok(Scenario { config, scale, points, root, inputs: Inputs::new(origin, sources) })
        }
        Err(error) => Err(sources.explain(error)),
    }
}

/// A scenario file as it is written, without defaults and merged with the files that it extends: its keys and values as
/// JSON. Only the syntax is checked. `origin` is the file that errors name.
///
/// # Errors
/// If the text is not TOML, or a file that it extends cannot be read.
pub fn as_written(text: &str, origin: &str) -> Result<serde_json::Value, Error> {
    let mut sources = Sources::default();
    tree_of(text, origin, &mut sources).map(|root| root.to_json()).map_err(|error| sources.explain(error))
}

/// Reads the tree of a scenario file, with the files that it extends.
pub(crate) fn tree_of(text: &str, origin: &str, sources: &mut Sources) -> Result<Node, SpannedError> {
    if u32::try_from(text.len()).is_err() {
        return Err(SpannedError::new(SourceSpan::NOWHERE, "the file is over 4 GiB"));
    }
    let source = sources.add_file(origin, text, SCENARIO_FILE);
    let directory = FilePath::new(origin).parent().unwrap_or(FilePath::new(""));
    merge_extends(parse_tree(text, source)?, directory, SCENARIO_FILE, sources)
}

struct ParsedScenario {
    config: Arc<Config>,
    scale: Option<AppliedScale>,
    points: Vec<GridPoint>,
    root: Arc<Node>,
}

fn read(
    text: &str,
    origin: &str,
    overrides: &Overrides,
    sources: &mut Sources,
) -> Result<ParsedScenario, SpannedError> {
    let file = tree_of(text, origin, sources)?;
    let without = Without::new(&overrides.without, sources);
    let prepare = |scale: Option<&str>, cause: Option<&str>, sources: &mut Sources, max_points: usize| {
        let mut root = file.clone();
        let applied = apply_scale(&mut root, scale, sources)?;
        apply_cause(&mut root, cause)?;
        apply_arguments(&mut root, overrides, Config::KEYS, sources)?;
        let points = points(&root, &without, max_points)?;
        Ok::<_, SpannedError>((applied, points, root))
    };
    let chosen = overrides.scale.as_deref();
    let (scale, points, root) = prepare(chosen, overrides.cause.as_deref(), sources, usize::MAX)?;
    without.check(&root, points.iter().flat_map(|point| &point.lost))?;
    let Some(first) = points.first() else { return Err(SpannedError::new(file.origin, "an empty grid")) };
    // A scale that is not chosen today is read all the same, so that it is not found broken when it is.
    for (name, _) in &first.config.scale.0 {
        if name.value == PAPER && is_experiment(&file) {
            let error = SpannedError::new(name.origin, "the scale `paper` of an experiment is the file as it stands");
            return Err(error.label("expected another name"));
        }
        prepare(Some(name), None, sources, 1)?;
    }
    // So is each change of a suspected cause.
    check_causes(&first.config)?;
    for cause in &first.config.cause {
        prepare(chosen, Some(&cause.id), sources, 1)?;
    }
    Ok(ParsedScenario { config: Arc::clone(&first.config), scale, points, root: Arc::new(root) })
}

/// The scale that experiments have without a table.
const PAPER: &str = "paper";

/// Returns whether a file is for `reproduce`.
fn is_experiment(root: &Node) -> bool {
    ["paper", "claim", "table"].iter().any(|key| root.get(key).is_some())
}

fn apply_scale(
    root: &mut Node,
    name: Option<&str>,
    sources: &mut Sources,
) -> Result<Option<AppliedScale>, SpannedError> {
    let Some(name) = name else { return Ok(None) };
    let scales = root.get("scale").cloned().unwrap_or_else(Node::empty_table);
    let Some(node) = scales.get(name) else {
        if name == PAPER && is_experiment(root) {
            return Ok(None);
        }
        let source = sources.add("--scale", name);
        let names = scales.entries().unwrap_or_default().iter().map(|entry| entry.key.as_str());
        let names = names.chain(is_experiment(root).then_some(PAPER));
        let error =
            SpannedError::new(SourceSpan::new(source, 0..name.len()), format!("the scenario has no scale `{name}`"));
        let has_none = !is_experiment(root) && scales.entries().unwrap_or_default().is_empty();
        let error = if has_none { error.help("it has none: see `[scale.NAME]` in the reference") } else { error };
        return Err(error.label("unknown scale").suggest(name, names));
    };
    let scale = crate::config::Scale::decode(node)?;
    for (key, value) in &scale.set.0 {
        set(root, &KeyPath::parse(key, key.origin)?, value)?;
    }
    Ok(Some(AppliedScale { name: name.to_owned(), note: scale.note }))
}

/// Refuses suspected causes of one name, or of no claim of the file.
fn check_causes(config: &Config) -> Result<(), SpannedError> {
    let known = || config.claim.iter().filter_map(|claim| claim.get("id")?.as_str());
    // An id names a directory of results.
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    for (number, cause) in config.cause.iter().enumerate() {
        if cause.id.is_empty() || !cause.id.chars().all(fine) {
            let error = SpannedError::new(cause.origin, format!("`{}` is no id of a cause", cause.id));
            return Err(error.label("expected letters, digits, `-` and `_`"));
        }
        if config.cause[..number].iter().any(|earlier| earlier.id == cause.id) {
            let error = SpannedError::new(cause.origin, format!("two causes are called `{}`", cause.id));
            return Err(error.label("expected another id"));
        }
        if cause.claims.is_empty() {
            return Err(SpannedError::new(cause.claims.origin, "a cause of no claim").label("expected ids of claims"));
        }
        if let Some(unknown) = cause.claims.iter().find(|claim| known().all(|id| id != claim.value)) {
            let error = SpannedError::new(unknown.origin, format!("there is no claim `{}`", unknown.value));
            return Err(error.label("unknown claim").suggest(unknown, known()));
        }
    }
    Ok(())
}

/// Lays the change of a suspected cause over a file.
fn apply_cause(root: &mut Node, id: Option<&str>) -> Result<(), SpannedError> {
    let Some(id) = id else { return Ok(()) };
    let causes =
        Vec::<Located<Cause>>::decode(root.get("cause").unwrap_or(&Node::generated(Value::Array(Vec::new()))))?;
    let Some(cause) = causes.iter().find(|cause| cause.id == id) else {
        let error = SpannedError::new(root.origin, format!("the scenario has no cause `{id}`"));
        return Err(error.suggest(id, causes.iter().map(|cause| cause.id.as_str())));
    };
    if cause.set.0.is_empty() {
        return Err(SpannedError::new(cause.set.origin, "a cause that sets no key").label("expected keys"));
    }
    for (key, value) in &cause.set.0 {
        let path = KeyPath::parse(key, key.origin)?;
        if varies(root, &path)? {
            let error = SpannedError::new(
                key.origin,
                format!("`{}` takes the values of [grid] or a list of points", key.value),
            );
            return Err(error
                .label("would change nothing")
                .help("set the key of the grid, as in \"grid.seed\" = [1, 2]"));
        }
        set(root, &path, value)?;
    }
    Ok(())
}

/// A value as part of a file's name.
fn shown(value: &str) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-' | '%' | ':');
    value.chars().map(|c| if fine(c) { c } else { '-' }).collect()
}

impl Config {
    /// Returns the configuration as a file, every constant default filled in.
    pub fn to_toml(&self) -> String {
        to_toml(&self.encode())
    }

    /// The same as JSON. Quantities stay strings with units.
    pub fn to_json(&self) -> serde_json::Value {
        self.encode().to_json()
    }
}

impl Scenario {
    /// The scenario as a file, every constant default filled in: it reads back as the same scenario.
    pub fn resolved_toml(&self) -> String {
        self.config.to_toml()
    }

    /// The same as JSON. Quantities stay strings with units.
    pub fn to_json(&self) -> serde_json::Value {
        self.config.to_json()
    }

    /// An error in a table that is kept for others to read ([`Config::claim`], [`Config::table`]): at a part of a text in it, or at
    /// the whole table.
    pub fn error_at(&self, table: &Node, part: Option<TextPart<'_>>, message: impl Into<String>) -> Error {
        match part.and_then(|part| Some((table.string(part.text)?, part))) {
            Some((node, TextPart { text, bytes })) => {
                self.inputs.explain_within(SpannedError::new(node.origin, message), text, &bytes)
            }
            None => self.inputs.explain(SpannedError::new(table.origin, message)),
        }
    }

    /// The files that it named and that were read so far: all of them once its runs are built.
    pub fn inputs(&self) -> Vec<Input> {
        self.inputs.all()
    }

    /// Every scheme at every point of the grid, and of the variants.
    pub fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for point in &self.points {
            let runs_here = |name: &str| point.schemes.as_ref().is_none_or(|only| only.iter().any(|it| it == name));
            for (name, scheme) in point.config.schemes.iter().filter(|(name, _)| runs_here(name)) {
                let values: Vec<String> =
                    point.values.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect();
                let lost = point.lost.iter().find(|lost| lost.scheme == name);
                let without = lost.map_or_else(Vec::new, |lost| lost.keys.clone());
                let label = point.config.label_of(name, scheme);
                let label =
                    if without.is_empty() { label } else { format!("{label} (without {})", without.join(", ")) };
                let id = std::iter::once(name.to_owned()).chain(values).collect::<Vec<_>>().join(",");
                runs.push(Run {
                    id,
                    scheme: name.to_owned(),
                    label,
                    point: point.values.clone(),
                    config: Arc::clone(&point.config),
                    without,
                    root: Arc::clone(&self.root),
                    inputs: self.inputs.clone(),
                });
            }
        }
        runs
    }
}
