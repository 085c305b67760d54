//! The headroom of a cable, by the formula of SONiC's dynamic buffer model for Spectrum (`buffer_headroom_mellanox.lua`),
//! in exact arithmetic. SONiC uses floating point; if a sum is within a rounding error of a whole KiB, the two may differ
//! by one KiB.

use super::asic::Asic;

/// The formula's speed of light in a cable, in metres a second.
pub(crate) const METRES_A_SECOND: u64 = 198_000_000;

/// A cable and the port at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeadroomCable {
    /// The port's speed in Mb/s, at most 800,000.
    pub(crate) speed_mbps: u64,
    /// The cable's length in metres, at most 100,000,000.
    pub(crate) length_m: u64,
    /// The port's MTU in bytes, at most 65,535.
    pub(crate) mtu_bytes: u64,
    /// The delay of a gearbox, in the formula's own unit: `speed * delay / 8 KiB`; at most 65,535.
    pub(crate) gearbox_delay: u64,
    /// Set if the port has eight lanes.
    pub(crate) has_eight_lanes: bool,
}

/// Lossless traffic (`LOSSLESS_TRAFFIC_PATTERN`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LosslessTraffic {
    /// The largest lossless packet in bytes, 64 to 65,535.
    pub(crate) mtu_bytes: u64,
    /// The share of packets of 64 bytes, in per cent, 0 to 100.
    pub(crate) small_percent: u64,
}

/// The buffer profile of a priority group of a cable, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Headroom {
    /// Bytes that may still arrive after the decision to pause.
    pub(crate) xoff: u64,
    /// Bytes that may be left when the pause ends.
    pub(crate) xon: u64,
    /// Reserved bytes.
    pub(crate) size: u64,
}

/// Bytes that a peer sends between a pause's arrival and its effect: the quanta of 64 bytes that IEEE 802.3 (31B.3.7)
/// allows at this speed. None for a speed without a value from SONiC.
pub(crate) fn peer_response_bytes(speed_mbps: u64) -> Option<u64> {
    let quanta = match speed_mbps {
        400_000 | 800_000 => 905,
        200_000 => 453,
        100_000 => 394,
        50_000 => 147,
        40_000 => 118,
        25_000 => 80,
        10_000 => 67,
        1_000 => 2,
        100 => 1,
        _ => return None,
    };
    Some(quanta * 64)
}

/// The headroom of a cable, which each priority group reserves: not a pool of all ports.
///
/// None for a speed without a known response time.
pub(crate) fn headroom(asic: &Asic, cable: &HeadroomCable, traffic: &LosslessTraffic) -> Option<Headroom> {
    // Fractions have this denominator: 792 of the cable, 4,096 of the gearbox, 1,000 of thousandths.
    const PARTS: u128 = 792 * 4_096 * 1_000;
    let peer = peer_response_bytes(cable.speed_mbps)?;
    let [speed, length, gearbox] = [cable.speed_mbps, cable.length_m, cable.gearbox_delay].map(u128::from);
    // 2 * length * speed * 10^9 / 198e6 / 8000, which is length * speed / 792 bytes.
    let on_cable = length * speed * (PARTS / 792);
    // Two of speed * delay / (8 * 1024).
    let in_gearboxes = speed * gearbox * (PARTS / 4_096);
    let in_phy = u128::from(asic.mac_phy_milli_kib) * 1_024 * (PARTS / 1_000);
    let in_tiles = if asic.has_tiles { speed * 15 * (PARTS / 1_000) } else { 0 };
    let packet_and_response = u128::from(cable.mtu_bytes + peer) * PARTS;
    let propagation = packet_and_response + on_cable + in_gearboxes + in_phy + in_tiles;

    // A small packet takes `worst` times its bytes of cells; `of_small` are bytes of small packets in a hundred packets.
    let worst = u128::from(worst_factor(asic.cell_bytes));
    let small = u128::from(traffic.small_percent);
    let of_all = small * 64 + (100 - small) * u128::from(traffic.mtu_bytes);
    // (100 - p + p * worst) / 100, where p = 100 * 64 / (of_all / 100) per cent.
    let (occupied, of) = (100 * of_all + 640_000 * (worst - 1), 100 * of_all);
    let packet = u128::from(traffic.mtu_bytes);
    let mut xoff = up_to_kib(packet * PARTS * of + propagation * occupied, PARTS * of) + asic.extra_bytes;
    let at_worst = up_to_kib(packet * PARTS + propagation * worst, PARTS);
    if small != 100 && xoff + 2_048 < at_worst {
        xoff += 2_048;
    }
    let lanes = if cable.has_eight_lanes { 2 } else { 1 };
    let xon = lanes * asic.pipeline_kib * 1_024;
    let more = if cable.has_eight_lanes { cable.mtu_bytes } else { 0 };
    let size = up_to_kib(u128::from(xoff + xon + more), 1);
    Some(Headroom { xoff, xon, size })
}

/// The length of a cable of this delay, up to a whole metre.
pub(crate) fn metres(delay_ps: u64) -> u64 {
    (u128::from(delay_ps) * u128::from(METRES_A_SECOND)).div_ceil(1_000_000_000_000) as u64
}

/// Returns the longest cable, no longer than this one, with a headroom below `under_bytes`; none if no cable is short enough.
pub(crate) fn longest(asic: &Asic, cable: &HeadroomCable, traffic: &LosslessTraffic, under_bytes: u64) -> Option<u64> {
    let fits = |length_m| {
        headroom(asic, &HeadroomCable { length_m, ..*cable }, traffic).is_some_and(|it| it.size < under_bytes)
    };
    let (mut low, mut high) = (0, cable.length_m);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    fits(low).then_some(low)
}

/// Cells' bytes over packets' bytes, for packets of the least favourable size, in whole numbers.
fn worst_factor(cell_bytes: u64) -> u64 {
    if cell_bytes > 128 { cell_bytes.div_ceil(64) } else { (2 * cell_bytes).div_ceil(1 + cell_bytes) }
}

/// A fraction of bytes, up to a whole KiB.
fn up_to_kib(bytes: u128, of: u128) -> u64 {
    // At most some 10^15 bytes, by the ranges of the parts.
    bytes.div_ceil(of * 1_024) as u64 * 1_024
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sonic::asic::ASICS;

    /// A fraction, in lowest terms.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Fraction(i128, i128);

    impl Fraction {
        fn new(above: i128, below: i128) -> Self {
            let (mut a, mut b) = (above.abs(), below.abs());
            while b > 0 {
                (a, b) = (b, a % b);
            }
            let gcd = a.max(1);
            Self(above / gcd * below.signum(), below.abs() / gcd)
        }

        fn plus(self, other: Self) -> Self {
            Self::new(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
        }

        fn times(self, other: Self) -> Self {
            // Reduced crosswise first, so that products stay small.
            let (a, b) = (Self::new(self.0, other.1), Self::new(other.0, self.1));
            Self::new(a.0 * b.0, a.1 * b.1)
        }

        fn over(self, other: Self) -> Self {
            self.times(Self::new(other.1, other.0))
        }

        fn ceil(self) -> i128 {
            self.0.div_euclid(self.1) + i128::from(self.0.rem_euclid(self.1) > 0)
        }

        fn up_to_kib(self) -> i128 {
            self.over(int(1_024)).ceil() * 1_024
        }
    }

    fn int(value: impl Into<i128>) -> Fraction {
        Fraction::new(value.into(), 1)
    }

    /// The formula, term by term as SONiC writes it, in fractions.
    fn as_written(asic: &Asic, cable: &HeadroomCable, traffic: &LosslessTraffic) -> [i128; 3] {
        let (speed, small, mtu) = (int(cable.speed_mbps), int(traffic.small_percent), int(traffic.mtu_bytes));
        let cell = int(asic.cell_bytes);
        let minus = |a: Fraction, b: Fraction| a.plus(Fraction::new(-b.0, b.1));
        let worst = if asic.cell_bytes > 128 {
            int(cell.over(int(64)).ceil())
        } else {
            int(int(2).times(cell).over(int(1).plus(cell)).ceil())
        };
        let average = small.times(int(64)).plus(minus(int(100), small).times(mtu)).over(int(100));
        let percent = int(100).times(int(64)).over(average);
        let occupancy = minus(int(100), percent).plus(percent.times(worst)).over(int(100));
        let on_cable = int(2)
            .times(int(cable.length_m))
            .times(speed)
            .times(int(1_000_000_000))
            .over(int(METRES_A_SECOND))
            .over(int(8 * 1_000));
        let gearbox = speed.times(int(cable.gearbox_delay)).over(int(8 * 1_024));
        let peer = int(peer_response_bytes(cable.speed_mbps).unwrap());
        let tile = if asic.has_tiles { speed.over(int(1_000)).times(int(120)).over(int(8)) } else { int(0) };
        let propagation = int(cable.mtu_bytes)
            .plus(on_cable)
            .plus(int(2).times(gearbox))
            .plus(Fraction::new(asic.mac_phy_milli_kib.into(), 1_000).times(int(1_024)))
            .plus(peer)
            .plus(tile);
        let mut xoff = mtu.plus(propagation.times(occupancy)).up_to_kib() + i128::from(asic.extra_bytes);
        let speedy = mtu.plus(propagation.times(worst)).up_to_kib();
        if traffic.small_percent != 100 && xoff + 2_048 < speedy {
            xoff += 2_048;
        }
        let mut xon = int(asic.pipeline_kib).times(int(1_024)).up_to_kib();
        let mut more = 0;
        if cable.has_eight_lanes {
            xon *= 2;
            more = i128::from(cable.mtu_bytes);
        }
        let size = int(xoff + xon + more).up_to_kib();
        [xoff, xon, size]
    }

    #[test]
    fn headroom_matches_the_exact_formula() {
        let (mut points, mut different) = (0, std::collections::BTreeSet::new());
        for asic in &ASICS {
            for speed_mbps in [10_000, 25_000, 40_000, 50_000, 100_000, 200_000, 400_000, 800_000] {
                for length_m in [0, 1, 5, 40, 300, 2_000, 10_000, 80_000, 300_000, 1_234_567] {
                    for (mtu_bytes, gearbox_delay) in [(1_500, 0), (9_100, 7), (9_216, 31)] {
                        for (lossless, small_percent) in [(1_024, 100), (1_500, 50), (4_096, 0), (9_000, 7)] {
                            for has_eight_lanes in [false, true] {
                                let cable =
                                    HeadroomCable { speed_mbps, length_m, mtu_bytes, gearbox_delay, has_eight_lanes };
                                let traffic = LosslessTraffic { mtu_bytes: lossless, small_percent };
                                let found = headroom(asic, &cable, &traffic).unwrap();
                                let expected = as_written(asic, &cable, &traffic);
                                assert_eq!(
                                    [found.xoff, found.xon, found.size].map(i128::from),
                                    expected,
                                    "{asic:?} {cable:?} {traffic:?}"
                                );
                                points += 1;
                                different.insert(expected);
                            }
                        }
                    }
                }
            }
        }
        assert!(points >= 10_000 && different.len() > 3_000, "{points} points, {} values", different.len());
    }

    #[test]
    fn cable_of_300_km_needs_38_megabytes() {
        let traffic = LosslessTraffic { mtu_bytes: 1_024, small_percent: 100 };
        let of = |length_m| {
            let cable = HeadroomCable {
                speed_mbps: 100_000,
                length_m,
                mtu_bytes: 9_100,
                gearbox_delay: 0,
                has_eight_lanes: false,
            };
            headroom(&Asic::from_name("spectrum-3").unwrap(), &cable, &traffic).unwrap().xoff
        };
        // Small packets alone take three times their bytes of cells of 144 bytes.
        let on_the_cable = 300_000 * 100_000 / 792;
        assert!((37_878_787..37_878_789).contains(&on_the_cable));
        assert!(of(300_000) - of(0) >= 3 * on_the_cable - 1_024 && of(300_000) - of(0) <= 3 * on_the_cable + 1_024);
        assert_eq!(
            headroom(
                &ASICS[0],
                &HeadroomCable { speed_mbps: 7, length_m: 1, mtu_bytes: 1, gearbox_delay: 0, has_eight_lanes: false },
                &traffic
            ),
            None
        );
    }
}
