"""The tables of a scenario file as classes, one field a key.

Made from the schema by `python generate.py > narrows/tables.py`; the file format's reference has the same words. A field that is
left out is left out of the file, and has the default that its table of the reference names. Times, rates and sizes are texts
with units, such as `"2ms"`, `"100Gbps"` and `"1MiB"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from narrows._table import Candidates, Table

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(kw_only=True, repr=False)
class InterPair(Table):
    """The links between two datacenters, where they differ from the others."""

    between: Sequence[int]
    """The two datacenters, from 0. Takes an array. Required."""
    links: int | None = None
    """How many; by default `inter_links`. Takes a whole number from 1."""
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
    """How many trees. Takes a whole number from 1. Default: 2."""
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
    """How many trees, all alike. Takes a whole number from 1. Default: 1."""
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
    """Whether the sides are two datacenters, the link between them the long haul. Takes true or false. Default:
    false."""


@dataclass(kw_only=True, repr=False)
class SingleSwitch(Table):
    """`kind = "single-switch"`: hosts on one switch."""

    KIND: ClassVar[str | None] = "single-switch"

    hosts: int
    """How many, at least 2. Takes a whole number from 1. Required."""
    rate: str | Sequence[str] | None = None
    """Rate of each host's link, one or a list. Takes a rate such as "100Gbps". Default: "100Gbps"."""
    delay: str | Sequence[str] | None = None
    """Propagation delay of each host's link, one or a list. Takes a time such as "2ms" or "14us". Default:
    "1us"."""


@dataclass(kw_only=True, repr=False)
class NodeSpec(Table):
    """A host or switch."""

    name: str
    """Its name, of which there is one. Takes a string. Required."""
    kind: Literal["host", "switch"]
    """`host` or `switch`. Hosts are numbered in this order. Takes "host" or "switch". Required."""
    datacenter: int | None = None
    """Its datacenter, from 0. Takes a whole number up to 65535. Default: 0."""
    hosts: int | None = None
    """Of a switch: so many hosts in its datacenter, each with one link to it. Those of `s` are named `s.h0`, `s.h1`
    and so on. Takes a whole number from 1."""
    host_rate: str | None = None
    """Rate of their links; needed with `hosts`. Takes a rate such as "100Gbps"."""
    host_delay: str | None = None
    """Propagation delay of their links, over zero; needed with `hosts`. Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class Red(Table):
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
class Step(Table):
    """Marking by a step."""

    step: int | str
    """Every packet is marked from this queue on, none below. Takes a percentage of the queue's size such as "25%",
    a size such as "100KB", or a time of the port's line rate such as "32us". Required."""


@dataclass(kw_only=True, repr=False)
class PhantomTable(Table):
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
class TrimTable(Table):
    """Packet trimming: data that finds no room in `buffer` loses its payload, and its header goes on as a control
    packet. The receiver asks for it again. Control packets then go first and have a buffer of their own."""

    header: int | None = None
    """What is left of a trimmed packet on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    control: Literal["auto"] | int | str | None = None
    """Room for control packets that wait, acknowledgements and headers, the one in service included. `auto`: twice
    `buffer`, as in htsim. Takes "auto" or a size such as "1MB". Default: "auto"."""


@dataclass(kw_only=True, repr=False)
class BurstTable(Table):
    """Losses that come together: each group of data packets that follow each other at a port loses one packet, two,
    ..., with these probabilities."""

    rates: Sequence[float | str]
    """The probability that exactly one packet of a group is lost, exactly two, and so on; up to 8 numbers, together
    at most 1. Takes an array. Required."""
    group: int | None = None
    """Data packets of a group, from 1 to 64. Takes a whole number from 1. Default: 10."""


@dataclass(kw_only=True, repr=False)
class PortPatch(Table):
    """Other settings for its ports, laid over all others."""

    buffer: Literal["unlimited"] | str | int | str | None = None
    """As in `[port]`. Takes a size such as "1MiB", a multiple such as "bdp" or "0.5bdp", or "unlimited"."""
    ecn: Literal["off"] | Red | Step | None = None
    """As in `[port]`. Replaces it whole. Takes { min = "25%", max = "75%" }, { step = "100KB" } or "off"."""
    phantom: Literal["off"] | PhantomTable | None = None
    """As in `[port]`. Replaces it whole. Takes { size = "22.4MB", drain = 0.9, min = "2%", max = "60%" } or
    "off"."""
    control_priority: bool | None = None
    """As in `[port]`. Takes true or false."""
    trim: bool | TrimTable | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { header = 64, control = "1MB" }."""
    mark_at: Literal["enqueue", "dequeue"] | None = None
    """As in `[port]`. Takes "enqueue" or "dequeue"."""
    in_service: Literal["remainder", "whole", "excluded"] | None = None
    """As in `[port]`. Takes "remainder", "whole" or "excluded"."""
    loss: float | str | None = None
    """As in `[port]`. Takes a number from 0 to 1, or "0%" to "100%"."""
    loss_bursts: Literal["off"] | BurstTable | None = None
    """As in `[port]`. Replaces it whole. Takes "off" or a table such as { rates = [0.0003, 0.00007] }."""
    headroom: Literal["auto"] | str | int | str | None = None
    """As in `[port]`. Takes "auto", a size such as "100KB", or a multiple such as "bdp" or "1.5bdp"."""
    alpha: float | str | None = None
    """As in `[port]`. Takes the place of `xoff`. Takes a number such as 0.5, or "50%"."""
    xoff: int | str | None = None
    """As in `[port]`. Takes the place of `alpha`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    hysteresis: int | str | None = None
    """As in `[port]`. Takes the place of `xon`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    xon: int | str | None = None
    """As in `[port]`. Takes the place of `hysteresis`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""

    CANDIDATES: ClassVar[Candidates] = {"ecn": lambda: (Red, Step,), "phantom": lambda: (PhantomTable,), "trim": lambda: (TrimTable,), "loss_bursts": lambda: (BurstTable,)}


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
    """Where it lies; by default `inter` between datacenters, `host` at a host, else `other`. Takes a link class
    such as "inter"."""
    parallel: int | None = None
    """How many run in parallel. Takes a whole number from 1. Default: 1."""
    port: PortPatch | None = None
    """Other settings for its ports, laid over all others. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"port": lambda: (PortPatch,)}


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
    """Credits that may wait. Takes a whole number from 1. Default: 8."""
    threshold: int | None = None
    """Credits that may be spared (over-provisioned ones) are dropped where so many wait, or more. Takes a whole
    number. Default: 2."""
    burst: int | str | None = None
    """Bytes of credits that may leave at once after a silence, at least one credit of 84 bytes. Takes a size such
    as "1MiB" or "64KB", or a whole number of bytes. Default: "168B"."""
    unscheduled: Literal["off"] | int | None = None
    """Data sent without a credit is dropped where the queue of data holds so many full packets, or more; `off`: it
    is treated like other data. Takes "off" or a whole number. Default: 2."""


@dataclass(kw_only=True, repr=False)
class PortOver(Table):
    """What changes in `[port]`."""

    buffer: Literal["unlimited"] | str | int | str | None = None
    """As in `[port]`. Takes a size such as "1MiB", a multiple such as "bdp" or "0.5bdp", or "unlimited"."""
    ecn: Literal["off"] | Red | Step | None = None
    """As in `[port]`. Replaces it whole. Takes { min = "25%", max = "75%" }, { step = "100KB" } or "off"."""
    phantom: Literal["off"] | PhantomTable | None = None
    """As in `[port]`. Replaces it whole. Takes { size = "22.4MB", drain = 0.9, min = "2%", max = "60%" } or
    "off"."""
    control_priority: bool | None = None
    """As in `[port]`. Takes true or false."""
    trim: bool | TrimTable | None = None
    """As in `[port]`. Replaces it whole. Takes true, false or { header = 64, control = "1MB" }."""
    mark_at: Literal["enqueue", "dequeue"] | None = None
    """As in `[port]`. Takes "enqueue" or "dequeue"."""
    in_service: Literal["remainder", "whole", "excluded"] | None = None
    """As in `[port]`. Takes "remainder", "whole" or "excluded"."""
    loss: float | str | None = None
    """As in `[port]`. Takes a number from 0 to 1, or "0%" to "100%"."""
    loss_bursts: Literal["off"] | BurstTable | None = None
    """As in `[port]`. Replaces it whole. Takes "off" or a table such as { rates = [0.0003, 0.00007] }."""
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
    hysteresis: int | str | None = None
    """As in `[port]`. Takes the place of `xon`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    xon: int | str | None = None
    """As in `[port]`. Takes the place of `hysteresis`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    host: PortPatch | None = None
    """For ports towards hosts. Takes a table."""
    edge: PortPatch | None = None
    """For ports between edge and aggregation. Takes a table."""
    core: PortPatch | None = None
    """For ports between aggregation and core. Takes a table."""
    border: PortPatch | None = None
    """For ports between core and border. Takes a table."""
    inter: PortPatch | None = None
    """For ports between datacenters. Takes a table."""
    other: PortPatch | None = None
    """For all other ports between switches. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"ecn": lambda: (Red, Step,), "phantom": lambda: (PhantomTable,), "trim": lambda: (TrimTable,), "loss_bursts": lambda: (BurstTable,), "credit_queue": lambda: (CreditQueueTable,), "host": lambda: (PortPatch,), "edge": lambda: (PortPatch,), "core": lambda: (PortPatch,), "border": lambda: (PortPatch,), "inter": lambda: (PortPatch,), "other": lambda: (PortPatch,)}


@dataclass(kw_only=True, repr=False)
class UnoLbTable(Table):
    """Uno's load balancer (Algorithm 2): a flow's packets go round robin over subflows, each on a path of its own;
    a request for a block or a timeout moves one that lost a packet, at most once in a base RTT."""

    KIND: ClassVar[str | None] = "unolb"

    subflows: int | None = None
    """Subflows (n), 1 to 64. Takes a whole number from 1 to 255. Default: 10."""
    recent: Literal["auto"] | str | None = None
    """How recent an acknowledgement on another subflow must be for a bad one to take its path. `auto`: one base
    RTT. Takes "auto" or a time such as "20us". Default: "auto"."""
    reroute: Literal["acked", "random"] | None = None
    """`acked`: a bad subflow takes the path of a random one that had recent acknowledgements. `random`: every
    subflow that had none for half a base RTT draws a path, as in Uno's published simulator. Takes "acked" or
    "random". Default: "acked"."""
    laws: Literal["flow", "subflow"] | None = None
    """`flow`: one law decides over all subflows, and packets take them in turn. `subflow`: each has a law of its
    own, which hears of its packets alone, and packets take the next one in turn that may send. Together they may
    have in flight what as many flows may. Needs selective recovery, `ack_every` = 1 and no segments; not with
    `nack` = "gaps" or a history in `coding`. Takes "flow" or "subflow". Default: "flow"."""


@dataclass(kw_only=True, repr=False)
class PlbTable(Table):
    """PLB: one path a flow, and another one after congested round trips in a row, and after a timeout."""

    KIND: ClassVar[str | None] = "plb"

    threshold: float | str | None = None
    """A round trip in which more than this share was marked is congested (K). Takes a number from 0 to 1, or "0%"
    to "100%". Default: 0.5."""
    idle_rounds: int | None = None
    """Congested round trips in a row after which the path is changed when nothing is in flight (N). Takes a whole
    number from 1. Default: 3."""
    rounds: int | None = None
    """Congested round trips in a row after which it is changed at once (M). Takes a whole number from 1. Default:
    12."""


@dataclass(kw_only=True, repr=False)
class RepsTable(Table):
    """REPS: each packet takes the entropy of one that was acknowledged without a mark, and draws one of `entropies`
    if there is none."""

    KIND: ClassVar[str | None] = "reps"

    buffer: int | None = None
    """Entropies that are kept, the newest ones. Takes a whole number from 1 to 255. Default: 8."""
    freeze: str | None = None
    """How long after a timeout no packet draws: those that are kept are taken again and again. Takes a time such as
    "2ms" or "14us". Default: "10ms"."""
    explore: int | None = None
    """Packets that draw after that, to find paths. Takes a whole number up to 65535. Default: 16."""


@dataclass(kw_only=True, repr=False)
class CodingTable(Table):
    """Erasure coding (Uno's `UnoRC`): flows are cut into blocks, any `data` packets of which give it back. Needs
    `recovery = "selective"`."""

    data: int | None = None
    """Data packets of a block (k). Takes a whole number from 1 to 255. Default: 8."""
    parity: int | None = None
    """Parity packets of a block (m); with `data` at most 48. Takes a whole number from 1 to 255. Default: 2."""
    scope: Literal["intra", "inter", "any"] | None = None
    """Which flows are coded: those inside a datacenter, those between two, or all. Takes "intra", "inter" or "any".
    Default: "inter"."""
    tail: Literal["auto"] | int | str | None = None
    """Payload at a flow's end that is coded. `auto`: all. Takes "auto" or a size such as "1MB". Default: "auto"."""
    block_timer: Literal["auto"] | str | None = None
    """How long after a block's first packet its receiver asks for it. `auto`: the longest wait in all queues of the
    way there, and the time that a block takes on the narrowest link of all equal paths. Takes "auto" or a time such
    as "20us". Default: "auto"."""
    nack: Literal["timer", "gaps"] | None = None
    """`timer`: a receiver asks for a block when its timer ends. `gaps`: also as soon as later packets on the same
    subflows show that more are missing than parity makes up for; not with `path = "spray"`. Takes "timer" or
    "gaps". Default: "timer"."""
    resend: Literal["asked", "known"] | None = None
    """`asked`: packets of a block are sent again when the receiver asks or a timeout strikes. `known`: also as soon
    as the sender holds more for lost than parity makes up for. Takes "asked" or "known". Default: "asked"."""
    history: bool | None = None
    """Whether an acknowledgement also says which of the eight packets before its own on the subflow came. Without
    it, which is the paper's, a packet whose acknowledgement is lost counts as lost for the law. Takes true or
    false. Default: false."""


@dataclass(kw_only=True, repr=False)
class OnRampTable(Table):
    """On-Ramp: a flow waits at its host while its packets' one-way delay is over a threshold, under any law."""

    threshold: Literal["auto"] | str
    """One-way delays over this pause the flow (T). `auto`: twice `clock_sigma` over the base one-way delay of a
    flow's own path. Takes "auto" or a time such as "20us". Required."""
    over_base: bool | None = None
    """Whether `threshold` is of the queueing delay: over the base one-way delay of a flow's own path, over the
    routes that hold when a packet leaves. For paths as unlike as those inside and between datacenters. Takes true
    or false. Default: false."""
    gain: float | str | None = None
    """Weight of the newest measurement in the correction for the lag of feedback (g), over 0. Takes a number from 0
    to 1, or "0%" to "100%". Default: 0.0625."""
    strawman: bool | None = None
    """Whether pauses are not corrected for the lag of feedback (the paper's equation 2). Takes true or false.
    Default: false."""
    ack_every: int | None = None
    """Packets that one OR-ACK answers. Takes a whole number from 1. Default: 1."""
    ack_size: int | None = None
    """Size of an OR-ACK on the wire, in bytes. Takes a whole number from 1. Default: 78."""
    memory: bool | None = None
    """Whether a flow starts with what the last OR-ACK from its receiver said to its host. Takes true or false.
    Default: false."""


@dataclass(kw_only=True, repr=False)
class JitterTable(Table):
    """How long packets that came lie in a host before its transport hears of them, those of one flow in order."""

    mean: str
    """The mean, over 0 and at most 1 s. Takes a time such as "2ms" or "14us". Required."""
    distribution: Literal["exponential", "uniform"] | None = None
    """`exponential`, or `uniform`: evenly from 0 to twice the mean. Takes "exponential" or "uniform". Default:
    "exponential"."""


@dataclass(kw_only=True, repr=False)
class TcpTable(Table):
    """What Linux's TCP does beside its law: `"linux"` is a table of defaults."""

    hystart: bool | None = None
    """Linux's `HyStart`: `hystart_train` and `hystart_delay` of Cubic are on where the scheme does not set them.
    Takes true or false. Default: true."""
    prr: bool | None = None
    """A cut, for a loss or marks, is spread over the round trip (PRR). Takes true or false. Default: true."""
    idle_restart: bool | None = None
    """The window shrinks when a flow was idle: `tcp_slow_start_after_idle`. TCP's laws do it: `cubic`, `newreno`,
    `dctcp`, `vegas`, `gemini`. Takes true or false. Default: true."""
    validation: Literal["off", "linux", "rfc7661"] | None = None
    """What happens to a window that a flow does not use, beyond that it does not grow. `linux`: it falls half of
    the way to what was used after a retransmission timeout in which it was never full. `rfc7661`: a loss or mark
    cuts what was in use, and it is halved after five minutes. The same laws do it. Takes "off", "linux" or
    "rfc7661". Default: "off"."""
    remember_ssthresh: bool | None = None
    """A host remembers of a destination at which window slow start ended, and new connections there start with
    that: `tcp_no_metrics_save` is off, and since Linux 5.6 `tcp_no_ssthresh_metrics_save` too. Takes true or false.
    Default: false."""


@dataclass(kw_only=True, repr=False)
class HostOver(Table):
    """What changes in `[host]`."""

    payload: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    header: int | None = None
    """As in `[host]`. Takes a whole number up to 65535."""
    ack_size: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    ack_every: int | None = None
    """As in `[host]`. Takes a whole number from 1 to 255."""
    ack_delay: Literal["auto"] | str | None = None
    """As in `[host]`. Takes "auto" or a time such as "20us"."""
    path: Literal["ecmp", "repath", "spray", "unolb", "plb", "reps"] | UnoLbTable | PlbTable | RepsTable | None = None
    """As in `[host]`. Takes "ecmp", "repath", "spray", "unolb", "plb", "reps" or a table such as { kind = "unolb",
    subflows = 8 }."""
    entropies: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    coding: bool | CodingTable | None = None
    """As in `[host]`. Replaces it whole. Takes true, false or { data = 8, parity = 2 }."""
    reordering: Literal["auto"] | str | None = None
    """As in `[host]`. Takes "auto" or a time such as "20us"."""
    rto_min: Literal["auto"] | str | None = None
    """As in `[host]`. Takes "auto" or a time such as "20us"."""
    rto_max: str | None = None
    """As in `[host]`. Takes a time such as "2ms" or "14us"."""
    timeouts_cut: bool | None = None
    """As in `[host]`. Takes true or false."""
    loss_timer: Literal["flow", "packet"] | None = None
    """As in `[host]`. Takes "flow" or "packet"."""
    recovery: Literal["selective", "go-back-n"] | None = None
    """As in `[host]`. Takes "selective" or "go-back-n"."""
    nack_interval: str | None = None
    """As in `[host]`. Takes a time such as "2ms" or "14us"."""
    acks: Literal["all", "nack-only"] | None = None
    """As in `[host]`. Takes "all" or "nack-only"."""
    pace: Literal["payload", "wire"] | None = None
    """As in `[host]`. Takes "payload" or "wire"."""
    catch_up: bool | None = None
    """As in `[host]`. Takes true or false."""
    window_check: Literal["strict", "overshoot"] | None = None
    """As in `[host]`. Takes "strict" or "overshoot"."""
    cnp: Literal["off"] | str | None = None
    """As in `[host]`. Takes "off" or a time such as "50us"."""
    cnp_size: int | None = None
    """As in `[host]`. Takes a whole number from 1."""
    segment: int | str | None = None
    """As in `[host]`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    small_queue: Literal["off"] | int | str | None = None
    """As in `[host]`. Takes "off" or a size such as "64KB"."""
    fq: bool | None = None
    """As in `[host]`. Takes true or false."""
    initial_quantum: Literal["window"] | int | str | None = None
    """As in `[host]`. Takes "window" or a size such as "64KB"."""
    known_sizes: bool | None = None
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

    CANDIDATES: ClassVar[Candidates] = {"path": lambda: (UnoLbTable, PlbTable, RepsTable,), "coding": lambda: (CodingTable,), "on_ramp": lambda: (OnRampTable,), "jitter": lambda: (JitterTable,), "tcp": lambda: (TcpTable,)}


@dataclass(kw_only=True, repr=False)
class PfcTable(Table):
    """Priority flow control (IEEE 802.1Qbb)."""

    frame: int | None = None
    """Size of a pause frame on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    relay: bool | None = None
    """Whether the switches are relays: they pass pauses on, and ask for pauses themselves where `alpha` or `xoff`
    says so (SWING's relays only before their buffer would overflow). In a loop of relays a pause goes round for
    ever. Takes true or false. Default: false."""


@dataclass(kw_only=True, repr=False)
class SwitchPatch(Table):
    """For switches that hosts hang from."""

    buffer: Literal["unlimited"] | int | str | None = None
    """As in `[switch]`. Takes a size such as "32MiB", or "unlimited"."""
    reserve: int | str | None = None
    """As in `[switch]`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    egress_alpha: Literal["off"] | float | str | None = None
    """As in `[switch]`. Takes "off" or a number such as 0.5."""
    int: Literal["auto"] | bool | None = None
    """As in `[switch]`. Takes "auto", true or false."""
    marks: bool | None = None
    """As in `[switch]`. Takes true or false."""


@dataclass(kw_only=True, repr=False)
class SwitchOver(Table):
    """What a scheme changes of `[switch]`: the same keys, without defaults."""

    buffer: Literal["unlimited"] | int | str | None = None
    """As in `[switch]`. Takes a size such as "32MiB", or "unlimited"."""
    reserve: int | str | None = None
    """As in `[switch]`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    egress_alpha: Literal["off"] | float | str | None = None
    """As in `[switch]`. Takes "off" or a number such as 0.5."""
    int: Literal["auto"] | bool | None = None
    """As in `[switch]`. Takes "auto", true or false."""
    marks: bool | None = None
    """As in `[switch]`. Takes true or false."""
    pfc: bool | PfcTable | None = None
    """As in `[switch]`. Takes true, false or { frame = 64, relay = false }."""
    edge: SwitchPatch | None = None
    """For switches that hosts hang from. Takes a table."""
    aggregation: SwitchPatch | None = None
    """For switches between edge and core. Takes a table."""
    core: SwitchPatch | None = None
    """For all other switches. Takes a table."""
    border: SwitchPatch | None = None
    """For switches at the links between datacenters. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"pfc": lambda: (PfcTable,), "edge": lambda: (SwitchPatch,), "aggregation": lambda: (SwitchPatch,), "core": lambda: (SwitchPatch,), "border": lambda: (SwitchPatch,)}


@dataclass(kw_only=True, repr=False)
class Lscc(Table):
    """LSCC's controllers at long-haul links, around any law that hears of notifications or of marks."""

    period: str
    """Time between two rates (T). Takes a time such as "2ms" or "14us". Required."""
    q_ref: int | str
    """The ingress queue that the far end aims at (`Q_ref`). Takes a size such as "1MiB" or "64KB", or a whole
    number of bytes. Required."""
    delta_r: str
    """The most that two rates in turn differ by (delta R). Takes a rate such as "100Gbps". Required."""
    r_min: str | None = None
    """The lowest rate fed back (`R_min`). Takes a rate such as "100Gbps". Default: "100Mbps"."""
    r_max: str | None = None
    """The highest rate fed back (`R_max`); by default the long-haul link's. Takes a rate such as "100Gbps"."""
    near_q_ref: int | str | None = None
    """The near end's pseudo queue over which sources are told (`Q*_ref`); by default `q_ref`. Takes a size such as
    "1MiB" or "64KB", or a whole number of bytes."""
    interval: str | None = None
    """Least time between two notifications of one flow. Takes a time such as "2ms" or "14us". Default: "50us"."""
    long_flow: Literal["auto"] | int | str | None = None
    """Flows that have sent less than this are told whether marked or not. `auto`: what the fastest host sends in
    the longest base RTT between datacenters. Takes "auto" or a size such as "1MB". Default: "auto"."""
    reset: str | None = None
    """Time after which the near end forgets marks; by default `period`. Takes a time such as "2ms" or "14us"."""
    size: int | None = None
    """Size of a notification on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    telemetry: bool | None = None
    """Whether sources get the reports of ports (INT) instead of notifications (HPCC*). Takes true or false.
    Default: false."""


@dataclass(kw_only=True, repr=False)
class SwingTable(Table):
    """SWING, as we read its published description: at each end of each long-haul link stands a relay that passes
    pauses and resumes on and holds what arrives meanwhile. Needs `[switch]` with `pfc`."""

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
    port: PortOver | None = None
    """What changes in `[port]`. Takes a table."""
    host: HostOver | None = None
    """What changes in `[host]`. Takes a table."""
    switch: Literal["off"] | SwitchOver | None = None
    """What changes in `[switch]`; `off`: every port has a queue of its own. Takes "off" or a table with keys of
    [switch]."""
    lscc: Lscc | None = None
    """LSCC's controllers at long-haul links, around any law that hears of notifications or of marks. Takes a
    table."""
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

    CANDIDATES: ClassVar[Candidates] = {"port": lambda: (PortOver,), "host": lambda: (HostOver,), "switch": lambda: (SwitchOver,), "lscc": lambda: (Lscc,), "swing": lambda: (SwingTable,)}


@dataclass(kw_only=True, repr=False)
class Clock(Table):
    """How simulated time is counted; without it, exactly."""

    tick: Literal["off"] | str | None = None
    """How long a packet's service lasts at any port, and the time between two paced packets, are whole multiples of
    this, rounded down: `1ns` for simulators in whole nanoseconds. `off`: exact, in picoseconds. Takes "off" or a
    time such as "50us". Default: "off"."""
    whole: Literal["kept", "short"] | None = None
    """What becomes of such a time that is a whole number of ticks: `kept`; or `short`: it loses one, as in old
    versions of ns-3, whose conversion from floating point cuts off what a double cannot hold. Takes "kept" or
    "short". Default: "kept"."""
    ties: Literal["input", "scheduled"] | None = None
    """What comes to a switch at the same time is taken in the order of its inputs (`input`), or of what was
    scheduled first (`scheduled`): what began to leave its sender first, and of that, what follows from the earlier
    event, as where all events lie in one queue. The latter is for switches that share their buffer, and slower.
    Takes "input" or "scheduled". Default: "input"."""


@dataclass(kw_only=True, repr=False)
class Port(Table):
    """The ports of switches."""

    buffer: Literal["unlimited"] | str | int | str | None = None
    """Room for waiting packets, the one in service included. `bdp`: what the port sends within the longest base RTT
    of the network; `0.5bdp`: half of that. Takes a size such as "1MiB", a multiple such as "bdp" or "0.5bdp", or
    "unlimited". Default: "1MiB"."""
    ecn: Literal["off"] | Red | Step | None = None
    """When the queue marks. Takes { min = "25%", max = "75%" }, { step = "100KB" } or "off"."""
    phantom: Literal["off"] | PhantomTable | None = None
    """A phantom queue beside the real one; a packet is marked if either asks. Takes { size = "22.4MB", drain = 0.9,
    min = "2%", max = "60%" } or "off". Default: "off"."""
    control_priority: bool | None = None
    """Whether acknowledgements go before all data. Takes true or false. Default: false."""
    trim: bool | TrimTable | None = None
    """Whether data that finds no room loses its payload alone; what marks is then the data that waits. Not with
    `[switch]`, nor where ports report themselves. Takes true, false or { header = 64, control = "1MB" }. Default:
    false."""
    mark_at: Literal["enqueue", "dequeue"] | None = None
    """When marking is decided. Takes "enqueue" or "dequeue". Default: "enqueue"."""
    in_service: Literal["remainder", "whole", "excluded"] | None = None
    """How the packet in service counts in the queue. Takes "remainder", "whole" or "excluded". Default:
    "remainder"."""
    loss: float | str | None = None
    """Share of packets that a link loses by chance, under 1. Takes a number from 0 to 1, or "0%" to "100%".
    Default: 0."""
    loss_bursts: Literal["off"] | BurstTable | None = None
    """Losses by chance that come together, beside `loss`. Takes "off" or a table such as { rates = [0.0003,
    0.00007] }. Default: "off"."""
    headroom: Literal["auto"] | str | int | str | None = None
    """With `[switch]` and `pfc`: room for what arrives after a pause was sent, for each data class in use. `auto`:
    what the cable may bring; `bdp`: what it carries in its own round trip. Takes "auto", a size such as "100KB", or
    a multiple such as "bdp" or "1.5bdp". Default: "auto"."""
    credit_queue: Literal["auto"] | Literal["off"] | CreditQueueTable | None = None
    """A queue of credits beside that of data, in hosts too. `auto`: where the scheme's laws send credits. Takes
    "auto", "off" or { limit = 8, threshold = 2, burst = "168B", unscheduled = 2 }. Default: "auto"."""
    alpha: float | str | None = None
    """With `[switch]`: what came in over the cable may hold this many times what is left of the shared part; then
    its sender is paused, or what comes is dropped. Either this or `xoff`. Takes a number such as 0.5, or "50%"."""
    xoff: int | str | None = None
    """With `[switch]`: the same limit in bytes. By default `alpha = 0.125`. Takes a size such as "1MiB" or "64KB",
    or a whole number of bytes."""
    hysteresis: int | str | None = None
    """With `[switch]`: the sender resumes when that much less is held. Either this or `xon`. Takes a size such as
    "1MiB" or "64KB", or a whole number of bytes."""
    xon: int | str | None = None
    """With `[switch]` and `xoff`: the sender resumes when no more than this is held. By default `hysteresis =
    3072`. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    host: PortPatch | None = None
    """Other settings for ports towards hosts. Takes a table."""
    edge: PortPatch | None = None
    """Other settings for ports between edge and aggregation. Takes a table."""
    core: PortPatch | None = None
    """Other settings for ports between aggregation and core. Takes a table."""
    border: PortPatch | None = None
    """Other settings for ports between core and border. Takes a table."""
    inter: PortPatch | None = None
    """Other settings for ports between datacenters. Takes a table."""
    other: PortPatch | None = None
    """Other settings for all other ports between switches. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"ecn": lambda: (Red, Step,), "phantom": lambda: (PhantomTable,), "trim": lambda: (TrimTable,), "loss_bursts": lambda: (BurstTable,), "credit_queue": lambda: (CreditQueueTable,), "host": lambda: (PortPatch,), "edge": lambda: (PortPatch,), "core": lambda: (PortPatch,), "border": lambda: (PortPatch,), "inter": lambda: (PortPatch,), "other": lambda: (PortPatch,)}


@dataclass(kw_only=True, repr=False)
class Switch(Table):
    """Switches whose ports share one buffer; without it every port has a queue of its own."""

    buffer: Literal["unlimited"] | int | str | None = None
    """Room for all packets that wait in a switch. Takes a size such as "32MiB", or "unlimited". Default:
    "32MiB"."""
    reserve: int | str | None = None
    """Of that, kept for each ingress port and data class in use. Takes a size such as "1MiB" or "64KB", or a whole
    number of bytes. Default: "4KiB"."""
    egress_alpha: Literal["off"] | float | str | None = None
    """A packet is dropped where its egress queue holds this many times what is left of the shared part, or `off`.
    Takes "off" or a number such as 0.5. Default: "off"."""
    int: Literal["auto"] | bool | None = None
    """Whether ports report themselves to packets that ask (INT). `auto`: if a law of the scheme reads reports.
    Takes "auto", true or false. Default: "auto"."""
    marks: bool | None = None
    """Whether ports of these switches mark; with false none does, whatever `[port]` says. Takes true or false.
    Default: true."""
    pfc: bool | PfcTable | None = None
    """Whether switches pause who sends to them; else what finds no room is dropped. Takes true, false or { frame =
    64, relay = false }. Default: false."""
    edge: SwitchPatch | None = None
    """Other settings for switches that hosts hang from and that touch no link between datacenters. Takes a
    table."""
    aggregation: SwitchPatch | None = None
    """Other settings for switches between edge and core. Takes a table."""
    core: SwitchPatch | None = None
    """Other settings for all other switches. Takes a table."""
    border: SwitchPatch | None = None
    """Other settings for switches at the links between datacenters. Takes a table."""

    CANDIDATES: ClassVar[Candidates] = {"pfc": lambda: (PfcTable,), "edge": lambda: (SwitchPatch,), "aggregation": lambda: (SwitchPatch,), "core": lambda: (SwitchPatch,), "border": lambda: (SwitchPatch,)}


@dataclass(kw_only=True, repr=False)
class Host(Table):
    """The hosts."""

    payload: int | None = None
    """Payload of a full packet, in bytes; with the header at most 65535. Takes a whole number from 1. Default:
    4096."""
    header: int | None = None
    """Header of a data packet, in bytes. Takes a whole number up to 65535. Default: 64."""
    ack_size: int | None = None
    """Size of an acknowledgement on the wire, in bytes, 1 to 65535. Takes a whole number from 1. Default: 64."""
    ack_every: int | None = None
    """Packets that one acknowledgement answers. Takes a whole number from 1 to 255. Default: 1."""
    ack_delay: Literal["auto"] | str | None = None
    """How long an acknowledgement may be held back where `ack_every` is over 1. `auto`: a quarter of the base RTT.
    Takes "auto" or a time such as "20us". Default: "auto"."""
    path: Literal["ecmp", "repath", "spray", "unolb", "plb", "reps"] | UnoLbTable | PlbTable | RepsTable | None = None
    """`ecmp`: one path a flow. `repath`: one path a flow, another one after each of its timeouts. `spray`: each
    packet draws its own (RPS). `unolb`: subflows in turn, each with a path that it leaves when it is bad. `plb`:
    one path a flow, another one when it is congested. `reps`: each packet takes the entropy of one that was
    acknowledged without a mark, or draws one. The last three also as tables with a `kind`. Takes "ecmp", "repath",
    "spray", "unolb", "plb", "reps" or a table such as { kind = "unolb", subflows = 8 }. Default: "ecmp"."""
    entropies: int | None = None
    """How many paths `spray` and `reps` draw from. Takes a whole number from 1. Default: 256."""
    coding: bool | CodingTable | None = None
    """Erasure coding of flows: `true` for 8 data and 2 parity packets a block between datacenters, `false`, or a
    table. Takes true, false or { data = 8, parity = 2 }. Default: false."""
    reordering: Literal["auto"] | str | None = None
    """Reordering tolerance before a packet counts as lost. `auto`: a quarter of the base RTT, and with `spray`, and
    with `unolb` under one law, at least the longest wait in all queues of the path. Takes "auto" or a time such as
    "20us". Default: "auto"."""
    rto_min: Literal["auto"] | str | None = None
    """Least retransmission timeout. `auto`: the base RTT with every queue full, over the slowest of the equal
    paths, or 5/4 of the base RTT if that is more; with `go-back-n` at least the base RTT and 4 ms. Takes "auto" or
    a time such as "20us". Default: "auto"."""
    rto_max: str | None = None
    """Largest retransmission timeout. Takes a time such as "2ms" or "14us". Default: "4s"."""
    timeouts_cut: bool | None = None
    """Whether laws are told of timeouts. Takes true or false. Default: true."""
    loss_timer: Literal["flow", "packet"] | None = None
    """`flow`: one timer a flow. It starts again with each acknowledgement, follows the round trips and backs off.
    `packet`: one timer a packet. It strikes `rto_min` after the packet left (at least 5/4 of the base RTT), takes
    that packet alone and does not back off. Its automatic length counts queues of the way back only where
    acknowledgements wait in them (no `control_priority`). Takes "flow" or "packet". Default: "flow"."""
    recovery: Literal["selective", "go-back-n"] | None = None
    """`selective`: what is missing is sent again. `go-back-n`: receivers take packets in order only and ask for the
    rest again. Takes "selective" or "go-back-n". Default: "selective"."""
    nack_interval: str | None = None
    """With `go-back-n`: a receiver asks for the same packet once in this time. Under a round trip it asks again
    before the packet can have come, and everything from it on is sent again each time: `narrows check` warns of
    that. Takes a time such as "2ms" or "14us". Default: "500us"."""
    acks: Literal["all", "nack-only"] | None = None
    """`all`: receivers acknowledge every packet, `ack_every` at a time. `nack-only`: receivers only say what they
    miss and, at the end, that all has come, as in ExpressPass's simulator. Only for laws whose credits let flows
    send. Needs `recovery = "go-back-n"`, and refuses `ack_every` over 1. Where a scheme sets `acks` and not
    `ack_every`, the `ack_every` of `[host]` is for the other schemes. Takes "all" or "nack-only". Default:
    "all"."""
    pace: Literal["payload", "wire"] | None = None
    """What a law's pacing rate counts. `payload`: payload alone. `wire`: headers too, as network cards that pace
    do. Takes "payload" or "wire". Default: "payload"."""
    catch_up: bool | None = None
    """Whether pacing makes up for packets that a full window or a busy card held back. Takes true or false.
    Default: true."""
    window_check: Literal["strict", "overshoot"] | None = None
    """`strict`: a packet leaves if it fits the window. `overshoot`: as long as the window is not full, as in HPCC's
    simulator. Takes "strict" or "overshoot". Default: "strict"."""
    cnp: Literal["off"] | str | None = None
    """Least time between two notifications (CNP) of a flow, which receivers send on marks, or `off`. Takes "off" or
    a time such as "50us". Default: "off"."""
    cnp_size: int | None = None
    """Size of such a notification on the wire, in bytes. Takes a whole number from 1. Default: 64."""
    segment: int | str | None = None
    """Payload that a flow hands to the card at once and that is held as one (GSO); a packet if less. Takes a size
    such as "1MiB" or "64KB", or a whole number of bytes. Default: "0B"."""
    small_queue: Literal["off"] | int | str | None = None
    """Payload of one flow that may lie between law and card (TCP small queues). `off`: the card asks flows in turn.
    Takes "off" or a size such as "64KB". Default: "off"."""
    fq: bool | None = None
    """Whether the small queue paces, as Linux's FQ does. The law's round trips then count the wait there, and
    On-Ramp's hold with it. Needs `small_queue`. Takes true or false. Default: false."""
    initial_quantum: Literal["window"] | int | str | None = None
    """Flows that have sent less payload than this have their turns at the card before the others, as new flows have
    in Linux's FQ (`initial_quantum` in tc-fq(8)). `window`: less than the window that their law begins with, or a
    BDP of their own if that is less. Zero: all have turns alike. Takes "window" or a size such as "64KB". Default:
    "0B"."""
    known_sizes: bool | None = None
    """Whether hosts know how long flows are, as where applications say how long their messages are. Laws that use
    it hear how much is left (Strait does). `initial_quantum` then lets flows go first that have less than that left
    to send, in full packets, however much they have sent. Takes true or false. Default: false."""
    receiver_credits: bool | None = None
    """Whether hosts give credits for what they are to receive, at their link's rate, in turn to all flows that ask
    (RCCC, the receiver's credits of Ultra Ethernet). Not with laws that have credits of their own, nor coding.
    Takes true or false. Default: false."""
    clock_sigma: str | None = None
    """Standard deviation of hosts' clocks right after a synchronisation. Takes a time such as "2ms" or "14us".
    Default: "0s"."""
    clock_drift: str | None = None
    """Standard deviation of the clocks' drift. Takes a drift such as "20ppm" or "100ppb". Default: "0ppb"."""
    clock_resync: Literal["off"] | str | None = None
    """Time between synchronisations; `off`: never after the first, at time zero. Takes "off" or a time such as
    "50us". Default: "off"."""
    on_ramp: Literal["off"] | OnRampTable | None = None
    """Holding flows at the edge, or `off`. Takes "off" or a table such as { threshold = "30us" }. Default:
    "off"."""
    int_header: int | None = None
    """Bytes that reports of ports (INT) add to each data packet and each acknowledgement where a law reads them.
    Takes a whole number up to 65535. Default: 42."""
    int_multi: int | None = None
    """Reports of ports in HPCC's simulator's units, this many times 128 bytes sent and 80 bytes that wait, and in
    whole nanoseconds; 0: exact. Takes a whole number. Default: 0."""
    rtt_noise: str | None = None
    """Up to so much is added, evenly distributed, to each round trip that a law hears of: an error of measurement.
    Takes a time such as "2ms" or "14us". Default: "0s"."""
    jitter: Literal["off"] | JitterTable | None = None
    """Processing delay of hosts: how long a packet that came lies between the card and the transport, such as `{
    mean = "1us" }`, or `off`. Packets of one flow stay in order. Not with `ties = "scheduled"`. Takes "off" or a
    table such as { mean = "1us" }. Default: "off"."""
    tcp: Literal["off", "linux"] | TcpTable | None = None
    """What Linux's TCP does beside its law. `linux`: all of it. A table switches parts off, such as `{ hystart =
    false }`. `off`: nothing. Not for laws that set their own windows in Linux, such as BBR. Needs `recovery =
    "selective"`. Takes "off", "linux" or a table such as { hystart = false }. Default: "off"."""

    CANDIDATES: ClassVar[Candidates] = {"path": lambda: (UnoLbTable, PlbTable, RepsTable,), "coding": lambda: (CodingTable,), "on_ramp": lambda: (OnRampTable,), "jitter": lambda: (JitterTable,), "tcp": lambda: (TcpTable,)}


@dataclass(kw_only=True, repr=False)
class BroughtLaw(Table):
    """A law that the calling program supplies. The Python package writes the table; the command has no such
    laws."""

    language: str
    """What it is written in: 1 to 32 letters, digits, spaces and `+`, `#`, `.`, `-`. Takes a string. Required."""
    sha256: str
    """The SHA-256 of its source in hexadecimal: a law that was changed is another run. Takes a string. Required."""
    params: dict[str, Any] | None = None
    """Its parameters and their defaults: whole numbers, numbers, or true and false. Takes a table of named
    entries."""


@dataclass(kw_only=True, repr=False)
class Incast(Table):
    """`kind = "incast"`: many hosts send to one. Senders are spread over edge switches and pods."""

    KIND: ClassVar[str | None] = "incast"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    size: int | str
    """Size of each flow. Takes a size such as "1MiB" or "64KB", or a whole number of bytes. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    receiver: int | str | None = None
    """Who receives. Takes a host's number such as 0, or its name such as "dc0.host0". Default: 0."""
    intra: int | None = None
    """Senders in the receiver's datacenter. Takes a whole number. Default: 0."""
    inter: int | None = None
    """Senders in other datacenters. Takes a whole number. Default: 0."""
    start: str | None = None
    """When the first flow starts. Takes a time such as "2ms" or "14us". Default: "0s"."""
    stagger: str | None = None
    """Time between one flow's start and the next one's. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Long(Table):
    """`kind = "long"`: flows between chosen hosts."""

    KIND: ClassVar[str | None] = "long"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    flows: Sequence[Sequence[int | str]]
    """Pairs of sender and receiver. Takes an array. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    size: int | str | None = None
    """Size of each flow; by default more than its links carry until the stop. Takes a size such as "1MiB" or
    "64KB", or a whole number of bytes."""
    start: str | None = None
    """When the first flow starts. Takes a time such as "2ms" or "14us". Default: "0s"."""
    stagger: str | None = None
    """Time between one flow's start and the next one's. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Permutation(Table):
    """`kind = "permutation"`: every host sends to one other and receives from one other, drawn by the seed."""

    KIND: ClassVar[str | None] = "permutation"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    size: int | str
    """Size of each flow. Takes a size such as "1MiB" or "64KB", or a whole number of bytes. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    scope: Literal["intra", "inter", "any"] | None = None
    """Where receivers are. Takes "intra", "inter" or "any". Default: "any"."""
    start: str | None = None
    """When all flows start. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Poisson(Table):
    """`kind = "poisson"`: flows at random times between random hosts, sizes from a distribution."""

    KIND: ClassVar[str | None] = "poisson"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class", "from_": "from"}

    load: float | str
    """Mean utilisation, in each direction, of the links of class `load_of` by payload that crosses them; up to 1.
    Takes a number such as 0.5, or "50%". Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    intra: str | None = None
    """Sizes of flows inside a datacenter: the name of a shipped distribution or a file beside the scenario. Takes a
    string."""
    inter: str | None = None
    """Sizes of flows between datacenters. Takes a string."""
    load_of: Literal["nic", "host", "edge", "core", "border", "inter", "other"] | None = None
    """The link class that `load` speaks of. Takes a link class such as "inter". Default: "inter"."""
    ratio: str | None = None
    """Intra to inter; needed where both are given. Takes a ratio of intra to inter such as "4:1"."""
    ratio_of: Literal["flows", "bytes"] | None = None
    """What `ratio` counts. Takes "flows" or "bytes". Default: "flows"."""
    from_: str | Sequence[int | str] | None = None
    """Who sends; `load` then speaks of the links that these hosts' flows can cross. Takes "all", "even", "odd", a
    range of numbers such as "0..16", or an array of hosts. Default: "all"."""
    to: str | Sequence[int | str] | None = None
    """Who receives. Takes "all", "even", "odd", a range of numbers such as "0..16", or an array of hosts. Default:
    "all"."""
    start: str | None = None
    """When arrivals begin. Takes a time such as "2ms" or "14us". Default: "0s"."""
    window: str | None = None
    """Flows arrive for this long. Either this or `flows`. Takes a time such as "2ms" or "14us"."""
    flows: int | None = None
    """So many flows arrive. Takes a whole number from 1."""


@dataclass(kw_only=True, repr=False)
class Requests(Table):
    """`kind = "requests"`: at random times a random host asks others, which all answer at once: incasts as a load.
    A request is complete with its last flow."""

    KIND: ClassVar[str | None] = "requests"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    fanout: int
    """How many answer a request: other hosts, drawn anew each time. Takes a whole number from 1. Required."""
    size: int | str
    """Size of each answer. Takes a size such as "1MiB" or "64KB", or a whole number of bytes. Required."""
    load: float | str
    """Mean utilisation of the hosts' links by these answers, over 0 and up to 1. Takes a number such as 0.5, or
    "50%". Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    among: str | Sequence[int | str] | None = None
    """Who asks and answers. Takes "all", "even", "odd", a range of numbers such as "0..16", or an array of hosts.
    Default: "all"."""
    start: str | None = None
    """When arrivals begin. Takes a time such as "2ms" or "14us". Default: "0s"."""
    window: str | None = None
    """Requests arrive for this long. Either this or `requests`. Takes a time such as "2ms" or "14us"."""
    requests: int | None = None
    """So many requests arrive. Takes a whole number from 1."""


@dataclass(kw_only=True, repr=False)
class ClosedLoop(Table):
    """`kind = "closed-loop"`: clients read from servers. A client keeps some reads under way, and asks for the next
    one when one has come, so the load follows from how fast reads are. A read is a flow from the server to the
    client. The next one on its connection starts when the client has every byte and has computed, one one-way delay
    later, for its request comes that way; on a kept connection also not before the server has everything
    acknowledged."""

    KIND: ClassVar[str | None] = "closed-loop"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    clients: str | Sequence[int | str]
    """Who reads. Takes "all", "even", "odd", a range of numbers such as "0..16", or an array of hosts. Required."""
    servers: str | Sequence[int | str]
    """From whom: as many clients from each, those next to each other from one. Takes "all", "even", "odd", a range
    of numbers such as "0..16", or an array of hosts. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    active: int | None = None
    """So many of the clients read, the first ones; all if not given. With 0 nothing is read. Takes a whole
    number."""
    outstanding: int | None = None
    """How many reads each client keeps under way, each on a connection of its own. Takes a whole number from 1.
    Default: 1."""
    size: int | str | None = None
    """Size of each read. Either this or `sizes`. Takes a size such as "1MiB" or "64KB", or a whole number of
    bytes."""
    sizes: str | None = None
    """Sizes of reads: the name of a shipped distribution or a file beside the scenario. Takes a string."""
    reads: int | None = None
    """How many reads each client makes in all, its connections in turn; if not given, it reads until the stop.
    Takes a whole number from 1."""
    compute: str | None = None
    """How long a client computes on what has come before it asks for the next (its think time). Takes a time such
    as "2ms" or "14us". Default: "0s"."""
    start: str | None = None
    """When the first read starts. Takes a time such as "2ms" or "14us". Default: "0s"."""
    stagger: str | None = None
    """Time between the first read of one connection and of the next one, those of a client one after the other.
    Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Allreduce(Table):
    """`kind = "allreduce"`: a training job. In each iteration the ranks of a group sum up what each of them has:
    they reduce and scatter it, then gather all of it. A rank takes its steps in turn: it begins one when the step
    before has come from its neighbour and has begun here too, and an iteration when it has computed for a while
    after that; an iteration of a group, from when its last rank begins to its last flow's end, is one collective in
    results."""

    KIND: ClassVar[str | None] = "allreduce"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    size: int | str
    """What each rank has, in bytes. Takes a size such as "1MiB" or "64KB", or a whole number of bytes. Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    groups: Sequence[Sequence[int | str]] | None = None
    """The groups: the ranks of each, in order. Either this or `count`. Takes an array."""
    count: int | None = None
    """So many groups, of which each has as many ranks from each of the first two datacenters: spread over edge
    switches and pods. Takes a whole number from 1."""
    ranks: int | None = None
    """Ranks of a group from each datacenter, with `count`. Takes a whole number from 1. Default: 1."""
    pattern: Literal["ring", "pairs"] | None = None
    """Who sends to whom. Takes "ring" or "pairs". Default: "ring"."""
    size_to: int | str | None = None
    """If given, what each rank has differs from iteration to iteration, evenly from `size` to this, drawn by the
    seed. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    iterations: int | None = None
    """How many there are. Takes a whole number from 1. Default: 1."""
    compute: str | None = None
    """How long a rank computes between two of them. Takes a time such as "2ms" or "14us". Default: "0s"."""
    start: str | None = None
    """When the first one begins. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Collective(Table):
    """`kind = "collective"`: iterations of a collective operation among the ranks of a group. What a rank sends
    waits for what it needs: data that comes, its own last send, and time to compute. An iteration of a group is one
    collective in results."""

    KIND: ClassVar[str | None] = "collective"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    operation: Literal["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "pipeline"]
    """What the ranks do. Takes "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast" or
    "pipeline". Required."""
    size: int | str
    """The data of an iteration: what each rank has to sum up (`all-reduce`, `reduce-scatter`) or to send
    (`all-to-all`), what all gather (`all-gather`), what the first rank has (`broadcast`), or what a stage hands on
    in all micro-batches together (`pipeline`). Takes a size such as "1MiB" or "64KB", or a whole number of bytes.
    Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    algorithm: Literal["ring", "tree", "halving-doubling"] | None = None
    """How. `all-reduce`: `ring` by default, `tree` or `halving-doubling`; `all-gather` and `reduce-scatter`: `ring`
    by default, or `halving-doubling`; `broadcast`: `tree` by default, or `ring`; the others have one way.
    `halving-doubling` needs a power of two of ranks. Takes "ring", "tree" or "halving-doubling"."""
    groups: Sequence[Sequence[int | str]] | None = None
    """The groups: the ranks of each, in order. Either this or `count`. Takes an array."""
    count: int | None = None
    """So many groups, of which each has as many ranks from each of the first two datacenters: spread over edge
    switches and pods. Takes a whole number from 1."""
    ranks: int | None = None
    """Ranks of a group from each datacenter, with `count`. Takes a whole number from 1. Default: 1."""
    microbatches: int | None = None
    """Into how many parts a `pipeline` cuts an iteration. Takes a whole number from 1."""
    iterations: int | None = None
    """How many iterations there are. Takes a whole number from 1. Default: 1."""
    compute: str | None = None
    """How long a rank computes between two iterations; a stage of a `pipeline`: on each micro-batch. Takes a time
    such as "2ms" or "14us". Default: "0s"."""
    start: str | None = None
    """When the first one begins. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Flow(Table):
    """One flow."""

    src: int | str
    """Who sends. Takes a host's number such as 0, or its name such as "dc0.host0". Required."""
    dst: int | str
    """Who receives. Takes a host's number such as 0, or its name such as "dc0.host0". Required."""
    start: str | None = None
    """When it starts; zero if neither this nor `after` is given. With `after`: its earliest start. Takes a time
    such as "2ms" or "14us"."""
    size: int | str | None = None
    """How much; by default more than its links carry until the stop. Takes a size such as "1MiB" or "64KB", or a
    whole number of bytes."""
    after: int | str | Sequence[int | str] | None = None
    """Starts after events of other flows of this list, counted from 0: one, or an array of which it waits for all.
    `3`: flow 3 is complete, its sender has everything acknowledged. `"received:3"`: its receiver has every byte.
    `"begun:3"`: it has started, and has the same sender. News from another host than the sender takes the path's
    one-way delay. `"received:3+10us"`: the sender computes for so long on that event alone, beside what else it
    does. Takes a flow's number such as 3, an event such as "received:3", or an array such as [1, 3]."""
    compute: str | None = None
    """How long the sender computes first: from `start`, or from the last of `after`; no time if not given. Takes a
    time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class List(Table):
    """`kind = "list"`: flows one by one, from a file or from here."""

    KIND: ClassVar[str | None] = "list"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    file: str | None = None
    """A CSV file beside the scenario: `start,src,dst,bytes[,after][,compute]`. A cell of `bytes` may be empty.
    Several events of `after` have blanks between them. Either this or `flows`. Takes a string."""
    flows: Sequence[Flow] | None = None
    """The flows. Takes an array."""
    start: str | None = None
    """Added to every start. Takes a time such as "2ms" or "14us". Default: "0s"."""

    CANDIDATES: ClassVar[Candidates] = {"flows": lambda: (Flow,)}


@dataclass(kw_only=True, repr=False)
class Import(Table):
    """`kind = "import"`: traffic of another program, on this scenario's network: the flows that [`narrows
    import`](import.md) makes of the same file. What is assumed and left out is a note of `check` and of results."""

    KIND: ClassVar[str | None] = "import"
    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    format: Literal["goal", "chakra", "msccl", "simai", "flows", "netflow", "pcap"]
    """What the file is. Takes "goal", "chakra", "msccl", "simai", "flows", "netflow" or "pcap". Required."""
    name: str | None = None
    """Its name in results. Takes a string."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether these flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send, so its window and what it knows of round
    trips and paths are there already; if there is none, it opens one. Laws that send by credits open one for each
    flow. Takes "new" or "kept". Default: "new"."""
    file: str | None = None
    """The file, beside the scenario. Either this or `files`. Takes a string."""
    files: Sequence[str] | None = None
    """The files of `chakra`, one for each rank; in the order of the numbers in their names, if these are 0, 1 and
    so on. Takes an array."""
    groups: str | None = None
    """`chakra`: a file of the groups of ranks that collectives name, as JSON. Takes a string."""
    placement: Literal["block", "cyclic", "packed"] | None = None
    """On which hosts ranks are, and senders and receivers unless all have hosts' names or numbers. `block`: even
    parts of them, in order, in each datacenter. `cyclic`: each in the datacenter after the last one's. `packed`:
    rank 0 on host 0, rank 1 on host 1, and so on. Takes "block", "cyclic" or "packed". Default: "block"."""
    eager: int | str | None = None
    """`goal`: sends up to this size have ended once they have begun, others once they are acknowledged; LogGOPSim's
    S, 65535 B if not given. Takes a size such as "1MiB" or "64KB", or a whole number of bytes."""
    size: int | str | None = None
    """`msccl`: what the algorithm works on, in all its chunks together. Takes a size such as "1MiB" or "64KB", or a
    whole number of bytes."""
    passes: int | None = None
    """`simai`: how many passes there are, one after the other; one if not given. Takes a whole number from 1."""
    ranks: int | None = None
    """`simai`: how many ranks there are, for a workload whose first line does not say it (`all_gpus`). Takes a
    whole number from 1."""
    start: str | None = None
    """Added to every start. Takes a time such as "2ms" or "14us". Default: "0s"."""


@dataclass(kw_only=True, repr=False)
class Model(Table):
    """What is trained."""

    params: int
    """Its parameters, all experts included. Takes a whole number. Required."""
    layers: int
    """Its layers: a multiple of `pipeline`. Takes a whole number from 1. Required."""
    hidden: int
    """Numbers of a token between layers: a multiple of `tensor`. Takes a whole number from 1. Required."""
    sequence: int
    """Tokens of a sequence. Takes a whole number from 1. Required."""
    vocabulary: int | None = None
    """Tokens that there are. If given, `vocabulary` x `hidden` of the parameters are the embedding, which the first
    and the last stage both hold and keep alike. Takes a whole number from 1."""
    experts: int | None = None
    """Experts of each layer, a multiple of `expert`. If given, every layer is a mixture of experts. Takes a whole
    number from 1."""
    top_k: int | None = None
    """To how many of them a token goes. Takes a whole number from 1. Default: 1."""
    expert_params: int | None = None
    """Parameters of all experts of all layers together; if not given, 8 x `hidden`^2 x `experts` x `layers`. Takes
    a whole number."""
    bytes_per_param: int | None = None
    """Bytes of a parameter, of a gradient and of a number between layers. Takes a whole number from 1 to 255.
    Default: 2."""


@dataclass(kw_only=True, repr=False)
class Parallel(Table):
    """How it is cut."""

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
    """How long ranks compute. Either this or `flops`."""

    forward: str
    """Forward. Takes a time such as "2ms" or "14us". Required."""
    backward: str
    """Backward. Takes a time such as "2ms" or "14us". Required."""


@dataclass(kw_only=True, repr=False)
class Collectives(Table):
    """How ranks sum up."""

    tensor: Literal["ring", "tree", "halving-doubling"] | None = None
    """Activations, in groups of `tensor` ranks. Takes "ring", "tree" or "halving-doubling". Default: "ring"."""
    data: Literal["ring", "tree", "halving-doubling"] | None = None
    """Gradients, in groups of `data` ranks. Takes "ring", "tree" or "halving-doubling". Default: "ring"."""


@dataclass(kw_only=True, repr=False)
class Job(Table):
    """`[[job]]`: a training job. Its flows wait for each other and for computing, iteration after iteration."""

    KEYS: ClassVar[dict[str, str]] = {"class_": "class"}

    name: str
    """Its name in results, which no other job and no traffic has. Takes a string. Required."""
    model: Model
    """What is trained. Takes a table. Required."""
    place: str | int | Sequence[str | int]
    """Where: as many hosts as there are ranks, or tensor groups with `ranks_per_host`. Ranks fill hosts in this
    order, the ranks of a tensor group next to each other. Takes hosts such as "all", "0..16" or "dc0.0..8", or an
    array of such parts. Required."""
    micro_batches: int
    """Micro-batches that each copy of the model takes in an iteration. Takes a whole number from 1. Required."""
    class_: int | None = None
    """The class of its packets at switches that share their buffer, 1 to 7. Takes a whole number from 1 to 7.
    Default: 1."""
    on_ramp: bool | None = None
    """Whether its flows are held by On-Ramp where `[host]` has it. Takes true or false. Default: true."""
    connections: Literal["new", "kept"] | None = None
    """`new`: each flow opens a connection and closes it. `kept`: a flow goes on a connection that an earlier one of
    the same two hosts, class and law left and that has nothing to send; if there is none, it opens one. Laws that
    send by credits open one for each flow. Takes "new" or "kept". Default: "new"."""
    parallel: Parallel | None = None
    """How it is cut. Takes a table."""
    shuffle: bool | None = None
    """Draws the order of the hosts of `place` by `seed`. Takes true or false. Default: false."""
    seed: int | None = None
    """What is drawn depends on it; if not given, on the scenario's `seed` and the job's number. Takes a whole
    number."""
    outermost: Literal["pipeline", "data"] | None = None
    """Which groups lie farthest apart in the order of hosts. Takes "pipeline" or "data". Default: "pipeline"."""
    ranks_per_host: int | None = None
    """1, or `tensor`: then a tensor group is one host, and its all-reduces are no flows. Takes a whole number from
    1. Default: 1."""
    local_rate: str | None = None
    """The rate between two ranks of a host, in each direction, with `ranks_per_host` over 1. Takes a rate such as
    "100Gbps". Default: "2.4Tbps"."""
    batch: int | None = None
    """Sequences of a micro-batch. Takes a whole number from 1. Default: 1."""
    compute: ComputeTimes | None = None
    """How long ranks compute. Either this or `flops`. Takes a table."""
    flops: str | None = None
    """How fast each rank computes. Takes a speed such as "400TFLOPS"."""
    collectives: Collectives | None = None
    """How ranks sum up. Takes a table."""
    schedule: Literal["1f1b", "gpipe"] | None = None
    """The order of micro-batches in a stage. Takes "1f1b" or "gpipe". Default: "1f1b"."""
    iterations: int | None = None
    """How many iterations there are. Takes a whole number from 1. Default: 1."""
    start: str | None = None
    """When it begins to compute. Takes a time such as "2ms" or "14us". Default: "0s"."""

    CANDIDATES: ClassVar[Candidates] = {"model": lambda: (Model,), "parallel": lambda: (Parallel,), "compute": lambda: (ComputeTimes,), "collectives": lambda: (Collectives,)}


@dataclass(kw_only=True, repr=False)
class Failure(Table):
    """`[[failure]]`: links that are down for some time. What is on its way over such a link or is sent over it is
    lost; ports and routes know nothing of it, but for `reroute`."""

    ports: Sequence[str]
    """Which links, in one direction: named as in results, such as `dc0.border>dc1.border#3`, or by class:
    `class:inter`. Takes an array. Required."""
    count: int | None = None
    """Only so many of them, drawn by the seed. Takes a whole number from 1."""
    both: bool | None = None
    """Whether the way back over the same cables is down, too. Takes true or false. Default: true."""
    at: str | None = None
    """When they go down. Takes a time such as "2ms" or "14us". Default: "0s"."""
    until: str | None = None
    """When they come up again; never if not given. Takes a time such as "2ms" or "14us"."""
    every: str | None = None
    """They go down again each time this has passed: flapping. Takes a time such as "2ms" or "14us"."""
    reroute: str | None = None
    """After this time routes avoid a link that is down, and after this time they take it again. If not given,
    routes never learn of it. Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class Series(Table):
    """What is sampled."""

    interval: str | None = None
    """Time between samples; zero samples nothing. Takes a time such as "2ms" or "14us". Default: "0s"."""
    ports: Sequence[str] | None = None
    """Ports whose queues are sampled, and of which each pause is noted: a link such as `dc0.border>dc1.border#0`
    (without `#`: all parallel ones), `class:inter` for all of a class, `receiver` for the switch ports towards the
    receivers of incasts. Takes an array."""
    switches: Sequence[str] | None = None
    """Switches whose shared buffer is sampled: a name such as `dc1.border`, `tier:border` for all of a tier
    (`edge`, `aggregation`, `core`, `border`, `relay`), or `all`. Takes an array."""
    flows: Literal["all", "none"] | int | Sequence[int] | None = None
    """Flows whose rate and window are sampled. Takes "all", "none", how many of the first, or an array of flow
    numbers. Default: "none"."""
    predictors: Literal["all", "none"] | int | Sequence[int] | None = None
    """Flows of whose packets the one-way delay is compared with what their senders had heard when they left: the
    last one-way delay that On-Ramp measured, and the last round trip. Needs `[switch]` and no interval; not where
    ports report themselves (INT). Takes "all", "none", how many of the first, or an array of flow numbers. Default:
    "none"."""
    fairness_window: str | None = None
    """Over how much time Jain's index compares what sampled flows got: a whole number of intervals, at least one.
    If not given, the longest base round trip. Takes a time such as "2ms" or "14us"."""


@dataclass(kw_only=True, repr=False)
class Range(Table):
    """The values of a key of a sample: all from one number to another, both of them included. They are of the kind
    of the ends (a whole number, one with a point, one with a unit) and have four digits, more where the range is
    narrow; whole numbers have all."""

    KEYS: ClassVar[dict[str, str]] = {"from_": "from"}

    from_: Any
    """The least. Takes any value. Required."""
    to: Any
    """The greatest. Takes any value. Required."""
    spread: Literal["linear", "log"] | None = None
    """What is even about it. Takes "linear" or "log". Default: "linear"."""


@dataclass(kw_only=True, repr=False)
class Sample(Table):
    """Points that are drawn, at random or quasi-random."""

    points: int
    """How many. Points that turn out alike are run once. Takes a whole number from 1. Required."""
    keys: dict[str, Range | Sequence[Any]]
    """Keys as in `[grid]`, and a range or a list of values for each. Takes a table of named entries. Required."""
    method: Literal["sobol", "random"] | None = None
    """How they are drawn. Takes "sobol" or "random". Default: "sobol"."""
    seed: int | None = None
    """Another one gives other points. Takes a whole number. Default: 1."""

    CANDIDATES: ClassVar[Candidates] = {"keys": lambda: (Range,)}


@dataclass(kw_only=True, repr=False)
class Variant(Table):
    """More runs beside the grid's: the same with some keys changed."""

    label: str | None = None
    """What is other, in words. Takes a string. Default: ""."""
    set: dict[str, Any] | None = None
    """Keys, with dots and array indices as for `--set`, and their values. Takes a table of named entries."""
    grid: dict[str, Sequence[Any]] | None = None
    """The values that keys of `[grid]` take in it: by default each takes its first one, and with `[]` it is left
    alone. Takes a table of named entries."""
    schemes: Sequence[str] | None = None
    """Only these schemes. By default all. Takes an array."""


@dataclass(kw_only=True, repr=False)
class Scale(Table):
    """One set of overrides."""

    note: str | None = None
    """What was scaled, in words. Takes a string. Default: ""."""
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
    """What is compared: each scheme is a run. At least one. Takes a table of named entries. Required."""
    schema: int | None = None
    """The version of this format: 1. Takes a whole number. Default: 1."""
    extends: str | None = None
    """A scenario beside this one, which this one is with changes: tables are laid over its own key by key, all else
    replaces what it has, and so does a table of another `kind`. `name` is this file's own. Takes a string."""
    without: Sequence[str] | None = None
    """Keys of the extended scenario that this one does not have, with dots: `["schemes.cubic", "grid"]`. Takes an
    array."""
    title: str | None = None
    """What it shows, in a line. Takes a string. Default: ""."""
    description: str | None = None
    """More about it. Takes a string. Default: ""."""
    seed: int | None = None
    """Everything random depends on this number. Takes a whole number. Default: 1."""
    stop: str | None = None
    """The simulated time at which the run ends even if flows are left. Takes a time such as "2ms" or "14us".
    Default: "10s"."""
    clock: Clock | None = None
    """How simulated time is counted; without it, exactly. Takes a table."""
    port: Port | None = None
    """The ports of switches. Takes a table."""
    switch: Switch | None = None
    """Switches whose ports share one buffer; without it every port has a queue of its own. Takes a table."""
    host: Host | None = None
    """The hosts. Takes a table."""
    laws: dict[str, BroughtLaw] | None = None
    """Laws that the calling program supplies (Python), by names that begin with a capital letter. Takes a table of
    named entries."""
    traffic: Sequence[Incast | Long | Permutation | Poisson | Requests | ClosedLoop | Allreduce | Collective | List | Import] | None = None
    """What is sent: each entry makes flows, all in one run. At least one, or a job. Takes an array."""
    job: Sequence[Job] | None = None
    """Models that are trained, all in one run, beside what is sent. Takes an array."""
    failure: Sequence[Failure] | None = None
    """Links that fail. Takes an array."""
    series: Series | None = None
    """What is sampled. Takes a table."""
    sizes: dict[str, str] | None = None
    """Bins of the summary by name: flows of sizes from a lower end up to, but without, an upper end, of all flows,
    of those inside or between datacenters, or of the traffic of a name. Takes a table of named entries."""
    grid: dict[str, Sequence[Any]] | None = None
    """Keys and the values that they take in turn: every combination is a run of every scheme. Takes a table of
    named entries."""
    points: Sequence[dict[str, Any]] | None = None
    """Points one by one, each with a value for the same keys: every one is a run of every scheme, at each point of
    `[grid]`. Takes an array."""
    sample: Sample | None = None
    """Points that are drawn, at random or quasi-random. Takes a table."""
    variants: dict[str, Variant] | None = None
    """More runs of every scheme, each with some keys changed. Takes a table of named entries."""
    scale: dict[str, Scale] | None = None
    """Sets of overrides, chosen by `--scale`. Of an experiment (a file with `[paper]`, claims or tables) the file
    as it stands is the scale `paper`. Takes a table of named entries."""
    paper: Any = None
    """What a paper says of this experiment. Takes any value."""
    claim: Sequence[Any] | None = None
    """Claims to judge. Takes an array."""
    cause: Sequence[Cause] | None = None
    """Suspected causes of what claims do not reproduce. Takes an array."""
    table: Sequence[Any] | None = None
    """Tables of what runs measured, averaged over seeds. Takes an array."""

    CANDIDATES: ClassVar[Candidates] = {"topology": lambda: (FatTrees, Clos, Dumbbell, SingleSwitch, CustomTopology,), "schemes": lambda: (Scheme,), "clock": lambda: (Clock,), "port": lambda: (Port,), "switch": lambda: (Switch,), "host": lambda: (Host,), "laws": lambda: (BroughtLaw,), "traffic": lambda: (Incast, Long, Permutation, Poisson, Requests, ClosedLoop, Allreduce, Collective, List, Import,), "job": lambda: (Job,), "failure": lambda: (Failure,), "series": lambda: (Series,), "sample": lambda: (Sample,), "variants": lambda: (Variant,), "scale": lambda: (Scale,), "cause": lambda: (Cause,)}
