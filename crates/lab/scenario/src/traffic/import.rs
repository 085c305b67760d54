//! `kind = "import"`: another program's files as flows of a run.

use formats::simai::WorkloadOptions;
use units::Bytes;

use super::{TrafficContext, TrafficFlows, list};
use crate::config::{Flow, FlowEvents, ForeignFormat, ImportedTraffic};
use crate::decode::Located;
use crate::error::{SourceSpan, SpannedError};
use crate::foreign::{
    self, Foreign, ForeignFlow, ForeignTraffic, GOAL, HostNames, MSCCL, NetworkSource, SIMAI, TrafficFormat,
};
use crate::inputs::Input;

/// Default of `eager`: sends up to this size have ended once they have begun, as with LogGOPSim's default S.
const EAGER: Bytes = Bytes::new(65_535);

pub(super) fn make(entry: &ImportedTraffic, context: &TrafficContext<'_>) -> Result<TrafficFlows, SpannedError> {
    let format = entry.format.value;
    for (key, origin, of) in options(entry) {
        if let Some(origin) = origin.filter(|_| of != format) {
            let message = format!("`{key}` is for the format `{}`, not `{}`", of.name(), format.name());
            return Err(SpannedError::new(origin, message).label("not with this format"));
        }
    }
    let names = files(entry)?;
    let kind = match format {
        ForeignFormat::Goal => Some(GOAL),
        ForeignFormat::Msccl => Some(MSCCL),
        ForeignFormat::Simai => Some(SIMAI),
        ForeignFormat::Flows => TrafficFormat::Flows.kind(),
        ForeignFormat::Netflow => TrafficFormat::Netflow.kind(),
        ForeignFormat::Chakra | ForeignFormat::Pcap => None,
    };
    let opened = |name: &Located<String>, kind| {
        let (source, input) = context.inputs.read_foreign(name, kind)?;
        Ok(ImportedFile::new(source, input))
    };
    let files =
        names.value.iter().map(|name| opened(name, kind)).collect::<Result<Vec<ImportedFile>, SpannedError>>()?;
    let groups = entry.groups.as_ref().map(|name| opened(name, None)).transpose()?;
    let files: Vec<Foreign<'_>> = files.iter().map(ImportedFile::foreign).collect();
    let read = traffic(entry, &files, groups.as_ref().map(ImportedFile::foreign));
    let host_names = HostNames::unknown("the network of this scenario").of(context.network);
    let placed = read.and_then(|traffic| traffic.on(&host_names, NetworkSource::Given, entry.placement));
    let (listed, notes) = placed.map_err(|error| error.at_least(names.origin))?;
    let flows: Vec<Flow> = listed.into_iter().map(|flow| of_list(flow, names.origin)).collect();
    let mut output = list::drafts(&flows, names.origin, entry.start, context)?;
    let name = names.value.first().map_or("", |name| name.as_str());
    let is_schedule = match format {
        ForeignFormat::Goal | ForeignFormat::Chakra | ForeignFormat::Msccl | ForeignFormat::Simai => true,
        ForeignFormat::Flows | ForeignFormat::Netflow | ForeignFormat::Pcap => false,
    };
    output.schedule = is_schedule.then_some(entry.start);
    output.notes = notes.into_iter().map(|note| format!("{name}: {note}")).collect();
    Ok(output)
}

/// Returns the keys that are for one format alone: the place of each, and its format.
fn options(entry: &ImportedTraffic) -> [(&'static str, Option<SourceSpan>, ForeignFormat); 6] {
    [
        ("files", entry.files.as_ref().map(|it| it.origin), ForeignFormat::Chakra),
        ("groups", entry.groups.as_ref().map(|it| it.origin), ForeignFormat::Chakra),
        ("eager", entry.eager.map(|it| it.origin), ForeignFormat::Goal),
        ("size", entry.size.map(|it| it.origin), ForeignFormat::Msccl),
        ("passes", entry.passes.map(|it| it.origin), ForeignFormat::Simai),
        ("ranks", entry.ranks.map(|it| it.origin), ForeignFormat::Simai),
    ]
}

/// The names of the files.
fn files(entry: &ImportedTraffic) -> Result<Located<Vec<Located<String>>>, SpannedError> {
    match (&entry.file, &entry.files) {
        (Some(file), None) => Ok(Located { value: vec![file.clone()], origin: file.origin }),
        (None, Some(files)) if !files.is_empty() => Ok(files.clone()),
        (None, Some(files)) => {
            Err(SpannedError::new(files.origin, "`files` names none").label("expected a file a rank"))
        }
        (Some(_), Some(files)) => Err(SpannedError::new(files.origin, "`file` and `files` both name files: give one")),
        (None, None) => {
            Err(SpannedError::new(SourceSpan::NOWHERE, "this entry names no file").help("give file = \"job.goal\""))
        }
    }
}

/// Reads the files. The scenario may name several of them in one format alone.
fn traffic(
    entry: &ImportedTraffic,
    files: &[Foreign<'_>],
    groups: Option<Foreign<'_>>,
) -> Result<ForeignTraffic, SpannedError> {
    let Some(&file) = files.first() else {
        return Err(SpannedError::new(SourceSpan::NOWHERE, "this entry names no file"));
    };
    match entry.format.value {
        ForeignFormat::Goal => foreign::goal(file, entry.eager.map_or(EAGER, |it| it.value)),
        ForeignFormat::Chakra => {
            let at = entry.groups.as_ref().map_or(SourceSpan::NOWHERE, |it| it.origin);
            let groups = foreign::groups(groups, files.len()).map_err(|error| error.at_least(at))?;
            foreign::chakra(files, &groups)
        }
        ForeignFormat::Msccl => match entry.size {
            Some(size) => foreign::msccl(file, size.value),
            None => {
                Err(SpannedError::new(entry.format.origin, "an algorithm of MSCCL does not state the size of its data")
                    .label("needs `size`")
                    .help("give size = \"64MiB\", what all its chunks are together"))
            }
        },
        ForeignFormat::Simai => {
            let (passes, ranks) = (entry.passes.map_or(1, |it| it.get()), entry.ranks.map(|it| it.get()));
            foreign::simai(file, WorkloadOptions { passes, ranks })
        }
        ForeignFormat::Flows => foreign::transfers(file, TrafficFormat::Flows),
        ForeignFormat::Netflow => foreign::transfers(file, TrafficFormat::Netflow),
        ForeignFormat::Pcap => foreign::transfers(file, TrafficFormat::Capture),
    }
}

/// A file that was read.
struct ImportedFile {
    name: String,
    source: Option<u32>,
    input: Input,
}

impl ImportedFile {
    fn new(source: Option<u32>, input: Input) -> Self {
        Self { name: input.path.display().to_string(), source, input }
    }

    fn foreign(&self) -> Foreign<'_> {
        Foreign { name: &self.name, bytes: self.input.content.bytes(), source: self.source }
    }
}

/// A flow as a list of the scenario would have it, all of it at one place.
fn of_list(flow: ForeignFlow, origin: SourceSpan) -> Flow {
    let events = flow.after.into_iter().map(|event| Located { value: event, origin }).collect();
    Flow {
        start: flow.start.map(|start| Located { value: start, origin }),
        src: Located { value: flow.src, origin },
        dst: Located { value: flow.dst, origin },
        size: flow.bytes.map(|bytes| Located { value: Bytes::new(bytes), origin }),
        after: Some(Located { value: FlowEvents(events), origin }).filter(|after| !after.value.0.is_empty()),
        compute: None,
    }
}
