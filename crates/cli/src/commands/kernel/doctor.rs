//! `narrows kernel doctor`: can this machine run laws in its kernel?

use kernel::doctor::{Check, CheckResult, examine};
use serde_json::json;

use crate::args::KernelDoctorArgs;
use crate::exit::{CommandFailure, print};
use crate::sheet::{Sheet, check_csv, print_csv};

/// Name of the table for `--csv`.
const TABLE: &str = "checks";

pub(crate) fn doctor(args: &KernelDoctorArgs) -> Result<(), CommandFailure> {
    check_csv(&args.csv, &[TABLE])?;
    let checks = examine();
    let missing = checks.iter().filter(|check| check.verdict == CheckResult::Missing).count();
    if args.json {
        let checks: Vec<_> = checks.iter().map(as_json).collect();
        print(&format!("{:#}", json!({ "schema": 1, "ready": missing == 0, "checks": checks })))?;
    } else if args.csv.is_requested() {
        let checks: Vec<_> = checks.iter().map(as_json).collect();
        print_csv(&[Sheet::of_records(TABLE, &["name", "verdict", "found", "remedy"], &checks)], args.csv.table())?;
    } else {
        let mut table = crate::table::prose();
        table.set_header(["", "what", "found", "what to do"]);
        for check in &checks {
            table.add_row([word(check.verdict), check.name, &check.found, check.remedy]);
        }
        print(&table.to_string())?;
    }
    match missing {
        0 => Ok(()),
        1 => Err(CommandFailure::Run(anyhow::anyhow!("laws cannot be loaded here: one thing is missing"))),
        _ => Err(CommandFailure::Run(anyhow::anyhow!("laws cannot be loaded here: {missing} things are missing"))),
    }
}

const fn word(verdict: CheckResult) -> &'static str {
    match verdict {
        CheckResult::Good => "ok",
        CheckResult::Note => "note",
        CheckResult::Missing => "missing",
    }
}

fn as_json(check: &Check) -> serde_json::Value {
    json!({ "name": check.name, "verdict": word(check.verdict), "found": check.found, "remedy": check.remedy })
}
