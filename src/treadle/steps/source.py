"""The source of a function as a text in which only what it does is left, read from the file of its code."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.base.digest import blake2b
from treadle.steps.edited import changed_since_start, compiled, future_flags, same_code

if TYPE_CHECKING:
    import ast

    Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FILES = 64
_DOCUMENTED = ("FunctionDef", "AsyncFunctionDef", "ClassDef")
_LEFT_OUT = frozenset(("type_comment", "kind", "ctx"))
_EARLIER = 3  # states of a file that are kept beside the one of now
_Index = dict[tuple[int, str], list["Node"]]
_states: dict[str, list[State]] = {}  # by file, the latest last


class Source(Struct, frozen=True):
    """A function's syntax tree as a digest, and the outer variables that it gives new values (`nonlocal`)."""

    digest: str
    rebound: frozenset[str] = frozenset()


class State:
    """A file as it was when it was read."""

    def __init__(self, file: str, lines: list[str]) -> None:
        self.lines = lines
        self.index = _indexed(lines)
        self._file = file
        self._compiled: dict[int, list[CodeType]] = {}

    def holds(self, code: CodeType) -> bool:
        """Whether this code is what these lines say."""
        flags = code.co_flags & future_flags()
        if flags not in self._compiled:
            self._compiled[flags] = compiled("".join(self.lines), self._file, flags)
        return any(same_code(code, one) for one in self._compiled[flags])


def source_of(code: CodeType, module: dict[str, Any]) -> Source | None:
    """The source of a code object; None where it cannot be read, or more than one could be it."""
    node = _node(code, module)
    if node is None:
        return None
    import ast

    rebound = [name for one in ast.walk(node) if isinstance(one, ast.Nonlocal) for name in one.names]
    text = _dump(node).encode("utf-8", "backslashreplace")
    return Source(blake2b(text, digest_size=16).hexdigest(), frozenset(rebound))


def _node(code: CodeType, module: dict[str, Any]) -> Node | None:
    """The function in the file: by its first line and name, and of several by the span of their body."""
    index = _index(code.co_filename, code, module)
    found = index.get((code.co_firstlineno, code.co_name), [])
    found = [node for node in found if _parameters(node) == _first_names(code)]
    if len(found) > 1:
        spans = set(code.co_positions())
        found = [node for node in found if _span(node) in spans]
    return found[0] if len(found) == 1 else None


def _first_names(code: CodeType) -> list[str]:
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def _parameters(node: Node) -> list[str]:
    given = node.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _span(node: Node) -> tuple[int | None, ...]:
    """Line, last line, column, last column of what a lambda gives: the span of its last instruction."""
    last = node.body[-1] if isinstance(node.body, list) else node.body
    return last.lineno, last.end_lineno, last.col_offset, last.end_col_offset


def _index(file: str, code: CodeType, module: dict[str, Any]) -> _Index:
    """All functions of the file of a code object, by first line and name. Parsed once per state of the file.

    A file may have been edited since the code was read from it: then its state of before, if it was seen.
    """
    import linecache

    linecache.checkcache(file)
    lines = linecache.getlines(file, module)
    states = _states.get(file)
    if states is None:
        if len(_states) >= _FILES:
            _states.clear()
        states = _states[file] = []
    if not states or states[-1].lines is not lines:
        states[:] = [*states[-_EARLIER:], State(file, lines)]
    if len(states) == 1 and not changed_since_start(file):
        return states[-1].index
    return next((state.index for state in reversed(states) if state.holds(code)), {})


def _indexed(lines: list[str]) -> _Index:
    import ast

    index: _Index = {}
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return index
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            index.setdefault((node.lineno, "<lambda>"), []).append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            index.setdefault((first, node.name), []).append(node)
    return index


def _dump(root: Node) -> str:
    """The tree as text, without positions, docstrings and what is empty. An own one, without recursion:
    what `ast.dump` writes changes with the version of Python.
    """
    import ast

    parts: list[str] = []
    stack: list[Any] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif isinstance(item, ast.AST):
            stack.append(")")
            for name, value in reversed(list(_fields(item, root))):
                stack += [value, f"{name}="]
            parts.append(f"{type(item).__name__}(")
        elif isinstance(item, list):
            stack.append("]")
            stack.extend(reversed(item))
            parts.append("[")
        elif item is None:  # `def f(out, *, ctx)`: no default in the list of defaults
            parts.append("None")
        else:
            parts.append(item.text)
    return "\n".join(parts)


class _Leaf(Struct):
    text: str


def _fields(node: ast.AST, root: ast.AST) -> Iterator[tuple[str, Any]]:
    kind = type(node).__name__
    for name in node._fields:
        value: Any = getattr(node, name, None)
        if value is None and not (kind == "Constant" and name == "value"):
            continue
        if name in _LEFT_OUT or value == [] or (node is root and name == "decorator_list"):
            continue
        if name == "body" and kind in _DOCUMENTED:
            value = _without_docstring(value)
        yield name, value if isinstance(value, list) or hasattr(value, "_fields") else _leaf(value)


def _leaf(value: Any) -> _Leaf:
    return _Leaf(f"{type(value).__name__}:{value!r}")


def _without_docstring(body: list[Any]) -> list[Any]:
    first = body[0]
    text = getattr(getattr(first, "value", None), "value", None)
    return body[1:] if type(first).__name__ == "Expr" and isinstance(text, str) else body
