"""The text that Numba compiles: one state at a time, and blocks of states that LLVM turns into vector instructions.

What makes the block loop vectorise: a flat one-dimensional scratch `x[row * 64 + k]` with a constant 64, and a sine and
cosine without branches or calls. Both kernels tell by their result whether they took the input: it must have the right
length and be finite, which is tested by the sum of x − x (0 unless some x is not finite); so no flag that lets the
compiler assume finite numbers may be set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rnea_ros.dynamics.emission import Printer, function, inline, leaves, total, used
from rnea_ros.dynamics.expression import Program

BLOCK = 64
LETTERS = "qva"

# π/2 as a sum of which the first two have 33 significant bits, so that k times each is exact for |k| < 2²⁰
HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
LARGE = 1.0e5  # rad; beyond, the library's sine and cosine take over


@dataclass(frozen=True)
class _Turn:
    """A joint angle whose sine and cosine are needed: an affine function of positions."""

    node: int
    text: str
    inputs: tuple[str, ...]


@dataclass(frozen=True)
class Head:
    """How a kernel is called: its arguments, the lines that make arrays of them, and what it returns."""

    arguments: str
    lines: Sequence[str]
    done: str
    refused: str


def _horner(coefficients: Sequence[float]) -> str:
    text = repr(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        text = f"{coefficient!r} + z * ({text})"
    return text


def _sine_cosine() -> list[str]:
    """`sine`, `cosine` of `angle` without a branch, absolute error below 2e-16.

    angle = k π/2 + r with |r| ≤ π/4, Taylor series of sin r and cos r (their remainders are below 1e-16), then the
    quarter turn: for k = 0, 1, 2, 3 modulo 4 the sine is s, c, −s, −c and the cosine c, −s, −c, s.
    """
    sine = [(-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 8)]
    cosine = [(-1.0) ** k / math.factorial(2 * k) for k in range(2, 9)]
    return [
        f"k = math.floor(angle * {2.0 / math.pi!r} + 0.5)",
        f"r = ((angle - k * {HALF_PI[0]!r}) - k * {HALF_PI[1]!r}) - k * {HALF_PI[2]!r}",
        "z = r * r",
        f"s = r + r * (z * ({_horner(sine)}))",
        f"c = 1.0 - (0.5 * z - z * (z * ({_horner(cosine)})))",
        "half = math.floor(0.5 * k)",
        "odd = k - 2.0 * half",
        "sign = 1.0 - 2.0 * (half - 2.0 * math.floor(0.5 * half))",
        "sine = sign * (c if odd != 0.0 else s)",
        "cosine = sign * (-s if odd != 0.0 else c)",
    ]


def sine_cosine_source() -> str:
    """`sine_cosine(angle)`, which the kernels call and LLVM inlines."""
    return function("sine_cosine(angle)", [*_sine_cosine(), "return sine, cosine"])


def sign_source() -> str:
    return function("sign(v)", ["return (1.0 if v > 0.0 else 0.0) - (1.0 if v < 0.0 else 0.0)"])


def single_source(name: str, letters: str, n: int, programs: Sequence[Program], head: Head | None = None) -> str:
    """`name(q, v, a, p, out) -> bool`: one state, arrays (n,) in, the programs' sum into `out`; False where refused.

    head: another way for the arguments to come and the answer to go than as arrays and a truth value.
    """
    given, turns = _turns(programs[0])
    printers = [Printer(programs[0], "t", given), *(Printer(program, "d") for program in programs[1:])]
    if head is None:
        lengths = " and ".join(f"{array}.size == {n}" for array in (*letters, "out"))
        refusal = [f"if not ({lengths}):", "    return False"]
        head = Head(f"{', '.join(letters)}, p, out", refusal, "return True", "return False")
    values = [f"{letter}{i}" for letter in letters for i in range(n)]
    body = [*head.lines, *(f"{value} = {value[0]}[{value[1:]}]" for value in values)]
    body += [f"if not ({_doubt(values)} == 0.0):", f"    {head.refused}"]
    body += [f"{value} = p[{value[1:]}]" for value in used(programs, "p")]
    for turn in turns:
        body += [
            f"angle = {turn.text}",
            f"if abs(angle) <= {LARGE!r}:",
            f"    s{turn.node}, c{turn.node} = sine_cosine(angle)",
            "else:",
            f"    s{turn.node}, c{turn.node} = math.sin(angle), math.cos(angle)",
        ]
    for printer in printers:
        body += printer.lines
    for i, shares in enumerate(zip(*(printer.results for printer in printers), strict=True)):
        body.append(f"out[{i}] = {total(shares)}")
    return function(f"{name}({head.arguments})", [*body, head.done])


def batch_source(name: str, n: int, rigid: Program, drive: Program) -> str:
    """`name(q, v, a, p, out) -> bool`: arrays (N, n) in, torque into `out`; False where some input is not finite.

    Each block is copied to the scratch with states along k, computed by loops over k that LLVM vectorises, and copied
    out with the drives' share, which calls library functions where there is sigmoid friction.
    """
    given, turns = _turns(rigid)
    rigid_printer, drive_printer = Printer(rigid, "t", given), Printer(drive, "d")
    rows = {f"{letter}{i}": LETTERS.index(letter) * n + i for letter in LETTERS for i in range(n)}
    for turn in turns:
        rows[f"s{turn.node}"] = len(rows)
        rows[f"c{turn.node}"] = len(rows)
    for i in range(n):
        rows[f"tau{i}"] = len(rows)

    def at(value: str) -> str:
        return f"x[{BLOCK * rows[value]} + k]"

    def loop(count: str | int, lines: Sequence[str]) -> list[str]:
        return [f"for k in range({count}):", *(f"    {line}" for line in lines)]

    def loads(values: Sequence[str]) -> list[str]:
        return [f"{value} = {at(value)}" for value in values]

    values = [f"{letter}{i}" for letter in LETTERS for i in range(n)]
    angles = total([f"abs({turn.text})" for turn in turns])
    block = [f"count = min({BLOCK}, q.shape[0] - start)"]
    block += loop("count", [f"{at(value)} = {value[0]}[start + k, {value[1:]}]" for value in values])
    block += ["doubt = 0.0", "largest = 0.0"]
    block += loop(BLOCK, [*loads(values), f"doubt += {_doubt(values)}", f"largest += {angles}"])
    block += ["if not (doubt == 0.0):", "    return False"]
    for turn in turns:
        results = f"{at(f's{turn.node}')}, {at(f'c{turn.node}')}"
        fast = loop(BLOCK, [*loads(turn.inputs), f"{results} = sine_cosine({turn.text})"])
        slow = loop(BLOCK, [*loads(turn.inputs), f"{results} = math.sin({turn.text}), math.cos({turn.text})"])
        block += [f"if largest <= {LARGE!r}:", *(f"    {line}" for line in fast)]
        block += ["else:", *(f"    {line}" for line in slow)]
    trigonometry = [f"{letter}{turn.node}" for turn in turns for letter in "sc"]
    block += loop(
        BLOCK,
        [
            *loads([value for value in values if value in rigid.inputs]),
            *loads(trigonometry),
            *rigid_printer.lines,
            *(f"{at(f'tau{i}')} = {result}" for i, result in enumerate(rigid_printer.results)),
        ],
    )
    block += loop(
        "count",
        [
            *loads(used([drive], "v") + used([drive], "a")),
            *drive_printer.lines,
            *(
                f"out[start + k, {i}] = {total([at(f'tau{i}'), share])}"
                for i, share in enumerate(drive_printer.results)
            ),
        ],
    )
    body = [f"x = np.zeros({BLOCK * len(rows)})"]
    body += [f"{value} = p[{value[1:]}]" for value in used([rigid, drive], "p")]
    body += [f"for start in range(0, q.shape[0], {BLOCK}):", *(f"    {line}" for line in block), "return True"]
    return function(f"{name}(q, v, a, p, out)", body)


def _doubt(values: Sequence[str]) -> str:
    """0 if all are finite, else NaN."""
    return " + ".join(f"({value} - {value})" for value in values)


def _turns(program: Program) -> tuple[dict[int, str], list[_Turn]]:
    """What stands for sines and cosines by node index (s3, c3 for those of node 3), and every angle that has one."""
    given: dict[int, str] = {}
    turns: dict[int, _Turn] = {}
    for step in program.steps:
        if step.op in ("sin", "cos"):
            (angle,) = step.args
            given[step.index] = f"{step.op[0]}{angle.index}"
            turns.setdefault(angle.index, _Turn(angle.index, inline(angle), leaves(angle)))
    return given, list(turns.values())
