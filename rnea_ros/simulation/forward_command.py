"""What ros2_control's forward_command_controller does with the messages on its `~/commands` topic."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


class ForwardCommand:
    """One slot that the newest message takes, and an interface that holds the last command for ever.

    Read off ros2_controllers (Jazzy and later): a message with a non-finite value is dropped whole; an empty one is
    ignored; one of another length makes `update` fail, and the controller manager deactivates the controller, which
    leaves the last torque on the interface until someone switches it back. Before the first command the interface has
    no value. What arrives while inactive is not replayed.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.active = True
        self.effort: Array | None = None  # (n,) on the interface, Nm or N
        self.reason = ""  # why it was deactivated
        self._slot: Array | None = None

    def receive(self, values: ArrayLike) -> None:
        """A message arrives."""
        if not self.active:
            return
        message = np.array(values, dtype=np.float64)
        if np.isfinite(message).all():
            self._slot = message

    def update(self) -> None:
        """One cycle of the controller manager."""
        message, self._slot = self._slot, None
        if message is None or message.size == 0:
            return
        if message.size != self.size:
            self.active = False
            self.reason = f"command has {message.size} values for {self.size} joints"
            return
        self.effort = message

    def activate(self) -> None:
        """Switched back by hand; the last torque stays on the interface."""
        self.active = True
        self.reason = ""
        self._slot = None
