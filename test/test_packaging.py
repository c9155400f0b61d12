"""What is installed, by pip and by colcon, and what the core needs."""

from __future__ import annotations

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import rnea_ros

ROOT = Path(__file__).resolve().parent.parent
SHARED = ("urdf", "config", "launch")
CORE = {"numpy", "urdf_parser_py"}
WHERE = """
import rnea_ros
from rnea_ros.share import share_file
print(rnea_ros.__file__)
for folder in {folders!r}:
    for file in share_file(folder).iterdir():
        print(share_file(folder, file.name) if file.is_file() else "")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of what is packaged, so that building leaves nothing in the tree."""
    copy = tmp_path / "source"
    ignored = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "install", "log", "demo_output")
    shutil.copytree(ROOT, copy, ignore=ignored)
    return copy


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Output of a command that must succeed, without the source tree on the path of Python."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | environment
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=variables, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_complete(found: str, prefix: Path) -> None:
    """The package and every shared file were found below `prefix`."""
    module, *files = found.split()
    assert module.startswith(str(prefix))
    expected = {f"{folder}/{file.name}" for folder in SHARED for file in (ROOT / folder).iterdir() if file.is_file()}
    share = prefix / "share" / "rnea_ros"
    assert {Path(file).relative_to(share).as_posix() for file in files} == expected


def test_pip_installs_everything_and_it_is_found(source: Path, tmp_path: Path) -> None:
    for needed in ("setuptools", "wheel"):
        pytest.importorskip(needed, reason="builds without network, which needs setuptools and wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, source, cwd=tmp_path)
    (wheel,) = tmp_path.glob("rnea_ros-*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", wheel, cwd=tmp_path)
    dependencies = os.pathsep.join(entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages")))
    found = run(python, "-c", WHERE.format(folders=SHARED), cwd=tmp_path, PYTHONPATH=dependencies, AMENT_PREFIX_PATH="")
    assert_complete(found, tmp_path / "venv")
    assert {"rnea_controller", "rnea_simulator", "rnea_watchdog"} <= {path.name for path in python.parent.iterdir()}


@pytest.mark.parametrize("option", [(), ("--symlink-install",)], ids=["install", "symlink-install"])
def test_colcon_builds_everything_and_it_is_found(source: Path, tmp_path: Path, option: tuple[str, ...]) -> None:
    if not (Path(sys.executable).parent / "colcon").exists() and shutil.which("colcon") is None:
        pytest.skip("colcon is not installed; it is in the extra `check`")
    colcon = shutil.which("colcon", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert colcon is not None
    run(colcon, "build", "--base-paths", source, *option, cwd=tmp_path)
    prefix = tmp_path / "install" / "rnea_ros"
    programs = {path.name for path in (prefix / "lib" / "rnea_ros").iterdir()}
    assert programs == {"rnea_controller", "rnea_simulator", "rnea_watchdog"}
    assert (prefix / "share" / "ament_index" / "resource_index" / "packages" / "rnea_ros").exists()
    script = f'. install/setup.bash && exec "{sys.executable}" -c "$0"'
    found = run("bash", "-c", script, WHERE.format(folders=SHARED), cwd=tmp_path)
    if not option:  # with links the source tree is where everything is found
        assert_complete(found, prefix)
    else:
        assert str(source / "urdf" / "panda.urdf") in found.split()


def test_core_needs_numpy_and_the_urdf_parser_alone() -> None:
    alone = """
import sys
class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *where):
        hidden = {"rclpy", "numba", "scipy", "mujoco", "matplotlib", "xacro", "pinocchio"}
        return None if name.split(".")[0] in hidden else self.finder.find_spec(name, *where)
sys.meta_path = [Hiding(finder) for finder in sys.meta_path]
import rnea_ros.control.controller, rnea_ros.control.watchdog, rnea_ros.model.doctor
import numpy as np
from rnea_ros import InverseDynamics, load_urdf
robot = load_urdf("urdf/panda.urdf")
print(InverseDynamics(robot).torque(np.zeros(7), np.zeros(7), np.zeros(7)).shape)
"""
    assert run(sys.executable, "-c", alone, cwd=ROOT).strip() == "(7,)"


def test_what_is_imported_is_declared() -> None:
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg")
    declared = {name for extra in setup["options.extras_require"].values() for name in requirements(extra)}
    core = requirements(setup["options"]["install_requires"])
    assert core == CORE
    messages = {name.removeprefix("ros-kilted-").replace("-", "_") for name in declared if "ros-kilted" in name}
    known = declared | core | messages | {"lifecycle_msgs", "rcl_interfaces", "ament_index_python", "llvmlite", "yaml"}
    for path in (ROOT / "rnea_ros").rglob("*.py"):
        assert imported(path) <= known, path


def imported(path: Path) -> set[str]:
    """Top-level names of the third-party modules that a file imports anywhere."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"rnea_ros"}


def requirements(text: str) -> set[str]:
    """Names of the distributions in a list of setup.cfg, without versions and our own extras."""
    return {re.split(r"[<>=\[; ]", line)[0] for line in text.split("\n") if line} - {"rnea_ros"}


def test_package_xml_agrees() -> None:
    package = ElementTree.parse(ROOT / "package.xml").getroot()
    assert package.findtext("version") == rnea_ros.__version__
    depends = {element.text for element in package.iter("exec_depend")}
    assert {"python3-numpy", "urdfdom_py", "rclpy"} <= depends
    imports = {name for path in (ROOT / "rnea_ros").rglob("*.py") for name in imported(path)}
    assert {name for name in imports if name.endswith(("_msgs", "_interfaces", "_srvs"))} <= depends
