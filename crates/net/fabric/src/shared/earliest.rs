//! Tournament over the ports of a switch for the next decision, by their decision times: [`Time::NEVER`] where a port
//! has nothing to decide. Ties go to the lower port.

use units::Time;

#[derive(Debug)]
pub(super) struct Earliest {
    /// Inner nodes, each with the first of its leaves, and leaves: the children of `n` are `2 n` and `2 n + 1`, and leaves
    /// are last, one per port, padded to a power of two.
    nodes: Vec<(Time, u32)>,
}

impl Earliest {
    pub(super) fn new(ports: usize) -> Self {
        let width = ports.next_power_of_two().max(2);
        let mut nodes = vec![(Time::NEVER, 0); width * 2];
        for port in 0..width {
            nodes[width + port].1 = port as u32;
        }
        for node in (1..width).rev() {
            nodes[node] = nodes[node * 2];
        }
        Self { nodes }
    }

    /// The port with the earliest time.
    #[inline]
    pub(super) fn port(&self) -> usize {
        self.nodes[1].1 as usize
    }

    /// Its time.
    #[inline]
    pub(super) fn time(&self) -> Time {
        self.nodes[1].0
    }

    #[inline]
    pub(super) fn time_of(&self, port: usize) -> Time {
        self.nodes[self.nodes.len() / 2 + port].0
    }

    /// Sets a port's time.
    #[inline]
    pub(super) fn set(&mut self, port: usize, time: Time) {
        debug_assert!(port < self.nodes.len() / 2, "port {port} of {}", self.nodes.len() / 2);
        let mut node = self.nodes.len() / 2 + port;
        let mut first = (time, port as u32);
        self.nodes[node] = first;
        // The opponent at each level depends only on the port, not on the current winner, so the loads of all levels can
        // overlap.
        while node > 1 {
            let other = self.nodes[node ^ 1];
            let other_wins = if node & 1 == 1 { other.0 <= first.0 } else { other.0 < first.0 };
            first = if other_wins { other } else { first };
            node >>= 1;
            self.nodes[node] = first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn earliest_port_is_found(ports in 1..70usize, moves in proptest::collection::vec((any::<usize>(), 0..40u64), 0..200)) {
            let mut earliest = Earliest::new(ports);
            let mut times = vec![Time::NEVER; ports];
            for (port, time) in moves {
                let time = if time > 30 { Time::NEVER } else { Time::from_ps(time) };
                times[port % ports] = time;
                earliest.set(port % ports, time);
                let least = *times.iter().min().unwrap();
                prop_assert_eq!(earliest.time(), least);
                if least.is_set() {
                    prop_assert_eq!(earliest.port(), times.iter().position(|&it| it == least).unwrap());
                }
            }
        }
    }
}
