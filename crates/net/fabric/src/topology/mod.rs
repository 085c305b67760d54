//! Ready-made networks. Every figure is a parameter; each function only joins the parts.

mod clos;
mod fat_tree;
mod simple;

pub use clos::{Clos, InterLinks, RackHosts};
pub use fat_tree::FatTrees;
pub use simple::{Dumbbell, SingleSwitch, dumbbell, lay_dumbbell, single_switch};
