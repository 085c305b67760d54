//! The `narrows` command as its users meet it: the built program is run, and what it prints, returns and leaves on
//! disk is looked at.

mod support;

mod compare;
mod demo;
mod determinism;
#[cfg(target_os = "linux")]
mod emulate;
mod errors;
mod import;
mod itself;
mod json;
#[cfg(target_os = "linux")]
mod kernel;
mod killed;
mod output;
mod reproduce;
mod stopped;
