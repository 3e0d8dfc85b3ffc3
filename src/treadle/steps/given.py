"""What a person gave a step, field by field: checked, and in the one form that it is kept in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from treadle.base.units import parse_duration
from treadle.plan.paths import is_url, normal
from treadle.steps.canon import NO_ATTRS, FrozenDict, freeze
from treadle.steps.faults import Fault
from treadle.steps.paths import unfit_name, unfit_override
from treadle.steps.remote import RemoteCallable
from treadle.steps.resources import ResourceConfig

if TYPE_CHECKING:
    from treadle.steps.spec import StepSpec

_PIN = re.compile(r"[0-9a-f]{12,32}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_HAS_REST, _IS_GENERATOR, _IS_COROUTINE = 0x04, 0x20, 0x80 | 0x200
Faults = list[Fault]


def name_of(name: Any, faults: Faults) -> str:
    """The step's name."""
    if wrong := unfit_name(name):
        faults.append(Fault("step-name", "name", f"{name!a}: {wrong}"))
    return str(name)


def attrs_of(attrs: Any, faults: Faults) -> dict[str, Any]:
    """The values that bear identity, as a frozen copy in JSON's types."""
    if not attrs and (attrs is None or isinstance(attrs, Mapping)):
        return NO_ATTRS
    if isinstance(attrs, Mapping):
        frozen: FrozenDict = freeze(dict(attrs), "hash_attrs", faults)
        return frozen
    what = f"a mapping of names to values is wanted, not {type(attrs).__name__}"
    faults.append(Fault("attrs-not-mapping", "hash_attrs", what))
    return NO_ATTRS


def deps_of(deps: Any, kind: type[StepSpec], faults: Faults) -> tuple[StepSpec, ...]:
    """The steps that this one builds on."""
    if deps is None:
        return ()
    if isinstance(deps, str | Mapping | kind) or not isinstance(deps, Iterable):
        what = f"a list of steps is wanted, not {type(deps).__name__}"
        hint = "write deps=[step]" if isinstance(deps, kind) else ""
        faults.append(Fault("dep-not-step", "deps", what, hint))
        return ()
    found = tuple(deps)
    for number, dep in enumerate(found):
        if not isinstance(dep, kind):
            what = f"a step is wanted, not {dep!r}"
            hint = "call the step maker: it makes the step" if callable(dep) else ""
            faults.append(Fault("dep-not-step", f"deps[{number}]", what, hint))
    return found


def text_of(where: str, value: Any, faults: Faults) -> str:
    """A text; empty where nothing was said."""
    if value is None:
        return ""
    if not isinstance(value, str):
        faults.append(Fault("not-a-text", where, f"a text is wanted, not {value!r}"))
        return ""
    if not value.isascii() or "\0" in value:
        _unicode(where, value, faults)
    return value


def _unicode(where: str, value: str, faults: Faults) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        faults.append(Fault("not-unicode", where, f"{value!a} holds half a character (a lone surrogate)"))
    if "\0" in value:
        faults.append(Fault("not-a-text", where, f"{value!a} holds a NUL"))


def prefix_of(prefix: Any, faults: Faults) -> str | None:
    """A prefix: a path or URL."""
    text = _path_text("output_path_prefix", prefix, faults)
    if text is not None and not text.strip():
        faults.append(Fault("output-path", "output_path_prefix", "it is empty"))
    return text


def override_of(override: Any, faults: Faults) -> str | None:
    """An output path that a person chose: a path or URL, without a slash at its end."""
    text = _path_text("override_output_path", override, faults)
    if text is not None and (wrong := unfit_override(text)):
        faults.append(Fault("output-path", "override_output_path", f"{text!a}: {wrong}"))
    return text and text.rstrip("/")


def _path_text(where: str, value: Any, faults: Faults) -> str | None:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(text, str):
        return text_of(where, text, faults)
    faults.append(Fault("output-path", where, f"a path or URL is wanted, not {value!r}"))
    return None


def inputs_of(inputs: Any, faults: Faults) -> tuple[str, ...]:
    """The files that the step reads, in their one spelling, each once."""
    if not inputs and not isinstance(inputs, str):
        return ()
    if isinstance(inputs, str | os.PathLike) or not isinstance(inputs, Iterable):
        faults.append(Fault("input-not-path", "inputs", "a list of paths is wanted", "write inputs=['...']"))
        return ()
    found = []
    for number, path in enumerate(inputs):
        where = f"inputs[{number}]"
        if not isinstance(path, str | os.PathLike):
            faults.append(Fault("input-not-path", where, f"a path is wanted, not {path!r}"))
        elif (text := text_of(where, os.fspath(path), faults)) and is_url(text):
            hint = "name it in hash_attrs, and let the function read it; or let a step bring it"
            faults.append(
                Fault("input-not-path", where, f"{text!r} is a URL, not a file of this machine", hint)
            )
        elif text:
            found.append(normal(text))
        else:
            faults.append(Fault("input-not-path", where, "the path is empty"))
    return tuple(dict.fromkeys(found))


def env_of(env: Any, faults: Faults) -> dict[str, str]:
    """The environment variables of the step."""
    if not env and (env is None or isinstance(env, Mapping)):
        return NO_ATTRS
    if not isinstance(env, Mapping):
        faults.append(Fault("env-not-mapping", "env_vars", "a mapping of names to texts is wanted"))
        return NO_ATTRS
    for name, value in env.items():
        if not isinstance(name, str) or not _VARIABLE.match(name):
            faults.append(Fault("env-name", "env_vars", f"{name!r} is no name of a variable"))
        elif not isinstance(value, str):
            faults.append(Fault("env-value", f"env_vars.{name}", f"a text is wanted, not {value!r}"))
        else:
            text_of(f"env_vars.{name}", value, faults)
    return FrozenDict(env)


def seconds_of(where: str, value: Any, faults: Faults) -> float | None:
    """A duration in seconds: a number of them, a text such as `90m`, or a `timedelta`."""
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return parse_duration(value)
        seconds = float(value.total_seconds()) if hasattr(value, "total_seconds") else float(value)
    except (ValueError, TypeError, OverflowError) as error:
        faults.append(Fault("not-a-duration", where, str(error)))
        return None
    if not 0 < seconds < float("inf") or isinstance(value, bool):
        faults.append(Fault("not-a-duration", where, f"seconds above 0 are wanted, not {value!r}"))
    return seconds


def count_of(where: str, value: Any, least: int, faults: Faults) -> int:
    """A whole number, `least` or more (and `least` where nothing was said)."""
    if value is None:
        return least
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        faults.append(Fault("not-a-count", where, f"a whole number from {least} on is wanted, not {value!r}"))
        return least
    return value


def one_of(where: str, value: Any, known: tuple[str, ...], faults: Faults) -> str:
    """One of a few words; the first where nothing was said."""
    if value is None:
        return known[0]
    if not isinstance(value, str) or value not in known:
        told = " or ".join(repr(word) for word in known if word)
        faults.append(Fault("unknown-word", where, f"{value!r} is not {told}"))
        return known[0]
    return value


def pin_of(value: Any, faults: Faults) -> str:
    """The identity that the step must have: all of it, or 12 digits and more from its start."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not _PIN.match(value):
        what = f"{value!r} is no identity: 12 to 32 hex digits"
        faults.append(Fault("expected-identity", "expected_identity", what))
        return ""
    return value


def function_of(where: str, fn: Any, faults: Faults) -> Any:
    """A function, of which calling it can work: with one positional argument, and `ctx` where it has that."""
    if fn is None:
        return None
    if not callable(fn):
        faults.append(Fault("not-callable", where, f"a function is wanted, not {fn!r}"))
        return None
    inner = fn.fn if isinstance(fn, RemoteCallable) else fn
    if isinstance(inner, FunctionType | MethodType):
        _see_flags(where, inner, faults)
        if where == "fn" and isinstance(inner, FunctionType) and "__wrapped__" not in inner.__dict__:
            _see_parameters(where, inner, faults)
    return fn


def _see_flags(where: str, fn: FunctionType | MethodType, faults: Faults) -> None:
    flags = fn.__code__.co_flags
    if not flags & (_IS_COROUTINE | _IS_GENERATOR):
        return
    if flags & _IS_COROUTINE:
        faults.append(
            Fault("function-async", where, f"{fn.__name__} is async: calling it would do nothing",
                  "give a plain function that calls asyncio.run(...)")
        )  # fmt: skip
    elif flags & _IS_GENERATOR and where != "grow":
        what = f"{fn.__name__} is a generator: calling it would do nothing"
        faults.append(Fault("function-generator", where, what))


def _see_parameters(where: str, fn: FunctionType, faults: Faults) -> None:
    code = fn.__code__
    count = code.co_argcount
    if count == 1 and not code.co_kwonlyargcount and code.co_varnames[0] != "ctx":
        return  # nearly always so
    names = code.co_varnames
    needed = [name for name in names[: count - len(fn.__defaults__ or ())] if name != "ctx"]
    only = names[count : count + code.co_kwonlyargcount]
    unset = [name for name in only if name != "ctx" and name not in (fn.__kwdefaults__ or {})]
    takes_path = code.co_flags & _HAS_REST or (count and names[0] != "ctx")
    if not takes_path:
        what = f"{fn.__name__} takes no positional argument: it is called with the path to write to"
        faults.append(
            Fault("function-parameters", where, what, "write it as def f(out): ..., or f(out, ctx)")
        )
    elif missing := [*needed[1:], *unset]:
        what = f"{fn.__name__} wants {', '.join(missing)}: it is called with the path to write to, and ctx"
        hint = f"give a default ({missing[0]}=...), and read parameters from ctx.attrs"
        faults.append(Fault("function-parameters", where, what, hint))


def resources_of(resources: Any, faults: Faults) -> ResourceConfig | None:
    """A `ResourceConfig`, or None."""
    if resources is None or isinstance(resources, ResourceConfig):
        return resources
    what = f"a ResourceConfig is wanted, not {resources!r}"
    faults.append(Fault("not-resources", "resources", what, "write ResourceConfig(cpu=4, memory_gb=16)"))
    return None
