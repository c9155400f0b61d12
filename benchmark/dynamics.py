"""How fast torque is: against Pinocchio from Python and in a C++ loop, with and without Numba, from 2 to 40 joints.

Contestants take turns, so that a ratio compares what ran side by side; each figure is the median over the rounds, on
one core. Ours validate their input within the time.

    python benchmark/dynamics.py                two tables, about three minutes
    python benchmark/dynamics.py --no-growth    the first table alone

Needs Pinocchio (pip install pin). The C++ loop also needs a compiler and Eigen's headers (apt install libeigen3-dev, or
pip install cmeel-eigen); without them its rows are left out, and a line says why.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import timeit
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.dynamics.kernels import NUMBA_OPERATIONS
from rnea_ros.dynamics.links import link_system
from rnea_ros.dynamics.regrouping import regroup
from rnea_ros.dynamics.specialiser import torque_program

ROOT = Path(__file__).parents[1]
PANDA = ROOT / "urdf" / "panda.urdf"
STATES = 10_000
JOINTS = (2, 4, 7, 12, 20, 30, 40)
TURN = 0.01  # s that a contestant runs before the next one does

# What Pinocchio's own CMake files define for its users
DEFINITIONS = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12",
    "NDEBUG",
)

Times = dict[str, list[float]]


# ---------------------------------------------------------------- measuring


def take_turns(contestants: dict[str, Callable[[], Any]], rounds: int) -> Times:
    """Seconds per call of each contestant, in every round."""
    calls = {}
    for name, function in contestants.items():
        function()
        calls[name] = max(1, round(TURN / timeit.timeit(function, number=1)))
        calls[name] = max(1, round(TURN / (timeit.timeit(function, number=calls[name]) / calls[name])))
    times: Times = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, function in contestants.items():
            times[name].append(timeit.timeit(function, number=calls[name]) / calls[name])
    return times


def ratio(times: Times, reference: str, name: str) -> float:
    """How many times faster than the reference: median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(times[reference], times[name], strict=True))


def seconds(script: str, cache: Path) -> float:
    """What a fresh process prints, with kernels cached in the given folder."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


# ---------------------------------------------------------------- contestants


class PinocchioLoop:
    """Pinocchio's rnea in a C++ loop, for models with revolute joints about z."""

    def __init__(self, library: ctypes.CDLL, model: pin.Model) -> None:
        self._rnea = library.rnea
        self._rnea.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_long]
        library.make.restype = ctypes.c_void_p
        library.make.argtypes = [ctypes.c_long] + [ctypes.c_void_p] * 3
        joints = range(1, model.njoints)
        assert all(model.joints[joint].shortname() == "JointModelRZ" for joint in joints)
        parents = np.array([model.parents[joint] for joint in joints], dtype=np.int64)
        poses = np.array([model.jointPlacements[joint].homogeneous for joint in joints])
        inertias = np.array([model.inertias[joint].toDynamicParameters() for joint in joints])
        self._robot = library.make(len(joints), parents.ctypes.data, poses.ctypes.data, inertias.ctypes.data)

    def torque(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        tau = np.empty_like(q)
        self._rnea(self._robot, *(array.ctypes.data for array in (q, qd, qdd, tau)), len(q))
        return tau


def compile_loop(folder: Path) -> ctypes.CDLL | str:
    """The C++ loop as a library, or why there is none."""
    compiler = next((path for name in ("c++", "g++", "clang++") if (path := shutil.which(name))), None)
    if compiler is None:
        return "no C++ compiler"
    headers = Path(pin.__file__).parents[4] / "include"
    eigen = next((path for path in (headers / "eigen3", Path("/usr/include/eigen3")) if path.is_dir()), None)
    if not (headers / "pinocchio").is_dir() or eigen is None:
        return "no headers of Pinocchio" if eigen else "no headers of Eigen"
    print("compiling Pinocchio's C++ loop ...", file=sys.stderr)
    library = folder / "pinocchio_loop.so"
    command = [compiler, "-w", "-std=c++17", "-O3", "-march=native", "-shared", "-fPIC"]
    command += [f"-D{definition}" for definition in DEFINITIONS] + ["-I", str(headers), "-I", str(eigen)]
    command += [str(Path(__file__).with_name("pinocchio_loop.cpp")), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return f"{compiler} fails: {next((x for x in done.stderr.splitlines() if 'error' in x), '')[:200]}"
    return ctypes.CDLL(str(library))


def single_contestants(
    model: pin.Model, ours: dict[str, InverseDynamics], state: np.ndarray
) -> dict[str, Callable[[], Any]]:
    q, qd, qdd = state
    data = model.createData()
    contestants: dict[str, Callable[[], Any]] = {"pin.rnea": lambda: pin.rnea(model, data, q, qd, qdd)}
    for name, dynamics in ours.items():
        contestants[name] = lambda torque=dynamics.torque: torque(q, qd, qdd)  # type: ignore[misc]
    return contestants


def batch_contestants(
    model: pin.Model, loop: ctypes.CDLL | str, ours: dict[str, InverseDynamics], states: np.ndarray
) -> dict[str, Callable[[], Any]]:
    """All of them agree, or this fails."""
    q, qd, qdd = states
    data = model.createData()

    def python_loop() -> np.ndarray:
        tau = np.empty_like(q)
        for i in range(len(q)):
            tau[i] = pin.rnea(model, data, q[i], qd[i], qdd[i])
        return tau

    contestants: dict[str, Callable[[], Any]] = {"Pinocchio, Python loop": python_loop}
    if isinstance(loop, ctypes.CDLL):
        compiled = PinocchioLoop(loop, model)
        contestants["Pinocchio, C++ loop"] = lambda: compiled.torque(q, qd, qdd)
    for name, dynamics in ours.items():
        contestants[name] = lambda torque=dynamics.torque: torque(q, qd, qdd)  # type: ignore[misc]
    expected = python_loop()
    for name, function in contestants.items():
        assert np.abs(function() - expected).max() < 1e-10 * np.abs(expected).max(), name
    return contestants


def arm(joints: int) -> str:
    """URDF of an arm in the manner of industrial ones: axes parallel or at right angles, arbitrary inertias."""
    rng = np.random.default_rng(joints)
    elements = ['<robot name="arm"><link name="link0"/>']
    for i in range(1, joints + 1):
        points = rng.normal(scale=0.1, size=(6, 3))
        covariance = np.cov(points.T)
        inertia = 3.0 * (np.trace(covariance) * np.eye(3) - covariance)
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        values = " ".join(
            f'{name}="{x!r}"' for name, x in zip(names, inertia[np.triu_indices(3)].tolist(), strict=True)
        )
        x, y, z = rng.uniform(-0.2, 0.2, 3).tolist()
        twist = float(rng.choice([-0.5, 0.0, 0.5])) * np.pi
        elements.append(
            f'<link name="link{i}"><inertial><origin xyz="{x!r} {y!r} {z!r}"/><mass value="3"/><inertia {values}/>'
            f'</inertial></link><joint name="joint{i}" type="revolute"><origin xyz="{0.3 * (i % 2)!r} 0 0" '
            f'rpy="{twist!r} 0 0"/><parent link="link{i - 1}"/><child link="link{i}"/><axis xyz="0 0 1"/>'
            '<limit lower="-3" upper="3" effort="100" velocity="3"/></joint>'
        )
    return "".join([*elements, "</robot>"])


# ---------------------------------------------------------------- tables


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: tuple[str, ...]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "| " + " | ".join(cells) + " |"

    print(line(head))
    print("|" + "|".join("-" * (width + 1) + (":" if i else "-") for i, width in enumerate(widths)) + "|")
    print("\n".join(line(row) for row in rows), end="\n\n")


def panda_rows(loop: ctypes.CDLL | str, rounds: int) -> list[tuple[str, ...]]:
    model, robot = pin.buildModelFromUrdf(str(PANDA)), load_urdf(PANDA, friction=False)
    compiled, plain = InverseDynamics(robot, backend="numba"), InverseDynamics(robot, backend="python")
    recursion = InverseDynamics(robot, backend="recursion")
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (3, STATES, robot.n))
    q, qd, qdd = states[:, 0]
    out = np.empty(robot.n)

    single = single_contestants(model, {"torque, Numba": compiled}, states[:, 0])
    single["torque, Numba, with out="] = lambda: compiled.torque(q, qd, qdd, out=out)
    single["torque, plain Python"] = lambda: plain.torque(q, qd, qdd)
    single["torque, the recursion as it is written"] = lambda: recursion.torque(q, qd, qdd)
    times = take_turns(single, rounds)
    rows: list[tuple[str, ...]] = [("**one state**", "µs", "times as fast as pin.rnea")]
    rows += [
        (name, f"{1e6 * statistics.median(t):.2f}", f"{ratio(times, 'pin.rnea', name):.2f}")
        for name, t in times.items()
    ]

    batch = batch_contestants(model, loop, {"torque, Numba": compiled, "torque, NumPy alone": plain}, states)
    times = take_turns(batch, rounds)
    reference = "Pinocchio, C++ loop" if "Pinocchio, C++ loop" in batch else "Pinocchio, Python loop"
    rows += [(f"**{STATES} states, one core**", "ns per state", f"times as fast as {reference}")]
    for name, t in times.items():
        rows.append((name, f"{1e9 * statistics.median(t) / STATES:.1f}", f"{ratio(times, reference, name):.2f}"))

    rows.append(("**memory of a batch beyond inputs and result**", "kB", "of inputs and result"))
    for name, dynamics in (("torque, Numba", compiled), ("torque, NumPy alone", plain)):
        for count in (STATES, 10 * STATES):
            zeros = np.zeros((3, count, robot.n))
            tracemalloc.start()
            dynamics.torque(*zeros)
            extra = tracemalloc.get_traced_memory()[1] - zeros[0].nbytes
            tracemalloc.stop()
            rows.append((f"{name}, {count} states", f"{extra / 1e3:.0f}", f"{extra / (4 * zeros[0].nbytes):.3f}"))
    return rows


def start_rows(rounds: int) -> list[tuple[str, ...]]:
    clock = "import time; start = time.perf_counter()\n"
    stop = "print(time.perf_counter() - start)"
    first = (
        f"import numpy as np\nfrom rnea_ros import InverseDynamics, load_urdf\n{clock}"
        f"dynamics = InverseDynamics(load_urdf({str(PANDA)!r}), backend='{{backend}}')\n"
        "dynamics.torque(*np.zeros((3, 7)))\n"
    )
    scripts = {
        "import numpy": clock + "import numpy\n" + stop,
        "import rnea_ros": clock + "import rnea_ros\n" + stop,
        "model to first torque, NumPy alone": first.format(backend="python") + stop,
        "model to first torque, Numba": first.format(backend="numba") + stop,
        "model to every kernel, Numba": first.format(backend="numba") + "dynamics.warm_up()\n" + stop,
    }
    rows: list[tuple[str, ...]] = [("**start of a process**", "s, cached", "s, cold")]
    for name, script in scripts.items():
        cold, cached = [], []
        for _ in range(min(rounds, 5)):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(seconds(script, Path(folder)))
                cached.append(seconds(script, Path(folder)))
        compiles = name.endswith(", Numba")
        rows.append((name, f"{statistics.median(cached):.2f}", f"{statistics.median(cold):.2f}" if compiles else ""))
    return rows


def growth_row(joints: int, loop: ctypes.CDLL | str, rounds: int) -> tuple[str, ...]:
    text = arm(joints)
    model, robot = pin.buildModelFromXML(text), load_urdf(text)
    operations = torque_program(regroup(link_system(robot))).operations
    plain = InverseDynamics(robot, backend="python")
    ours = {"plain": plain, "compiled": InverseDynamics(robot)}
    start = timeit.default_timer()
    ours["compiled"].warm_up()
    cold = timeit.default_timer() - start
    states = np.random.default_rng(1).uniform(-1.0, 1.0, (3, 2000, joints))
    single = take_turns(single_contestants(model, ours, states[:, 0]), rounds)
    batch = take_turns(batch_contestants(model, loop, ours, states), rounds)
    cells = [f"{1e6 * statistics.median(single[name]):.2f}" for name in ("pin.rnea", "compiled", "plain")]
    reference = "Pinocchio, C++ loop" if "Pinocchio, C++ loop" in batch else "Pinocchio, Python loop"
    for name in (reference, "compiled", "plain"):
        cells.append(f"{1e9 * statistics.median(batch[name]) / len(states[0]):.0f}")
    return (str(joints), ours["compiled"].backend, str(operations), *cells, f"{cold:.1f}")


def machine() -> str:
    """Cores and processor, without a name of this machine."""
    fields: dict[str, str] = {}
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = fields.get("model name", "unknown processor")
    return f"{os.cpu_count()} cores, {name} family {fields.get('cpu family', '?')}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contestant")
    parser.add_argument("--no-growth", action="store_true", help="leave out the second table")
    arguments = parser.parse_args()
    import numba

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder  # everything is compiled anew
        loop = compile_loop(Path(folder))
        versions = f"Python {sys.version.split()[0]}, NumPy {np.__version__}, Numba {numba.__version__}"
        print(f"{datetime.date.today()}, {machine()}; {versions}, Pinocchio {pin.__version__}\n")
        if isinstance(loop, str):
            print(f"without Pinocchio's C++ loop: {loop}\n")
        print("Panda, 7 joints\n")
        rows = panda_rows(loop, arguments.rounds) + start_rows(arguments.rounds)
        table(("", "", ""), rows)
        if arguments.no_growth:
            return
        print(f"Arms of 2 to 40 joints; beyond {NUMBA_OPERATIONS} operations nothing is compiled\n")
        head: tuple[str, ...] = ("joints", "backend", "operations", "pin.rnea, µs", "torque, µs", "plain Python, µs")
        head += ("Pinocchio's loop, ns per state", "torque, ns per state", "NumPy alone, ns per state", "cold, s")
        table(head, [growth_row(joints, loop, max(5, arguments.rounds // 4)) for joints in JOINTS])


if __name__ == "__main__":
    main()
