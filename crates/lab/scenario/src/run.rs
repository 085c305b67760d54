//! One scheme at one point of the grid.

use std::sync::Arc;

use crate::config::Config;
use crate::inputs::Inputs;
use crate::tree::Node;

/// A run to be: a scheme at a point of the grid.
#[derive(Clone, Debug)]
pub struct Run {
    /// Identifier within its scenario: `uno`, or `uno,traffic.0.load=0.4`.
    pub id: String,
    /// Its scheme's name.
    pub scheme: String,
    /// Its scheme's label.
    pub label: String,
    /// The grid's keys and their values here.
    pub point: Vec<(String, String)>,
    /// The scenario at this point.
    pub config: Arc<Config>,
    /// Keys that the scheme sets and this run does without. Its label names them, too.
    pub without: Vec<String>,
    /// The file with all overrides applied, for errors.
    pub(crate) root: Arc<Node>,
    pub(crate) inputs: Inputs,
}
