"""Laws in Python that tests run, with their equations from the standards."""

from __future__ import annotations

import narrows as nw


class Reno(nw.Law):
    """One packet more a round trip, half the window at a loss (RFC 5681, RFC 6582)."""

    beta: float = 0.5

    def __init__(self, path: nw.PathInfo) -> None:
        """Slow start from 10 packets."""
        self.mss = path.mss
        self.window = 10 * path.mss
        self.threshold = 2**64
        self.carry = 0
        self.answered = 0
        self.collapsed = 0

    def on_ack(self, ack: nw.Ack) -> None:
        """Slow start (section 3.1), then equation 3, counting bytes."""
        if ack.app_limited:
            return
        used = min(ack.acked, max(self.threshold - self.window, 0))
        self.window = min(self.window + used, 2**40)
        share = self.mss * (ack.acked - used) + self.carry
        self.carry = share % self.window
        self.window = min(self.window + share // self.window, 2**40)
        self.cwnd = self.window

    def lower(self) -> None:
        """Equation 4."""
        self.threshold = max(int(self.window * self.beta), 2 * self.mss)

    def become(self, window: int) -> None:
        """Take another window."""
        self.window = max(window, self.mss)
        self.carry = 0
        self.cwnd = self.window

    def on_loss(self, loss: nw.Loss) -> None:
        """Half, once for all losses of one flight."""
        if loss.sent_at >= self.answered:
            self.answered = loss.now
            self.lower()
            self.become(min(self.threshold, self.window))

    def on_timeout(self, timeout: nw.Timeout) -> None:
        """One packet (section 3.1)."""
        first = timeout.sent_at >= self.answered
        if first:
            self.answered = timeout.now
        if timeout.sent_at < self.collapsed:
            return
        self.collapsed = timeout.now
        if first:
            self.lower()
        self.become(self.mss)


class Dctcp(Reno):
    """A cut by half the share of marked bytes, a smoothed one (RFC 8257)."""

    gain: float = 0.0625

    def __init__(self, path: nw.PathInfo) -> None:
        """As Reno, and `alpha` is 1."""
        super().__init__(path)
        self.alpha = 1.0
        self.round_ends = 0
        self.acked = self.marked = 0

    def on_ack(self, ack: nw.Ack) -> None:
        """Count marks, and cut once a round trip."""
        self.acked += ack.acked
        self.marked += ack.marked
        if ack.delivered_at_send < self.round_ends:
            super().on_ack(ack)
            return
        share = self.marked / self.acked if self.acked else 0.0
        self.alpha += self.gain * (share - self.alpha)
        if self.marked:
            self.become(int(self.window * (1 - self.alpha / 2)))
            self.threshold = self.window
        else:
            super().on_ack(ack)
        self.round_ends = ack.delivered
        self.acked = self.marked = 0


class Fixed(nw.Law):
    """A constant window."""

    size_bytes: int = 100_000

    def __init__(self, path: nw.PathInfo) -> None:
        """Take the window."""
        self.cwnd = self.size_bytes

    def on_ack(self, ack: nw.Ack) -> None:
        """Nothing."""

    def on_loss(self, loss: nw.Loss) -> None:
        """Nothing."""

    def on_timeout(self, timeout: nw.Timeout) -> None:
        """Nothing."""


class Kinds(Dctcp):
    """Parameters of all kinds."""

    delay_ns: int = 25_000
    hold_ns: int = 0
    spare_bytes: int = 0
    limit_bps: int = 10_000_000_000
    count: int = 1_234_567
    on: bool = True


class Bare(nw.Law):  # noqa: D101
    def on_ack(self, ack: nw.Ack) -> None:
        pass

    def on_loss(self, loss: nw.Loss) -> None:
        pass

    def on_timeout(self, timeout: nw.Timeout) -> None:
        pass


class Wild(Fixed):
    """Does what a test wants, after some acknowledgements."""

    kind: int = 0
    after: int = 100

    def __init__(self, path: nw.PathInfo) -> None:
        """Count from 0."""
        super().__init__(path)
        self.heard = 0

    def on_ack(self, ack: nw.Ack) -> None:
        """Break something."""
        self.heard += 1
        if self.heard != self.after:
            return
        match self.kind:
            case 0:
                self.cwnd = 1 / (self.heard - self.after)
            case 1:
                self.cwnd = float("nan")
            case 2:
                self.cwnd = -5
            case 3:
                self.cwnd = "wide"  # type: ignore[assignment]
            case 4:
                self.cwnd = 2**41
            case 5:
                self.pacing_rate = 10
            case 6:
                self.cwnd = True
            case 7:
                self.pacing_rate = float("inf")
            case _:
                while True:
                    pass
