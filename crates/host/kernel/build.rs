//! Builds each law for the kernel, where the feature `bpf` is on: the Rust law for the BPF machine as assembly,
//! assembled and joined with the C adapter by libbpf's linker, one object a law.
//!
//! Where `NARROWS_BPF_OBJECTS` names a directory, its objects are used as they are and nothing is built. They must be
//! of the same sources: the loader and they share the layout of a flow.

use std::hash::{DefaultHasher, Hasher};
use std::path::Path;
use std::{fs, io};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for input in SOURCES {
        println!("cargo::rerun-if-changed={input}");
    }
    let mut hash = DefaultHasher::new();
    for input in SOURCES {
        if let Err(error) = hash_sources(&mut hash, Path::new(input)) {
            println!("cargo::error={input}: {error}");
        }
    }
    let sources = hash.finish();
    println!("cargo::rustc-env=NARROWS_KERNEL_BUILD={sources}");
    #[cfg(feature = "bpf")]
    bpf::build(sources);
}

/// Sources that determine the memory layout of a flow in the kernel and the meaning of its bytes.
const SOURCES: [&str; 6] = [
    "src/tcp_adapter.rs",
    "bpf/src",
    "bpf/Cargo.toml",
    "bpf/adapter.bpf.c",
    "../../core/laws/src",
    "../../core/units/src",
];

fn hash_sources(hash: &mut DefaultHasher, path: &Path) -> io::Result<()> {
    if !path.is_dir() {
        hash.write(&fs::read(path)?);
        return Ok(());
    }
    let mut entries = fs::read_dir(path)?.map(|entry| entry.map(|it| it.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| hash_sources(hash, entry))
}

#[cfg(feature = "bpf")]
mod bpf {
    use std::env;
    use std::fmt::Write as _;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use libbpf_rs::Linker;

    use laws::catalog::{EcnSupport, LawKind};

    /// A law that is built, by its module.
    struct LawRow {
        name: &'static str,
        ecn: bool,
    }

    macro_rules! rows {
        ($(#[doc = $doc:literal] $law:ident in $module:ident $(for $kernel:ident)?;)*) => {
            const ROWS: &[LawRow] = &[$($(row!($law $module $kernel),)?)*];
        };
    }
    macro_rules! row {
        ($law:ident $module:ident kernel) => {
            LawRow { name: stringify!($module), ecn: matches!(LawKind::$law.info().marks, EcnSupport::Used) }
        };
    }
    laws::laws!(rows);

    const TARGET: &str = "bpfel-unknown-none";

    pub(crate) fn build(sources: u64) {
        println!("cargo::rerun-if-env-changed=NARROWS_BPF_OBJECTS");
        let out = PathBuf::from(variable("OUT_DIR"));
        if let Some(prebuilt) = env::var_os("NARROWS_BPF_OBJECTS") {
            return copy_prebuilt(Path::new(&prebuilt), &out, sources);
        }
        for row in ROWS {
            let object = out.join(format!("{}.bpf.o", row.name));
            let law = assemble(row, &out);
            let adapter = compile_adapter(row, &out);
            link(&object, &[adapter, law]);
        }
    }

    /// Copies objects that `narrows kernel export` wrote.
    fn copy_prebuilt(prebuilt: &Path, out: &Path, sources: u64) {
        println!("cargo::rerun-if-changed={}", prebuilt.display());
        let sources_file = prebuilt.join("sources");
        let built_from = fs::read_to_string(&sources_file)
            .unwrap_or_else(|error| fail(&format!("{}: {error}", sources_file.display())));
        if built_from.lines().next() != Some(sources.to_string().as_str()) {
            fail(&format!(
                "{}: these objects were built from other sources; use those of this version",
                sources_file.display()
            ));
        }
        for row in ROWS {
            let name = format!("{}.bpf.o", row.name);
            let from = prebuilt.join(&name);
            fs::copy(&from, out.join(&name)).unwrap_or_else(|error| fail(&format!("{}: {error}", from.display())));
        }
    }

    /// The law for BPF.
    fn assemble(row: &LawRow, out: &Path) -> PathBuf {
        let work = out.join("rust");
        let crate_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("bpf");
        let mut cargo = Command::new(variable("CARGO"));
        cargo.current_dir(&crate_dir);
        // Variables that the outer build sets for itself do not apply to this one.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO") && name != "CARGO_HOME" || name.starts_with("RUSTC") || name == "RUSTFLAGS" {
                cargo.env_remove(&*name);
            }
        }
        cargo.env("RUSTC_BOOTSTRAP", "1").env("CARGO_TARGET_DIR", &work);
        let maps: Vec<_> =
            path_prefixes().iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
        cargo.env("CARGO_ENCODED_RUSTFLAGS", maps.join("\x1f"));
        cargo.args(["rustc", "--quiet", "--release", "--locked", "--target", TARGET, "-Zbuild-std=core", "--"]);
        // One function an entry: the kernel wants type information for each function, and the compiler writes it only for
        // those that C calls. Version 2 of the instruction set is accepted by every assembler here.
        cargo.args([
            "--emit=asm",
            "-Ctarget-cpu=v2",
            "-Zfunction-sections=no",
            "-Cllvm-args=-inline-threshold=1000000",
        ]);
        cargo.arg(format!("--cfg={}", row.name));
        // Assembly of an earlier law is next to this one's under another hash.
        let deps = work.join(TARGET).join("release/deps");
        for stale in assemblies(&deps) {
            fs::remove_file(&stale).unwrap_or_else(|error| fail(&format!("{}: {error}", stale.display())));
        }
        remove_fingerprints(&work);
        run(&mut cargo, "the law is compiled with `-Z build-std=core`, which needs `rustup component add rust-src`");
        let outputs = assemblies(&deps);
        let [source] = outputs.as_slice() else {
            fail(&format!("{} assembly files in {}, expected 1", outputs.len(), deps.display()));
        };
        let text = fs::read_to_string(source).unwrap_or_else(|error| fail(&format!("{}: {error}", source.display())));
        let ready = out.join(format!("{}.s", row.name));
        fs::write(&ready, checked(row, &text)).unwrap_or_else(|error| fail(&format!("{}: {error}", ready.display())));
        let object = out.join(format!("{}.law.o", row.name));
        run(clang().arg("-c").arg(&ready).arg("-o").arg(&object), "clang assembles the law");
        object
    }

    /// Removes fingerprints: cargo does not run the compiler again for a law that it has compiled before, but the
    /// assembly is needed again.
    fn remove_fingerprints(work: &Path) {
        let fingerprints = work.join(TARGET).join("release/.fingerprint");
        let Ok(entries) = fs::read_dir(fingerprints) else { return };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with("narrows-laws-bpf") {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn assemblies(folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|it| it == "s"))
            .collect()
    }

    /// The assembly, if it holds nothing that the kernel refuses; written so that older assemblers take it.
    fn checked(row: &LawRow, text: &str) -> String {
        let mut ready = String::with_capacity(text.len());
        for line in text.lines() {
            let code = line.trim();
            if let Some(function) = code.strip_prefix("call ") {
                fail(&format!(
                    "the law `{}` calls `{function}`: BPF has no panic, no 128-bit product and no copy of large values",
                    row.name
                ));
            }
            if let Some(word) = remainder_by_constant(code) {
                let _ = writeln!(ready, "\t.quad {word:#018x} # {code}");
            } else {
                ready.push_str(line);
                ready.push('\n');
            }
        }
        ready
    }

    /// `rN %= CONSTANT` as its encoding: clang before 15 does not parse it.
    fn remainder_by_constant(code: &str) -> Option<u64> {
        let (register, constant) = code.split_once(" %= ")?;
        let constant: i32 = constant.parse().ok()?;
        let (class, number) = match register.split_at_checked(1)? {
            ("r", number) => (0x97, number),
            ("w", number) => (0x94, number),
            _ => return None,
        };
        let register: u64 = number.parse().ok()?;
        Some(class | register << 8 | u64::from(constant as u32) << 32)
    }

    fn compile_adapter(row: &LawRow, out: &Path) -> PathBuf {
        let object = out.join(format!("{}.adapter.o", row.name));
        let mut clang = clang();
        clang.args(["-O2", "-g", "-Wall", "-Werror", "-c", "bpf/adapter.bpf.c", "-o"]).arg(&object);
        clang.arg(format!("-DNAME={}", row.name)).arg(format!("-DECN={}", u8::from(row.ecn)));
        for (from, to) in path_prefixes() {
            clang.arg(format!("-fdebug-prefix-map={from}={to}"));
        }
        // libbpf-sys provides libbpf's own headers.
        if let Some(include) = env::var_os("DEP_BPF_INCLUDE") {
            clang.arg("-I").arg(include);
        }
        run(&mut clang, "clang compiles the C adapter");
        object
    }

    /// Objects name the sources of their lines, which the verifier shows. They must not name this machine's directories:
    /// builds of the same sources are identical everywhere.
    fn path_prefixes() -> Vec<(String, &'static str)> {
        let workspace = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../../..");
        let workspace = fs::canonicalize(workspace).unwrap_or_else(|error| fail(&format!("the workspace: {error}")));
        let output = Command::new(variable("RUSTC")).args(["--print", "sysroot"]).output();
        let sysroot = output.unwrap_or_else(|error| fail(&format!("rustc --print sysroot: {error}"))).stdout;
        let mut paths = vec![
            (String::from_utf8_lossy(&sysroot).trim().to_owned(), "rust"),
            (variable("OUT_DIR"), "out"),
            (workspace.display().to_string(), "narrows"),
        ];
        if let Ok(include) = env::var("DEP_BPF_INCLUDE") {
            paths.push((include, "libbpf"));
        }
        paths
    }

    fn clang() -> Command {
        println!("cargo::rerun-if-env-changed=CLANG");
        let mut clang = Command::new(env::var_os("CLANG").unwrap_or_else(|| "clang".into()));
        clang.args(["-target", "bpf", "-mcpu=v2"]);
        clang
    }

    fn link(object: &Path, parts: &[PathBuf]) {
        let linked = Linker::new(object).and_then(|mut linker| {
            for part in parts {
                linker.add_file(part)?;
            }
            linker.link()
        });
        linked.unwrap_or_else(|error| fail(&format!("linking {}: {error}", object.display())));
    }

    fn run(command: &mut Command, needs: &str) {
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(status) => fail(&format!("{} ended with {status}; {needs}", command.get_program().display())),
            Err(error) => fail(&format!("{}: {error}; {needs}", command.get_program().display())),
        }
    }

    fn variable(name: &str) -> String {
        env::var(name).unwrap_or_else(|_| fail(&format!("cargo sets no {name}")))
    }

    fn fail(message: &str) -> ! {
        println!("cargo::error={message}");
        std::process::exit(1)
    }
}
