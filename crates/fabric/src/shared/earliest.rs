//! Which port of a switch decides next: a tournament over their times. Ties go to the lower port.

/// When a port has nothing to decide.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Earliest {
    /// By port, padded with [`NEVER`] to a power of two.
    times: Vec<u64>,
    /// The winner of each inner node; the children of `n` are `2 n` and `2 n + 1`, leaves come last.
    winners: Vec<u16>,
    /// The time of the first.
    first: u64,
}

impl Earliest {
    pub(super) fn new(ports: usize) -> Self {
        let width = ports.next_power_of_two().max(2);
        let mut winners = vec![0; width];
        for node in (1..width).rev() {
            winners[node] = if node * 2 >= width { (node * 2 - width) as u16 } else { winners[node * 2] };
        }
        Self { times: vec![NEVER; width], winners, first: NEVER }
    }

    /// The port whose time is first.
    #[inline]
    pub(super) fn port(&self) -> usize {
        usize::from(self.winners[1])
    }

    /// Its time.
    #[inline]
    pub(super) fn time(&self) -> u64 {
        self.first
    }

    #[inline]
    pub(super) fn time_of(&self, port: usize) -> u64 {
        self.times[port]
    }

    /// Sets a port's time.
    #[inline]
    pub(super) fn set(&mut self, port: usize, time: u64) {
        self.times[port] = time;
        let width = self.winners.len();
        let mut node = (port + width) >> 1;
        let pair = port & !1;
        self.winners[node] = pair as u16 + u16::from(self.times[pair + 1] < self.times[pair]);
        node >>= 1;
        while node > 0 {
            let (left, right) = (self.winners[node * 2], self.winners[node * 2 + 1]);
            let right_wins = self.times[usize::from(right)] < self.times[usize::from(left)];
            self.winners[node] = if right_wins { right } else { left };
            node >>= 1;
        }
        self.first = self.times[self.port()];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_found(ports in 1..70usize, moves in proptest::collection::vec((any::<usize>(), 0..40u64), 0..200)) {
            let mut earliest = Earliest::new(ports);
            let mut times = vec![NEVER; ports];
            for (port, time) in moves {
                let time = if time > 30 { NEVER } else { time };
                times[port % ports] = time;
                earliest.set(port % ports, time);
                let least = *times.iter().min().unwrap();
                prop_assert_eq!(earliest.time(), least);
                if least != NEVER {
                    prop_assert_eq!(earliest.port(), times.iter().position(|&it| it == least).unwrap());
                }
            }
        }
    }
}
