#!/usr/bin/env python3
"""When erasure coding pays: completion times of one message, for the table in `docs/src/codes.md`.

One sender, one link of 200 Mb/s, a round trip of 40 ms, packets of 1,400 bytes, each lost by its own chance.
Acknowledgements are not lost and say at once what arrived. What must be sent again goes before what is new. Without
coding that is every lost packet (ideal selective repeat). With it, a block of k + m packets is done when any k of its
packets have arrived; if it is not when all that was sent of it has been answered, as many packets as it lacks are sent
again. Where only the end is coded, that is the last bandwidth-delay product; the rest is sent as without coding. A
message is complete when the sender knows it.
"""

import argparse
import heapq
import random
from collections import deque

RATE_BPS = 200_000_000
RTT_S = 0.040
PACKET_BYTES = 1_400
SERVICE_S = PACKET_BYTES * 8 / RATE_BPS
BDP_PACKETS = round(RTT_S / SERVICE_S)
# Data packets, parity packets, and how many of a message's last packets are coded.
CODES = ((1, 0, 0), (8, 2, None), (32, 4, None), (8, 2, BDP_PACKETS))


def completion_s(packets: int, loss: float, code: tuple[int, int, int | None], draw: random.Random) -> float:
    """The time from the first byte sent to the last acknowledgement, in seconds."""
    data, parity, last = code
    plain = 0 if last is None else max(0, packets - last)
    lacks = [1] * plain + [min(data, packets - first) for first in range(plain, packets, data)]
    in_flight = [count + parity * (block >= plain) for block, count in enumerate(lacks)]
    fresh = deque(block for block, count in enumerate(in_flight) for _ in range(count))
    again: deque[int] = deque()
    answers: list[tuple[float, int, bool]] = []
    free_s = done_s = 0.0
    left = len(lacks)
    while left:
        if (again or fresh) and (not answers or free_s <= answers[0][0]):
            block = again.popleft() if again else fresh.popleft()
            free_s += SERVICE_S
            heapq.heappush(answers, (free_s + RTT_S, block, draw.random() >= loss))
            continue
        now_s, block, arrived = heapq.heappop(answers)
        free_s = max(free_s, now_s)
        in_flight[block] -= 1
        if lacks[block] <= 0:
            continue
        lacks[block] -= arrived
        if lacks[block] == 0:
            left -= 1
            done_s = now_s
        elif in_flight[block] == 0:
            in_flight[block] = lacks[block]
            again.extend([block] * lacks[block])
    return done_s


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--messages", type=int, default=1_000, help="messages of each kind (default: 1000)")
    messages = arguments.parse_args().messages
    print("| message | loss | none | (8,2) | (32,4) | (8,2) at the end |\n|---|---|---|---|---|---|")
    for size_bytes in (100_000, 1_000_000, 10_000_000):
        for loss in (0.001, 0.01):
            cells = []
            for code in CODES:
                draw = random.Random(f"{size_bytes} {loss} {code}")
                packets = -(-size_bytes // PACKET_BYTES)
                times = sorted(completion_s(packets, loss, code, draw) for _ in range(messages))
                median, tail = times[messages // 2], times[messages * 99 // 100]
                cells.append(f"{median * 1e3:.0f} / {tail * 1e3:.0f}")
            print(f"| {size_bytes / 1e6:g} MB | {loss:.1%} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
