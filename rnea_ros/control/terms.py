"""The last command split into named terms that add up to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.drive import Drive

Array = NDArray[np.float64]

MODEL_TERMS = ("gravity", "coriolis", "inertia", "friction", "payload", "wrench", "hardware")
TERMS = (*MODEL_TERMS, "feedback", "gate", "command")


def command_terms(drive: Drive) -> dict[str, Array]:
    """Terms of the last command by name, (n,) Nm each: all but `command` add up to `command`.

    gravity, coriolis, inertia (rotor inertia included), friction, payload (all that it adds to the three) and wrench
    are the model's; hardware is the share left to the robot, with a minus; feedback is what depends on errors or
    damping; gate is what limits changed.
    """
    laws, dynamics, wrench = drive.laws, drive.arm.dynamics, drive.wrench
    zero = np.zeros(drive.arm.robot.n)
    terms = dict.fromkeys(TERMS, zero)
    terms["feedback"], terms["friction"] = laws.feedback.copy(), laws.friction_torque.copy()
    if laws.motion is not None:
        moving, still = dynamics.terms(*laws.motion, wrench), dynamics.terms(laws.motion[0], zero, zero)
        terms["coriolis"], terms["inertia"] = moving.coriolis, moving.inertia + moving.armature
        terms["payload"] = moving.payload - still.payload
        terms["wrench"] = moving.wrench
    if laws.gravity_place is not None:
        held = dynamics.terms(laws.gravity_place, zero, zero)
        terms["gravity"] = held.gravity
        terms["payload"] = terms["payload"] + held.payload
        terms["hardware"] = -drive.arm.share(laws.gravity_place)
    terms["command"] = drive.gate.previous.copy()
    made_of = sum((terms[name] for name in MODEL_TERMS), terms["feedback"])
    terms["gate"] = terms["command"] - made_of
    return terms
