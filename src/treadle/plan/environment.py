"""A software environment as a value: what a command runs in, and what makes it where something has to."""

from __future__ import annotations

from msgspec import Struct


class Making(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How an environment is made, once: by the task `task`, whose command is `text` (for bash).

    `place` is the folder or file that it makes, `probe` a path that is there when it is whole, `ready` a file
    that says so: it holds `digest` and where `place` is, for most environments cannot be moved. All paths are
    in token form. `tools` are programs of which the making needs one.
    """

    task: str
    text: str
    place: str
    probe: str
    ready: str
    digest: str
    tools: tuple[str, ...] = ()


class Environment(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What the commands of a rule run in: one object, shared by all its tasks.

    `kind` is the author's word for it. `said` are the words that identify it, by the author's names, and
    `content` the digest of its file: these two are of a command's identity, and nothing else here is.
    `entry` is text for bash that ends by becoming its arguments (`"$@"`) in the environment; its tokens are
    filled for each attempt. `container` is the program whose options it takes, where it is one, `bound`
    are folders that the author binds (token form), and `reads` paths that are to be seen inside besides those
    of the task. `tools` are programs of which entering
    needs one, `wanted` what must be there already (token form).
    """

    kind: str
    said: tuple[tuple[str, str], ...]
    content: str = ""
    entry: str
    container: str = ""
    bound: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    wanted: str = ""
    making: Making | None = None
