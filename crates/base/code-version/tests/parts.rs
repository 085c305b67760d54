//! Parts of a small workspace: which change of a source changes which version.

use std::fs;
use std::path::{Path, PathBuf};

use code_version::{CodeParts, Gate, GraphError, Roots};

const ROOTS: Roots<'static> = Roots {
    engine: &["engine::run"],
    record: &["results::tables"],
    gates: &[Gate { feature: "coding", entries: &["engine::coded"] }],
    ignored_crates: &["thiserror"],
};

/// A workspace of a test's own, removed when it is dropped.
struct Workspace(PathBuf);

impl Workspace {
    fn new(test: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let made = Self(root);
        made.write("Cargo.lock", "[[package]]\nname = \"libm\"\nversion = \"0.2.1\"\nchecksum = \"aa\"\n");
        let crates = [("laws", ""), ("engine", "laws = 1\nlibm = \"0.2\"\n"), ("results", "engine = 1\n")];
        for (name, dependencies) in crates {
            made.write(
                &format!("crates/{name}/Cargo.toml"),
                &format!("[package]\nname = \"x-{name}\"\n[lib]\nname = \"{name}\"\n[dependencies]\n{dependencies}"),
            );
        }
        made.write(
            "crates/laws/src/lib.rs",
            "mod law; pub mod one; pub mod two; mod window; pub use law::*; pub use window::Window;",
        );
        made.write(
            "crates/laws/src/law.rs",
            "macro_rules! laws { ($then:ident) => { $then! { One in one for kernel; Two in two; } }; } laws!(types);",
        );
        made.write("crates/laws/src/one.rs", "use crate::Window; pub struct One(Window);");
        made.write("crates/laws/src/two.rs", "pub struct Two; const GAIN: u32 = 3;");
        made.write("crates/laws/src/window.rs", "pub struct Window(u64);");
        made.write(
            "crates/engine/src/lib.rs",
            "pub mod run; mod sender; mod coded; mod tables; mod apart; mod unused;",
        );
        made.write(
            "crates/engine/src/run.rs",
            "use crate::sender::Sender; use laws::Law; pub fn run() { libm::log(1.0); }",
        );
        made.write("crates/engine/src/sender.rs", "use crate::coded::Coder; pub struct Sender(Option<Coder>);");
        made.write("crates/engine/src/coded.rs", "use crate::tables::TABLE; pub struct Coder;");
        made.write("crates/engine/src/tables.rs", "pub const TABLE: u8 = 1;");
        made.write("crates/engine/src/apart.rs", "impl crate::sender::Sender { fn apart(&self) -> u8 { 1 } }");
        made.write("crates/engine/src/unused.rs", "fn nobody() -> u8 { 1 }");
        made.write("crates/results/src/lib.rs", "pub mod tables; mod page;");
        made.write("crates/results/src/tables.rs", "use engine::run; pub fn write() {}");
        made.write("crates/results/src/page.rs", "pub fn page() {}");
        made
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn parts(&self) -> CodeParts {
        CodeParts::read(&self.0, &ROOTS).expect("a workspace").0
    }

    /// Returns the parts that get a new version when a file changes.
    fn changes(&self, name: &str, text: &str) -> Vec<String> {
        let before = self.parts();
        let old = fs::read_to_string(self.0.join(name)).expect("there");
        self.write(name, text);
        let after = self.parts();
        self.write(name, &old);
        let mut changed = Vec::new();
        let mut note = |what: &str, differs: bool| changed.extend(differs.then(|| what.to_owned()));
        note("engine", before.engine.version != after.engine.version);
        for law in ["one", "two"] {
            note(law, before.laws[law].version != after.laws[law].version);
        }
        note("coding", before.features["coding"].version != after.features["coding"].version);
        note("record", before.record.version != after.record.version);
        changed
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_change_changes_the_parts_that_reach_it() {
    let workspace = Workspace::new("changes");
    for (file, text, expected) in [
        ("crates/laws/src/two.rs", "// Why.\npub struct Two;\n\nconst GAIN: u32 = 3;", &[][..]),
        ("crates/laws/src/two.rs", "pub struct Two; const GAIN: u32 = 4;", &["two"]),
        ("crates/laws/src/window.rs", "pub struct Window(u32);", &["one"]),
        ("crates/engine/src/sender.rs", "use crate::coded::Coder; pub struct Sender(Coder);", &["engine"]),
        ("crates/engine/src/coded.rs", "use crate::tables::TABLE; pub struct Coder(u8);", &["coding"]),
        ("crates/engine/src/tables.rs", "pub const TABLE: u8 = 2;", &["coding"]),
        // Only its type leads to it.
        ("crates/engine/src/apart.rs", "impl crate::sender::Sender { fn apart(&self) -> u8 { 2 } }", &["engine"]),
        ("crates/results/src/tables.rs", "use engine::run; pub fn write() { run(); }", &["record"]),
        ("crates/results/src/page.rs", "pub fn page() { 1; }", &[]),
        ("Cargo.lock", "[[package]]\nname = \"libm\"\nversion = \"0.2.2\"\nchecksum = \"bb\"\n", &["engine"]),
        (
            "crates/laws/src/law.rs",
            "macro_rules! laws { ($then:ident) => { $then! { One in one; Two in two; } }; } laws!(types);",
            &["one"],
        ),
    ] {
        assert_eq!(workspace.changes(file, text), expected, "{file}: {text}");
    }
}

#[test]
fn modules_are_in_the_parts_that_reach_them() {
    let workspace = Workspace::new("modules");
    let parts = workspace.parts();
    assert_eq!(parts.engine.modules, ["engine::apart", "engine::run", "engine::sender", "laws::law"]);
    assert_eq!(parts.features["coding"].modules, ["engine::coded", "engine::tables"]);
    assert_eq!(parts.laws["one"].modules, ["laws::one", "laws::window"]);
    assert_eq!(parts.record.modules, ["results::tables"]);
    assert_eq!(parts.engine.externals, ["libm 0.2.1 aa"]);
}

#[test]
fn a_root_that_was_renamed_is_an_error() {
    let workspace = Workspace::new("renamed");
    workspace.write("crates/engine/src/lib.rs", "mod sender; mod coded; mod tables; mod apart; mod unused;");
    let error = CodeParts::read(&workspace.0, &ROOTS).unwrap_err();
    assert!(matches!(&error, GraphError::NoModule { path } if path == "engine::run"), "{error}");
    workspace.write("crates/engine/src/lib.rs", "mod run; mod missing;");
    assert!(matches!(CodeParts::read(&workspace.0, &ROOTS), Err(GraphError::NoFile { .. })));
}
