"""Classes for the tables of a scenario file: one field a key.

Generated from the schema by `python generate.py > narrows/config.py`; the file format's reference has the same texts. A field
that is not set is not written to the file, and has the default that the reference states. Times, rates and sizes are texts with
units, such as `"2ms"`, `"100Gbps"` and `"1MiB"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from narrows import _renamed
from narrows._table import Candidates, Table

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(kw_only=True, repr=False)
class InterPair(Table):
    """The links between two datacenters, where they differ from the others."""

    between: Sequence[int]
    """The two datacenters, from 0. Takes an array. Required."""
    links: int | None = None
    """Number of links; by default `inter_links`. Takes a whole number from 1."""
    rate: str | None = None
    """Rate of each; by default `inter_rate`. Takes a rate such as "100Gbps"."""
    delay: str | None = None
    """Propagation delay; either this or `rtt`, by default as all. Takes a time such as "2ms" or "14us"."""
    rtt: str | None = None
    """Base RTT between the two: solves `delay`. Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class FatTrees(Table):
    """`kind = "fat-trees"`: k-ary fat trees, each with a border switch, the borders joined in a full mesh."""

    KIND: ClassVar[str | None] = "fat-trees"

    datacenters: int | None = None
    """Number of trees. Takes a whole number from 1. Default: 2."""
    k: int | None = None
    """Ports of a switch, even: a tree has k pods of k/2 edge and k/2 aggregation switches and (k/2)^2 core
    switches. Takes an even number, 2 to 128. Default: 8."""
    hosts_per_edge: int | None = None
    """Hosts of one edge switch; by default k/2. Takes a whole number from 1."""
    rate: str | None = None
    """Rate of every link that has no rate of its own. Takes a rate such as "100Gbps". Default: "100Gbps"."""
    host_rate: str | None = None
    """Rate of hosts' links; by default `rate`. Takes a rate such as "100Gbps"."""
    edge_rate: str | None = None
    """Rate of links between edge and aggregation; by default `rate`. Either this or `oversubscription`. Takes a
    rate such as "100Gbps"."""
    core_rate: str | None = None
    """Rate of links between aggregation and core; by default `rate`. Takes a rate such as "100Gbps"."""
    border_rate: str | None = None
    """Rate of links between core and border; by default `rate`. Takes a rate such as "100Gbps"."""
    inter_rate: str | None = None
    """Rate of each link between datacenters; by default `rate`. Takes a rate such as "100Gbps"."""
    oversubscription: float | str | None = None
    """Capacity of an edge switch's hosts over that of its uplinks: sets `edge_rate`. Takes a number such as 0.5, or
    "50%"."""
    link_delay: str | None = None
    """Propagation delay of every link inside a datacenter, over zero; 1us if `intra_rtt` is not given. Takes a time
    such as "2ms" or "14us"."""
    intra_rtt: str | None = None
    """Base RTT between pods, of a full packet and its acknowledgement: solves `link_delay`, to 12 ps. Takes a time
    such as "2ms" or "14us"."""
    inter_delay: str | None = None
    """Propagation delay of links between datacenters; either this or `inter_rtt`. Takes a time such as "2ms" or
    "14us"."""
    inter_rtt: str | None = None
    """Base RTT between datacenters: solves `inter_delay`, to 2 ps; 2ms if neither is given. Takes a time such as
    "2ms" or "14us"."""
    border_links_per_core: int | None = None
    """Parallel links from each core switch to its border switch. Takes a whole number from 1. Default: 8."""
    inter_links: int | None = None
    """Parallel links between every two borders. Takes a whole number from 1. Default: 8."""
    inter: Sequence[InterPair] | None = None
    """Pairs of datacenters whose links differ. Takes an array."""

    CANDIDATES: ClassVar[Candidates] = {"inter": lambda: (InterPair,)}


@dataclass(kw_only=True, repr=False)
class Clos(Table):
    """`kind = "clos"`: trees of three tiers or two. Each edge switch (top of rack) is joined to every aggregation
    switch of its pod; the first aggregation switch of every pod to the first of equal parts of the core switches,
    the second to the second, and so on. Without core switches and with one pod it is a leaf-spine network, whose
    spines are its aggregation switches. Several trees have a border switch each, joined to every core switch
    (without core: every spine, and without these every edge switch), the borders in a full mesh."""

    KIND: ClassVar[str | None] = "clos"

    tors: int
    """Racks, each with an edge switch, of a pod. Takes a whole number from 1. Required."""
    aggs: int
    """Aggregation switches of a pod; 0, where several trees have one pod and no core, joins edge switches to the
    border. Takes a whole number up to 65535. Required."""
    hosts_per_tor: int | Sequence[int]
    """Hosts of a rack, one number or a list with one for each rack of a tree. Takes a whole number from 1.
    Required."""
    datacenters: int | None = None
    """Number of trees, all alike. Takes a whole number from 1. Default: 1."""
    pods: int | None = None
    """Pods of a tree. Takes a whole number from 1. Default: 1."""
    cores: int | None = None
    """Core switches of a tree, a multiple of `aggs`; needed where there are several pods. Takes a whole number up
    to 65535. Default: 0."""
    rate: str | None = None
    """Rate of every link that has no rate of its own. Takes a rate such as "100Gbps". Default: "100Gbps"."""
    host_rate: str | Sequence[str] | None = None
    """Rate of each host's link, one or a list with one for each host of a tree; by default `rate`. Takes a rate
    such as "100Gbps"."""
    edge_rate: str | None = None
    """Rate of links between edge and aggregation; by default `rate`. Takes a rate such as "100Gbps"."""
    edge_links: int | None = None
    """Parallel links from an edge to an aggregation switch. Takes a whole number from 1. Default: 1."""
    core_rate: str | None = None
    """Rate of links between aggregation and core; by default `rate`. Takes a rate such as "100Gbps"."""
    border_rate: str | None = None
    """Rate of links between core and border; by default `rate`. Takes a rate such as "100Gbps"."""
    border_links: int | None = None
    """Parallel links from each core switch (without core: each spine) to the border switch. Takes a whole number
    from 1. Default: 1."""
    link_delay: str | None = None
    """Propagation delay of every link inside a datacenter, over zero. Takes a time such as "2ms" or "14us".
    Default: "1us"."""
    inter_rate: str | None = None
    """Rate of each link between datacenters; by default `rate`. Takes a rate such as "100Gbps"."""
    inter_links: int | None = None
    """Parallel links between every two borders. Takes a whole number from 1. Default: 1."""
    inter_delay: str | None = None
    """Propagation delay of links between datacenters, over zero. Takes a time such as "2ms" or "14us". Default:
    "1ms"."""


@dataclass(kw_only=True, repr=False)
class Dumbbell(Table):
    """`kind = "dumbbell"`: hosts on two switches with one link between them."""

    KIND: ClassVar[str | None] = "dumbbell"

    left: int
    """Hosts on the left, numbered from 0. Takes a whole number from 1. Required."""
    right: int
    """Hosts on the right, numbered after those on the left. Takes a whole number from 1. Required."""
    rate: str | None = None
    """Rate of the link between the switches. Takes a rate such as "100Gbps". Default: "100Gbps"."""
    delay: str | None = None
    """Its propagation delay. Takes a time such as "2ms" or "14us". Default: "1us"."""
    host_rate: str | Sequence[str] | None = None
    """Rate of each host's link, one or a list; by default `rate`. Takes a rate such as "100Gbps"."""
    host_delay: str | Sequence[str] | None = None
    """Propagation delay of each host's link, one or a list. Takes a time such as "2ms" or "14us". Default:
    "1us"."""
    two_datacenters: bool | None = None
    """Puts the sides into two datacenters, with the link between them as the long haul. Takes true or false.
    Default: false."""


@dataclass(kw_only=True, repr=False)
class SingleSwitch(Table):
    """`kind = "single-switch"`: hosts on one switch."""

    KIND: ClassVar[str | None] = "single-switch"

    hosts: int
    """Number of hosts, at least 2. Takes a whole number from 1. Required."""
    rate: str | Sequence[str] | None = None
    """Rate of each host's link, one or a list. Takes a rate such as "100Gbps". Default: "100Gbps"."""
    delay: str | Sequence[str] | None = None
    """Propagation delay of each host's link, one or a list. Takes a time such as "2ms" or "14us". Default:
    "1us"."""


@dataclass(kw_only=True, repr=False)
class NodeSpec(Table):
    """A host or switch."""

    name: str
    """Its name, different from all others. Takes a string. Required."""
    kind: Literal["host", "switch"]
    """`host` or `switch`. Hosts are numbered in this order. Takes "host" or "switch". Required."""
    datacenter: int | None = None
    """Its datacenter, from 0. Takes a whole number up to 65535. Default: 0."""
    hosts: int | None = None
    """Number of hosts attached to a switch, in its datacenter, each with one link to it. Those of `s` are named
    `s.h0`, `s.h1` and so on. Takes a whole number from 1."""
    host_rate: str | None = None
    """Rate of their links; needed with `hosts`. Takes a rate such as "100Gbps"."""
    host_delay: str | None = None
    """Propagation delay of their links, over zero; needed with `hosts`. Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class RedMarking(Table):
    """Marking by RED on the queue that a packet finds."""

    min: int | str | None = None
    """No mark below this queue. Takes a percentage of the queue's size such as "25%", a size such as "100KB", or a
    time of the port's line rate such as "32us". Default: "25%"."""
    max: int | str | None = None
    """Every packet is marked from this queue on. Takes a percentage of the queue's size such as "25%", a size such
    as "100KB", or a time of the port's line rate such as "32us". Default: "75%"."""
    probability: float | str | None = None
    """Probability of a mark just under `max`. Takes a number from 0 to 1, or "0%" to "100%". Default: 1."""


@dataclass(kw_only=True, repr=False)
class StepMarking(Table):
    """Marking by a step."""

    step: int | str
    """Every packet is marked from this queue on, none below. Takes a percentage of the queue's size such as "25%",
    a size such as "100KB", or a time of the port's line rate such as "32us". Required."""


@dataclass(kw_only=True, repr=False)
class PhantomQueue(Table):
    """A phantom queue: filled by every packet, drained at a part of the line rate, never holding one."""

    size: int | str
    """Its occupancy never exceeds this. Takes a size such as "1MiB" or "64KB", or a whole number of bytes.
    Required."""
    drain: float | str | None = None
    """Its drain rate as a share of the line rate, over 0 and at most 1. Takes a number from 0 to 1, or "0%" to
    "100%". Default: 0.9."""
    min: int | str | None = None
    """No mark below this occupancy. Takes a percentage of the queue's size such as "25%", a size such as "100KB",
    or a time of the port's line rate such as "32us". Default: "2%"."""
    max: int | str | None = None
    """Every packet is marked from this occupancy on. Takes a percentage of the queue's size such as "25%", a size
    such as "100KB", or a time of the port's line rate such as "32us". Default: "60%"."""
    probability: float | str | None = None
    """Probability of a mark just under `max`. Takes a number from 0 to 1, or "0%" to "100%". Default: 1."""


@dataclass(kw_only=True, repr=False)
class Trimming(Table):
    """Packet trimming: data that finds no room in `buffer` loses its payload, and its header is forwarded as a
    control packet. The receiver requests it again. Control packets then have priority and a buffer of their own."""

    header: int | None = None
    """Size of a trimmed packet on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    control_buffer: Literal["auto"] | int | str | None = None
    """Room for control packets that wait, acknowledgements and headers, the one in service included. `auto`: twice
    `buffer`, as in htsim. Takes "auto" or a size such as "1MB". Default: "auto"."""


@dataclass(kw_only=True, repr=False)
class CoDelTable(Table):
    """CoDel (RFC 8289): drops, or marks, when packets have waited longer than `target` for a whole `interval`. The
    defaults are the RFC's, for wide-area networks; inside a datacenter a `target` of some ten microseconds and an
    `interval` of the longest RTT serve."""

    target: str | None = None
    """Acceptable sojourn time. Takes a time such as "2ms" or "14us". Default: "5ms"."""
    interval: str | None = None
    """Time for which the sojourn time must exceed `target` before the first drop; about the longest RTT. Takes a
    time such as "2ms" or "14us". Default: "100ms"."""
    ecn: bool | None = None
    """ECN-capable packets are marked instead of dropped. Takes true or false. Default: true."""


@dataclass(kw_only=True, repr=False)
class FqCoDelTable(Table):
    """FQ-CoDel (RFC 8290): a queue per hash of the flow, served by deficit round robin with new flows first, and
    CoDel in each queue."""

    queues: int | None = None
    """Number of queues. Takes a whole number from 1. Default: 1024."""
    quantum: int | None = None
    """Bytes that a queue may send in a round; about the MTU. Takes a whole number from 1. Default: 1514."""
    target: str | None = None
    """Acceptable sojourn time. Takes a time such as "2ms" or "14us". Default: "5ms"."""
    interval: str | None = None
    """Time for which the sojourn time must exceed `target` before the first drop; about the longest RTT. Takes a
    time such as "2ms" or "14us". Default: "100ms"."""
    ecn: bool | None = None
    """ECN-capable packets are marked instead of dropped. Takes true or false. Default: true."""


@dataclass(kw_only=True, repr=False)
class LossBursts(Table):
    """Burst losses: each group of consecutive data packets at a port loses one, two, ..., with these
    probabilities."""

    rates: Sequence[float | str]
    """Probabilities that exactly one packet of a group is lost, exactly two, and so on; up to 8 numbers, with a sum
    of at most 1. Takes an array. Required."""
    group: int | None = None
    """Data packets of a group, from 1 to 64. Takes a whole number from 1. Default: 10."""


@dataclass(kw_only=True, repr=False)
class LinkJitterTable(Table):
    """Random delay of each packet."""

    max: str
    """Longest delay, over 0 and at most 100s. Its mean is half of that. Takes a time such as "2ms" or "14us".
    Required."""
    distribution: Literal["uniform", "normal"] | None = None
    """`uniform`: standard deviation `max / sqrt(12)`. `normal`: the mean of four uniform delays, `max / sqrt(48)`.
    Takes "uniform" or "normal". Default: "uniform"."""
    keep_order: bool | None = None
    """A packet never overtakes one that left before it: it waits for that one. Takes true or false. Default:
    true."""


@dataclass(kw_only=True, repr=False)
class ReorderTable(Table):
    """Packets that are held back."""

    probability: float | str
    """Part of the packets, under 1. Takes a number from 0 to 1, or "0%" to "100%". Required."""
    delay: str
    """Time for which they are held back, over 0 and at most 100s, in addition to their jitter. Takes a time such as
    "2ms" or "14us". Required."""


@dataclass(kw_only=True, repr=False)
class PoliceTable(Table):
    """Token-bucket policer."""

    rate: str
    """Rate at which tokens arrive. Takes a rate such as "100Gbps". Required."""
    burst: int | str
    """Size of the token bucket, at most 1GiB. A packet larger than the bucket never passes. Takes a size such as
    "1MiB" or "64KB", or a whole number of bytes. Required."""


@dataclass(kw_only=True, repr=False)
class AckAggregationTable(Table):
    """Collection of acknowledgements."""

    period: str
    """Longest time from the first packet of a group to its release, over 0 and at most 100s. Takes a time such as
    "2ms" or "14us". Required."""
    packets: int
    """Packets that complete a group before that; at least 2. Takes a whole number from 1. Required."""
    max_size: int | None = None
    """Largest packet that is held, in bytes on the wire. Takes a whole number from 1. Default: 128."""


@dataclass(kw_only=True, repr=False)
class RateStepTable(Table):
    """A rate from a time on."""

    at: str
    """Time since the start of the run, or of the period. Takes a time such as "2ms" or "14us". Required."""
    rate: Literal["off"] | str
    """Rate from then on, at most that of the link; `off`: nothing is sent. Takes "off" or a rate such as "1Gbps".
    Required."""


@dataclass(kw_only=True, repr=False)
class ImpairTable(Table):
    """Impairments of a link and of the port in front of it: [impairments](impairments.md). Only of ports of
    switches that decide alone, as for `codel`, and not where a scheme's laws send credits."""

    jitter: LinkJitterTable | None = None
    """Random delay of each packet. Takes a table."""
    reorder: ReorderTable | None = None
    """Packets that are held back. Takes a table."""
    duplicate: float | str | None = None
    """Part of the packets that arrive twice, under 1. Takes a number from 0 to 1, or "0%" to "100%". Default: 0."""
    corrupt: float | str | None = None
    """Part of the packets with a bit error, under 1. They go on, and their destination discards them. Takes a
    number from 0 to 1, or "0%" to "100%". Default: 0."""
    mtu: int | None = None
    """Largest packet in bytes on the wire; larger ones are dropped without notice. Takes a whole number from 1."""
    police: PoliceTable | None = None
    """Token-bucket policer. Takes a table."""
    ack_aggregation: AckAggregationTable | None = None
    """Collection of acknowledgements. Takes a table."""
    rate_steps: Sequence[RateStepTable] | None = None
    """Rates by time, the first at 0s; the last one lasts, unless there is a `rate_period`. Either this or
    `rate_trace`. Takes an array."""
    rate_period: str | None = None
    """Time after which `rate_steps` begin again, at most 24h. Takes a time such as "2ms" or "14us"."""
    rate_trace: str | None = None
    """Rates by a file in the format of Mahimahi, in the scenario's directory: a line per 1,500 bytes, the time in
    milliseconds. Takes a string."""

    CANDIDATES: ClassVar[Candidates] = {"jitter": lambda: (LinkJitterTable,), "reorder": lambda: (ReorderTable,), "police": lambda: (PoliceTable,), "ack_aggregation": lambda: (AckAggregationTable,), "rate_steps": lambda: (RateStepTable,)}


@dataclass(kw_only=True, repr=False)
class PortClassOverrides(Table):
    """Other settings for its ports, laid over all others."""

    buffer: Literal["unlimited"] | str | int | str | None = None
    """As in `[port]`. Takes a size such as "1MiB", a multiple such as "bdp" or "0.5bdp", or "unlimited"."""
    ecn: Literal["off"] | RedMarking | StepMarking | None = None
    """As in `[port]`. Replaces it whole. Takes { min = "25%", max = "75%" }, { step = "100KB" } or "off"."""
    phantom: Literal["off"] | PhantomQueue | None = None
    """As in `[port]`. Replaces it whole. Takes { size = "22.4MB", drain = 0.9, min = "2%", max = "60%" } or
    "off"."""
    control_priority: bool | None = None
    """As in `[port]`. Takes true or false."""
    trim: bool | Trimming | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { header = 64, control_buffer = "1MB" }."""
    codel: bool | CoDelTable | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { target = "50us", interval = "1ms" }."""
    fq_codel: bool | FqCoDelTable | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { target = "50us", interval = "1ms", quantum = 4160
    }."""
    mark_at: Literal["enqueue", "dequeue"] | None = None
    """As in `[port]`. Takes "enqueue" or "dequeue"."""
    in_service_bytes: Literal["remaining", "all", "none"] | None = None
    """As in `[port]`. Takes "remaining", "all" or "none"."""
    loss_probability: float | str | None = None
    """As in `[port]`. Takes a number from 0 to 1, or "0%" to "100%"."""
    loss_bursts: Literal["off"] | LossBursts | None = None
    """As in `[port]`. Replaces it whole. Takes "off" or a table such as { rates = [0.0003, 0.00007] }."""
    impair: Literal["off"] | ImpairTable | None = None
    """As in `[port]`. Replaces it whole. Takes "off" or a table such as { jitter = { max = "1ms" } }."""
    headroom: Literal["auto"] | str | int | str | None = None
    """As in `[port]`. Takes "auto", a size such as "100KB", or a multiple such as "bdp" or "1.5bdp"."""
    alpha: float | str | None = None
    """As in `[port]`. Takes the place of `xoff`. Takes a number such as 0.5, or "50%"."""
    xoff: int | str | None = None
    """As in `[port]`. Takes the place of `alpha`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    xon_offset: int | str | None = None
    """As in `[port]`. Takes the place of `xon`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    xon: int | str | None = None
    """As in `[port]`. Takes the place of `xon_offset`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""

    CANDIDATES: ClassVar[Candidates] = {"ecn": lambda: (RedMarking, StepMarking,), "phantom": lambda: (PhantomQueue,), "trim": lambda: (Trimming,), "codel": lambda: (CoDelTable,), "fq_codel": lambda: (FqCoDelTable,), "loss_bursts": lambda: (LossBursts,), "impair": lambda: (ImpairTable,)}


@dataclass(kw_only=True, repr=False)
class Cable(Table):
    """Links between two nodes, in both directions."""

    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    between: Sequence[str]
    """The two nodes' names. Takes an array. Required."""
    rate: str
    """Rate. Takes a rate such as "100Gbps". Required."""
    delay: str
    """Propagation delay, over zero. Takes a time such as "2ms" or "14us". Required."""
    class_: Literal["nic", "host", "edge", "core", "border", "inter", "other"] | None = None
    """Link class; by default `inter` between datacenters, `host` at a host, else `other`. Takes a link class such
    as "inter"."""
    parallel: int | None = None
    """Number of parallel links. Takes a whole number from 1. Default: 1."""
    port: PortClassOverrides | None = None
    """Other settings for its ports, laid over all others. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"port": lambda: (PortClassOverrides,)}


@dataclass(kw_only=True, repr=False)
class CustomTopology(Table):
    """`kind = "custom"`: any graph. A host has one link, to a switch."""

    KIND: ClassVar[str | None] = "custom"

    nodes: Sequence[NodeSpec]
    """Hosts and switches. Takes an array. Required."""
    links: Sequence[Cable]
    """Links. Takes an array. Required."""

    CANDIDATES: ClassVar[Candidates] = {"nodes": lambda: (NodeSpec,), "links": lambda: (Cable,)}


@dataclass(kw_only=True, repr=False)
class CreditQueueTable(Table):
    """A queue of credits: let out at the rate at which full data packets could follow, 84/(84+1538) of the link for
    packets of 1538 bytes on the wire."""

    limit: int | None = None
    """Number of credits that may wait. Takes a whole number from 1. Default: 8."""
    threshold: int | None = None
    """Number of waiting credits from which on credits that may be dropped (over-provisioned ones) are dropped.
    Takes a whole number. Default: 2."""
    burst: int | str | None = None
    """Bytes of credits that may leave at once after a silence, at least one credit of 84 bytes. Takes a size such
    as "1MiB" or "64KB", or a whole number of bytes. Default: "168B"."""
    unscheduled: Literal["off"] | int | None = None
    """Length of the data queue, in full packets, from which on data sent without a credit is dropped; `off`: it is
    treated like other data. Takes "off" or a whole number. Default: 2."""


@dataclass(kw_only=True, repr=False)
class PortOverrides(Table):
    """Changes to `[port]`."""

    buffer: Literal["unlimited"] | str | int | str | None = None
    """As in `[port]`. Takes a size such as "1MiB", a multiple such as "bdp" or "0.5bdp", or "unlimited"."""
    ecn: Literal["off"] | RedMarking | StepMarking | None = None
    """As in `[port]`. Replaces it whole. Takes { min = "25%", max = "75%" }, { step = "100KB" } or "off"."""
    phantom: Literal["off"] | PhantomQueue | None = None
    """As in `[port]`. Replaces it whole. Takes { size = "22.4MB", drain = 0.9, min = "2%", max = "60%" } or
    "off"."""
    control_priority: bool | None = None
    """As in `[port]`. Takes true or false."""
    trim: bool | Trimming | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { header = 64, control_buffer = "1MB" }."""
    codel: bool | CoDelTable | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { target = "50us", interval = "1ms" }."""
    fq_codel: bool | FqCoDelTable | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { target = "50us", interval = "1ms", quantum = 4160
    }."""
    mark_at: Literal["enqueue", "dequeue"] | None = None
    """As in `[port]`. Takes "enqueue" or "dequeue"."""
    in_service_bytes: Literal["remaining", "all", "none"] | None = None
    """As in `[port]`. Takes "remaining", "all" or "none"."""
    loss_probability: float | str | None = None
    """As in `[port]`. Takes a number from 0 to 1, or "0%" to "100%"."""
    loss_bursts: Literal["off"] | LossBursts | None = None
    """As in `[port]`. Replaces it whole. Takes "off" or a table such as { rates = [0.0003, 0.00007] }."""
    impair: Literal["off"] | ImpairTable | None = None
    """As in `[port]`. Replaces it whole. Takes "off" or a table such as { jitter = { max = "1ms" } }."""
    headroom: Literal["auto"] | str | int | str | None = None
    """As in `[port]`. Takes "auto", a size such as "100KB", or a multiple such as "bdp" or "1.5bdp"."""
    credit_queue: Literal["auto"] | Literal["off"] | CreditQueueTable | None = None
    """As in `[port]`. Replaces it whole. Takes "auto", "off" or { limit = 8, threshold = 2, burst = "168B",
    unscheduled = 2 }."""
    alpha: float | str | None = None
    """As in `[port]`. Takes the place of `xoff`. Takes a number such as 0.5, or "50%"."""
    xoff: int | str | None = None
    """As in `[port]`. Takes the place of `alpha`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    xon_offset: int | str | None = None
    """As in `[port]`. Takes the place of `xon`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    xon: int | str | None = None
    """As in `[port]`. Takes the place of `xon_offset`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    host: PortClassOverrides | None = None
    """For ports towards hosts. Takes a table."""
    edge: PortClassOverrides | None = None
    """For ports between edge and aggregation. Takes a table."""
    core: PortClassOverrides | None = None
    """For ports between aggregation and core. Takes a table."""
    border: PortClassOverrides | None = None
    """For ports between core and border. Takes a table."""
    inter: PortClassOverrides | None = None
    """For ports between datacenters. Takes a table."""
    other: PortClassOverrides | None = None
    """For all other ports between switches. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"ecn": lambda: (RedMarking, StepMarking,), "phantom": lambda: (PhantomQueue,), "trim": lambda: (Trimming,), "codel": lambda: (CoDelTable,), "fq_codel": lambda: (FqCoDelTable,), "loss_bursts": lambda: (LossBursts,), "impair": lambda: (ImpairTable,), "credit_queue": lambda: (CreditQueueTable,), "host": lambda: (PortClassOverrides,), "edge": lambda: (PortClassOverrides,), "core": lambda: (PortClassOverrides,), "border": lambda: (PortClassOverrides,), "inter": lambda: (PortClassOverrides,), "other": lambda: (PortClassOverrides,)}


@dataclass(kw_only=True, repr=False)
class UnoLbTable(Table):
    """Uno's load balancer (Algorithm 2): a flow's packets go round robin over subflows, each on a path of its own;
    a NACK for a block or a timeout moves a subflow that lost a packet, at most once in a base RTT."""

    KIND: ClassVar[str | None] = "unolb"

    subflows: int | None = None
    """Subflows (n), 1 to 64. Takes a whole number from 1 to 255. Default: 10."""
    recent: Literal["auto"] | str | None = None
    """Maximum age of an acknowledgement on another subflow for a bad subflow to take its path. `auto`: one base
    RTT. Takes "auto" or a time such as "20us". Default: "auto"."""
    reroute: Literal["acked", "random"] | None = None
    """`acked`: a bad subflow takes the path of a random one with recent acknowledgements. `random`: every subflow
    without any for half a base RTT draws a path, as in Uno's published simulator. Takes "acked" or "random".
    Default: "acked"."""
    law_per: Literal["flow", "subflow"] | None = None
    """`flow`: one law for all subflows, and packets take them in turn. `subflow`: each has a law of its own, which
    receives the feedback of its packets alone, and packets take the next one in turn that may send. Together they
    may have as much in flight as that number of flows. Needs selective recovery, `ack_every` = 1 and no segments;
    not with `nack` = "gaps" or a history in `coding`. Takes "flow" or "subflow". Default: "flow"."""


@dataclass(kw_only=True, repr=False)
class PlbTable(Table):
    """PLB: one path per flow, and another one after consecutive congested round trips, and after a timeout."""

    KIND: ClassVar[str | None] = "plb"

    threshold: float | str | None = None
    """A round trip in which more than this share was marked is congested (K). Takes a number from 0 to 1, or "0%"
    to "100%". Default: 0.5."""
    idle_rounds: int | None = None
    """Consecutive congested round trips after which the path is changed when nothing is in flight (N). Takes a
    whole number from 1. Default: 3."""
    rounds: int | None = None
    """Consecutive congested round trips after which it is changed at once (M). Takes a whole number from 1.
    Default: 12."""


@dataclass(kw_only=True, repr=False)
class RepsTable(Table):
    """REPS: each packet takes the entropy of a packet that was acknowledged without a mark, and draws one of
    `entropies` if there is none."""

    KIND: ClassVar[str | None] = "reps"

    buffer: int | None = None
    """Number of entropies that are kept, the newest ones. Takes a whole number from 1 to 255. Default: 8."""
    freeze: str | None = None
    """Time after a timeout in which no packet draws: kept entropies are used again and again. Takes a time such as
    "2ms" or "14us". Default: "10ms"."""
    explore: int | None = None
    """Number of packets that draw after that, to find paths. Takes a whole number up to 65535. Default: 16."""


@dataclass(kw_only=True, repr=False)
class CodingTable(Table):
    """Erasure coding (Uno's `UnoRC`): flows are cut into blocks, each of which can be decoded from any `data` of
    its packets. Needs `recovery = "selective"`."""

    data: int | None = None
    """Data packets of a block (k). Takes a whole number from 1 to 255. Default: 8."""
    parity: int | None = None
    """Parity packets of a block (m); with `data` at most 48. Takes a whole number from 1 to 255. Default: 2."""
    scope: Literal["intra", "inter", "any"] | None = None
    """Coded flows: those inside a datacenter, those between two, or all. Takes "intra", "inter" or "any". Default:
    "inter"."""
    tail: Literal["auto"] | int | str | None = None
    """Payload at the end of a flow that is coded. `auto`: all. Takes "auto" or a size such as "1MB". Default:
    "auto"."""
    block_timer: Literal["auto"] | str | None = None
    """Time after a block's first packet at which its receiver sends a NACK for it. `auto`: the longest wait in all
    queues of the forward path, plus the time that a block takes on the narrowest link of all equal paths. Takes
    "auto" or a time such as "20us". Default: "auto"."""
    nack: Literal["timer", "gaps"] | None = None
    """`timer`: a receiver sends a NACK for a block when its timer expires. `gaps`: also as soon as later packets on
    the same subflows show that more are missing than parity can repair; not with `load_balancing = "spray"` or
    `"reps"`. Takes "timer" or "gaps". Default: "timer"."""
    retransmit: Literal["on-nack", "on-loss"] | None = None
    """`on-nack`: packets of a block are retransmitted on a NACK or a retransmission timeout. `on-loss`: also as
    soon as the sender has declared more packets lost than parity can repair. Takes "on-nack" or "on-loss". Default:
    "on-nack"."""
    ack_history: bool | None = None
    """Adds to each ACK which of the eight packets before its own on the subflow arrived. Without it, as in the
    paper, a packet whose ACK is lost counts as lost for the law. Takes true or false. Default: false."""


@dataclass(kw_only=True, repr=False)
class OnRampTable(Table):
    """On-Ramp: holds a flow at its host while the one-way delay of its packets is over a threshold, under any
    law."""

    threshold: Literal["auto"] | str
    """One-way delay over which the flow is held (T). `auto`: twice `clock_sigma` over the base one-way delay of a
    flow's own path. Takes "auto" or a time such as "20us". Required."""
    on_queueing_delay: bool | None = None
    """Applies `threshold` to the queueing delay: to the one-way delay over the base one-way delay of a flow's own
    path, over the routes that hold when a packet leaves. For paths as different as those inside and between
    datacenters. Takes true or false. Default: false."""
    gain: float | str | None = None
    """Weight of the newest measurement in the correction for the lag of feedback (g), over 0. Takes a number from 0
    to 1, or "0%" to "100%". Default: 0.0625."""
    strawman: bool | None = None
    """Strawman: holds are not corrected for the lag of feedback (the paper's equation 2). Takes true or false.
    Default: false."""
    ack_every: int | None = None
    """Packets per OR-ACK. Takes a whole number from 1. Default: 1."""
    ack_size: int | None = None
    """Size of an OR-ACK on the wire, in bytes. Takes a whole number from 1. Default: 78."""
    reuse_last_or_ack: bool | None = None
    """Starts a flow with the state that the last OR-ACK from its receiver left at its host. Takes true or false.
    Default: false."""


@dataclass(kw_only=True, repr=False)
class JitterTable(Table):
    """Processing delay of arriving packets in a host, before its transport receives them, in order within a
    flow."""

    mean: str
    """The mean, over 0 and at most 1 s. Takes a time such as "2ms" or "14us". Required."""
    distribution: Literal["exponential", "uniform"] | None = None
    """`exponential`, or `uniform`: evenly from 0 to twice the mean. Takes "exponential" or "uniform". Default:
    "exponential"."""


@dataclass(kw_only=True, repr=False)
class TcpTable(Table):
    """Behaviour of Linux's TCP in addition to its law. `"linux"` is a table of defaults."""

    hystart: bool | None = None
    """Linux's `HyStart`: `hystart_train` and `hystart_delay` of Cubic are on where the scheme does not set them.
    Takes true or false. Default: true."""
    prr: bool | None = None
    """Spreads a cut, for a loss or marks, over the round trip (PRR). Takes true or false. Default: true."""
    idle_restart: bool | None = None
    """Shrinks the window after a flow was idle: `tcp_slow_start_after_idle`. For TCP's laws: `cubic`, `newreno`,
    `dctcp`, `vegas`, `gemini`. Takes true or false. Default: true."""
    validation: Literal["off", "linux", "rfc7661"] | None = None
    """Treatment of a window that a flow does not use, beyond not growing it. `linux`: after one retransmission
    timeout in which it was never full, it falls half of the way to what was used. `rfc7661`: a loss or mark cuts
    what was in use, and the window is halved after five minutes; a window that a slower NIC leaves unfilled does
    not grow, either. The cuts are for the same laws. Takes "off", "linux" or "rfc7661". Default: "off"."""
    remember_ssthresh: bool | None = None
    """Remembers for each destination the window at which slow start ended (ssthresh), and starts new connections
    there with it: `tcp_no_metrics_save` is off, and since Linux 5.6 `tcp_no_ssthresh_metrics_save` too. Takes true
    or false. Default: false."""


@dataclass(kw_only=True, repr=False)
class HostOverrides(Table):
    """Changes to `[host]`."""

    mss: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    header: int | None = None
    """As in `[host]`. Takes a whole number up to 65535."""
    ack_size: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    ack_every: int | None = None
    """As in `[host]`. Takes a whole number from 1 to 255."""
    ack_delay: Literal["auto"] | str | None = None
    """As in `[host]`. Takes "auto" or a time such as "20us"."""
    load_balancing: Literal["ecmp", "repath", "spray", "unolb", "plb", "reps"] | UnoLbTable | PlbTable | RepsTable | None = None
    """As in `[host]`. Takes "ecmp", "repath", "spray", "unolb", "plb", "reps" or a table such as { kind = "unolb",
    subflows = 8 }."""
    entropies: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    coding: bool | CodingTable | None = None
    """As in `[host]`. Replaces it whole. Takes true, false or { data = 8, parity = 2 }."""
    reorder_window: Literal["auto"] | str | None = None
    """As in `[host]`. Takes "auto" or a time such as "20us"."""
    rto_min: Literal["auto"] | str | None = None
    """As in `[host]`. Takes "auto" or a time such as "20us"."""
    rto_max: str | None = None
    """As in `[host]`. Takes a time such as "2ms" or "14us"."""
    law_sees_timeouts: bool | None = None
    """As in `[host]`. Takes true or false."""
    rto_per: Literal["flow", "packet", "probe"] | None = None
    """As in `[host]`. Takes "flow", "packet" or "probe"."""
    recovery: Literal["selective", "go-back-n"] | None = None
    """As in `[host]`. Takes "selective" or "go-back-n"."""
    nack_interval: str | None = None
    """As in `[host]`. Takes a time such as "2ms" or "14us"."""
    acks: Literal["all", "nack-only"] | None = None
    """As in `[host]`. Takes "all" or "nack-only"."""
    pace: Literal["payload", "wire", "transport"] | None = None
    """As in `[host]`. Takes "payload", "wire" or "transport"."""
    catch_up: bool | None = None
    """As in `[host]`. Takes true or false."""
    window_check: Literal["strict", "overshoot"] | None = None
    """As in `[host]`. Takes "strict" or "overshoot"."""
    cnp_interval: Literal["off"] | str | None = None
    """As in `[host]`. Takes "off" or a time such as "50us"."""
    cnp_size: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    gso_size: int | str | None = None
    """As in `[host]`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    tsq_limit: Literal["off"] | int | str | None = None
    """As in `[host]`. Takes "off" or a size such as "64KB"."""
    fq: bool | None = None
    """As in `[host]`. Takes true or false."""
    initial_quantum: Literal["window"] | int | str | None = None
    """As in `[host]`. Takes "window" or a size such as "64KB"."""
    size_aware: bool | None = None
    """As in `[host]`. Takes true or false."""
    receiver_credits: bool | None = None
    """As in `[host]`. Takes true or false."""
    clock_sigma: str | None = None
    """As in `[host]`. Takes a time such as "2ms" or "14us"."""
    clock_drift: str | None = None
    """As in `[host]`. Takes a drift such as "20ppm" or "100ppb"."""
    clock_resync: Literal["off"] | str | None = None
    """As in `[host]`. Takes "off" or a time such as "50us"."""
    on_ramp: Literal["off"] | OnRampTable | None = None
    """As in `[host]`. Replaces it whole. Takes "off" or a table such as { threshold = "30us" }."""
    int_header: int | None = None
    """As in `[host]`. Takes a whole number up to 65535."""
    int_multi: int | None = None
    """As in `[host]`. Takes a whole number."""
    rtt_noise: str | None = None
    """As in `[host]`. Takes a time such as "2ms" or "14us"."""
    jitter: Literal["off"] | JitterTable | None = None
    """As in `[host]`. Replaces it whole. Takes "off" or a table such as { mean = "1us" }."""
    tcp: Literal["off", "linux"] | TcpTable | None = None
    """As in `[host]`. Replaces it whole. Takes "off", "linux" or a table such as { hystart = false }."""

    CANDIDATES: ClassVar[Candidates] = {"load_balancing": lambda: (UnoLbTable, PlbTable, RepsTable,), "coding": lambda: (CodingTable,), "on_ramp": lambda: (OnRampTable,), "jitter": lambda: (JitterTable,), "tcp": lambda: (TcpTable,)}


@dataclass(kw_only=True, repr=False)
class PfcTable(Table):
    """Priority flow control (IEEE 802.1Qbb)."""

    frame: int | None = None
    """Size of a pause frame on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    relay: bool | None = None
    """Makes the switches relays: they forward pauses, and request pauses themselves where `alpha` or `xoff`
    requires it (SWING's relays only before their buffer would overflow). In a loop of relays a pause circulates for
    ever. Takes true or false. Default: false."""


@dataclass(kw_only=True, repr=False)
class SwitchClassOverrides(Table):
    """For switches with hosts attached."""

    buffer: Literal["unlimited"] | int | str | None = None
    """As in `[switch]`. Takes a size such as "32MiB", or "unlimited"."""
    reserved: int | str | None = None
    """As in `[switch]`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    egress_alpha: Literal["off"] | float | str | None = None
    """As in `[switch]`. Takes "off" or a number such as 0.5."""
    int: Literal["auto"] | bool | None = None
    """As in `[switch]`. Takes "auto", true or false."""
    ecn_marking: bool | None = None
    """As in `[switch]`. Takes true or false."""


@dataclass(kw_only=True, repr=False)
class SwitchOverrides(Table):
    """Changes of a scheme to `[switch]`: the same keys, without defaults."""

    buffer: Literal["unlimited"] | int | str | None = None
    """As in `[switch]`. Takes a size such as "32MiB", or "unlimited"."""
    reserved: int | str | None = None
    """As in `[switch]`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    egress_alpha: Literal["off"] | float | str | None = None
    """As in `[switch]`. Takes "off" or a number such as 0.5."""
    int: Literal["auto"] | bool | None = None
    """As in `[switch]`. Takes "auto", true or false."""
    ecn_marking: bool | None = None
    """As in `[switch]`. Takes true or false."""
    pfc: bool | PfcTable | None = None
    """As in `[switch]`. Takes true, false or { frame = 64, relay = false }."""
    edge: SwitchClassOverrides | None = None
    """For switches with hosts attached. Takes a table."""
    aggregation: SwitchClassOverrides | None = None
    """For switches between edge and core. Takes a table."""
    core: SwitchClassOverrides | None = None
    """For all other switches. Takes a table."""
    border: SwitchClassOverrides | None = None
    """For switches at the links between datacenters. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"pfc": lambda: (PfcTable,), "edge": lambda: (SwitchClassOverrides,), "aggregation": lambda: (SwitchClassOverrides,), "core": lambda: (SwitchClassOverrides,), "border": lambda: (SwitchClassOverrides,)}


@dataclass(kw_only=True, repr=False)
class Lscc(Table):
    """LSCC's controllers at long-haul links, around any law that receives notifications or marks."""

    period: str
    """Time between two rates (T). Takes a time such as "2ms" or "14us". Required."""
    q_ref: int | str
    """The ingress queue that the far end aims at (`Q_ref`). Takes a size such as "1MiB" or "64KB", or a whole
    number of bytes. Required."""
    delta_r: str
    """Maximum difference of two consecutive rates (delta R). Takes a rate such as "100Gbps". Required."""
    r_min: str | None = None
    """The lowest rate fed back (`R_min`). Takes a rate such as "100Gbps". Default: "100Mbps"."""
    r_max: str | None = None
    """The highest rate fed back (`R_max`); by default the long-haul link's. Takes a rate such as "100Gbps"."""
    near_q_ref: int | str | None = None
    """Pseudo queue of the near end over which sources are notified (`Q*_ref`); by default `q_ref`. Takes a size
    such as "1MiB" or "64KB", or a whole number of bytes."""
    notify_interval: str | None = None
    """Minimum time between two notifications of one flow. Takes a time such as "2ms" or "14us". Default: "50us"."""
    long_flow: Literal["auto"] | int | str | None = None
    """Bytes sent below which a flow is notified whether marked or not. `auto`: what the fastest host sends in the
    longest base RTT between datacenters. Takes "auto" or a size such as "1MB". Default: "auto"."""
    mark_timeout: str | None = None
    """Time after which the near end forgets marks; by default `period`. Takes a time such as "2ms" or "14us"."""
    notification_size: int | None = None
    """Size of a notification on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    telemetry: bool | None = None
    """Sends sources the reports of ports (INT) instead of notifications (HPCC*). Takes true or false. Default:
    false."""


@dataclass(kw_only=True, repr=False)
class SwingTable(Table):
    """SWING, as we read its published description: a relay at each end of each long-haul link forwards pauses and
    resumes and holds what arrives meanwhile. Needs `[switch]` with `pfc`."""

    delay: str | None = None
    """Propagation delay between a border switch and its relay. Takes a time such as "2ms" or "14us". Default:
    "1us"."""
    buffer: Literal["auto"] | int | str | None = None
    """A relay's buffer. `auto`: its headroom, and what the long-haul link carries in its round trip. Takes "auto"
    or a size such as "1MB". Default: "auto"."""
    headroom: Literal["auto"] | str | int | str | None = None
    """A relay's headroom towards the long haul, as `headroom` of `[port]`. Takes "auto", a size such as "100KB", or
    a multiple such as "bdp" or "1.5bdp". Default: "bdp"."""


@dataclass(kw_only=True, repr=False)
class Scheme(Table):
    """A scheme: a law for all flows, or one for those inside a datacenter and one for those between two."""

    label: str | None = None
    """Its name in tables and plots; by default the law's. Takes a string."""
    law: Literal["unocc", "gemini", "dctcp", "mprdma", "bbr", "cubic", "newreno", "vegas", "copa", "dcqcn", "timely", "hpcc", "dctcp-rate", "expresspass", "flashpass", "line-rate", "fixed", "nscc", "strait"] | str | None = None
    """The law of all flows. Either this or both `intra` and `inter`. Takes the name of a law such as "unocc"."""
    intra: Literal["unocc", "gemini", "dctcp", "mprdma", "bbr", "cubic", "newreno", "vegas", "copa", "dcqcn", "timely", "hpcc", "dctcp-rate", "expresspass", "flashpass", "line-rate", "fixed", "nscc", "strait"] | str | None = None
    """The law of flows inside a datacenter. Takes the name of a law such as "unocc"."""
    inter: Literal["unocc", "gemini", "dctcp", "mprdma", "bbr", "cubic", "newreno", "vegas", "copa", "dcqcn", "timely", "hpcc", "dctcp-rate", "expresspass", "flashpass", "line-rate", "fixed", "nscc", "strait"] | str | None = None
    """The law of flows between datacenters. Takes the name of a law such as "unocc"."""
    port: PortOverrides | None = None
    """Changes to `[port]`. Takes a table."""
    host: HostOverrides | None = None
    """Changes to `[host]`. Takes a table."""
    switch: Literal["off"] | SwitchOverrides | None = None
    """Changes to `[switch]`; `off`: every port has a queue of its own. Takes "off" or a table with keys of
    [switch]."""
    lscc: Lscc | None = None
    """LSCC's controllers at long-haul links, around any law that receives notifications or marks. Takes a table."""
    swing: bool | SwingTable | None = None
    """SWING's relays in long-haul links, under any law. Takes true, false or { delay = "1us", headroom = "bdp" }.
    Default: false."""
    params: dict[str, dict[str, Any]] | None = None
    """Parameters by law: `[schemes.uno.params.unocc]`. `narrows laws` lists them. Takes a table of named
    entries."""
    intra_params: dict[str, Any] | None = None
    """Parameters of flows inside a datacenter alone, over those of their law in `params`. Takes a table of a law's
    parameters."""
    inter_params: dict[str, Any] | None = None
    """Parameters of flows between datacenters alone, over those of their law in `params`. Takes a table of a law's
    parameters."""

    CANDIDATES: ClassVar[Candidates] = {"port": lambda: (PortOverrides,), "host": lambda: (HostOverrides,), "switch": lambda: (SwitchOverrides,), "lscc": lambda: (Lscc,), "swing": lambda: (SwingTable,)}


@dataclass(kw_only=True, repr=False)
class Clock(Table):
    """Resolution of simulated time; without this table, exact."""

    tick: Literal["off"] | str | None = None
    """Unit of the transmission time of a packet at any port, and of the time between two paced packets: both are
    rounded down to whole multiples of it. `1ns` for simulators in whole nanoseconds. `off`: exact, in picoseconds.
    Takes "off" or a time such as "50us". Default: "off"."""
    exact_ticks: Literal["keep", "round-down-one"] | None = None
    """Rounding of such a time that is a whole number of ticks. `keep`: it is unchanged. `round-down-one`: it loses
    a tick, as in old versions of ns-3, whose conversion from floating point truncates what a double cannot
    represent. Takes "keep" or "round-down-one". Default: "keep"."""
    tie_break: Literal["input", "scheduled"] | None = None
    """Order of packets that arrive at a switch at the same time. `input`: by input. `scheduled`: by scheduling, as
    with one FIFO event queue: the packet that began to leave its sender first, and among packets that began
    together the one that follows from the earlier event. `scheduled` is for switches that share their buffer, and
    slower. Takes "input" or "scheduled". Default: "input"."""


@dataclass(kw_only=True, repr=False)
class Port(Table):
    """The ports of switches."""

    buffer: Literal["unlimited"] | str | int | str | None = None
    """Room for waiting packets, the one in service included. `bdp`: what the port sends within the longest base RTT
    of the network; `0.5bdp`: half of that. Takes a size such as "1MiB", a multiple such as "bdp" or "0.5bdp", or
    "unlimited". Default: "1MiB"."""
    ecn: Literal["off"] | RedMarking | StepMarking | None = None
    """ECN marking by the queue. Takes { min = "25%", max = "75%" }, { step = "100KB" } or "off"."""
    phantom: Literal["off"] | PhantomQueue | None = None
    """Phantom queue in addition to the real one; a packet is marked if either marks it. Takes { size = "22.4MB",
    drain = 0.9, min = "2%", max = "60%" } or "off". Default: "off"."""
    control_priority: bool | None = None
    """Strict priority of acknowledgements over all data. Takes true or false. Default: false."""
    trim: bool | Trimming | None = None
    """Packet trimming: data that finds no room loses its payload alone; marks then depend on the data that waits.
    Not with `[switch]`, nor where ports report themselves. Takes true, false or { header = 64, control_buffer =
    "1MB" }. Default: false."""
    codel: bool | CoDelTable | None = None
    """CoDel in place of the FIFO. Not with another marking, `control_priority`, `trim`, `credit_queue` or
    `[switch]`. Takes true, false or { target = "50us", interval = "1ms" }. Default: false."""
    fq_codel: bool | FqCoDelTable | None = None
    """FQ-CoDel in place of the FIFO; the same limits. Takes true, false or { target = "50us", interval = "1ms",
    quantum = 4160 }. Default: false."""
    mark_at: Literal["enqueue", "dequeue"] | None = None
    """Time of the marking decision: when a packet arrives, on the queue that it finds (`enqueue`), or when it
    leaves, on the queue that it leaves behind (`dequeue`). Takes "enqueue" or "dequeue". Default: "enqueue"."""
    in_service_bytes: Literal["remaining", "all", "none"] | None = None
    """Contribution of the packet in service to the queue: its remaining bytes, all of it (as in htsim) or nothing
    (as in ns-3). Takes "remaining", "all" or "none". Default: "remaining"."""
    loss_probability: float | str | None = None
    """Share of packets that a link loses by chance, under 1. Takes a number from 0 to 1, or "0%" to "100%".
    Default: 0."""
    loss_bursts: Literal["off"] | LossBursts | None = None
    """Burst losses, in addition to `loss`. Takes "off" or a table such as { rates = [0.0003, 0.00007] }. Default:
    "off"."""
    impair: Literal["off"] | ImpairTable | None = None
    """Impairments of the link: jitter, reordering, duplication, corruption, MTU, a policer, rates by time, ACK
    aggregation. Takes "off" or a table such as { jitter = { max = "1ms" } }. Default: "off"."""
    headroom: Literal["auto"] | str | int | str | None = None
    """With `[switch]` and `pfc`: room for what arrives after a pause was sent, for each data class in use. `auto`:
    what the cable may bring; `bdp`: what it carries in its own round trip. Takes "auto", a size such as "100KB", or
    a multiple such as "bdp" or "1.5bdp". Default: "auto"."""
    credit_queue: Literal["auto"] | Literal["off"] | CreditQueueTable | None = None
    """A credit queue in addition to the data queue, in hosts too. `auto`: where the scheme's laws send credits.
    Takes "auto", "off" or { limit = 8, threshold = 2, burst = "168B", unscheduled = 2 }. Default: "auto"."""
    alpha: float | str | None = None
    """With `[switch]`: ingress limit, the buffer that packets of the cable may hold, as a multiple of the free
    shared buffer; at the limit its sender is paused, or packets are dropped. Either this or `xoff`. Takes a number
    such as 0.5, or "50%"."""
    xoff: int | str | None = None
    """With `[switch]`: the same limit in bytes. By default `alpha = 0.125`. Takes a size such as "1MiB" or "64KB",
    or a whole number of bytes."""
    xon_offset: int | str | None = None
    """With `[switch]`: decrease of what is held after which the sender resumes. Either this or `xon`. Takes a size
    such as "1MiB" or "64KB", or a whole number of bytes."""
    xon: int | str | None = None
    """With `[switch]` and `xoff`: the sender resumes when no more than this is held. By default `xon_offset =
    3072`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    host: PortClassOverrides | None = None
    """Other settings for ports towards hosts. Takes a table."""
    edge: PortClassOverrides | None = None
    """Other settings for ports between edge and aggregation. Takes a table."""
    core: PortClassOverrides | None = None
    """Other settings for ports between aggregation and core. Takes a table."""
    border: PortClassOverrides | None = None
    """Other settings for ports between core and border. Takes a table."""
    inter: PortClassOverrides | None = None
    """Other settings for ports between datacenters. Takes a table."""
    other: PortClassOverrides | None = None
    """Other settings for all other ports between switches. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"ecn": lambda: (RedMarking, StepMarking,), "phantom": lambda: (PhantomQueue,), "trim": lambda: (Trimming,), "codel": lambda: (CoDelTable,), "fq_codel": lambda: (FqCoDelTable,), "loss_bursts": lambda: (LossBursts,), "impair": lambda: (ImpairTable,), "credit_queue": lambda: (CreditQueueTable,), "host": lambda: (PortClassOverrides,), "edge": lambda: (PortClassOverrides,), "core": lambda: (PortClassOverrides,), "border": lambda: (PortClassOverrides,), "inter": lambda: (PortClassOverrides,), "other": lambda: (PortClassOverrides,)}


@dataclass(kw_only=True, repr=False)
class Switch(Table):
    """Switches whose ports share one buffer; without it every port has a queue of its own."""

    buffer: Literal["unlimited"] | int | str | None = None
    """Room for all packets that wait in a switch. Takes a size such as "32MiB", or "unlimited". Default:
    "32MiB"."""
    reserved: int | str | None = None
    """Part of `buffer` that is reserved for each ingress port and data class in use. Takes a size such as "1MiB" or
    "64KB", or a whole number of bytes. Default: "4KiB"."""
    egress_alpha: Literal["off"] | float | str | None = None
    """Egress limit, as a multiple of the free shared buffer: a packet is dropped where its egress queue holds this
    much, or `off`. Takes "off" or a number such as 0.5. Default: "off"."""
    int: Literal["auto"] | bool | None = None
    """Lets ports report themselves to packets that request it (INT). `auto`: if a law of the scheme reads reports.
    Takes "auto", true or false. Default: "auto"."""
    ecn_marking: bool | None = None
    """Lets ports of these switches mark; with false none does, whatever `[port]` sets. Takes true or false.
    Default: true."""
    pfc: bool | PfcTable | None = None
    """Lets switches pause their senders (PFC); otherwise packets that find no room are dropped. Takes true, false
    or { frame = 64, relay = false }. Default: false."""
    edge: SwitchClassOverrides | None = None
    """Other settings for switches with hosts attached and without links between datacenters. Takes a table."""
    aggregation: SwitchClassOverrides | None = None
    """Other settings for switches between edge and core. Takes a table."""
    core: SwitchClassOverrides | None = None
    """Other settings for all other switches. Takes a table."""
    border: SwitchClassOverrides | None = None
    """Other settings for switches at the links between datacenters. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"pfc": lambda: (PfcTable,), "edge": lambda: (SwitchClassOverrides,), "aggregation": lambda: (SwitchClassOverrides,), "core": lambda: (SwitchClassOverrides,), "border": lambda: (SwitchClassOverrides,)}


@dataclass(kw_only=True, repr=False)
class Host(Table):
    """The hosts."""

    mss: int | None = None
    """Payload of a full packet, in bytes; with the header at most 65535. Takes a whole number from 1. Default:
    4096."""
    header: int | None = None
    """Header of a data packet, in bytes. Takes a whole number up to 65535. Default: 64."""
    ack_size: int | None = None
    """Size of an acknowledgement on the wire, in bytes, 1 to 65535. Takes a whole number from 1. Default: 64."""
    ack_every: int | None = None
    """Packets per acknowledgement. Takes a whole number from 1 to 255. Default: 1."""
    ack_delay: Literal["auto"] | str | None = None
    """Maximum delay of an acknowledgement where `ack_every` is over 1. `auto`: a quarter of the base RTT. Takes
    "auto" or a time such as "20us". Default: "auto"."""
    load_balancing: Literal["ecmp", "repath", "spray", "unolb", "plb", "reps"] | UnoLbTable | PlbTable | RepsTable | None = None
    """`ecmp`: one path per flow. `repath`: one path per flow, another one after each of its timeouts. `spray`: a
    path drawn for each packet (RPS). `unolb`: subflows in turn, each on a path that it leaves after losses. `plb`:
    one path per flow, another one on congestion. `reps`: each packet takes the entropy of a packet that was
    acknowledged without a mark, or draws one. The last three also as tables with a `kind`. Takes "ecmp", "repath",
    "spray", "unolb", "plb", "reps" or a table such as { kind = "unolb", subflows = 8 }. Default: "ecmp"."""
    entropies: int | None = None
    """Number of paths from which `spray` and `reps` draw. Takes a whole number from 1. Default: 256."""
    coding: bool | CodingTable | None = None
    """Erasure coding of flows: `true` for 8 data and 2 parity packets a block between datacenters, `false`, or a
    table. Takes true, false or { data = 8, parity = 2 }. Default: false."""
    reorder_window: Literal["auto"] | str | None = None
    """Reordering tolerance before a packet counts as lost. `auto`: a quarter of the base RTT, and with `spray`, and
    with `unolb` under one law, at least the longest wait in all queues of the path. Takes "auto" or a time such as
    "20us". Default: "auto"."""
    rto_min: Literal["auto"] | str | None = None
    """Minimum retransmission timeout. `auto`: the base RTT with every queue full, over the slowest of the equal
    paths, or 5/4 of the base RTT if that is more; with `go-back-n` at least the base RTT and 4 ms. Takes "auto" or
    a time such as "20us". Default: "auto"."""
    rto_max: str | None = None
    """Maximum retransmission timeout. Takes a time such as "2ms" or "14us". Default: "4s"."""
    law_sees_timeouts: bool | None = None
    """Notifies laws of timeouts. Takes true or false. Default: true."""
    rto_per: Literal["flow", "packet", "probe"] | None = None
    """`flow`: one retransmission timer per flow, which each ACK restarts; it follows the RTT and backs off.
    `packet`: one timer per packet, which expires `rto_min` after the packet left (at least 5/4 of the base RTT),
    declares that packet alone lost and does not back off. Its automatic length counts queues of the reverse path
    only where ACKs wait in them (no `control_priority`). `probe`: as `flow`, with the timers of the transport
    (RACK-TLP): packets sent before an acknowledged one are lost after a round trip and `reorder_window`, and at the
    first two timeouts in a row only the oldest packet is sent again, without a notification of the law. Its
    automatic length is the base RTT, `ack_delay` and 2 ms. Takes "flow", "packet" or "probe". Default: "flow"."""
    recovery: Literal["selective", "go-back-n"] | None = None
    """`selective`: missing packets are retransmitted. `go-back-n`: receivers accept packets in order only and
    request all from the first missing one on. Takes "selective" or "go-back-n". Default: "selective"."""
    nack_interval: str | None = None
    """With `go-back-n`: minimum time between two NACKs of a receiver for the same packet. If it is under a round
    trip, a receiver repeats the NACK before the packet can arrive, and all packets from it on are retransmitted
    each time: `narrows check` warns of that. Takes a time such as "2ms" or "14us". Default: "500us"."""
    acks: Literal["all", "nack-only"] | None = None
    """`all`: receivers acknowledge every packet, `ack_every` at a time. `nack-only`: receivers only send NACKs and,
    at the end, an acknowledgement of the complete flow, as in ExpressPass's simulator. Only for laws whose credits
    let flows send. Needs `recovery = "go-back-n"`, and refuses `ack_every` over 1. Where a scheme sets `acks` and
    not `ack_every`, the `ack_every` of `[host]` is for the other schemes. Takes "all" or "nack-only". Default:
    "all"."""
    pace: Literal["payload", "wire", "transport"] | None = None
    """Bytes that a law's pacing rate counts. `payload`: payload only. `wire`: headers too, as in NICs that pace.
    `transport`: the transport's headers and its AEAD tag, 34 bytes a packet, but not those of UDP and IP. Takes
    "payload", "wire" or "transport". Default: "payload"."""
    catch_up: bool | None = None
    """Lets pacing catch up on packets that a full window or a busy NIC held back. Takes true or false. Default:
    true."""
    window_check: Literal["strict", "overshoot"] | None = None
    """`strict`: a packet leaves if it fits the window. `overshoot`: a packet leaves unless the window is full, as
    in HPCC's simulator. Takes "strict" or "overshoot". Default: "strict"."""
    cnp_interval: Literal["off"] | str | None = None
    """Minimum time between two congestion notification packets (CNPs) of a flow, which receivers send on marks, or
    `off`. Takes "off" or a time such as "50us". Default: "off"."""
    cnp_size: int | None = None
    """Size of a CNP on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    gso_size: int | str | None = None
    """GSO size: payload that a flow passes to the NIC at once and that is held as one; at least one packet. Takes a
    size such as "1MiB" or "64KB", or a whole number of bytes. Default: "0B"."""
    tsq_limit: Literal["off"] | int | str | None = None
    """Payload of one flow that may wait between law and NIC (TCP small queues). `off`: the NIC polls flows in turn.
    Takes "off" or a size such as "64KB". Default: "off"."""
    fq: bool | None = None
    """Paces in the small queue, as Linux's FQ does. The law's RTTs then include the wait there, and On-Ramp's hold
    with it. Needs `tsq_limit`. Takes true or false. Default: false."""
    initial_quantum: Literal["window"] | int | str | None = None
    """Payload sent below which a flow has its turns at the NIC before the others, as new flows have in Linux's FQ
    (`initial_quantum` in tc-fq(8)). `window`: the initial window of the flow's law, or its own BDP if that is less.
    Zero: all flows have turns alike. Takes "window" or a size such as "64KB". Default: "0B"."""
    size_aware: bool | None = None
    """Lets hosts know the size of flows, as where applications state the length of their messages. Laws that use it
    receive the bytes left (Strait does). `initial_quantum` then gives precedence to flows that have less than that
    left to send, in full packets, however much they have sent. Takes true or false. Default: false."""
    receiver_credits: bool | None = None
    """Lets hosts send credits for the data that they are to receive, at their link's rate, in turn to all flows
    that request them (RCCC, the receiver's credits of Ultra Ethernet). Not with laws that have credits of their
    own, nor coding. Takes true or false. Default: false."""
    clock_sigma: str | None = None
    """Standard deviation of hosts' clocks right after a synchronisation. Takes a time such as "2ms" or "14us".
    Default: "0s"."""
    clock_drift: str | None = None
    """Standard deviation of the clocks' drift. Takes a drift such as "20ppm" or "100ppb". Default: "0ppb"."""
    clock_resync: Literal["off"] | str | None = None
    """Time between synchronisations; `off`: never after the first, at time zero. Takes "off" or a time such as
    "50us". Default: "off"."""
    on_ramp: Literal["off"] | OnRampTable | None = None
    """On-Ramp, which holds flows at the edge, or `off`. Takes "off" or a table such as { threshold = "30us" }.
    Default: "off"."""
    int_header: int | None = None
    """Bytes that reports of ports (INT) add to each data packet and each acknowledgement where a law reads them.
    Takes a whole number up to 65535. Default: 42."""
    int_multi: int | None = None
    """Units of reports of ports as in HPCC's simulator: this many times 128 bytes sent and 80 bytes that wait, and
    whole nanoseconds; 0: exact. Takes a whole number. Default: 0."""
    rtt_noise: str | None = None
    """Measurement error of RTTs: a time from 0 to this, evenly distributed, is added to each RTT that a law
    receives. Takes a time such as "2ms" or "14us". Default: "0s"."""
    jitter: Literal["off"] | JitterTable | None = None
    """Processing delay of hosts: the time of an arriving packet between the NIC and the transport, such as `{ mean
    = "1us" }`, or `off`. Packets of one flow stay in order. Not with `tie_break = "scheduled"`. Takes "off" or a
    table such as { mean = "1us" }. Default: "off"."""
    tcp: Literal["off", "linux"] | TcpTable | None = None
    """Behaviour of Linux's TCP in addition to its law. `linux`: all of it. A table switches parts off, such as `{
    hystart = false }`. `off`: none of it. Not for laws that set their own windows in Linux, such as BBR. Needs
    `recovery = "selective"`. Takes "off", "linux" or a table such as { hystart = false }. Default: "off"."""

    CANDIDATES: ClassVar[Candidates] = {"load_balancing": lambda: (UnoLbTable, PlbTable, RepsTable,), "coding": lambda: (CodingTable,), "on_ramp": lambda: (OnRampTable,), "jitter": lambda: (JitterTable,), "tcp": lambda: (TcpTable,)}


@dataclass(kw_only=True, repr=False)
class ExternalLaw(Table):
    """A law that the calling program supplies. The Python package writes the table; the command has no such
    laws."""

    language: str
    """Programming language of its source: 1 to 32 letters, digits, spaces and `+`, `#`, `.`, `-`. Takes a string.
    Required."""
    sha256: str
    """SHA-256 of its source in hexadecimal: a changed law is another run. Takes a string. Required."""
    params: dict[str, Any] | None = None
    """Its parameters and their defaults: whole numbers, numbers, or true and false. Takes a table of named
    entries."""


@dataclass(kw_only=True, repr=False)
class Incast(Table):
    """`kind = "incast"`: many hosts send to one. Senders are spread over edge switches and pods."""

    KIND: ClassVar[str | None] = "incast"

    size: int | str
    """Size of each flow. Takes a size such as "1MiB" or "64KB", or a whole number of bytes. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    receiver: int | str | None = None
    """Receiver. Takes a host's number such as 0, or its name such as "dc0.host0". Default: 0."""
    intra: int | None = None
    """Senders in the receiver's datacenter. Takes a whole number. Default: 0."""
    inter: int | None = None
    """Senders in other datacenters. Takes a whole number. Default: 0."""
    start: str | None = None
    """Start of the first flow. Takes a time such as "2ms" or "14us". Default: "0s"."""
    stagger: str | None = None
    """Time between one flow's start and the next one's. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class LongFlows(Table):
    """`kind = "long"`: flows between chosen hosts."""

    KIND: ClassVar[str | None] = "long"

    flows: Sequence[Sequence[int | str]]
    """Pairs of sender and receiver. Takes an array. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    size: int | str | None = None
    """Size of each flow; by default more than its links carry until the stop. Takes a size such as "1MiB" or
    "64KB", or a whole number of bytes."""
    start: str | None = None
    """Start of the first flow. Takes a time such as "2ms" or "14us". Default: "0s"."""
    stagger: str | None = None
    """Time between one flow's start and the next one's. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Permutation(Table):
    """`kind = "permutation"`: every host sends to one other and receives from one other, drawn by the seed."""

    KIND: ClassVar[str | None] = "permutation"

    size: int | str
    """Size of each flow. Takes a size such as "1MiB" or "64KB", or a whole number of bytes. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    scope: Literal["intra", "inter", "any"] | None = None
    """Location of the receivers: in the sender's datacenter (`intra`), in another one (`inter`), or anywhere
    (`any`). Takes "intra", "inter" or "any". Default: "any"."""
    start: str | None = None
    """Start of all flows. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Poisson(Table):
    """`kind = "poisson"`: flows at random times between random hosts, sizes from a distribution."""

    KIND: ClassVar[str | None] = "poisson"
    KEYS: ClassVar[dict[str, str]] = {"from_": "from"}

    load: float | str
    """Mean utilisation, in each direction, of the links of class `load_of` by payload that crosses them; up to 1.
    Takes a number such as 0.5, or "50%". Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    intra: str | None = None
    """Sizes of flows inside a datacenter: the name of a shipped distribution or a file beside the scenario. Takes a
    string."""
    inter: str | None = None
    """Sizes of flows between datacenters. Takes a string."""
    load_of: Literal["nic", "host", "edge", "core", "border", "inter", "other"] | None = None
    """Link class to which `load` refers. Takes a link class such as "inter". Default: "inter"."""
    ratio: str | None = None
    """Ratio of intra to inter; needed where both are given. Takes a ratio of intra to inter such as "4:1"."""
    ratio_of: Literal["flows", "bytes"] | None = None
    """Unit of `ratio`: flows, or bytes of payload. Takes "flows" or "bytes". Default: "flows"."""
    from_: str | Sequence[int | str] | None = None
    """Senders; `load` then refers to the links that these hosts' flows can cross. Takes "all", "even", "odd", a
    range of numbers such as "0..16", or an array of hosts. Default: "all"."""
    to: str | Sequence[int | str] | None = None
    """Receivers. Takes "all", "even", "odd", a range of numbers such as "0..16", or an array of hosts. Default:
    "all"."""
    start: str | None = None
    """Start of arrivals. Takes a time such as "2ms" or "14us". Default: "0s"."""
    duration: str | None = None
    """Duration of arrivals. Either this or `flows`. Takes a time such as "2ms" or "14us"."""
    flows: int | None = None
    """Number of flows that arrive. Takes a whole number from 1."""


@dataclass(kw_only=True, repr=False)
class Requests(Table):
    """`kind = "requests"`: at random times a random host requests data from others, which all answer at once:
    incasts as a load. A request is complete with its last flow."""

    KIND: ClassVar[str | None] = "requests"

    fanout: int
    """Number of hosts that answer a request: other hosts, drawn for each request. Takes a whole number from 1.
    Required."""
    size: int | str
    """Size of each answer. Takes a size such as "1MiB" or "64KB", or a whole number of bytes. Required."""
    load: float | str
    """Mean utilisation of the hosts' links by these answers, over 0 and up to 1. Takes a number such as 0.5, or
    "50%". Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    among: str | Sequence[int | str] | None = None
    """Hosts that request and answer. Takes "all", "even", "odd", a range of numbers such as "0..16", or an array of
    hosts. Default: "all"."""
    start: str | None = None
    """Start of arrivals. Takes a time such as "2ms" or "14us". Default: "0s"."""
    duration: str | None = None
    """Duration of arrivals. Either this or `requests`. Takes a time such as "2ms" or "14us"."""
    requests: int | None = None
    """Number of requests that arrive. Takes a whole number from 1."""


@dataclass(kw_only=True, repr=False)
class ClosedLoop(Table):
    """`kind = "closed-loop"`: clients read from servers. A client keeps a number of reads outstanding and requests
    the next one when one is complete, so the load follows from how fast reads are. A read is a flow from the server
    to the client. The next one on its connection starts when the client has every byte and has computed, one
    one-way delay later, which its request takes; on a persistent connection also not before the server has
    everything acknowledged."""

    KIND: ClassVar[str | None] = "closed-loop"

    clients: str | Sequence[int | str]
    """Hosts that read. Takes "all", "even", "odd", a range of numbers such as "0..16", or an array of hosts.
    Required."""
    servers: str | Sequence[int | str]
    """Hosts that clients read from: as many clients per server, neighbouring clients from the same one. Takes
    "all", "even", "odd", a range of numbers such as "0..16", or an array of hosts. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    active: int | None = None
    """Number of clients that read, the first ones; all if not given. With 0 nothing is read. Takes a whole
    number."""
    outstanding: int | None = None
    """Number of reads that each client keeps outstanding, each on a connection of its own. Takes a whole number
    from 1. Default: 1."""
    size: int | str | None = None
    """Size of each read. Either this or `sizes`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    sizes: str | None = None
    """Sizes of reads: the name of a shipped distribution or a file beside the scenario. Takes a string."""
    reads: int | None = None
    """Total number of reads of each client, its connections in turn; if not given, it reads until the stop. Takes a
    whole number from 1."""
    compute: str | None = None
    """Think time: the time for which a client computes on a complete read before it requests the next. Takes a time
    such as "2ms" or "14us". Default: "0s"."""
    start: str | None = None
    """Start of the first read. Takes a time such as "2ms" or "14us". Default: "0s"."""
    stagger: str | None = None
    """Time between the first read of one connection and of the next one, those of a client one after the other.
    Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Allreduce(Table):
    """`kind = "allreduce"`: a training job. In each iteration the ranks of a group sum up their data: a
    reduce-scatter, then an all-gather. A rank takes its steps in turn: it begins a step when the previous one has
    arrived from its neighbour and has begun at the rank itself, too, and an iteration when it has computed for
    `compute` after that; an iteration of a group, from the time at which its last rank begins to its last flow's
    end, is one collective in results."""

    KIND: ClassVar[str | None] = "allreduce"

    size: int | str
    """Bytes of each rank in an iteration. Takes a size such as "1MiB" or "64KB", or a whole number of bytes.
    Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    groups: Sequence[Sequence[int | str]] | None = None
    """The groups: the ranks of each, in order. Either this or `count`. Takes an array."""
    count: int | None = None
    """Number of groups, each with `ranks` ranks from each of the first two datacenters, spread over edge switches
    and pods. Takes a whole number from 1."""
    ranks: int | None = None
    """Ranks of a group from each datacenter, with `count`. Takes a whole number from 1. Default: 1."""
    pattern: Literal["ring", "pairs"] | None = None
    """Communication pattern: each rank sends to the next one of its group (`ring`), or to its counterpart in the
    other half and back (`pairs`). Takes "ring" or "pairs". Default: "ring"."""
    size_to: int | str | None = None
    """Largest size, if it differs from iteration to iteration: evenly distributed from `size` to this, drawn by the
    seed. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    iterations: int | None = None
    """Number of iterations. Takes a whole number from 1. Default: 1."""
    compute: str | None = None
    """Time for which a rank computes between two iterations. Takes a time such as "2ms" or "14us". Default:
    "0s"."""
    start: str | None = None
    """Start of the first iteration. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Collective(Table):
    """`kind = "collective"`: iterations of a collective operation among the ranks of a group. A send of a rank
    waits for what it needs: arriving data, the rank's previous send, and time to compute. An iteration of a group
    is one collective in results."""

    KIND: ClassVar[str | None] = "collective"

    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "pipeline"]
    """Collective operation. Takes "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast" or
    "pipeline". Required."""
    size: int | str
    """Data of an iteration: what each rank has to sum up (`all-reduce`, `reduce-scatter`) or to send
    (`all-to-all`), what all gather (`all-gather`), what the first rank has (`broadcast`), or what a stage hands on
    in all micro-batches together (`pipeline`). Takes a size such as "1MiB" or "64KB", or a whole number of bytes.
    Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    algorithm: Literal["ring", "tree", "halving-doubling"] | None = None
    """Algorithm. `all-reduce`: `ring` by default, `tree` or `halving-doubling`; `all-gather` and `reduce-scatter`:
    `ring` by default, or `halving-doubling`; `broadcast`: `tree` by default, or `ring`; the others have one
    algorithm. `halving-doubling` needs a power of two of ranks. Takes "ring", "tree" or "halving-doubling"."""
    groups: Sequence[Sequence[int | str]] | None = None
    """The groups: the ranks of each, in order. Either this or `count`. Takes an array."""
    count: int | None = None
    """Number of groups, each with `ranks` ranks from each of the first two datacenters, spread over edge switches
    and pods. Takes a whole number from 1."""
    ranks: int | None = None
    """Ranks of a group from each datacenter, with `count`. Takes a whole number from 1. Default: 1."""
    microbatches: int | None = None
    """Number of micro-batches into which a `pipeline` divides an iteration. Takes a whole number from 1."""
    iterations: int | None = None
    """Number of iterations. Takes a whole number from 1. Default: 1."""
    compute: str | None = None
    """Time for which a rank computes between two iterations; for a stage of a `pipeline`: on each micro-batch.
    Takes a time such as "2ms" or "14us". Default: "0s"."""
    start: str | None = None
    """Start of the first iteration. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Flow(Table):
    """One flow."""

    src: int | str
    """Sender. Takes a host's number such as 0, or its name such as "dc0.host0". Required."""
    dst: int | str
    """Receiver. Takes a host's number such as 0, or its name such as "dc0.host0". Required."""
    start: str | None = None
    """Start; zero if neither this nor `after` is given. With `after`: its earliest start. Takes a time such as
    "2ms" or "14us"."""
    size: int | str | None = None
    """Size; by default more than its links carry until the stop. Takes a size such as "1MiB" or "64KB", or a whole
    number of bytes."""
    after: int | str | Sequence[int | str] | None = None
    """Events of other flows of this list, counted from 0, after which it starts: one, or an array of which it waits
    for all. `3`: flow 3 is complete, its sender has everything acknowledged. `"received:3"`: its receiver has every
    byte. `"begun:3"`: it has started, and has the same sender. An event at another host than the sender counts one
    one-way delay of the path later. `"received:3+10us"`: the sender computes for that time on that event alone, in
    parallel with other work. Takes a flow's number such as 3, an event such as "received:3", or an array such as
    [1, 3]."""
    compute: str | None = None
    """Time for which the sender computes first: from `start`, or from the last of `after`; no time if not given.
    Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class FlowList(Table):
    """`kind = "list"`: flows one by one, from a file or from here."""

    KIND: ClassVar[str | None] = "list"

    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    file: str | None = None
    """A CSV file beside the scenario: `start,src,dst,bytes[,after][,compute]`. A cell of `bytes` may be empty.
    Several events of `after` are separated by blanks. Either this or `flows`. Takes a string."""
    flows: Sequence[Flow] | None = None
    """The flows. Takes an array."""
    start: str | None = None
    """Added to every start. Takes a time such as "2ms" or "14us". Default: "0s"."""

    CANDIDATES: ClassVar[Candidates] = {"flows": lambda: (Flow,)}


@dataclass(kw_only=True, repr=False)
class ImportedTraffic(Table):
    """`kind = "import"`: traffic of another program, on this scenario's network: the flows that [`narrows
    import`](import.md) makes of the same file. Assumptions and omissions are notes of `check` and of results."""

    KIND: ClassVar[str | None] = "import"

    format: Literal["goal", "chakra", "msccl", "simai", "flows", "netflow", "pcap"]
    """Format of the file. Takes "goal", "chakra", "msccl", "simai", "flows", "netflow" or "pcap". Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold these flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `persistent`: a flow reuses a connection that an earlier
    one of the same two hosts, class and law left and that has nothing to send, with its window and its state of
    RTTs and paths; if there is none, it opens one. Laws that send by credits open one for each flow. Takes "new" or
    "persistent". Default: "new"."""
    file: str | None = None
    """The file, beside the scenario. Either this or `files`. Takes a string."""
    files: Sequence[str] | None = None
    """The files of `chakra`, one for each rank; in the order of the numbers in their names, if these are 0, 1 and
    so on. Takes an array."""
    groups: str | None = None
    """`chakra`: a file of the groups of ranks that collectives name, as JSON. Takes a string."""
    placement: Literal["block", "cyclic", "packed"] | None = None
    """Placement on hosts of ranks, and of senders and receivers unless all have hosts' names or numbers. `block`:
    equal parts in each datacenter, in order. `cyclic`: round robin over the datacenters. `packed`: rank 0 on host
    0, rank 1 on host 1, and so on. Takes "block", "cyclic" or "packed". Default: "block"."""
    eager: int | str | None = None
    """`goal`: size up to which a send is complete once it has begun; larger ones are once they are acknowledged.
    LogGOPSim's S, 65535 B if not given. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    size: int | str | None = None
    """`msccl`: size of the data over all chunks of the algorithm. Takes a size such as "1MiB" or "64KB", or a whole
    number of bytes."""
    passes: int | None = None
    """`simai`: number of passes, one after the other; one if not given. Takes a whole number from 1."""
    ranks: int | None = None
    """`simai`: number of ranks, for a workload whose first line does not state it (`all_gpus`). Takes a whole
    number from 1."""
    start: str | None = None
    """Added to every start. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Model(Table):
    """The model that is trained."""

    params: int
    """Its parameters, all experts included. Takes a whole number. Required."""
    layers: int
    """Its layers: a multiple of `pipeline`. Takes a whole number from 1. Required."""
    hidden: int
    """Hidden size, the activations of a token between layers: a multiple of `tensor`. Takes a whole number from 1.
    Required."""
    sequence: int
    """Tokens of a sequence. Takes a whole number from 1. Required."""
    vocabulary: int | None = None
    """Vocabulary size in tokens. If given, `vocabulary` x `hidden` of the parameters are the embedding, which the
    first and the last stage both hold and keep alike. Takes a whole number from 1."""
    experts: int | None = None
    """Experts of each layer, a multiple of `expert`. If given, every layer is a mixture of experts. Takes a whole
    number from 1."""
    top_k: int | None = None
    """Number of experts to which a token goes. Takes a whole number from 1. Default: 1."""
    expert_params: int | None = None
    """Parameters of all experts of all layers together; if not given, 8 x `hidden`^2 x `experts` x `layers`. Takes
    a whole number."""
    bytes_per_param: int | None = None
    """Bytes of a parameter, of a gradient and of an activation. Takes a whole number from 1 to 255. Default: 2."""


@dataclass(kw_only=True, repr=False)
class Parallel(Table):
    """Degrees of parallelism."""

    tensor: int | None = None
    """Ranks that share each layer. Takes a whole number from 1. Default: 1."""
    pipeline: int | None = None
    """Stages of the pipeline. Takes a whole number from 1. Default: 1."""
    data: int | None = None
    """Copies of the model. Takes a whole number from 1. Default: 1."""
    expert: int | None = None
    """Copies that share the experts: a divisor of `data`. Takes a whole number from 1. Default: 1."""


@dataclass(kw_only=True, repr=False)
class ComputeTimes(Table):
    """Compute times of ranks. Either this or `flops`."""

    forward: str
    """Forward. Takes a time such as "2ms" or "14us". Required."""
    backward: str
    """Backward. Takes a time such as "2ms" or "14us". Required."""


@dataclass(kw_only=True, repr=False)
class Collectives(Table):
    """Algorithms of all-reduces."""

    tensor: Literal["ring", "tree", "halving-doubling"] | None = None
    """Activations, in groups of `tensor` ranks. Takes "ring", "tree" or "halving-doubling". Default: "ring"."""
    data: Literal["ring", "tree", "halving-doubling"] | None = None
    """Gradients, in groups of `data` ranks. Takes "ring", "tree" or "halving-doubling". Default: "ring"."""


@dataclass(kw_only=True, repr=False)
class Job(Table):
    """`[[job]]`: a training job. Its flows wait for each other and for computing, iteration after iteration."""

    name: str
    """Its name in results, different from those of other jobs and of traffic. Takes a string. Required."""
    model: Model
    """The model that is trained. Takes a table. Required."""
    placement: str | int | Sequence[str | int]
    """Hosts: as many as there are ranks, or tensor groups with `ranks_per_host`. Ranks fill hosts in this order,
    the ranks of a tensor group next to each other. Takes hosts such as "all", "0..16" or "dc0.0..8", or an array of
    such parts. Required."""
    micro_batches: int
    """Micro-batches that each copy of the model takes in an iteration. Takes a whole number from 1. Required."""
    traffic_class: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Lets On-Ramp hold its flows, where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "persistent"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow reuses a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send; if there is none, it opens one. Laws that
    send by credits open one for each flow. Takes "new" or "persistent". Default: "new"."""
    parallel: Parallel | None = None
    """Degrees of parallelism. Takes a table."""
    shuffle: bool | None = None
    """Shuffles the hosts of `placement` by `seed`. Takes true or false. Default: false."""
    seed: int | None = None
    """Seed of what the job draws; if not given, it follows from the scenario's `seed` and the job's number. Takes a
    whole number."""
    outermost: Literal["pipeline", "data"] | None = None
    """Groups that are farthest apart in the order of hosts. `pipeline`: the stages of a pipeline; neighbouring
    hosts are in one stage. `data`: the copies of the model; neighbouring hosts are in one pipeline. Takes
    "pipeline" or "data". Default: "pipeline"."""
    ranks_per_host: int | None = None
    """1, or `tensor`: then a tensor group is one host, and its all-reduces are no flows. Takes a whole number from
    1. Default: 1."""
    intra_host_rate: str | None = None
    """The rate between two ranks of a host, in each direction, with `ranks_per_host` over 1. Takes a rate such as
    "100Gbps". Default: "2.4Tbps"."""
    batch: int | None = None
    """Sequences of a micro-batch. Takes a whole number from 1. Default: 1."""
    compute: ComputeTimes | None = None
    """Compute times of ranks. Either this or `flops`. Takes a table."""
    flops: str | None = None
    """Floating-point operations per second of each rank. Takes a speed such as "400TFLOPS"."""
    collectives: Collectives | None = None
    """Algorithms of all-reduces. Takes a table."""
    schedule: Literal["1f1b", "gpipe"] | None = None
    """The order of micro-batches in a stage. Takes "1f1b" or "gpipe". Default: "1f1b"."""
    iterations: int | None = None
    """Number of iterations. Takes a whole number from 1. Default: 1."""
    start: str | None = None
    """Time at which it begins to compute. Takes a time such as "2ms" or "14us". Default: "0s"."""

    CANDIDATES: ClassVar[Candidates] = {"model": lambda: (Model,), "parallel": lambda: (Parallel,), "compute": lambda: (ComputeTimes,), "collectives": lambda: (Collectives,)}


@dataclass(kw_only=True, repr=False)
class Failure(Table):
    """`[[failure]]`: links that are down for some time. Packets on such a link, and those sent over it, are lost;
    ports and routes do not react to it, except with `reroute`."""

    ports: Sequence[str]
    """Links, each in one direction: named as in results, such as `dc0.border>dc1.border#3`, or by class:
    `class:inter`. Takes an array. Required."""
    count: int | None = None
    """Number of them that fail, drawn by the seed; all if not given. Takes a whole number from 1."""
    both: bool | None = None
    """Takes the reverse direction of the same cables down, too. Takes true or false. Default: true."""
    at: str | None = None
    """Time at which they go down. Takes a time such as "2ms" or "14us". Default: "0s"."""
    until: str | None = None
    """Time at which they come up again; never if not given. Takes a time such as "2ms" or "14us"."""
    every: str | None = None
    """Period after which they go down again: flapping. Takes a time such as "2ms" or "14us"."""
    reroute: str | None = None
    """Time after which routes avoid a link that went down, and use a link again that came up. If not given, routes
    never change. Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class Monitor(Table):
    """Sampling over time."""

    interval: str | None = None
    """Time between samples; zero samples nothing. Takes a time such as "2ms" or "14us". Default: "0s"."""
    ports: Sequence[str] | None = None
    """Ports whose queues are sampled and whose pauses are recorded: a link such as `dc0.border>dc1.border#0`
    (without `#`: all parallel ones), `class:inter` for all of a class, `receiver` for the switch ports towards the
    receivers of incasts. Takes an array."""
    switches: Sequence[str] | None = None
    """Switches whose shared buffer is sampled: a name such as `dc1.border`, `tier:border` for all of a tier
    (`edge`, `aggregation`, `core`, `border`, `relay`), or `all`. Takes an array."""
    flows: Literal["all", "none"] | int | Sequence[int] | None = None
    """Flows whose rate and window are sampled. Takes "all", "none", how many of the first, or an array of flow
    numbers. Default: "none"."""
    predictors: Literal["all", "none"] | int | Sequence[int] | None = None
    """Flows whose packets' one-way delays are compared with what their senders knew when they left: the last
    one-way delay that On-Ramp measured, and the last RTT. Needs `[switch]` and no interval; not where ports report
    themselves (INT). Takes "all", "none", how many of the first, or an array of flow numbers. Default: "none"."""
    fairness_window: str | None = None
    """Time over which Jain's index compares the data delivered by sampled flows: a whole number of intervals, at
    least one. If not given, the longest base RTT. Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class Range(Table):
    """Values of a key of a sample: all from one number to another, both included. They have the kind of the ends (a
    whole number, one with a point, one with a unit) and four digits, more where the range is narrow; whole numbers
    have all."""

    KEYS: ClassVar[dict[str, str]] = {"from_": "from"}

    from_: Any
    """Smallest value. Takes any value. Required."""
    to: Any
    """Largest value. Takes any value. Required."""
    spread: Literal["linear", "log"] | None = None
    """Scale on which it is sampled uniformly. `log`: as many values from 1 to 10 as from 10 to 100. Takes "linear"
    or "log". Default: "linear"."""


@dataclass(kw_only=True, repr=False)
class RandomPoints(Table):
    """Points that are drawn, random or quasi-random."""

    points: int
    """Number of points. Identical points are run once. Takes a whole number from 1. Required."""
    keys: dict[str, Range | Sequence[Any]]
    """Keys as in `[grid]`, and a range or a list of values for each. Takes a table of named entries. Required."""
    method: Literal["sobol", "random"] | None = None
    """Sampling method. `sobol`: quasi-random, by Sobol's sequence with Owen's scrambling, which fills the space
    evenly, best with 2, 4, 8, ... points. `random`: each by chance. Takes "sobol" or "random". Default: "sobol"."""
    seed: int | None = None
    """Seed of the points: another one gives other points. Takes a whole number. Default: 1."""

    CANDIDATES: ClassVar[Candidates] = {"keys": lambda: (Range,)}


@dataclass(kw_only=True, repr=False)
class Variant(Table):
    """Runs in addition to the grid's: the same with some keys changed."""

    label: str | None = None
    """Description of the difference. Takes a string. Default: ""."""
    set: dict[str, Any] | None = None
    """Keys, with dots and array indices as for `--set`, and their values. Takes a table of named entries."""
    grid: dict[str, Sequence[Any]] | None = None
    """Values of keys of `[grid]` in these runs: by default the first one of each, and with `[]` the key is left
    unchanged. Takes a table of named entries."""
    schemes: Sequence[str] | None = None
    """Schemes to run; all by default. Takes an array."""


@dataclass(kw_only=True, repr=False)
class Scale(Table):
    """One set of overrides."""

    note: str | None = None
    """Description of what was scaled. Takes a string. Default: ""."""
    set: dict[str, Any] | None = None
    """Keys, with dots and array indices as for `--set`, and their values. Takes a table of named entries."""


@dataclass(kw_only=True, repr=False)
class Cause(Table):
    """A suspected cause of claims that are not reproduced, and the change of the set-up that removes it."""

    id: str
    """Its name, unique in the file. Takes a string. Required."""
    claims: Sequence[str]
    """The claims that are judged again with the change. Takes an array. Required."""
    text: str
    """The suspicion, in words. Takes a string. Required."""
    set: dict[str, Any]
    """Keys, with dots and array indices as for `--set`, and their values. Takes a table of named entries.
    Required."""
    recorded: dict[str, dict[str, str]] | None = None
    """The outcomes of earlier runs: of each scale, by claim. Takes a table of named entries."""


@dataclass(kw_only=True, repr=False)
class Config(Table):
    """A scenario file. Its tables:"""

    name: str
    """The scenario's name: letters, digits, `-`, `_`, `+` and `.`. Takes a string. Required."""
    topology: FatTrees | Clos | Dumbbell | SingleSwitch | CustomTopology
    """Hosts, switches and links. Takes a table with a `kind`. Required."""
    schemes: dict[str, Scheme]
    """Schemes to compare: each is a run. At least one. Takes a table of named entries. Required."""
    schema: int | None = None
    """The version of this format: 1. Takes a whole number. Default: 1."""
    extends: str | None = None
    """Base scenario, a file in the same directory, to which this one makes changes: tables are laid over those of
    the base key by key, all else replaces the base's, and so does a table of another `kind`. `name` is this file's
    own. Takes a string."""
    without: Sequence[str] | None = None
    """Keys of the extended scenario that this one does not have, with dots: `["schemes.cubic", "grid"]`. Takes an
    array."""
    title: str | None = None
    """Summary in one line. Takes a string. Default: ""."""
    description: str | None = None
    """Longer description. Takes a string. Default: ""."""
    seed: int | None = None
    """Seed of everything random. Takes a whole number. Default: 1."""
    stop: str | None = None
    """The simulated time at which the run ends even if flows are left. Takes a time such as "2ms" or "14us".
    Default: "10s"."""
    clock: Clock | None = None
    """Resolution of simulated time; without this table, exact. Takes a table."""
    port: Port | None = None
    """The ports of switches. Takes a table."""
    switch: Switch | None = None
    """Switches whose ports share one buffer; without it every port has a queue of its own. Takes a table."""
    host: Host | None = None
    """The hosts. Takes a table."""
    external_laws: dict[str, ExternalLaw] | None = None
    """Laws that the calling program supplies (Python), by names that begin with a capital letter. Takes a table of
    named entries."""
    traffic: Sequence[Incast | LongFlows | Permutation | Poisson | Requests | ClosedLoop | Allreduce | Collective | FlowList | ImportedTraffic] | None = None
    """Traffic: each entry makes flows, all in one run. At least one, or a job. Takes an array."""
    job: Sequence[Job] | None = None
    """Training jobs, all in one run, in addition to the traffic. Takes an array."""
    failure: Sequence[Failure] | None = None
    """Links that fail. Takes an array."""
    monitor: Monitor | None = None
    """Sampling over time. Takes a table."""
    sizes: dict[str, str] | None = None
    """Bins of the summary by name: flows of sizes from a lower end up to, but without, an upper end, of all flows,
    of those inside or between datacenters, or of the traffic of a name. Takes a table of named entries."""
    grid: dict[str, Sequence[Any]] | None = None
    """Keys and the values that they take in turn: every combination is a run of every scheme. Takes a table of
    named entries."""
    points: Sequence[dict[str, Any]] | None = None
    """Points one by one, each with a value for the same keys: every one is a run of every scheme, at each point of
    `[grid]`. Takes an array."""
    random_points: RandomPoints | None = None
    """Points that are drawn, random or quasi-random. Takes a table."""
    variants: dict[str, Variant] | None = None
    """More runs of every scheme, each with some keys changed. Takes a table of named entries."""
    scale: dict[str, Scale] | None = None
    """Sets of overrides, chosen by `--scale`. Of an experiment (a file with `[paper]`, claims or tables) the file
    as it stands is the scale `paper`. Takes a table of named entries."""
    paper: Any = None
    """Statements of a paper on this experiment. Takes any value."""
    claim: Sequence[Any] | None = None
    """Claims to judge. Takes an array."""
    cause: Sequence[Cause] | None = None
    """Suspected causes of claims that are not reproduced. Takes an array."""
    table: Sequence[Any] | None = None
    """Tables of what runs measured, averaged over seeds. Takes an array."""

    CANDIDATES: ClassVar[Candidates] = {"topology": lambda: (FatTrees, Clos, Dumbbell, SingleSwitch, CustomTopology,), "schemes": lambda: (Scheme,), "clock": lambda: (Clock,), "port": lambda: (Port,), "switch": lambda: (Switch,), "host": lambda: (Host,), "external_laws": lambda: (ExternalLaw,), "traffic": lambda: (Incast, LongFlows, Permutation, Poisson, Requests, ClosedLoop, Allreduce, Collective, FlowList, ImportedTraffic,), "job": lambda: (Job,), "failure": lambda: (Failure,), "monitor": lambda: (Monitor,), "random_points": lambda: (RandomPoints,), "variants": lambda: (Variant,), "scale": lambda: (Scale,), "cause": lambda: (Cause,)}


if not TYPE_CHECKING:  # Type checkers would accept any name.

    def __getattr__(name: str) -> object:
        """Refuse a name that the module lacks."""
        raise _renamed.no_name(__name__, name)
