"""Parameters of a pipeline function, set by `KEY=VALUE`: texts to values, by annotations and defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from typing import Any

from treadle.base.errors import OptionError
from treadle.base.names import did_you_mean
from treadle.base.place import Diagnostic

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_BY_NAME = {"int": int, "float": float, "bool": bool, "str": str}
_SEVERAL = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def arguments(
    function: Callable[..., Any], name: str, settings: Sequence[tuple[str, str]]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What to call a function with: `settings` are (parameter, text), the last one of a parameter counts.

    Raises `OptionError` with all that is wrong: unknown names, texts of another type, what is not given.
    """
    known = signature(function)
    wrong: list[Diagnostic] = []
    values: dict[str, Any] = {}
    for key, text in settings:
        parameter = _parameter(known, key, name, wrong)
        if parameter is not None:
            values[key] = _value(parameter, key, text, wrong)
    for each in known.parameters.values():
        if each.kind not in _SEVERAL and each.default is Parameter.empty and each.name not in dict(settings):
            hint = f"set it: {each.name}=VALUE"
            wrong.append(
                Diagnostic("missing-parameter", f"{name} needs a value for '{each.name}'", hint=hint)
            )
    if wrong:
        raise OptionError(wrong)
    first = {
        each.name: values.pop(each.name)
        for each in known.parameters.values()
        if each.kind is Parameter.POSITIONAL_ONLY and each.name in values
    }
    return tuple(first.values()), values


def _parameter(known: Signature, key: str, name: str, wrong: list[Diagnostic]) -> Parameter | None:
    found = known.parameters.get(key)
    if found is not None and found.kind not in _SEVERAL:
        return found
    rest = [one for one in known.parameters.values() if one.kind is Parameter.VAR_KEYWORD]
    if rest:
        return rest[0].replace(name=key, annotation=rest[0].annotation)
    names = [one.name for one in known.parameters.values() if one.kind not in _SEVERAL]
    hint = did_you_mean(key, names) or (f"there are: {', '.join(names)}" if names else "it takes none")
    wrong.append(Diagnostic("unknown-parameter", f"{name} has no parameter '{key}'", hint=hint))
    return None


def _value(parameter: Parameter, key: str, text: str, wrong: list[Diagnostic]) -> Any:
    kind, can_be_none = _kind(parameter)
    if kind is None:
        message = f"the parameter '{key}' is {parameter.annotation}, which no text of the command line can be"
        wrong.append(Diagnostic("bad-parameter", message, hint="it may be int, float, bool or str"))
        return None
    if can_be_none and text.lower() == "none" and kind is not str:
        return None
    try:
        return _WORDS[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        what = {int: "a whole number", float: "a number", bool: "true or false"}[kind]
        wrong.append(Diagnostic("bad-parameter", f"{key}={text}: '{key}' is {what}"))
        return None


def _kind(parameter: Parameter) -> tuple[type[Any] | None, bool]:
    """The type of a parameter, None where it is none that a text can be; and whether it may be None."""
    said = parameter.annotation
    if said is Parameter.empty:
        kind = type(parameter.default)
        return (kind if kind in _BY_NAME.values() else str), parameter.default is None
    text = (
        said
        if isinstance(said, str)
        else getattr(said, "__name__", "")
        if isinstance(said, type)
        else str(said)
    )
    text = text.replace("typing.", "").strip("'\" ")
    if text.startswith("Optional[") and text.endswith("]"):
        text = f"{text[9:-1]} | None"
    names = [one.strip() for one in text.split("|")]
    some = [one for one in names if one != "None"]
    return _BY_NAME.get(some[0]) if len(some) == 1 else None, len(some) < len(names)
