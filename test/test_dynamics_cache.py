"""Compiled kernels on disk: private, whole or not at all, compiled once, and never a reason to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.dynamics import cache
from rnea_ros.dynamics.cache import KernelCache

numba_backend = pytest.importorskip("rnea_ros.dynamics.numba_backend", reason="needs Numba")

ROOT = Path(__file__).parents[1]
ROBOT = ROOT / "urdf" / "planar_2r.urdf"
STATE = np.array([[0.3, -0.4], [0.5, 0.6], [0.7, 0.8]])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache in a place of this test's own, as a new process finds it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache._warned.clear()
    forget()
    return tmp_path / "rnea_ros"


def forget() -> None:
    numba_backend.compiled_function.cache_clear()
    numba_backend.compiled_dispatcher.cache_clear()


def torque() -> np.ndarray:
    forget()
    return InverseDynamics(load_urdf(ROBOT), backend="numba").torque(*STATE)


def kernels(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.kernel"))


def test_folder_is_private_and_a_second_time_loads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = torque()
    assert folder.stat().st_mode & 0o777 == 0o700
    (stored,) = kernels(folder)
    assert stored.stat().st_mode & 0o077 == 0
    before = stored.stat().st_mtime_ns
    monkeypatch.setattr(numba_backend.CFunc, "_compile_uncached", lambda self: pytest.fail("compiled again"))
    np.testing.assert_array_equal(torque(), expected)
    assert kernels(folder) == [stored]
    assert stored.stat().st_mtime_ns == before


def test_run_time_inputs_are_not_part_of_the_key(folder: Path) -> None:
    torque()
    heavier = load_urdf(ROBOT).with_payload(2.0, (0.1, 0.0, 0.0)).with_armature(0.0)
    dynamics = InverseDynamics(heavier, gravity=(1.0, 2.0, 3.0), backend="numba")
    dynamics.torque(*STATE)
    assert len(kernels(folder)) == 1


@pytest.mark.parametrize("damage", ["flipped", "short", "empty", "not a kernel"])
def test_damaged_file_is_rebuilt_with_one_warning(folder: Path, damage: str) -> None:
    expected = torque()
    (stored,) = kernels(folder)
    whole = stored.read_bytes()
    middle = len(whole) // 2
    if damage == "flipped":
        stored.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    elif damage == "not a kernel":
        KernelCache().store(stored.stem, b"nothing that unpickles")
    else:
        stored.write_bytes(whole[:middle] if damage == "short" else b"")
    with pytest.warns(RuntimeWarning, match="compiling anew") as caught:
        np.testing.assert_array_equal(torque(), expected)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(torque(), expected)
    assert len(kernels(folder)) == 1


def test_folder_full_of_damage_costs_one_warning(folder: Path) -> None:
    def run() -> np.ndarray:
        forget()
        dynamics = InverseDynamics(load_urdf(ROBOT), backend="numba")
        dynamics.warm_up()
        return dynamics.torque(*STATE)

    expected = run()
    stored = kernels(folder)
    assert len(stored) == 3
    for path in stored:
        path.write_bytes(b"damage")
    with pytest.warns(RuntimeWarning, match="is damaged") as caught:
        np.testing.assert_array_equal(run(), expected)
    assert len(caught) == 1
    assert kernels(folder) == stored


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_passed_over(folder: Path, kind: str) -> None:
    expected = torque()
    (stored,) = kernels(folder)
    stored.unlink()
    if kind == "folder":
        stored.mkdir()
    else:
        os.mkfifo(stored)
    with pytest.warns(RuntimeWarning, match="cannot be read") as caught:
        np.testing.assert_array_equal(torque(), expected)
    assert len(caught) == 1
    assert {path.name for path in folder.iterdir()} == {stored.name, "lock"}  # nothing half written is left


def test_folder_that_others_can_write_to_is_passed_over(folder: Path) -> None:
    folder.mkdir(mode=0o777)
    os.chmod(folder, 0o777)
    with pytest.warns(RuntimeWarning, match="others can write to it") as caught:
        first = torque()
        np.testing.assert_array_equal(torque(), first)
    assert len(caught) == 1
    assert kernels(folder) == []


def test_folder_that_is_a_link_is_passed_over(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)
    with pytest.warns(RuntimeWarning, match="not a folder of this user"):
        torque()
    assert kernels(elsewhere) == []


def test_folder_that_cannot_be_made_is_passed_over(folder: Path) -> None:
    folder.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match="is not used") as caught:
        torque()
        torque()
    assert len(caught) == 1


def test_folder_of_another_user_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="not a folder of this user"):
        torque()


def test_file_of_another_user_is_not_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = KernelCache()
    store.store("key", b"payload")
    assert store.load("key") == b"payload"
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert store.load("key") is None


def test_full_disk_costs_a_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(cache.tempfile, "NamedTemporaryFile", full)
    with pytest.warns(RuntimeWarning, match="no space left on device"):
        assert np.isfinite(torque()).all()


def test_oldest_files_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "KEEP", 3)
    store = KernelCache()
    for number in range(5):
        store.store(f"key{number}", b"x")
        os.utime(folder / f"key{number}.kernel", (number, number))
    assert [path.stem for path in kernels(folder)] == ["key2", "key3", "key4"]


def test_processes_that_start_together_compile_once(tmp_path: Path) -> None:
    script = (
        "import time, numpy as np\n"
        "from rnea_ros import InverseDynamics, load_urdf\n"
        "from rnea_ros.dynamics import numba_backend\n"
        "compiled = []\n"
        "original = numba_backend.CFunc._compile_uncached\n"
        "numba_backend.CFunc._compile_uncached = lambda self: compiled.append(1) or original(self)\n"
        f"dynamics = InverseDynamics(load_urdf({str(ROBOT)!r}), backend='numba')\n"
        "dynamics._kernel.single\n"
        "print(len(compiled))\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    started = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    counts = sorted(int(process.communicate(timeout=120)[0]) for process in started)
    assert counts == [0, 0, 1]


def test_numba_is_not_imported_before_it_is_needed() -> None:
    script = (
        "import sys, rnea_ros\n"
        f"robot = rnea_ros.load_urdf({str(ROBOT)!r})\n"
        "rnea_ros.InverseDynamics(robot, backend='python').torque([0, 0], [0, 0], [0, 0])\n"
        "print([name for name in ('numba', 'scipy', 'mujoco', 'pinocchio', 'rclpy') if name in sys.modules])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    from rnea_ros.dynamics.errors import DynamicsError

    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "rnea_ros.dynamics.numba_backend", raising=False)
    import rnea_ros.dynamics

    monkeypatch.delattr(rnea_ros.dynamics, "numba_backend", raising=False)
    cache._warned.clear()
    assert InverseDynamics(load_urdf(ROBOT)).backend == "python"
    with pytest.raises(DynamicsError, match="needs Numba"):
        InverseDynamics(load_urdf(ROBOT), backend="numba")
