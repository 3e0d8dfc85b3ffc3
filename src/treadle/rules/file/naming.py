"""What a rule's name means where it is written: rules of an included file see their own namespace first."""

from __future__ import annotations

from collections.abc import Container, Iterator

SEPARATOR = "::"


def joined(namespace: str, name: str) -> str:
    """The full name of a rule or namespace that stands in a namespace (empty: in none)."""
    return f"{namespace}{SEPARATOR}{name}" if namespace else name


def namespace_of(rule: str) -> str:
    """The namespace of a full name; empty where it has none."""
    return rule.rpartition(SEPARATOR)[0]


def meant(name: str, namespace: str, known: Container[str]) -> str:
    """The full name of the rule that `name` means in `namespace`.

    The innermost namespace that has it counts: in `a::b` the name `c` is `a::b::c`, else `a::c`, else `c`.
    The name as it is written where no namespace has it.
    """
    return next((full for full in _candidates(name, namespace) if full in known), name)


def _candidates(name: str, namespace: str) -> Iterator[str]:
    while namespace:
        yield joined(namespace, name)
        namespace = namespace_of(namespace)
    yield name
