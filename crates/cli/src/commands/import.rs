//! `narrows import`: other simulators' files as scenarios.

use std::path::Path;

use scenario::import::{Names, import_htsim};

use crate::args::ImportHtsimArgs;
use crate::exit::{Failure, print, tell};
use crate::session::replace;

pub(crate) fn htsim(args: &ImportHtsimArgs) -> Result<(), Failure> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error));
    let matrix = read(&args.matrix)?;
    let topology = args.topology.as_deref().map(read).transpose()?;
    let shown = |path: &Path| path.display().to_string();
    let name = args.output.file_stem().map_or("imported".into(), |stem| scenario_name(&stem.to_string_lossy()));
    let names = Names {
        scenario: &name,
        matrix: &shown(&args.matrix),
        topology: &args.topology.as_deref().map(shown).unwrap_or_default(),
    };
    let imported = import_htsim(&matrix, topology.as_deref(), &names)?;
    let write = |path: &Path, text: &str| {
        replace(path, text)?;
        print(&format!("wrote {}", path.display()))
    };
    if let Some((file, text)) = &imported.flows {
        write(&args.output.with_file_name(file), text)?;
    }
    write(&args.output, &imported.toml)?;
    for note in imported.notes {
        tell(&format!("note: {note}"));
    }
    Ok(())
}

/// A scenario's name has letters, digits, `-`, `_` and `.`; a file's may have anything.
fn scenario_name(stem: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    stem.chars().map(plain).collect()
}
