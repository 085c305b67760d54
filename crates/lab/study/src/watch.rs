//! Who looks on while runs go.

use engine::Progress;
use units::Time;

/// Who looks on: a terminal, a notebook, a log.
pub trait Watch: Sync {
    /// Something that the user should know, without an end of line.
    fn tell(&self, text: &str);

    /// Whether the work should end. Finished runs are kept.
    fn interrupted(&self) -> bool;

    /// From here on an interruption ends the work in order, and before it may end the program.
    fn listen(&self) {}

    /// Runs of these names begin, of which so many were finished before.
    fn board<'a>(&'a self, names: &[String], kept: usize) -> Box<dyn Board + 'a>;
}

/// How far the runs are.
pub trait Board: Sync {
    /// A run begins that ends at `stop` at the latest and has `flows` flows. It ends when its line goes.
    fn run<'a>(&'a self, name: &str, stop: Time, flows: u64) -> Box<dyn Line + 'a>;
}

/// How far a run is.
pub trait Line {
    /// A simulated run is so far.
    fn update(&self, progress: &Progress);

    /// A run on real packets, of which a second takes a second, is so far, and so many of its flows are done.
    fn update_real(&self, time: Time, completed: usize);
}

/// Nobody looks on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Silent;

impl Watch for Silent {
    fn tell(&self, _: &str) {}

    fn interrupted(&self) -> bool {
        false
    }

    fn board<'a>(&'a self, _: &[String], _: usize) -> Box<dyn Board + 'a> {
        Box::new(Self)
    }
}

impl Board for Silent {
    fn run<'a>(&'a self, _: &str, _: Time, _: u64) -> Box<dyn Line + 'a> {
        Box::new(Self)
    }
}

impl Line for Silent {
    fn update(&self, _: &Progress) {}

    fn update_real(&self, _: Time, _: usize) {}
}
