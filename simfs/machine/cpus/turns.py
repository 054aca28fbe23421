"""User and kernel time in turns, as one segment: a program whose page faults and calls are spread over its user time.

Where a turn begins nothing happens, unless somebody waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from simfs.machine.time import Time


@dataclass
class Turns:
    """A turn, and how much of the present one is over."""

    user: Time
    kernel: Time
    done: Time = 0
    """Own time used in the present turn."""

    @property
    def _length(self) -> Time:
        return max(self.user + self.kernel, 1)

    def _kernel_in(self, own: Time) -> Time:
        """How much of the first `own` time since a turn began is the kernel's."""
        whole, rest = divmod(own, self._length)
        return whole * self.kernel + max(rest - self.user, 0)

    def consume(self, own: Time) -> Time:
        """Use up `own` time; return how much of it was the kernel's."""
        kernel = self._kernel_in(self.done + own) - self._kernel_in(self.done)
        self.done = (self.done + own) % self._length
        return kernel

    def left_of_kernel(self, own: Time) -> Time:
        """How long it is, after another `own` time, until the kernel's part of the turn is over; 0 before it begins."""
        done = (self.done + own) % self._length
        return 0 if done == 0 or done < self.user else self._length - done

    def stretch(self, factor: float) -> None:
        """Make all time so much longer from now on."""
        self.user, self.kernel = int(self.user * factor), int(self.kernel * factor)
        self.done = int(self.done * factor)
