//! Ready-made networks. Every figure is a parameter; each function only says how the parts are joined.

mod fat_tree;
mod simple;

pub use fat_tree::{FatTrees, InterLinks};
pub use simple::{Dumbbell, SingleSwitch, dumbbell, single_switch};
