//! `narrows send` and `narrows recv`: files and directories from one machine to another. `docs/src/send.md`.

mod display;
mod recv;
mod send;
mod show;

pub(crate) use recv::recv;
pub(crate) use send::send;
