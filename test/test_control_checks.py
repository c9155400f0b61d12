"""What configure refuses before any torque, and gains that it proposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from virtual_arm import GAINS, URDF

from rnea_ros.control import checks
from rnea_ros.control.controller import Controller
from rnea_ros.control.errors import ParameterError
from rnea_ros.control.parameters import PARAMETERS
from rnea_ros.control.settings import build
from rnea_ros.dynamics.inverse_dynamics import InverseDynamics
from rnea_ros.model.urdf import load_urdf

ROBOTS = {name: load_urdf(URDF / f"{name}.urdf") for name in ("panda", "es5", "planar_2r")}


@pytest.fixture(scope="module", params=list(ROBOTS))
def surveyed(request: pytest.FixtureRequest) -> tuple[str, checks.Survey]:
    return request.param, checks.survey(InverseDynamics(ROBOTS[request.param], backend="recursion"))


@pytest.mark.parametrize("latency", [0.001, 0.002, 0.004])
def test_proposed_gains_pass_the_checks(surveyed: tuple[str, checks.Survey], latency: float) -> None:
    name, found = surveyed
    robot = ROBOTS[name]
    kp, kd = checks.proposed_gains(found, latency, robot.effort_limits)
    values = {
        "gravity_source": "self",
        "latency": latency,
        "feedforward_pd.kp": kp.tolist(),
        "feedforward_pd.kd": kd.tolist(),
        "gravity_compensation.damping": (0.5 * kd).tolist(),
    }
    settings = checks.completed(build(values, robot), found)
    assert not [line for line in checks.check(settings, found, robot.joint_names) if "floating" not in line]


def test_gains_of_es5_are_those_proposed_at_2_ms() -> None:
    robot = ROBOTS["es5"]
    found = checks.survey(InverseDynamics(robot, backend="recursion"))
    kp, kd = checks.proposed_gains(found, 0.002, robot.effort_limits)
    np.testing.assert_allclose(kp, GAINS["es5"]["feedforward_pd.kp"])
    np.testing.assert_allclose(kd, GAINS["es5"]["feedforward_pd.kd"])


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"feedforward_pd.kp": [20.0]}, "arm cannot hold itself.*'panda_joint2'; set 'gravity_at' to 'measured'"),
        (
            {"feedforward_pd.kd": [20.0] * 4 + [6.0, 4.0, 6.0]},
            r"kd': 6 Nms/rad in 'panda_joint7' makes the loop diverge",
        ),
        ({"feedforward_pd.kp": [1e9]}, "kp.*makes the loop diverge"),
        ({"latency": 0.01}, "makes the loop diverge"),
        ({"gravity_compensation.damping": [50.0]}, "gravity_compensation.damping.*diverge"),
        ({"braking.damping": [1000.0]}, "braking.damping.*diverge"),
        ({"feedforward_pd.kp": []}, r"'feedforward_pd.kp' is not set; for this robot at a latency of 1 ms \[37"),
        ({"law": "computed_torque"}, "'computed_torque.kp' and 'computed_torque.kd' are not set"),
        ({"law": "computed_torque", "computed_torque.kp": [100], "computed_torque.kd": [2000]}, "kd.*diverge"),
    ],
)
def test_what_would_fall_or_diverge_is_refused(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(ParameterError, match=line):
        Controller(ROBOTS["panda"], {"gravity_source": "self", **GAINS["panda"], **changes})


def test_soft_gains_hold_where_gravity_is_measured() -> None:
    values = {"gravity_source": "self", **GAINS["panda"], "feedforward_pd.kp": [20.0], "gravity_at": "measured"}
    Controller(ROBOTS["panda"], values)
    values = {"gravity_source": "hardware", **GAINS["panda"], "feedforward_pd.kp": [20.0]}
    Controller(ROBOTS["panda"], values)


def test_poses_that_cannot_be_held_are_told() -> None:
    values = {"gravity_source": "self", **GAINS["panda"], "limits.effort": [30.0]}
    lines = [line for _, line in Controller(ROBOTS["panda"], values).take_messages()]
    assert any("gravity takes up to" in line and "'panda_joint2'" in line for line in lines)


def test_a_live_change_is_checked_over_the_poses_only_where_it_concerns_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the loop there is no time for more."""
    robot = ROBOTS["panda"]
    controller = Controller(robot, {"gravity_source": "self", "history.seconds": 0.0, **GAINS["panda"]})
    assert set(checks.CHECKED) <= {parameter.name for parameter in PARAMETERS if parameter.live}
    looked: list[str] = []
    monkeypatch.setattr(checks, "check", lambda *_: looked.append("check") or [])
    monkeypatch.setattr(checks, "proposed_gains", lambda *_: looked.append("proposed") or (None, None))
    for changes in ({"feedforward": "none"}, {"terms_rate": 100.0}, {"limits.tracking_fault": [1.0]}):
        controller.set_parameters(changes)
    controller.set_parameters({"payload.mass": 1.0})
    assert looked == []
    controller.set_parameters({"feedforward_pd.kd": GAINS["panda"]["feedforward_pd.kd"]})
    assert looked == ["check"]
