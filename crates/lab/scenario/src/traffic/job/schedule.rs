//! Order in which a stage takes micro-batches.
//!
//! 1F1B: Narayanan et al., SC 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
//! §2.2.1 (`PipeDream-Flush`). Stage s of p goes forward p - s - 1 times, then forward and backward in turn, then backward
//! for the rest. `GPipe` (Huang et al., 2019) goes forward with all micro-batches first. Both have a bubble of p - 1
//! micro-batches.

use crate::config::PipelineWord;

/// Direction in which a stage computes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PassDirection {
    Forward,
    Backward,
}

/// Unit of a stage's computing: one micro-batch, one way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct StageStep {
    pub(super) direction: PassDirection,
    pub(super) micro_batch: u32,
}

/// Returns the turns of a stage in an iteration, in order, for a pipeline of `stages` stages.
pub(super) fn order(schedule: PipelineWord, stage: u32, stages: u32, micro_batches: u32) -> Vec<StageStep> {
    let warmup = match schedule {
        PipelineWord::OneForwardOneBackward => (stages - stage - 1).min(micro_batches),
        PipelineWord::Gpipe => micro_batches,
    };
    let turn = |direction| move |micro_batch| StageStep { direction, micro_batch };
    let [forward, backward] = [PassDirection::Forward, PassDirection::Backward].map(turn);
    let steady = (warmup..micro_batches).flat_map(|next| [forward(next), backward(next - warmup)]);
    (0..warmup).map(forward).chain(steady).chain((micro_batches - warmup..micro_batches).map(backward)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schedule: PipelineWord, stage: u32, stages: u32, micro_batches: u32) -> String {
        let letter = |turn: &StageStep| if turn.direction == PassDirection::Forward { 'F' } else { 'B' };
        let turns = order(schedule, stage, stages, micro_batches);
        turns.iter().map(|turn| format!("{}{}", letter(turn), turn.micro_batch)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stages_take_micro_batches_as_in_the_papers() {
        use PipelineWord::{Gpipe, OneForwardOneBackward};
        // The paper's Figure 4, top, of four stages.
        assert_eq!(shown(OneForwardOneBackward, 0, 4, 5), "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
        assert_eq!(shown(OneForwardOneBackward, 2, 4, 4), "F0 F1 B0 F2 B1 F3 B2 B3");
        assert_eq!(shown(OneForwardOneBackward, 3, 4, 3), "F0 B0 F1 B1 F2 B2");
        // Fewer micro-batches than stages: all forward, then all backward.
        assert_eq!(shown(OneForwardOneBackward, 0, 4, 2), "F0 F1 B0 B1");
        assert_eq!(shown(Gpipe, 2, 4, 3), "F0 F1 F2 B0 B1 B2");
    }
}
