//! Prints the parts of this workspace with some roots: a look at the module graph.

use code_version::{Parts, Roots};

fn main() {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let args: Vec<String> = std::env::args().skip(1).collect();
    let engine: Vec<&str> = args.iter().map(String::as_str).collect();
    let roots = Roots { engine: &engine, record: &["results::summary::make"], gates: &[], silent: &[] };
    let parts = Parts::read(&workspace, &roots).expect("a workspace");
    println!("engine {:016x} {:#?}", parts.engine.version, parts.engine.modules);
    println!("{:#?}", parts.engine.externals);
    for (law, part) in &parts.laws {
        println!("{law} {:016x} {}", part.version, part.modules.join(" "));
    }
    println!("record {:#?}", parts.record.modules);
}
