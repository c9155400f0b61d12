"""Parameters: declared once, coerced, validated as a whole, and documented from the declaration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnea_ros.control.errors import ParameterError
from rnea_ros.control.parameters import BY_NAME, PARAMETERS, page
from rnea_ros.control.settings import build, coerced
from rnea_ros.model.urdf import load_urdf

ROOT = Path(__file__).parent.parent
PANDA = load_urdf(ROOT / "urdf" / "panda.urdf")
GOOD: dict[str, Any] = {"gravity_source": "self", "feedforward_pd.kp": [100.0], "feedforward_pd.kd": [2.0]}


def test_page_is_current() -> None:
    assert (ROOT / "docs" / "parameters.md").read_text() == page()


def test_defaults_are_valid_in_their_own_types() -> None:
    for item in PARAMETERS:
        assert item.coerced(item.default) == item.default
        assert item.sentence.endswith(".") or item.sentence.endswith("default.")


def test_misspelt_name_names_the_nearest() -> None:
    with pytest.raises(ParameterError, match=r"unknown parameter 'gravity_sorce'; the nearest is 'gravity_source'"):
        coerced({"gravity_sorce": "self"})


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("rate", "fast", "'rate' is 'fast', expected double"),
        ("rate", 1.0, "'rate' is 1, expected 20 to 10000 Hz"),
        ("rate", float("nan"), "'rate' is nan"),
        ("rate", True, "expected double"),
        ("feedforward_pd.kp", [1.0, -1.0], "'feedforward_pd.kp' is -1, expected at least 0"),
        ("feedforward_pd.kp", 5.0, "expected double array"),
        ("joints", ["a", 1], "expected string array"),
        ("autostart", 1, "expected bool"),
        ("realtime_priority", 0.5, "expected integer"),
        ("law", "pid", "expected one of 'feedforward_pd', 'computed_torque'"),
        ("gravity", [0.0, 1.0], "'gravity' has 2 values, expected 3"),
        ("feedforward_pd.kd", [1.0, 2.0], r"has 2 values, expected 1 or 7 \(panda_joint1"),
        ("payload.inertia", [0.1] * 6, "'payload.mass' is 0"),
        ("locked_positions", [1.0], "'locked_positions' has 1 values, expected 0"),
    ],
)
def test_wrong_value_is_named(name: str, value: Any, line: str) -> None:
    with pytest.raises(ParameterError, match=line):
        build({**GOOD, name: value}, PANDA)


def test_whole_numbers_serve_as_doubles_and_one_value_serves_all_joints() -> None:
    settings = build({**GOOD, "rate": 500, "feedforward_pd.kp": [3]}, PANDA)
    assert settings.period == pytest.approx(0.002)
    assert settings.kp is not None
    np.testing.assert_array_equal(settings.kp, np.full(7, 3.0))


def test_f21_gravity_source_has_no_silent_default() -> None:
    with pytest.raises(ParameterError, match="'gravity_source' is required: 'self'.*'hardware'.*'residual'"):
        build({name: value for name, value in GOOD.items() if name != "gravity_source"}, PANDA)


def test_effort_limit_zero_is_an_error_unless_overridden() -> None:
    text = (ROOT / "urdf" / "panda.urdf").read_text().replace('effort="87"', 'effort="0"')
    robot = load_urdf(text)
    with pytest.raises(ParameterError, match="effort limit of 'panda_joint1' is 0: set 'limits.effort'"):
        build(GOOD, robot)
    assert build({**GOOD, "limits.effort": [50.0]}, robot).effort_limit[0] == 50.0


def test_every_config_is_valid() -> None:
    yaml = pytest.importorskip("yaml")
    for path in (ROOT / "config").glob("*.yaml"):
        nodes = next(iter(yaml.safe_load(path.read_text()).values()))
        if "rnea_controller" not in nodes:
            continue
        values = nodes["rnea_controller"]["ros__parameters"]
        robot = load_urdf(ROOT / "urdf" / values["robot_description_file"], values.get("joints"))
        build(values, robot)
        assert set(values) <= set(BY_NAME)
