//! Errors of loading, attaching and reading laws.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Reason for which a law cannot be loaded, attached or read.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages document it")]
pub enum Error {
    #[error("{0}")]
    Setting(String),
    #[error("a line rate of 0: laws scale with the bandwidth-delay product")]
    NoRate,
    #[error("this needs root (CAP_BPF and CAP_NET_ADMIN): try it with sudo")]
    NotRoot,
    #[error(
        "this kernel has no type information (/sys/kernel/btf/vmlinux): it must be built with CONFIG_DEBUG_INFO_BTF=y, as those of the large distributions are"
    )]
    NoBtf,
    #[error("{law}: the kernel refused {object} with {errno}: {reason}; `narrows kernel doctor` tries all loads")]
    Refused { law: String, object: String, errno: String, reason: String },
    #[error(
        "a congestion control named `{name}` is registered already: by the kernel itself, or held by a running command (`--foreground`, `narrows emulate`); `--name NAME` renames the law"
    )]
    NameTaken { name: String },
    #[error("`{name}` is over the kernel's 15 bytes for a name")]
    LongName { name: String },
    #[error("`{name}` is no name in the kernel: expected letters, digits, `_` and `.`")]
    WrongName { name: String },
    #[error("{law} is not loaded; `narrows kernel status` lists what is")]
    NotLoaded { law: String },
    #[error("{law} is loaded already; `narrows kernel unload {law}` removes it")]
    AlreadyLoaded { law: String },
    #[error(
        "another command has been changing the kernel's laws for over {seconds} s and holds the lock of `{}`; `fuser {}` names it", .folder.display(), .folder.display()
    )]
    Busy { folder: PathBuf, seconds: u64 },
    #[error(
        "this command has mounts of its own, without the BPF file system, as under `ip netns exec`: laws that stay are not seen from there and would end with the command; run it outside (`--netns NAME` for a namespace), or load with `--hold`"
    )]
    OwnMounts,
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("the law cannot be used there, {scope}: {reason}")]
    UnusableScope { scope: String, reason: String },
    /// Sockets and the laws' state cannot be listed; the law itself runs.
    #[cfg(feature = "bpf")]
    #[error("cannot list sockets and their laws' state: {0}")]
    Sockets(inet_diag::Error),
    #[error("cannot {action}: {reason}")]
    Failed { action: &'static str, reason: String },
}

impl Error {
    /// An error about a file.
    #[cfg(feature = "bpf")]
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}
