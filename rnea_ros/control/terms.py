"""The last command split into named terms that add up to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.controller import Controller, Drive
from rnea_ros.control.supervisor import Mode

Array = NDArray[np.float64]

TERMS = (
    "gravity",
    "coriolis",
    "inertia",
    "friction",
    "payload",
    "wrench",
    "hardware",
    "feedback",
    "gate",
    "command",
)


def command_terms(controller: Controller) -> dict[str, Array]:
    """Terms of the last command by name, (n,) Nm each: all but `command` add up to `command`.

    gravity, coriolis, inertia (rotor inertia included), friction, payload (all that it adds to the three) and wrench are
    the model's; hardware is the share left to the robot, with a minus; feedback is what depends on errors or damping;
    gate is what limits changed.
    """
    n = controller.robot.n
    zero = np.zeros(n)
    terms = {name: zero for name in TERMS}
    terms["command"] = controller.gate.previous.copy()
    dynamics, laws, settings = controller.arm.dynamics, controller.laws, controller.settings
    q, qd, ahead = controller.reader.position, controller.reader.velocity, controller.ahead
    terms["feedback"] = laws.feedback.copy()
    terms["friction"] = laws.friction_torque.copy()
    place, full, computed = q, False, settings["law"] == "computed_torque"
    if controller.blind or controller.drive is not Drive.LAW:
        if controller.blind or controller.drive is Drive.RAMP:
            terms["feedback"] = terms["friction"] = zero
        parts = dynamics.terms(q, zero, zero)
    elif computed:
        full = True
        parts = dynamics.terms(q, qd, ahead[2], controller.wrench)
    else:
        at_reference = settings["gravity_at"] == "reference"
        place = ahead[0] if at_reference else q
        feedforward = settings["feedforward"] if controller.supervisor.mode is Mode.TRACKING else "full"
        full = feedforward == "full"
        parts = dynamics.terms(ahead[0], ahead[1], ahead[2], controller.wrench) if full else dynamics.terms(place, zero, zero)
        if feedforward == "none":
            terms["gate"] = terms["command"] - terms["feedback"]
            terms["friction"] = zero
            return terms
        if not full:
            terms["friction"] = zero
        elif not at_reference:
            here, there = dynamics.terms(q, zero, zero), dynamics.terms(ahead[0], zero, zero)
            terms["gravity"] = here.gravity
            terms["payload"] = parts.payload - there.payload + here.payload
    if "gravity" in terms and terms["gravity"] is zero:
        terms["gravity"] = parts.gravity
        terms["payload"] = parts.payload
    if full:
        terms["coriolis"], terms["inertia"] = parts.coriolis, parts.inertia + parts.armature
        terms["wrench"] = parts.wrench
    terms["hardware"] = -controller.arm.share(place)
    others = sum((value for name, value in terms.items() if name not in ("gate", "command")), zero)
    terms["gate"] = terms["command"] - others
    return terms
