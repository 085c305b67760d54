//! The `narrows` command as its users meet it: the built program is run, and what it prints, returns and leaves on
//! disk is looked at.

mod support;

mod book;
mod compare;
mod demo;
mod determinism;
mod edited;
#[cfg(target_os = "linux")]
mod emulate;
mod errors;
mod export;
mod import;
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
#[cfg(target_os = "linux")]
mod perf;
#[cfg(target_os = "linux")]
mod proxy;
mod python;
mod reproduce;
#[cfg(target_os = "linux")]
mod services;
mod size;
mod stopped;
mod structure;
mod sweep;
#[cfg(target_os = "linux")]
mod transfer;
