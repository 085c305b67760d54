//! `narrows laws`: what laws there are.

use laws::catalog::{Kind, LawInfo, Quantity};
use serde_json::json;

use crate::args::LawsArgs;
use crate::exit::{Failure, print};

/// What works around laws and is none, with the table or key that sets it.
const AROUND: [(&str, &str); 6] = [
    ("on-ramp", "[host.on_ramp]"),
    ("lscc", "`lscc` of a scheme"),
    ("swing", "`swing` of a scheme"),
    ("unorc", "`coding` and `path` of [host]"),
    ("unolb", "`path` of [host]"),
    ("plb", "`path` of [host]"),
];

pub(crate) fn laws(args: &LawsArgs) -> Result<(), Failure> {
    let chosen: Vec<&LawInfo> = match &args.law {
        None => Kind::ALL.iter().map(|kind| kind.info()).collect(),
        Some(name) => {
            let known = || Kind::ALL.iter().map(|kind| kind.info().name).collect::<Vec<_>>();
            let around = AROUND.iter().find(|(other, _)| *other == name.to_lowercase().replace('_', "-"));
            let unknown = || match around {
                Some((_, set)) => Failure::Input(format!("error: `{name}` is no law: it works around one; see {set}")),
                None => Failure::unknown(&format!("no law `{name}`"), name, &known()),
            };
            vec![Kind::from_name(name).ok_or_else(unknown)?.info()]
        }
    };
    if args.json {
        let laws: Vec<_> = chosen.iter().map(|law| as_json(law)).collect();
        return print(&format!("{:#}", json!({ "schema": 1, "laws": laws })));
    }
    if args.law.is_some() {
        return print(&one(chosen[0]));
    }
    let mut table = crate::table::prose();
    table.set_header(["law", "what it does", "reacts to", "from"]);
    for law in chosen {
        table.add_row([law.name, law.summary, law.signals, law.source]);
    }
    print(&format!("{table}\n\n`narrows laws NAME` lists a law's parameters."))
}

fn one(law: &LawInfo) -> String {
    let mut table = crate::table::prose();
    table.set_header(["parameter", "kind", "default", "range", "what it is"]);
    for param in law.params {
        table.add_row([
            param.name.to_owned(),
            format!("{:?}", param.quantity).to_lowercase(),
            param.default.to_owned(),
            if param.quantity == Quantity::Switch {
                "true or false".to_owned()
            } else {
                format!("{} to {}", param.lowest, param.highest)
            },
            param.doc.to_owned(),
        ]);
    }
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
