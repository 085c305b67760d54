//! Ranges in checks: `x >= 18% and x <= 37%`. Such a claim states a magnitude, so the direction alone is not right where the value
//! is another order of magnitude: 0.04 % is no weaker form of 18 % to 37 %.

use super::ast::{Check, Comparison, Expr, Function, Operator, Order};

/// A value outside of a range by this factor is of another order of magnitude.
const ORDER_OF_MAGNITUDE: f64 = 10.0;

/// A bound of an expression in a check.
struct Bound<'a> {
    of: &'a Expr,
    side: BoundSide,
    order: Order,
    value: &'a Expr,
}

/// The side of an expression that is bounded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BoundSide {
    Below,
    Above,
}

/// Returns the minimum that a claim with this check has to satisfy: its direction, and for each value with a range the
/// order of magnitude of that range.
pub(super) fn with_magnitude(direction: &Check, check: &Check) -> Check {
    let bounds: Vec<Bound<'_>> = check.all.iter().flat_map(bounds).collect();
    let in_range = |bound: &&Bound<'_>| {
        !bound.of.is_constant() && bounds.iter().any(|other| other.of == bound.of && other.side != bound.side)
    };
    let widened = bounds.iter().filter(in_range).map(widened);
    Check { all: direction.all.iter().cloned().chain(widened).collect() }
}

/// The bounds in a comparison: `x <= y` bounds x from above, and y from below.
fn bounds(comparison: &Comparison) -> Vec<Bound<'_>> {
    let Comparison { left, order, right } = comparison;
    let (of_left, of_right) = match order {
        Order::AtMost | Order::Below => (BoundSide::Above, BoundSide::Below),
        Order::AtLeast | Order::Above => (BoundSide::Below, BoundSide::Above),
        Order::Equal | Order::Unequal => return Vec::new(),
    };
    let bound = |of, side, value| Bound { of, side, order: one_way(*order, side), value };
    vec![bound(left, of_left, right), bound(right, of_right, left)]
}

/// Returns the same comparison, strict or not, with the bounded value on the left.
const fn one_way(order: Order, side: BoundSide) -> Order {
    match (side, order) {
        (BoundSide::Below, Order::Above | Order::Below) => Order::Above,
        (BoundSide::Below, _) => Order::AtLeast,
        (BoundSide::Above, Order::Above | Order::Below) => Order::Below,
        (BoundSide::Above, _) => Order::AtMost,
    }
}

/// The bound an order of magnitude further out, on its own side of zero.
fn widened(bound: &Bound<'_>) -> Comparison {
    let scaled = |operator| {
        let factor = Expr::Literal(ORDER_OF_MAGNITUDE, None);
        Expr::Binary(Box::new(bound.value.clone()), operator, Box::new(factor))
    };
    let outer = if bound.side == BoundSide::Below { Function::Min } else { Function::Max };
    let right = Expr::Call(outer, vec![scaled(Operator::Times), scaled(Operator::Over)]);
    Comparison { left: bound.of.clone(), order: bound.order, right }
}
