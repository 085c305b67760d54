//! `narrows import`: other simulators' files as scenarios.

use std::path::Path;

use scenario::import::{Names, import_htsim};

use crate::args::ImportHtsimArgs;
use crate::exit::{Failure, print};

pub(crate) fn htsim(args: &ImportHtsimArgs) -> Result<(), Failure> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error));
    let matrix = read(&args.matrix)?;
    let topology = args.topology.as_deref().map(read).transpose()?;
    let shown = |path: &Path| path.display().to_string();
    let name = args.output.file_stem().map_or("imported".into(), |stem| stem.to_string_lossy().into_owned());
    let names = Names {
        scenario: &name,
        matrix: &shown(&args.matrix),
        topology: &args.topology.as_deref().map(shown).unwrap_or_default(),
    };
    let imported = import_htsim(&matrix, topology.as_deref(), &names).map_err(super::input_error)?;
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
        print(&format!("wrote {}", path.display()))
    };
    if let Some((file, text)) = &imported.flows {
        write(&args.output.with_file_name(file), text)?;
    }
    write(&args.output, &imported.toml)?;
    for note in imported.notes {
        eprintln!("note: {note}");
    }
    Ok(())
}
