//! The `narrows` command as its users meet it: runs the built program, and checks its output, exit status and files.

mod support;

mod book;
mod choose;
mod clocks;
mod compare;
mod csv;
mod demo;
mod determinism;
mod edited;
#[cfg(target_os = "linux")]
mod emulate;
mod errors;
mod explain;
mod export;
#[cfg(feature = "import")]
mod import;
#[cfg(not(feature = "import"))]
mod import {
    //! A build without importers reports that.

    use crate::support::Scratch;

    #[test]
    fn build_without_importers_is_an_error() {
        let scratch = Scratch::new("no-import");
        let ran = scratch.narrows("import goal a.goal -o a.toml");
        assert_eq!((ran.code, ran.err.lines().count()), (2, 1), "{ran}");
        assert!(ran.err.contains("this build has no importers") && ran.err.contains("`make build`"), "{ran}");
        scratch.write("a.toml", "name = \"a\"\n[topology]\nkind = \"single-switch\"\nhosts = 4\n[schemes.d]\nlaw = \"dctcp\"\n[[traffic]]\nkind = \"import\"\nformat = \"goal\"\nfile = \"a.goal\"\n");
        scratch.narrows("check a.toml").fails(2, &["a.toml:9:10"]);
    }
}
mod itself;
mod json;
#[cfg(target_os = "linux")]
mod kernel;
mod killed;
#[cfg(target_os = "linux")]
mod locks;
mod named_files;
mod new_law;
mod not_lost;
mod output;
mod packages;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod perf;
mod prose;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod proxy;
mod python;
mod reproduce;
mod score;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod services;
mod signatures;
mod size;
mod stopped;
mod structure;
mod sweep;
mod tidy;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod transfer;
#[cfg(all(target_os = "linux", feature = "transport"))]
mod virtual_time;
