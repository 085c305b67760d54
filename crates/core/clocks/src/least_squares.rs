//! Weighted least squares on a graph.

use alloc::vec;
use alloc::vec::Vec;

/// Maximum number of iterations.
const ITERATIONS: usize = 200;

/// Part of the initial residual at which iterations end.
const PRECISION: f64 = 1e-9;

/// A surplus between two members, with its weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) weight: f64,
    pub(crate) surplus: f64,
}

/// Returns the corrections with the least weighted sum of `(correction of to - correction of from - surplus)^2`, by conjugate
/// gradients with a diagonal preconditioner. The correction of `fixed` is 0.
///
/// Floating point: only sums, products and quotients in a fixed order, which are the same on every machine. Bounds do not
/// depend on it.
pub(crate) fn least_squares(members: usize, fixed: usize, edges: &[Edge]) -> Vec<f64> {
    let mut diagonal = vec![0.0; members];
    let mut residual = vec![0.0; members];
    for edge in edges {
        diagonal[edge.from] += edge.weight;
        diagonal[edge.to] += edge.weight;
        residual[edge.from] -= edge.weight * edge.surplus;
        residual[edge.to] += edge.weight * edge.surplus;
    }
    residual[fixed] = 0.0;
    let precondition = |residual: &[f64]| -> Vec<f64> {
        residual.iter().zip(&diagonal).map(|(it, &by)| if by > 0.0 { it / by } else { 0.0 }).collect()
    };
    let dot = |one: &[f64], other: &[f64]| -> f64 { one.iter().zip(other).map(|(one, other)| one * other).sum() };
    let mut corrections = vec![0.0; members];
    let mut direction = precondition(&residual);
    let mut norm = dot(&residual, &direction);
    let goal = norm * PRECISION;
    for _ in 0..ITERATIONS {
        let mut image = vec![0.0; members];
        for edge in edges {
            let flow = edge.weight * (direction[edge.to] - direction[edge.from]);
            image[edge.to] += flow;
            image[edge.from] -= flow;
        }
        image[fixed] = 0.0;
        let curvature = dot(&direction, &image);
        if norm <= goal || curvature <= 0.0 {
            break;
        }
        let step = norm / curvature;
        for member in 0..members {
            corrections[member] += step * direction[member];
            residual[member] -= step * image[member];
        }
        let preconditioned = precondition(&residual);
        let next = dot(&residual, &preconditioned);
        for (along, new) in direction.iter_mut().zip(&preconditioned) {
            *along = new + next / norm * *along;
        }
        norm = next;
    }
    corrections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: usize, to: usize, weight: f64, surplus: f64) -> Edge {
        Edge { from, to, weight, surplus }
    }

    /// A loop with a surplus of 3: equal weights share it equally, and a pair of little weight takes nearly all.
    #[test]
    fn a_loop_shares_its_surplus_by_weights() {
        let near = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-3, "{value}, not {expected}");
        let equal = least_squares(3, 0, &[edge(0, 1, 1.0, 1.0), edge(1, 2, 1.0, 1.0), edge(2, 0, 1.0, 1.0)]);
        for &it in &equal {
            near(it, 0.0);
        }
        let last = least_squares(3, 0, &[edge(0, 1, 1.0, 1.0), edge(1, 2, 1.0, 1.0), edge(2, 0, 1e-6, 1.0)]);
        near(last[1], 1.0);
        near(last[2], 2.0);
    }

    /// Two clusters of heavy pairs that one light pair connects: the light pair's surplus moves all of a cluster.
    #[test]
    fn clusters_move_as_a_whole() {
        let cluster = |first: usize| (0..10).map(move |it| edge(first + it, first + (it + 1) % 10, 1.0, 0.0));
        let edges: alloc::vec::Vec<Edge> = cluster(0).chain(cluster(10)).chain([edge(3, 15, 1e-6, 7.0)]).collect();
        let corrections = least_squares(20, 0, &edges);
        assert!(corrections[..10].iter().all(|it| it.abs() < 1e-3), "{corrections:?}");
        assert!(corrections[10..].iter().all(|it| (it - 7.0).abs() < 1e-2), "{corrections:?}");
    }

    #[test]
    fn members_without_pairs_stay() {
        assert_eq!(least_squares(3, 1, &[]), [0.0; 3]);
    }
}
