//! What there is to say about each law.

use super::{LawInfo, Marks};
use crate::{
    bbr, copa, cubic, dcqcn, dctcp, dctcp_rate, expresspass, fixed, flashpass, gemini, hpcc, line_rate, mprdma,
    newreno, timely, unocc, vegas,
};

pub(super) const UNOCC: LawInfo = LawInfo {
    name: "unocc",
    title: "UnoCC",
    summary: "AIMD on marks at the granularity of the intra-datacenter RTT for all flows, with Quick Adapt",
    source: "Uno (SC 2025), §4.1, Algorithm 1",
    signals: "ECN, delay, acknowledged bytes",
    marks: Marks::Heard,
    notified: false,
    reads_reports: false,
    params: unocc::Params::TABLE,
    pairs: &[],
};

pub(super) const GEMINI: LawInfo = LawInfo {
    name: "gemini",
    title: "GEMINI",
    summary: "AIMD on marks inside a datacenter and on delay between them, both scaled with the BDP",
    source: "Zeng et al. (ICNP 2019; journal version), §III, Algorithm 1",
    signals: "ECN, delay, loss",
    marks: Marks::Heard,
    notified: false,
    reads_reports: false,
    params: gemini::Params::TABLE,
    pairs: &[("h_min", "h_max")],
};

pub(super) const DCTCP: LawInfo = LawInfo {
    name: "dctcp",
    title: "DCTCP",
    summary: "cuts the window in proportion to the fraction of marked bytes",
    source: "Alizadeh et al. (SIGCOMM 2010), §3; RFC 8257",
    signals: "ECN, loss",
    marks: Marks::Heard,
    notified: false,
    reads_reports: false,
    params: dctcp::Params::TABLE,
    pairs: &[],
};

pub(super) const MPRDMA: LawInfo = LawInfo {
    name: "mprdma",
    title: "MPRDMA",
    summary: "one packet more a round trip, half a packet less a marked packet",
    source: "Lu et al. (NSDI 2018), congestion control and multi-path ACK-clocking",
    signals: "ECN, loss",
    marks: Marks::Heard,
    notified: false,
    reads_reports: false,
    params: mprdma::Params::TABLE,
    pairs: &[],
};

pub(super) const BBR: LawInfo = LawInfo {
    name: "bbr",
    title: "BBR",
    summary: "paces at the measured bandwidth and keeps about two measured BDPs in flight (version 1)",
    source: "Cardwell et al. (ACM Queue 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
    signals: "delivery rate, delay, timeout",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: bbr::Params::TABLE,
    pairs: &[],
};

pub(super) const CUBIC: LawInfo = LawInfo {
    name: "cubic",
    title: "Cubic",
    summary: "grows as a cubic function of the time since the last cut",
    source: "RFC 9438, §4; RFC 8511 for marks",
    signals: "loss, ECN if switched on",
    marks: Marks::If("ecn"),
    notified: false,
    reads_reports: false,
    params: cubic::Params::TABLE,
    pairs: &[],
};

pub(super) const NEWRENO: LawInfo = LawInfo {
    name: "newreno",
    title: "NewReno",
    summary: "one packet more a round trip, half the window at a loss",
    source: "RFC 5681, §3; RFC 6582; RFC 8511 for marks",
    signals: "loss, ECN if switched on",
    marks: Marks::If("ecn"),
    notified: false,
    reads_reports: false,
    params: newreno::Params::TABLE,
    pairs: &[],
};

pub(super) const VEGAS: LawInfo = LawInfo {
    name: "vegas",
    title: "Vegas",
    summary: "keeps a few packets of its own in the queue, by the smallest RTT of each round trip",
    source: "Brakmo et al. (SIGCOMM 1994), §3; the form of Linux's tcp_vegas",
    signals: "delay, loss",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: vegas::Params::TABLE,
    pairs: &[("alpha", "beta")],
};

pub(super) const COPA: LawInfo = LawInfo {
    name: "copa",
    title: "Copa",
    summary: "aims at a rate of one over delta times the queueing delay",
    source: "Arun and Balakrishnan (NSDI 2018), §2",
    signals: "delay, timeout; loss where it competes",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: copa::Params::TABLE,
    pairs: &[],
};

pub(super) const DCQCN: LawInfo = LawInfo {
    name: "dcqcn",
    title: "DCQCN",
    summary: "cuts the rate at each notification of marks, then recovers by timer and byte counter",
    source: "Zhu et al. (SIGCOMM 2015), §3; variants of HPCC's simulator",
    signals: "congestion notifications, direct ones too; ECN in acknowledgements if switched on",
    marks: Marks::If("cnp_from_acks"),
    notified: true,
    reads_reports: false,
    params: dcqcn::Params::TABLE,
    pairs: &[],
};

pub(super) const TIMELY: LawInfo = LawInfo {
    name: "timely",
    title: "TIMELY",
    summary: "moves the rate against the gradient of the RTT",
    source: "Mittal et al. (SIGCOMM 2015), §4, Algorithm 1; variants of HPCC's simulator",
    signals: "delay",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: timely::Params::TABLE,
    pairs: &[("t_low", "t_high")],
};

pub(super) const HPCC: LawInfo = LawInfo {
    name: "hpcc",
    title: "HPCC",
    summary: "keeps what is in flight on every link under its bandwidth-delay product; HPCC* with a loop near the source",
    source: "Li et al. (SIGCOMM 2019), §3, Algorithm 1; LSCC, §III-D",
    signals: "in-band telemetry, direct telemetry if switched on",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: true,
    params: hpcc::Params::TABLE,
    pairs: &[],
};

pub(super) const DCTCP_RATE: LawInfo = LawInfo {
    name: "dctcp-rate",
    title: "DCTCP as a rate",
    summary: "cuts a rate in proportion to the fraction of marked packets, from line rate on",
    source: "HPCC's simulator; equations of Alizadeh et al. (SIGCOMM 2010), §3",
    signals: "ECN",
    marks: Marks::Heard,
    notified: false,
    reads_reports: false,
    params: dctcp_rate::Params::TABLE,
    pairs: &[],
};

pub(super) const LINE_RATE: LawInfo = LawInfo {
    name: "line-rate",
    title: "Line rate",
    summary: "sends at line rate whatever happens: only flow control holds it back",
    source: "none",
    signals: "none",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: line_rate::Params::TABLE,
    pairs: &[],
};

pub(super) const EXPRESSPASS: LawInfo = LawInfo {
    name: "expresspass",
    title: "ExpressPass",
    summary: "receivers send credits at a rate that follows their loss, senders a packet for each",
    source: "Cho et al. (SIGCOMM 2017), §3; kaist-ina/ns2-xpass",
    signals: "loss of credits",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: expresspass::Params::TABLE,
    pairs: &[("w_min", "w_max")],
};

pub(super) const FLASHPASS: LawInfo = LawInfo {
    name: "flashpass",
    title: "FlashPass",
    summary: "senders rehearse data by emulation packets, and send it a constant time after them",
    source: "Zeng et al. (ICNP 2021), §III, Algorithm 1",
    signals: "loss of emulation packets",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: flashpass::Params::TABLE,
    pairs: &[("min_target_loss", "max_target_loss")],
};

pub(super) const FIXED: LawInfo = LawInfo {
    name: "fixed",
    title: "Fixed window",
    summary: "a constant window, whatever happens: a baseline and an aid to tests",
    source: "none",
    signals: "none",
    marks: Marks::Deaf,
    notified: false,
    reads_reports: false,
    params: fixed::Params::TABLE,
    pairs: &[],
};
