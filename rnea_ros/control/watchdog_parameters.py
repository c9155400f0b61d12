"""Every parameter of the watchdog: those that it shares with the controller, and its own.

The shared ones are the controller's own declarations, so that both nodes can be given the same values.
`python -m rnea_ros.control.watchdog_parameters` prints the page of the documentation.
"""

from __future__ import annotations

from dataclasses import replace

from rnea_ros.control.handover import PATIENCE
from rnea_ros.control.parameters import BY_NAME, Parameter, rows

SHARED = (
    "robot_description", "robot_description_file", "joints", "locked_joints", "locked_positions", "tip", "gravity",
    "gravity_source", "hardware_gravity",
    "rate", "latency", "state_timeout", "blind_fault", "max_state_age",
    "limits.effort", "limits.effort_rate",
    "payload.mass", "payload.com", "payload.inertia", "payload.hardware_knows",
    "diagnostics_rate", "realtime_priority",
)  # fmt: skip

OWN: tuple[Parameter, ...] = (
    Parameter("detection_time", "double", PATIENCE, "s", "A controller that has not commanded for this long (and three periods) is gone.", lower=0.002, upper=1.0),
    Parameter("handback_heartbeats", "integer", 50, "", "Fresh heartbeats in a row after which the controller gets the arm back.", lower=1, upper=100000),
    Parameter("braking.damping", "double_array", (), "Nms/rad", "Damping that stops the arm while the watchdog carries it, beside that in proportion to inertia.", lower=0.0, per_joint=True, when_empty="0.1 × effective inertia / latency"),
)  # fmt: skip

WATCHDOG_PARAMETERS: tuple[Parameter, ...] = (*(BY_NAME[name] for name in SHARED), *OWN)


def page() -> str:
    """The documentation page, Markdown."""
    lines = [
        "# Parameters of `rnea_watchdog`",
        "",
        "Written by `python -m rnea_ros.control.watchdog_parameters`; edit the declarations there, not this page.",
        "",
        "All are read at start; none changes while it runs. The shared ones mean what they mean to the controller, and are",
        "to be given the same values. Names that only the controller has are passed over, so that one file serves both.",
        "",
        "## Its own",
        "",
        *rows(OWN),
        "",
        "## Shared with the controller",
        "",
        *rows(replace(item, live=False) for item in WATCHDOG_PARAMETERS if item not in OWN),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
