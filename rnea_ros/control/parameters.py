"""Every parameter of the controller, declared once: name, type, default, bounds, unit, one sentence.

The node declares its ROS parameters from this list, `settings.py` builds a validated whole from it, and
`python -m rnea_ros.control.parameters` prints the page of the documentation.
"""

# ruff: noqa: E501 - one parameter, one line

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rnea_ros.control.errors import ParameterError

Kind = Literal["bool", "integer", "double", "string", "double_array", "string_array"]


@dataclass(frozen=True)
class Parameter:
    """One declared parameter.

    `per_joint` arrays have one value per joint in controller order, or a single value for all of them; empty means
    what `when_empty` says. `live` parameters change while the controller is active.
    """

    name: str
    kind: Kind
    default: Any
    unit: str
    sentence: str
    lower: float = -math.inf
    upper: float = math.inf
    choices: tuple[str, ...] = ()
    per_joint: bool = False
    when_empty: str = ""
    live: bool = False

    def coerced(self, value: Any) -> Any:
        """`value` in this parameter's type (whole numbers serve as doubles), or ParameterError."""
        if self.kind == "bool":
            if isinstance(value, bool):
                return value
        elif self.kind == "string":
            if isinstance(value, str):
                return self._chosen(value)
        elif self.kind == "integer":
            if isinstance(value, int) and not isinstance(value, bool):
                return int(self._bounded(value))
        elif self.kind == "double":
            if _is_number(value):
                return self._bounded(float(value))
        elif not isinstance(value, (str, bytes, bool)) and isinstance(value, Iterable):
            items = list(value)
            if self.kind == "string_array" and all(isinstance(item, str) for item in items):
                return tuple(items)
            if self.kind == "double_array" and all(_is_number(item) for item in items):
                return tuple(self._bounded(float(item)) for item in items)
        raise ParameterError(f"parameter {self.name!r} is {value!r}, expected {self.kind.replace('_', ' ')}")

    def _chosen(self, value: str) -> str:
        if self.choices and value not in self.choices:
            allowed = ", ".join(repr(choice) for choice in self.choices if choice)
            raise ParameterError(f"parameter {self.name!r} is {value!r}, expected one of {allowed}")
        return value

    def _bounded(self, value: float) -> float:
        if not math.isfinite(value) or not self.lower <= value <= self.upper:
            raise ParameterError(f"parameter {self.name!r} is {value:g}, expected {self.bounds()} {self.unit}".rstrip())
        return value

    def bounds(self) -> str:
        if math.isfinite(self.lower) and math.isfinite(self.upper):
            return f"{self.lower:g} to {self.upper:g}"
        if math.isfinite(self.lower):
            return f"at least {self.lower:g}"
        if math.isfinite(self.upper):
            return f"at most {self.upper:g}"
        return "finite"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _gain(name: str, unit: str, sentence: str, when_empty: str, **more: Any) -> Parameter:
    return Parameter(
        name, "double_array", (), unit, sentence, lower=0.0, per_joint=True, when_empty=when_empty, live=True, **more
    )


SELF, HARDWARE, RESIDUAL = "self", "hardware", "residual"
REQUIRED = "configure proposes values and refuses"

PARAMETERS: tuple[Parameter, ...] = (
    # the robot
    Parameter("robot_description", "string", "", "", "URDF as XML; empty: the file, else the latched topic `robot_description`."),
    Parameter("robot_description_file", "string", "", "", "Path of a URDF or xacro file, read where `robot_description` is empty; a bare name is looked up in the package's `urdf` folder."),
    Parameter("joints", "string_array", (), "", "Names and order of the joints to control, as forward_command_controller has them; empty: all movable joints."),
    Parameter("locked_joints", "string_array", (), "", "Joints to lock; every other joint that is not controlled is locked at zero."),
    Parameter("locked_positions", "double_array", (), "rad or m", "Where the locked joints stand, one value for each of `locked_joints`."),
    Parameter("tip", "string", "", "", "The link that carries payload and wrench; empty: the end of a robot that has one."),
    Parameter("gravity", "double_array", (0.0, 0.0, -9.81), "m/s²", "Gravity in the base frame of the description; tilt it for a tilted mount.", lower=-100.0, upper=100.0),
    # who does what
    Parameter("gravity_source", "string", "", "", "Who carries gravity: `self` (our command carries all of it), `hardware` (the robot adds it, ours leaves it out), `residual` (ours is true gravity minus what the robot believes). Required, no default.", choices=("", SELF, HARDWARE, RESIDUAL)),
    Parameter("hardware_gravity", "double_array", (0.0, 0.0, -9.81), "m/s²", "Gravity that the robot believes in, in the base frame; read with `residual`.", lower=-100.0, upper=100.0),
    Parameter("hardware_friction", "bool", False, "", "The robot compensates joint friction itself: our friction term is left out."),
    Parameter("effort_state", "string", "ignored", "", "What the measured effort means: `ignored` (missing, or a motor current), `total` (joint torque with gravity), `command` (torque without the robot's own share).", choices=("ignored", "total", "command")),
    # the law
    Parameter("law", "string", "feedforward_pd", "", "Control law of hold and tracking.", choices=("feedforward_pd", "computed_torque"), live=True),
    _gain("feedforward_pd.kp", "Nm/rad", "Stiffness of `feedforward_pd`.", REQUIRED),
    _gain("feedforward_pd.kd", "Nms/rad", "Damping of `feedforward_pd`.", REQUIRED),
    _gain("feedforward_pd.ki", "Nm/(rad s)", "Integral gain of `feedforward_pd`.", "no integral"),
    _gain("feedforward_pd.integral_limit", "Nm", "Bound of the integral torque.", "a tenth of the effort limit"),
    _gain("computed_torque.kp", "1/s²", "Stiffness of `computed_torque`.", REQUIRED),
    _gain("computed_torque.kd", "1/s", "Damping of `computed_torque`.", REQUIRED),
    _gain("gravity_compensation.damping", "Nms/rad", "Damping D of the floating arm.", "a tenth of `braking.damping`"),
    Parameter("feedforward", "string", "full", "", "Model torque while tracking with `feedforward_pd`: `full`, `gravity` alone, or `none`; hold always has gravity.", choices=("full", "gravity", "none"), live=True),
    Parameter("gravity_at", "string", "reference", "", "Where `feedforward_pd` evaluates gravity: `reference` or `measured`.", choices=("reference", "measured"), live=True),
    Parameter("friction_feedforward", "bool", False, "", "Add the model's joint friction at the reference velocity; never while floating.", live=True),
    Parameter("braking.damping", "double_array", (), "Nms/rad", "Damping that stops the arm in a fault.", lower=0.0, per_joint=True, when_empty="0.3 × effective inertia / latency, at most `feedforward_pd.kd`", live=True),
    Parameter("braking.acceleration", "double_array", (5.0,), "rad/s²", "Mean deceleration of the reference when a motion is stopped.", lower=0.1, per_joint=True, live=True),
    # time
    Parameter("rate", "double", 1000.0, "Hz", "Nominal rate of the joint states.", lower=20.0, upper=10000.0),
    Parameter("latency", "double", 0.0, "s", "From the stamp of a state to its torque on the joints; the feed-forward leads by it. 0: one period.", lower=0.0, upper=0.1),
    Parameter("minimum_rate", "double", 200.0, "Hz", "Joint states slower than this are refused for control.", lower=10.0),
    Parameter("state_timeout", "double", 0.01, "s", "Without a state for this long (and three periods) the arm is blind: gravity support alone.", lower=0.001, upper=0.1),
    Parameter("blind_fault", "double", 0.1, "s", "Blind for this long is a fault.", lower=0.01, upper=1.0),
    Parameter("max_state_age", "double", 0.05, "s", "A state whose stamp is further from the arrival than this is passed over.", lower=0.001, upper=10.0),
    Parameter("reference_timeout", "double", 0.05, "s", "A streamed reference older than this brakes into a hold.", lower=0.005, upper=1.0),
    Parameter("wrench_timeout", "double", 0.1, "s", "An external wrench older than this counts as zero.", lower=0.005, upper=10.0),
    Parameter("splice_time", "double", 0.25, "s", "Time in which the difference between the last reference and a new motion fades out.", lower=0.01, upper=5.0, live=True),
    # limits
    Parameter("limits.effort", "double_array", (), "Nm", "Bound of the total joint torque, the robot's own share included.", lower=0.0, per_joint=True, when_empty="the description's", live=True),
    Parameter("limits.effort_rate", "double_array", (500.0,), "Nm/s", "Bound of the change of the command; half of what the robot allows, because commands can be lost.", lower=1.0, per_joint=True, live=True),
    Parameter("limits.position_margin", "double", 0.05, "rad or m", "Soft limits stand this far inside the description's.", lower=0.0, upper=1.0),
    Parameter("limits.position_stiffness", "double_array", (), "Nm/rad", "Push back of the floating arm beyond a soft limit.", lower=0.0, per_joint=True, when_empty="`feedforward_pd.kp`", live=True),
    Parameter("limits.velocity", "double_array", (), "rad/s", "Measured speed above this is a fault.", lower=0.0, per_joint=True, when_empty="1.2 × the description's", live=True),
    Parameter("limits.tracking_warning", "double_array", (0.1,), "rad", "Position error above this is reported.", lower=0.0, per_joint=True, live=True),
    Parameter("limits.tracking_fault", "double_array", (0.3,), "rad", "Position error above this is a fault.", lower=0.0, per_joint=True, live=True),
    Parameter("limits.start_tolerance", "double", 0.1, "rad or m", "A motion that starts further than this from the reference is refused.", lower=0.0, upper=10.0, live=True),
    # payload and contact
    Parameter("payload.mass", "double", 0.0, "kg", "Payload at the tip.", lower=0.0, upper=1000.0, live=True),
    Parameter("payload.com", "double_array", (0.0, 0.0, 0.0), "m", "Its centre of mass in the tip frame.", lower=-10.0, upper=10.0, live=True),
    Parameter("payload.inertia", "double_array", (0.0,) * 6, "kg m²", "Its inertia about the centre of mass: ixx, ixy, ixz, iyy, iyz, izz.", lower=-1000.0, upper=1000.0, live=True),
    Parameter("payload.hardware_knows", "bool", False, "", "The robot was told of the payload and carries it itself; read with `hardware` and `residual`."),
    Parameter("contact.action", "string", "none", "", "What an external torque above the threshold does.", choices=("none", "hold", "float"), live=True),
    Parameter("contact.threshold", "double_array", (10.0,), "Nm", "Threshold of the estimated external torque.", lower=0.0, per_joint=True, live=True),
    # start and end
    Parameter("autostart", "bool", True, "", "Configure and activate without a lifecycle manager, as soon as description and joint states are there."),
    Parameter("initial_mode", "string", "hold", "", "Mode after activation.", choices=("hold", "gravity_compensation")),
    Parameter("dry_run", "bool", False, "", "Compute and publish everything except the command and the heartbeat."),
    Parameter("enabling.speed", "double", 0.2, "rad/s", "Activation is refused while a joint is faster than this.", lower=0.0, upper=10.0),
    Parameter("enabling.ramp", "double", 0.5, "s", "After activation the feedback grows to its full size in this time; gravity support is there at once.", lower=0.0, upper=10.0),
    Parameter("realtime_priority", "integer", 0, "", "SCHED_FIFO priority of the loop, with its memory locked; 0: as other processes.", lower=0, upper=99),
    # what is told
    Parameter("terms_rate", "double", 50.0, "Hz", "Rate of `~/torque/<term>` and `~/tracking`; 0: off.", lower=0.0, upper=1000.0, live=True),
    Parameter("diagnostics_rate", "double", 1.0, "Hz", "Rate of `/diagnostics`.", lower=0.1, upper=50.0),
    Parameter("history.seconds", "double", 5.0, "s", "Length of the record that is written at a fault; 0: none.", lower=0.0, upper=60.0),
    Parameter("history.directory", "string", "", "", "Where the record is written; empty: `rnea_ros` in the folder of the ROS logs."),
)  # fmt: skip

BY_NAME: Mapping[str, Parameter] = {parameter.name: parameter for parameter in PARAMETERS}


def defaults() -> dict[str, Any]:
    return {parameter.name: parameter.default for parameter in PARAMETERS}


def known(name: str, among: Mapping[str, Parameter] = BY_NAME) -> Parameter:
    """The parameter called `name`; for a misspelt one ParameterError that names the nearest."""
    if name in among:
        return among[name]
    near = difflib.get_close_matches(name, among, n=1, cutoff=0.0)[0]
    raise ParameterError(f"unknown parameter {name!r}; the nearest is {near!r}")


def page() -> str:
    """The documentation page, Markdown."""
    lines = [
        "# Parameters of `rnea_controller`",
        "",
        "Written by `python -m rnea_ros.control.parameters`; edit the declarations there, not this page.",
        "",
        "*Live* parameters change while the controller is active; the others are read at configure. A change is checked",
        "as a whole before any part of it is taken. A per-joint array has one value per joint in controller order, or a",
        "single value for all. Whole numbers serve as doubles. Units are for revolute joints; a prismatic joint has m for",
        "rad and N for Nm.",
        "",
        *rows(PARAMETERS),
    ]
    return "\n".join(lines) + "\n"


def rows(parameters: Iterable[Parameter]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [
        "| name | type | default | bounds | unit | live | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    for item in parameters:
        kind = item.kind.replace("_", " ") + (", per joint" if item.per_joint else "")
        default = f"empty: {item.when_empty}" if item.when_empty and not item.default else _shown(item.default)
        if item.choices:
            bounds = ", ".join(f"`{choice}`" for choice in item.choices if choice)
        else:
            bounds = item.bounds() if item.kind.startswith(("double", "integer")) else ""
        lines.append(
            f"| `{item.name}` | {kind} | {default} | {bounds} | {item.unit} | {'yes' if item.live else ''} "
            f"| {item.sentence} |"
        )
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f"{item:g}" for item in value) + "]`" if value else "empty"
    if isinstance(value, str):
        return f"`{value}`" if value else "empty"
    return f"`{value:g}`"


if __name__ == "__main__":
    print(page(), end="")
