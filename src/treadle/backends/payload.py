"""What goes to the process that calls a step's function: one private file, and what makes sure of that.

    one line of JSON that any version can read, then the order with its function, by cloudpickle

Pickles run code as they are read: the file stands in a folder that only its owner can enter, and is read only
when both are ours.
"""

from __future__ import annotations

import os
import pickle
import stat
import sys
from collections import ChainMap
from functools import cache
from io import BytesIO
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import Struct

from treadle import __version__
from treadle.base.disk import disk_error
from treadle.base.errors import StepError
from treadle.base.files import remove, write_whole
from treadle.base.place import Diagnostic
from treadle.steps.loading import loading
from treadle.steps.order import Order
from treadle.steps.perform import in_a_line

if TYPE_CHECKING:
    from treadle.steps.book import Entry
from treadle.steps.stores import refuse_elsewhere

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
_NO_FILE = "<dynamic-code>"  # what cloudpickle puts in the place of a code's file
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700


class Head(Struct, frozen=True, kw_only=True):
    """The first line of a payload: who wrote it, where its modules are found, where the answer goes.

    `argv` are the words of the driver's own command, for functions that look at them.
    """

    python: str
    treadle: str
    path: tuple[str, ...]
    answer: str
    argv: tuple[str, ...] = ()


def worker_argv(payload: str) -> tuple[str, ...]:
    """The command of a worker. `-P`: what stands in the work folder is not taken for modules of Python."""
    return (sys.executable, "-P", "-m", "treadle.backends.worker", payload)


def check_picklable(entry: Entry) -> Diagnostic | None:
    """Why a step's function cannot be sent to another process (None: it can)."""
    try:
        _dumps(entry.spec.fn)
    except Exception as error:
        return _unpicklable(entry.spec.name, error)
    return None


def _unpicklable(name: str, error: Exception) -> Diagnostic:
    return Diagnostic(
        "function-not-picklable",
        f"the function of step '{name}' cannot be sent to another process: {in_a_line(error)}",
        hint="open what it closes over (a lock, a file, a connection) inside of the function; or let it run "
        "in a thread of the driver: no resources, timeout, env_vars or isolation",
    )


def encode(order: Order, answer: str) -> bytes:
    """A payload whose answer is to be written to the path `answer`. Raises `StepError`."""
    refuse_elsewhere(order.name, [order.path, *(dep.path for dep in order.deps)])
    path = tuple(os.path.abspath(one) for one in sys.path)
    head = Head(python=PYTHON, treadle=__version__, path=path, answer=answer, argv=tuple(sys.argv))
    try:
        body = _dumps(order)
    except Exception as error:
        raise StepError([_unpicklable(order.name, error)]) from error
    return msgspec.json.encode(head) + b"\n" + body


def _dumps(value: object) -> bytes:
    return dumps(value, value.fn if isinstance(value, Order) else value)


def dumps(value: object, fn: object) -> bytes:
    """Pickle `value`; the module of `fn` goes along where no other process can import it."""
    import cloudpickle  # type: ignore[import-untyped]

    module = _module_of(fn)
    if module is not None and not _is_importable(module):
        cloudpickle.register_pickle_by_value(module)
    file = BytesIO()
    _pickler()(file).dump(value)
    return file.getvalue()


@cache
def _pickler() -> Any:
    """The pickler of cloudpickle, but code keeps the name of its file, so that tracebacks show its lines, and
    dataclasses of a script can be sent though values of them were loaded."""
    import cloudpickle

    reduce_code = cloudpickle.Pickler.dispatch_table.get(CodeType)
    if reduce_code is None:
        return cloudpickle.Pickler

    def with_file(code: CodeType) -> tuple[Any, ...]:
        make, given, *more = reduce_code(code)
        return make, tuple([code.co_filename if one == _NO_FILE else one for one in given]), *more

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap({CodeType: with_file}, cloudpickle.Pickler.dispatch_table)

        def reducer_override(self, obj: object) -> Any:
            found = super().reducer_override(obj)
            if isinstance(obj, type) and isinstance(found, tuple) and len(found) > 2:
                for state in found[2] if isinstance(found[2], tuple) else ():
                    if isinstance(state, dict):  # what msgspec notes in a dataclass that was loaded
                        state.pop("__msgspec_cache__", None)
            return found

    return Pickler


def _module_of(fn: Any) -> Any:
    """The module in which the function stands that others may be wrapped around."""
    while inner := getattr(fn, "__wrapped__", None) or getattr(fn, "func", None):
        fn = inner
    return sys.modules.get(getattr(fn, "__module__", None) or "")


_importable: dict[str, bool] = {}


def _is_importable(module: Any) -> bool:
    """Whether another process finds this very module by its name. (`__main__` goes by value anyway.)"""
    name = module.__name__
    known = _importable.get(name)
    if known is None:
        known = _importable[name] = name == "__main__" or _finds(module)
    return known


def _finds(module: Any) -> bool:
    name = module.__name__
    parent = name.rpartition(".")[0]
    if parent:  # as findable as the package that it is of
        return parent in sys.modules and _is_importable(sys.modules[parent])
    if getattr(module, "__file__", None) is None:
        return name in sys.builtin_module_names or hasattr(module, "__path__")
    for finder in sys.meta_path:  # not find_spec of importlib: that asks the module itself
        try:
            found = finder.find_spec(name, None)
        except (ImportError, ValueError, AttributeError):
            continue
        if found is not None:
            return bool(found.origin == module.__file__)
    return False


def make_private_folder(folder: str) -> None:
    """Make the folder of payloads, for its owner alone. Raises `DiskError`."""
    try:
        os.mkdir(folder, _PRIVATE_FOLDER)
    except FileExistsError:
        pass
    except OSError as error:
        raise disk_error("make the folder", folder, error) from error


def write_payload(path: str, payload: bytes, answer: str) -> None:
    """Write a payload for its owner alone; an answer of an earlier try is removed. Raises `DiskError`."""
    remove(answer)
    write_whole(path, payload, _PRIVATE_FILE)


def read_payload(path: str) -> tuple[Head, bytes]:
    """The head of a payload and its pickle, unread. Raises `StepError` when it is not ours; OSErrors."""
    for place in (os.path.dirname(path), path):
        found = os.lstat(place)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise StepError(
                f"will not read the pickle {path}: {place} can be written or read by others",
                hint="it must be owned by who runs the worker, 0700 the folder and 0600 the file",
                code="payload-not-private",
            )
    with open(path, "rb") as file:
        head = msgspec.json.decode(file.readline(), type=Head)
        return head, file.read()


def disagreement(head: Head) -> str:
    """Why a payload cannot be read by this Python (empty: it can)."""
    wrote, reads = (head.python, head.treadle), (PYTHON, __version__)
    if wrote == reads:
        return ""
    return (
        f"the driver runs Python {wrote[0]} with Treadle {wrote[1]}, the worker Python {reads[0]} with "
        f"Treadle {reads[1]}: functions can only be sent between equal ones"
    )


def decode(body: bytes) -> Order:
    """The order in a payload. Raises whatever reading its function raises."""
    with loading():
        order: Order = pickle.loads(body)
    return order
