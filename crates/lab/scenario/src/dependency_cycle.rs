//! Dependency cycles among flows.

/// Returns a dependency cycle among the flows, if any: each waits for the next one, the last for the first. `after`
/// returns the flows for which a flow waits.
pub(crate) fn find_dependency_cycle<I>(flows: usize, after: impl Fn(usize) -> I) -> Option<Vec<usize>>
where
    I: IntoIterator<Item = usize>,
{
    // Depth first; each flow is on the walk, done, or not met.
    #[derive(Clone, Copy, PartialEq)]
    enum Met {
        No,
        OnTheWalk,
        Done,
    }
    let mut met = vec![Met::No; flows];
    for start in 0..flows {
        if met[start] != Met::No {
            continue;
        }
        met[start] = Met::OnTheWalk;
        let mut walk = vec![(start, after(start).into_iter())];
        while let Some((at, rest)) = walk.last_mut() {
            // Flows that are not there are refused elsewhere.
            let Some(next) = rest.find(|&next| next < flows && met[next] != Met::Done) else {
                met[*at] = Met::Done;
                walk.pop();
                continue;
            };
            if met[next] == Met::OnTheWalk {
                let first = walk.iter().position(|(at, _)| *at == next).unwrap_or(0);
                return Some(walk[first..].iter().map(|(at, _)| *at).collect());
            }
            met[next] = Met::OnTheWalk;
            walk.push((next, after(next).into_iter()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_found_with_all_their_flows() {
        let found = |after: &[&[usize]]| find_dependency_cycle(after.len(), |flow| after[flow].to_vec());
        assert_eq!(found(&[&[], &[0], &[0, 1], &[2, 1]]), None);
        assert_eq!(found(&[&[9], &[0]]), None);
        assert_eq!(found(&[&[], &[1]]), Some(vec![1]));
        assert_eq!(found(&[&[], &[0, 3], &[1], &[0, 2]]), Some(vec![1, 3, 2]));
    }
}
