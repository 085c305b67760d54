//! `narrows laws`: the list of laws.

use laws::catalog::{LawInfo, LawKind, ParamInfo, Quantity};
use serde_json::json;

use crate::args::LawsArgs;
use crate::exit::{CommandFailure, print};
use crate::sheet::{Sheet, SheetCell, SheetRow, print_csv};

/// Mechanisms that work around laws and are no laws, with the table or key that sets them.
const AROUND: [(&str, &str); 6] = [
    ("on-ramp", "[host.on_ramp]"),
    ("lscc", "`lscc` of a scheme"),
    ("swing", "`swing` of a scheme"),
    ("unorc", "`coding` and `load_balancing` of [host]"),
    ("unolb", "`load_balancing` of [host]"),
    ("plb", "`load_balancing` of [host]"),
];

pub(crate) fn laws(args: &LawsArgs) -> Result<(), CommandFailure> {
    let chosen: Vec<&LawInfo> = match &args.law {
        None => LawKind::ALL.iter().map(|kind| kind.info()).collect(),
        Some(name) => {
            let known = || LawKind::ALL.iter().map(|kind| kind.info().name).collect::<Vec<_>>();
            let around = AROUND.iter().find(|(other, _)| *other == name.to_lowercase().replace('_', "-"));
            let unknown = || match around {
                Some((_, set)) => {
                    CommandFailure::Input(format!("error: `{name}` is no law: it works around one; see {set}"))
                }
                None => CommandFailure::unknown(&format!("no law `{name}`"), name, &known()),
            };
            vec![LawKind::from_name(name).ok_or_else(unknown)?.info()]
        }
    };
    if args.json {
        let laws: Vec<_> = chosen.iter().map(|law| as_json(law)).collect();
        return print(&format!("{:#}", json!({ "schema": 1, "laws": laws })));
    }
    if args.law.is_some() {
        let params = parameters(chosen[0]);
        if args.csv.is_requested() {
            return print_csv(&[params], args.csv.table());
        }
        return print(&one(chosen[0], &params));
    }
    let row = |law: &&LawInfo| SheetRow {
        name: law.name.to_owned(),
        keys: Vec::new(),
        cells: [law.summary, law.signals, law.source].map(SheetCell::text).into(),
    };
    let columns = ["what it does", "reacts to", "from"].map(str::to_owned).into();
    let rows = chosen.iter().map(row).collect();
    let laws = Sheet { name: "laws", title: String::new(), first: "law", columns, rows };
    if args.csv.is_requested() {
        return print_csv(&[laws], args.csv.table());
    }
    let table = crate::table::wrapped(&laws);
    print(&format!("{table}\n\n`narrows laws NAME` lists a law's parameters."))
}

fn parameters(law: &LawInfo) -> Sheet {
    let row = |param: &ParamInfo| {
        let range = if param.quantity == Quantity::Switch {
            "true or false".to_owned()
        } else {
            format!("{} to {}", param.lowest, param.highest)
        };
        let kind = format!("{:?}", param.quantity).to_lowercase();
        let cells = [kind, param.default.to_owned(), range, param.doc.to_owned()].map(SheetCell::text).into();
        SheetRow { name: param.name.to_owned(), keys: Vec::new(), cells }
    };
    let columns = ["kind", "default", "range", "what it is"].map(str::to_owned).into();
    let rows = law.params.iter().map(row).collect();
    Sheet { name: "parameters", title: String::new(), first: "parameter", columns, rows }
}

fn one(law: &LawInfo, parameters: &Sheet) -> String {
    let table = crate::table::wrapped(parameters);
    format!(
        "{} ({})\n{}\nReacts to {}.\nFrom {}.\n\n{table}",
        law.title, law.name, law.summary, law.signals, law.source
    )
}

fn as_json(law: &LawInfo) -> serde_json::Value {
    let params: Vec<_> = law
        .params
        .iter()
        .map(|param| {
            json!({
                "name": param.name,
                "quantity": format!("{:?}", param.quantity).to_lowercase(),
                "default": param.default,
                "lowest": param.lowest.to_string(),
                "highest": param.highest.to_string(),
                "doc": param.doc,
            })
        })
        .collect();
    json!({
        "name": law.name,
        "title": law.title,
        "summary": law.summary,
        "signals": law.signals,
        "source": law.source,
        "params": params,
    })
}
