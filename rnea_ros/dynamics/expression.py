"""Symbols that the recursion can run on: a graph of operations in which every value stands once.

Building a node folds constants, zeros and ones, moves signs outwards until a sum absorbs them, and returns the node
that already exists where the same operation on the same arguments was asked for before (hash consing). What is equal
is thus shared without a search, and what is multiplied by zero never comes to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class Node:
    """One value: an operation on earlier nodes, an input by name, or a constant."""

    __slots__ = ("graph", "index", "op", "args", "value")

    def __init__(self, graph: Graph, index: int, op: str, args: tuple[Node, ...], value: Any) -> None:
        self.graph = graph
        self.index = index
        self.op = op  # add, sub, mul, neg, const, input, or the name of a function of one argument
        self.args = args
        self.value = value  # of a constant (float) or an input (its name)

    def __add__(self, other: Any) -> Node:
        return self.graph.add(self, self.graph.node(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Node:
        return self.graph.add(self, self.graph.negate(self.graph.node(other)))

    def __rsub__(self, other: Any) -> Node:
        return self.graph.add(self.graph.node(other), self.graph.negate(self))

    def __mul__(self, other: Any) -> Node:
        return self.graph.multiply(self, self.graph.node(other))

    __rmul__ = __mul__

    def __neg__(self) -> Node:
        return self.graph.negate(self)


class Graph:
    """All nodes of one computation. A node's arguments have smaller indices than the node."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._known: dict[tuple[Any, ...], Node] = {}

    def input(self, name: str) -> Node:
        """A value that is given at run time."""
        return self._make("input", (), name)

    def constant(self, value: float) -> Node:
        return self._make("const", (), float(value))

    def node(self, value: Any) -> Node:
        return value if isinstance(value, Node) else self.constant(value)

    def call(self, function: str, argument: Node) -> Node:
        """A function of one argument, by the name that the printed code gives it."""
        return self._make(function, (argument,), None)

    def negate(self, a: Node) -> Node:
        if a.op == "const":
            return self.constant(-a.value)
        if a.op == "neg":
            return a.args[0]
        return self._make("neg", (a,), None)

    def add(self, a: Node, b: Node) -> Node:
        if a.op == "const" and b.op == "const":
            return self.constant(a.value + b.value)
        if _is(a, 0.0):
            return b
        if _is(b, 0.0):
            return a
        if a.op == "neg" and b.op == "neg":  # −a − b = −(a + b)
            return self.negate(self.add(a.args[0], b.args[0]))
        if a.op == "neg":
            return self._subtract(b, a.args[0])
        if b.op == "neg":
            return self._subtract(a, b.args[0])
        return self._make("add", _ordered(a, b), None)

    def _subtract(self, a: Node, b: Node) -> Node:
        if a is b:
            return self.constant(0.0)
        if a.index > b.index:  # one order only, so that a − b and b − a are shared
            return self.negate(self._make("sub", (b, a), None))
        return self._make("sub", (a, b), None)

    def multiply(self, a: Node, b: Node) -> Node:
        if b.op == "const":
            a, b = b, a
        if a.op == "neg" or b.op == "neg":
            sign = (a.op == "neg") != (b.op == "neg")
            product = self.multiply(_unsigned(a), _unsigned(b))
            return self.negate(product) if sign else product
        if a.op == "const":
            if b.op == "const":
                return self.constant(a.value * b.value)
            if a.value == 0.0:
                return a
            if a.value < 0.0:
                return self.negate(self.multiply(self.constant(-a.value), b))
            if a.value == 1.0:
                return b
            if b.op == "mul" and b.args[0].op == "const":
                return self.multiply(self.constant(a.value * b.args[0].value), b.args[1])
            return self._make("mul", (a, b), None)
        return self._make("mul", _ordered(a, b), None)

    def _make(self, op: str, args: tuple[Node, ...], value: Any) -> Node:
        key = (op, value, *(arg.index for arg in args))
        known = self._known.get(key)
        if known is None:
            known = Node(self, len(self._nodes), op, args, value)
            self._nodes.append(known)
            self._known[key] = known
        return known


def _is(node: Node, value: float) -> bool:
    return node.op == "const" and bool(node.value == value)


def _unsigned(node: Node) -> Node:
    return node.args[0] if node.op == "neg" else node


def _ordered(a: Node, b: Node) -> tuple[Node, Node]:
    """A commutative operation's arguments in one order, constants first."""
    if a.op == "const" or (b.op != "const" and a.index <= b.index):
        return a, b
    return b, a


@dataclass(frozen=True)
class Program:
    """What is needed for some outputs, in an order in which arguments come first: straight-line code."""

    steps: tuple[Node, ...]  # operations and functions alone
    inputs: tuple[str, ...]  # names in use
    outputs: tuple[Node, ...]

    @property
    def operations(self) -> int:
        """Additions, subtractions, multiplications and negations."""
        return sum(step.op in ("add", "sub", "mul", "neg") for step in self.steps)


def program(outputs: Sequence[Node]) -> Program:
    """Everything that the outputs need and nothing else, each value close to its first use (depth first)."""
    seen: set[int] = set()
    steps: list[Node] = []
    inputs: list[str] = []
    for output in outputs:
        stack = [output]
        while stack:
            node = stack[-1]
            if node.index in seen:
                stack.pop()
                continue
            waiting = [arg for arg in node.args if arg.index not in seen]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            seen.add(node.index)
            if node.op == "input":
                inputs.append(node.value)
            elif node.op != "const":
                steps.append(node)
    return Program(tuple(steps), tuple(inputs), tuple(outputs))
