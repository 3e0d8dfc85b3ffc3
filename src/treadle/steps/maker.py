"""`@step`: a maker of steps out of a plain function, so that its parameters stand once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, overload

from treadle.base.errors import StepError
from treadle.base.names import did_you_mean
from treadle.steps.bound import CONTEXT, DEEPEST, PATH, Bound, copied
from treadle.steps.faults import Fault, made_at, refuse
from treadle.steps.given import function_of
from treadle.steps.record import STEP_MARK
from treadle.steps.remote import RemoteCallable
from treadle.steps.spec import StepSpec

if TYPE_CHECKING:
    from inspect import Signature

_PATH_NAMES = ("out", "out_path", "output_path")
_NO_OPTIONS = ("fn", "hash_attrs")  # what the function and its arguments are
_OPTIONS = ("name", *(name for name in StepSpec.__init__.__kwdefaults__ or () if name not in _NO_OPTIONS))


class StepMaker:
    """Makes a step of each call: the arguments are its hash_attrs, and the steps among them its deps.

    `fn` is the function as it was written, to be called as what it is.
    """

    __name__: str

    def __init__(
        self, fn: Callable[..., Any], name: str, deps: Iterable[StepSpec], options: dict[str, Any]
    ) -> None:
        self.fn = self.__wrapped__ = fn
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        self.__doc__ = fn.__doc__
        self._name = name or self.__name__
        self._deps = tuple(deps)
        self._options = options
        self._signature: Signature | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> StepSpec:
        """The step of these arguments; one that is not given has its default. Raises `StepError`."""
        given = self._bind(args, kwargs)
        deps = dict.fromkeys(self._deps)
        attrs = {name: _marked(value, deps, 0) for name, value in given.items()}
        return StepSpec(
            self._name, fn=self._bound(given), hash_attrs=attrs, deps=tuple(deps), **self._options
        )

    def __repr__(self) -> str:
        return f"StepMaker({self._name})"

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        whole = self._whole()
        slots = _slots(whole)
        asked = [one for name, one in whole.parameters.items() if name not in slots]
        try:
            if taken := next((name for name in kwargs if name in slots), ""):
                raise TypeError(f"{taken} is given by the run")
            found = whole.replace(parameters=asked).bind(*args, **kwargs)
        except TypeError as error:
            raise StepError(
                f"step {self._name!a} cannot be made of these arguments: {error}",
                place=made_at(),
                hint=f"its parameters are ({', '.join(one.name for one in asked)})",
                code="step-arguments",
            ) from None
        found.apply_defaults()
        return found.arguments

    def _whole(self) -> Signature:
        if self._signature is None:
            from inspect import signature

            self._signature = signature(self.fn)
        return self._signature

    def _bound(self, given: dict[str, Any]) -> Callable[..., Any]:
        """The function with these arguments, in the order of its parameters."""
        whole = self._whole()
        slots = _slots(whole)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, one in whole.parameters.items():
            value = slots[name] if name in slots else copied(given[name])
            match one.kind:
                case one.VAR_POSITIONAL:
                    args += value
                case one.VAR_KEYWORD:
                    kwargs |= value
                case one.KEYWORD_ONLY:
                    kwargs[name] = value
                case _:
                    args.append(value)
        if isinstance(self.fn, RemoteCallable):
            inner = Bound(self.fn.fn, tuple(args), kwargs)
            return RemoteCallable(inner, self.fn.resources, self.fn.env_vars, self.fn.name)
        return Bound(self.fn, tuple(args), kwargs)


def _slots(whole: Signature) -> dict[str, Any]:
    """The parameters that are no arguments of the step: a first one that is the path, and `ctx`."""
    slots: dict[str, Any] = {}
    for number, name in enumerate(whole.parameters):
        if number == 0 and name in _PATH_NAMES:
            slots[name] = PATH
        elif name == "ctx":
            slots[name] = CONTEXT
    return slots


def _marked(value: Any, deps: dict[StepSpec, None], depth: int) -> Any:
    """The value as it bears identity: of a step in it, which becomes a dep, its name with its hash."""
    if isinstance(value, StepSpec):
        deps[value] = None
        return {STEP_MARK: value.name_with_hash}
    if depth > DEEPEST:
        return value  # refused with the other values
    if isinstance(value, dict):
        return {key: _marked(one, deps, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_marked(one, deps, depth + 1) for one in value]
    return value


@overload
def step(fn: Callable[..., Any], /) -> StepMaker: ...
@overload
def step(
    *, name: str = "", deps: Iterable[StepSpec] = (), **options: Any
) -> Callable[[Callable[..., Any]], StepMaker]: ...
def step(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    deps: Iterable[StepSpec] = (),
    **options: Any,
) -> Any:
    """Make a step maker of a plain function: `@step`, `@step(version="2", resources=...)`.

    Each call of the maker gives a `StepSpec`. Its arguments, defaults with them, are the hash_attrs; steps
    among them (in lists and mappings, too) become deps, and the function gets them as they are, for
    `ctx.path(step)` and `ctx.load(step)`. Tuples arrive as lists. Two parameters are no arguments: a first
    one named `out` (or `out_path`, `output_path`) is the path to write to, and one named `ctx` is the
    context. `name` is the function's where it is not said, and `options` are those of `StepSpec`.
    """

    def make(fn: Callable[..., Any]) -> StepMaker:
        faults = [
            Fault("unknown-option", option, "a step has no such option", did_you_mean(option, _OPTIONS))
            for option in options
            if option not in _OPTIONS
        ]
        inner = fn.fn if isinstance(fn, RemoteCallable) else fn
        if not isinstance(inner, FunctionType):
            faults.append(Fault("not-callable", "fn", f"a plain function is wanted, not {fn!r}"))
        function_of("function", fn, faults)
        if faults:
            raise refuse(f"@step of {getattr(fn, '__name__', fn)!r}", faults)
        return StepMaker(fn, name, deps, options)

    return make if fn is None else make(fn)
