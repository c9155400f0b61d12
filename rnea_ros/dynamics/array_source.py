"""The text that runs a program over blocks of states with NumPy alone.

Every value is a row of one workspace, reused as soon as nothing needs the value any more, so that a block stays in the
processor's cache and nothing is allocated. Constants are 0-dimensional arrays, which a ufunc takes faster than floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.emission import function, inline
from rnea_ros.dynamics.expression import Node, Program

UFUNCS = {"add": "add", "sub": "subtract", "mul": "multiply", "neg": "negative", "sin": "sin", "cos": "cos"}
UFUNCS |= {"tanh": "tanh", "sign": "sign"}


@dataclass(frozen=True)
class ArraySource:
    """Text of `name(q, v, a, p, w, out)`, which takes inputs as rows over states and adds to the rows of `out`."""

    text: str
    rows: int  # of the workspace w
    constants: dict[str, NDArray[np.float64]]  # that the text refers to


def array_source(name: str, programs: Sequence[Program]) -> ArraySource:
    """The programs' sum, for a block of states: q, v, a sequences of rows (B,), p floats, w (rows, B), out (n, B)."""
    writer = _Writer()
    for number, program in enumerate(programs):
        writer.add(program, accumulate=number > 0)
    names = sorted(writer.inputs, key=lambda x: (x[0], int(x[1:])))
    head = [f"{value} = {value[0]}[{value[1:]}]" for value in names]
    head += [f"w{row} = w[{row}]" for row in range(writer.rows)]
    return ArraySource(function(f"{name}(q, v, a, p, w, out)", head + writer.lines), writer.rows, writer.constants)


class _Writer:
    """Turns steps into ufunc calls and hands out workspace rows."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.rows = 0
        self.inputs: set[str] = set()
        self.constants: dict[str, NDArray[np.float64]] = {}
        self._free: list[int] = []
        self._uniforms = 0

    def add(self, program: Program, accumulate: bool) -> None:
        """One more program; its outputs are added to those before or, if not `accumulate`, written."""
        remaining: dict[int, int] = {}
        for node in [arg for step in program.steps for arg in step.args] + list(program.outputs):
            remaining[node.index] = remaining.get(node.index, 0) + 1
        uniform: set[int] = set()  # values that are the same for all states: floats, computed once per block
        texts: dict[int, str] = {}
        rows: dict[int, int] = {}
        self.inputs.update(program.inputs)

        def text(node: Node) -> str:
            if node.index in texts:
                return texts[node.index]
            if node.op == "const":
                return self._constant(node.value)
            return str(node.value)

        for step in program.steps:
            if all(arg.op == "const" or arg.index in uniform or _is_parameter(arg) for arg in step.args):
                uniform.add(step.index)
                texts[step.index] = self._uniform(step, texts)
                continue
            args = [text(arg) for arg in step.args]
            for arg in step.args:
                remaining[arg.index] -= 1
                if remaining[arg.index] == 0 and arg.index in rows:
                    self._free.append(rows.pop(arg.index))
            row = self._take()
            rows[step.index] = row
            texts[step.index] = f"w{row}"
            self.lines.append(f"{UFUNCS[step.op]}({', '.join(args)}, w{row})")
        for i, output in enumerate(program.outputs):
            if not accumulate:
                self.lines.append(f"copyto(out[{i}], {text(output)})")
            elif not (output.op == "const" and output.value == 0.0):
                self.lines.append(f"add(out[{i}], {text(output)}, out[{i}])")
        self._free = list(range(self.rows))

    def _take(self) -> int:
        if not self._free:
            self._free.append(self.rows)
            self.rows += 1
        return self._free.pop()

    def _uniform(self, step: Node, texts: dict[int, str]) -> str:
        args = [texts.get(arg.index) or inline(arg) for arg in step.args]
        name = f"u{self._uniforms}"
        self._uniforms += 1
        self.lines.append(f"{name} = array({UFUNCS[step.op]}({', '.join(args)}))")
        return name

    def _constant(self, value: float) -> str:
        name = f"k{len(self.constants)}"
        for known, array in self.constants.items():
            if float(array) == value:
                return known
        self.constants[name] = np.array(value)
        return name


def _is_parameter(node: Node) -> bool:
    return node.op == "input" and str(node.value).startswith("p")
