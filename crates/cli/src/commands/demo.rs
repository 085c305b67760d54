//! `narrows demo`: Uno's mixed incast (SC 2025, Fig. 8) at a size that ends within seconds.

use scenario::parse;
use study::Simulator;

use crate::args::DemoArgs;
use crate::exit::CommandFailure;
use crate::sheet::check_csv;

const DEMO: &str = include_str!("../../scenarios/demo.toml");

pub(crate) fn demo(args: &DemoArgs) -> Result<(), CommandFailure> {
    check_csv(&args.common.csv, &super::run::TABLES)?;
    let scenario = parse(DEMO, "demo.toml", &super::run::overrides(&args.common, None))?;
    super::run::all_of(
        &scenario,
        &Simulator { checked: args.common.check_invariants },
        &[],
        &args.common,
        vec!["narrows".into(), "demo".into()],
    )
}
