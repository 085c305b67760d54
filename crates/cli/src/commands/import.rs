//! `narrows import`: other programs' files as scenarios.

use std::path::Path;

use scenario::import::{
    Base, GoalOptions, GraphFormat, GraphNames, GraphOptions, HpccNames, ImportNames, Imported, Placement,
    SimaiOptions, StartUnit, TrafficFormat, TrafficNames, import_chakra, import_goal, import_graph, import_hpcc,
    import_htsim, import_msccl, import_simai, import_traffic,
};

use crate::args::{
    self, ImportChakraArgs, ImportCommand, ImportGoalArgs, ImportGraphArgs, ImportHpccArgs, ImportHtsimArgs,
    ImportMscclArgs, ImportSimaiArgs, ImportTarget, ImportTrafficArgs,
};
use crate::exit::{CommandFailure, print, print_stderr};
use crate::named_file::{NamedFile, OutputKind, outside_of_results};

/// The option that names the scenario, and with it the list of flows next to it.
const OPTION: &str = "-o";

pub(crate) fn import(command: &ImportCommand) -> Result<(), CommandFailure> {
    // Checked now, before an import that may take long.
    outside_of_results(command.output(), OPTION)?;
    files::writable(command.output())?;
    let imported = command.imported(None)?;
    for path in write(command.output(), &imported)? {
        print(&format!("wrote {path}"))?;
    }
    for note in imported.notes {
        print_stderr(&format!("note: {note}"));
    }
    Ok(())
}

/// Destination of a scenario that is imported for another program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImportTo {
    /// In memory.
    Memory,
    /// Also in the file of the option `-o`, and a long list of flows next to it.
    File,
}

/// Failure of an import.
#[derive(Debug)]
pub enum ImportError {
    /// A file is wrong.
    Scenario(scenario::Error),
    /// Anything else, as the command prints it.
    Other(String),
}

impl From<scenario::Error> for ImportError {
    fn from(error: scenario::Error) -> Self {
        Self::Scenario(error)
    }
}

impl From<CommandFailure> for ImportError {
    fn from(failure: CommandFailure) -> Self {
        Self::Other(failure.to_string())
    }
}

impl From<files::Error> for ImportError {
    fn from(error: files::Error) -> Self {
        CommandFailure::from(error).into()
    }
}

impl From<ImportError> for CommandFailure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Scenario(error) => error.into(),
            ImportError::Other(text) => Self::Input(text),
        }
    }
}

/// Imports for another program. `base` replaces the scenario of the option `--scenario`.
///
/// # Errors
/// As the command, which prints them.
pub(crate) fn import_for(
    command: &ImportCommand,
    base: Option<&Base<'_>>,
    to: ImportTo,
) -> Result<Imported, ImportError> {
    if to == ImportTo::Memory {
        return command.imported(base);
    }
    outside_of_results(command.output(), OPTION)?;
    files::writable(command.output())?;
    let imported = command.imported(base)?;
    write(command.output(), &imported)?;
    Ok(imported)
}

impl ImportCommand {
    /// Makes the scenario, and writes nothing.
    fn imported(&self, base: Option<&Base<'_>>) -> Result<Imported, ImportError> {
        match self {
            Self::Htsim(args) => htsim(args),
            Self::Hpcc(args) => hpcc(args),
            Self::Goal(args) => goal(args, base),
            Self::Chakra(args) => chakra(args, base),
            Self::Msccl(args) => msccl(args, base),
            Self::Simai(args) => simai(args, base),
            Self::Flows(args) => traffic(args, TrafficFormat::Flows, base),
            Self::Netflow(args) => traffic(args, TrafficFormat::Netflow, base),
            Self::Pcap(args) => traffic(args, TrafficFormat::Capture, base),
            Self::Graphml(args) => {
                let units = Units { unit: args.unit.as_deref(), delay_unit: args.delay_unit.as_deref() };
                graph(&args.graph, GraphFormat::GraphMl, units)
            }
            Self::Links(args) => graph(args, GraphFormat::Links, Units::default()),
            Self::Containerlab(args) => graph(args, GraphFormat::Containerlab, Units::default()),
            Self::Sndlib(args) => {
                graph(&args.graph, GraphFormat::SndLib, Units { unit: args.unit.as_deref(), delay_unit: None })
            }
        }
    }

    /// The scenario that is written.
    fn output(&self) -> &Path {
        match self {
            Self::Htsim(args) => &args.out,
            Self::Hpcc(args) => &args.out,
            Self::Goal(args) => &args.target.out,
            Self::Chakra(args) => &args.target.out,
            Self::Msccl(args) => &args.target.out,
            Self::Simai(args) => &args.target.out,
            Self::Flows(args) | Self::Netflow(args) | Self::Pcap(args) => &args.target.out,
            Self::Graphml(args) => &args.graph.out,
            Self::Sndlib(args) => &args.graph.out,
            Self::Links(args) | Self::Containerlab(args) => &args.out,
        }
    }
}

fn htsim(args: &ImportHtsimArgs) -> Result<Imported, ImportError> {
    let matrix = read(&args.matrix)?;
    let topology = args.topology.as_deref().map(read).transpose()?;
    let name = named(&args.out);
    let names = ImportNames {
        scenario: &name,
        matrix: &shown(&args.matrix),
        topology: &args.topology.as_deref().map(shown).unwrap_or_default(),
    };
    let unit = args.start_unit.map(|unit| match unit {
        args::StartUnit::Ps => StartUnit::Picoseconds,
        args::StartUnit::Us => StartUnit::Microseconds,
    });
    Ok(import_htsim(&matrix, topology.as_deref(), unit, &names)?)
}

fn hpcc(args: &ImportHpccArgs) -> Result<Imported, ImportError> {
    let (topology, flows) = (read(&args.topology)?, read(&args.flows)?);
    let config = args.config.as_deref().map(read).transpose()?;
    let name = named(&args.out);
    let names = HpccNames {
        scenario: &name,
        topology: &shown(&args.topology),
        flows: &shown(&args.flows),
        config: &args.config.as_deref().map(shown).unwrap_or_default(),
    };
    Ok(import_hpcc(&topology, &flows, config.as_deref(), &names)?)
}

fn goal(args: &ImportGoalArgs, base: Option<&Base<'_>>) -> Result<Imported, ImportError> {
    let schedule = files::read(&args.schedule, scenario::FOREIGN)?;
    let name = named(&args.target.out);
    let names = TrafficNames { scenario: &name, traffic: &shown(&args.schedule) };
    let options = GoalOptions { placement: placement(args.placement), eager: &args.eager };
    args.target.with_base(base, |base| import_goal(&schedule, &options, base, &names))
}

fn chakra(args: &ImportChakraArgs, base: Option<&Base<'_>>) -> Result<Imported, ImportError> {
    let names: Vec<String> = args.traces.iter().map(|path| shown(path)).collect();
    let files = args.traces.iter().map(|path| files::read(path, scenario::FOREIGN));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let traces: Vec<(&str, Vec<u8>)> = names.iter().map(String::as_str).zip(files).collect();
    let groups = args.groups.as_deref().map(|path| Ok::<_, ImportError>((read(path)?, shown(path)))).transpose()?;
    let groups = groups.as_ref().map(|(text, name)| (text.as_str(), name.as_str()));
    let (name, placement) = (named(&args.target.out), placement(args.placement));
    args.target.with_base(base, |base| import_chakra(&traces, groups, base, placement, &name))
}

fn msccl(args: &ImportMscclArgs, base: Option<&Base<'_>>) -> Result<Imported, ImportError> {
    let text = read(&args.algorithm)?;
    let name = named(&args.target.out);
    let names = TrafficNames { scenario: &name, traffic: &shown(&args.algorithm) };
    let placement = placement(args.placement);
    args.target.with_base(base, |base| import_msccl(&text, &args.size, base, placement, &names))
}

fn simai(args: &ImportSimaiArgs, base: Option<&Base<'_>>) -> Result<Imported, ImportError> {
    let text = read(&args.workload)?;
    let name = named(&args.target.out);
    let names = TrafficNames { scenario: &name, traffic: &shown(&args.workload) };
    let options = SimaiOptions { placement: placement(args.placement), passes: args.passes, ranks: args.ranks };
    args.target.with_base(base, |base| import_simai(&text, &options, base, &names))
}

fn traffic(args: &ImportTrafficArgs, format: TrafficFormat, base: Option<&Base<'_>>) -> Result<Imported, ImportError> {
    let file = files::read(&args.traffic, scenario::FOREIGN)?;
    let name = named(&args.target.out);
    let names = TrafficNames { scenario: &name, traffic: &shown(&args.traffic) };
    let placement = placement(args.placement);
    args.target.with_base(base, |base| import_traffic(&file, format, base, placement, &names))
}

fn placement(chosen: args::Placement) -> Placement {
    match chosen {
        args::Placement::Block => Placement::Block,
        args::Placement::Cyclic => Placement::Cyclic,
        args::Placement::Packed => Placement::Packed,
    }
}

/// Units that a graph's file does not name.
#[derive(Clone, Copy, Default)]
struct Units<'a> {
    unit: Option<&'a str>,
    delay_unit: Option<&'a str>,
}

fn graph(args: &ImportGraphArgs, format: GraphFormat, units: Units<'_>) -> Result<Imported, ImportError> {
    let text = read(&args.graph)?;
    let options = GraphOptions {
        rate: args.rate.as_deref(),
        delay: args.delay.as_deref(),
        unit: units.unit,
        delay_unit: units.delay_unit,
        hosts: args.hosts,
        host_rate: args.host_rate.as_deref(),
    };
    let name = named(&args.out);
    let names = GraphNames { scenario: &name, graph: &shown(&args.graph) };
    Ok(import_graph(&text, format, &options, &names)?)
}

impl ImportTarget {
    /// Calls with the scenario that lends its network, if one is given.
    fn with_base(
        &self,
        given: Option<&Base<'_>>,
        import: impl FnOnce(Option<&Base<'_>>) -> Result<Imported, scenario::Error>,
    ) -> Result<Imported, ImportError> {
        let (None, Some(path)) = (given, &self.scenario) else { return Ok(import(given)?) };
        let text = files::text(path, scenario::SCENARIO)?;
        Ok(import(Some(&Base { text: &text, name: &shown(path) }))?)
    }
}

fn read(path: &Path) -> Result<String, ImportError> {
    Ok(files::text(path, scenario::FOREIGN)?)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn named(output: &Path) -> String {
    output.file_stem().map_or("imported".into(), |stem| scenario_name(&stem.to_string_lossy()))
}

/// Writes the scenario and the files that belong next to it. Returns the paths as displayed.
fn write(output: &Path, imported: &Imported) -> Result<Vec<String>, CommandFailure> {
    // Neither is written unless both may be.
    let scenario = NamedFile::new(output, OutputKind::Scenario, OPTION)?;
    let flows = imported.flows.clone();
    let flows =
        flows.map(|(name, text)| NamedFile::new(&output.with_file_name(name), OutputKind::Flows, OPTION)?.write(text));
    let written = [flows.transpose()?, Some(scenario.write(imported.toml.clone())?)];
    Ok(written.iter().flatten().map(|path| path.display().to_string()).collect())
}

/// A scenario's name has letters, digits, `-`, `_` and `.`; a file's may have anything.
fn scenario_name(stem: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    stem.chars().map(plain).collect()
}
