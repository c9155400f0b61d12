"""From programs to the text of Python: the printer, and the function for one state that plain Python runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rnea_ros.dynamics.expression import Node, Program

SYMBOLS = {"add": "+", "sub": "-", "mul": "*"}
DEPTH = 12  # nested operations in one printed line, at most


class Printer:
    """Prints a program as lines of assignments; a value that is used once is printed where it is used."""

    def __init__(self, program: Program, prefix: str = "t", given: Mapping[int, str] | None = None) -> None:
        """prefix of the names of values. given: the text that stands for a node, by index, where it is known
        already."""
        self._prefix = prefix
        self._given = dict(given or {})
        self._uses = Counter(arg.index for step in program.steps for arg in step.args)
        self._uses.update(output.index for output in program.outputs)
        self._depth: dict[int, int] = {}
        self.lines: list[str] = []
        for step in program.steps:
            if step.index not in self._given:
                self._compute(step)
        self.results = [self.text(output) for output in program.outputs]

    def text(self, node: Node) -> str:
        """What stands for the node's value."""
        if node.op == "const":
            return repr(node.value) if node.value >= 0.0 else f"({node.value!r})"
        if node.op == "input" and node.index not in self._given:
            return str(node.value)
        return self._given[node.index]

    def _compute(self, node: Node) -> None:
        args = [self.text(arg) for arg in node.args]
        depth = 1 + max(self._depth.get(arg.index, 0) for arg in node.args)
        if node.op == "neg":
            text = f"(-{args[0]})"
        elif node.op in SYMBOLS:
            text = f"({args[0]} {SYMBOLS[node.op]} {args[1]})"
        else:
            text = f"{node.op}({args[0]})"
        if self._uses[node.index] > 1 or depth > DEPTH:
            name = f"{self._prefix}{node.index}"
            self.lines.append(f"{name} = {text}")
            text, depth = name, 0
        self._given[node.index] = text
        self._depth[node.index] = depth


def inline(node: Node) -> str:
    """The text of a small expression, with nothing named."""
    if node.op in ("const", "input"):
        return str(node.value) if node.op == "input" else repr(node.value)
    args = [inline(arg) for arg in node.args]
    if node.op in SYMBOLS:
        return f"({args[0]} {SYMBOLS[node.op]} {args[1]})"
    return f"(-{args[0]})" if node.op == "neg" else f"{node.op}({args[0]})"


def leaves(node: Node) -> tuple[str, ...]:
    """Names of the inputs that an expression uses."""
    if node.op == "input":
        return (str(node.value),)
    return tuple(dict.fromkeys(name for arg in node.args for name in leaves(arg)))


def used(programs: Iterable[Program], letter: str) -> list[str]:
    """Names of the inputs with this letter that some program uses, in order."""
    names = {name for program in programs for name in program.inputs if name.startswith(letter)}
    return sorted(names, key=lambda name: int(name[1:]))


def total(shares: Sequence[str]) -> str:
    """The text of a sum; shares that are zero are left out."""
    return " + ".join(share for share in shares if share != "0.0") or "0.0"


def function(head: str, body: Sequence[str]) -> str:
    """The text of a function."""
    return f"def {head}:\n" + "".join(f"    {line}\n" for line in body)


def single_source(name: str, letters: str, n: int, programs: Sequence[Program]) -> str:
    """`name(q, v, a, p)` for one state: sequences of n floats in, a list of n torques out, the programs' sum.

    letters: which of q, v and a the function takes besides the run-time vector p.
    """
    printers = [Printer(program, prefix) for program, prefix in zip(programs, "td", strict=False)]
    body = [f"({', '.join(f'{letter}{i}' for i in range(n))},) = {letter}" for letter in letters]
    body += [f"{name} = p[{name[1:]}]" for name in used(programs, "p")]
    for printer in printers:
        body += printer.lines
    results = [total(shares) for shares in zip(*(printer.results for printer in printers), strict=True)]
    body.append(f"return [{', '.join(results)}]")
    return function(f"{name}({', '.join(letters)}, p)", body)
