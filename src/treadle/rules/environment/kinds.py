"""One `environment` table as a value: which kind it is, what is wrong with it, its texts written."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle.base.digest import blake2b
from treadle.plan.environment import Environment, Making
from treadle.plan.paths import normal
from treadle.plan.tokens import ENVIRONMENTS, FLOWDIR, WORKDIR
from treadle.rules.environment import entry, setup
from treadle.rules.toml.fields import ENVIRONMENT
from treadle.rules.toml.kinds import take
from treadle.rules.toml.section import Section, clip

if TYPE_CHECKING:
    from treadle.rules.environment.table import Environments

KINDS = ("conda", "mamba", "pixi", "docker", "singularity", "apptainer", "venv", "modules")
TASKS = "env::"  # what the names of tasks that make environments begin with

# The kinds that an extra goes with.
_EXTRAS = {
    "conda_prefix": ("conda",),
    "mamba_prefix": ("mamba",),
    "pixi_environment": ("pixi",),
    "venv_requirements": ("venv",),
    "args": ("docker", "singularity", "apptainer"),
    "binds": ("docker", "singularity", "apptainer"),
}
# By which programs a kind is made: whichever there is, since what they make is the same.
_TOOLS = {"conda": ("conda", "mamba", "micromamba"), "mamba": ("micromamba", "mamba", "conda")}
_FILES = (".yml", ".yaml", ".txt")
_REFERENCE = re.compile(r"[a-z][a-z0-9+.-]*://")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_BIND_MODES = ("ro", "rw")


class Options(Struct, frozen=True):
    """Of a container: the author's own options, words of shell text that bind what the author names, and
    where that is seen inside (token form)."""

    args: tuple[str, ...]
    words: tuple[str, ...]
    inside: tuple[str, ...]


class Table:
    """One table on its way to a value."""

    def __init__(self, section: Section, label: str, gpus: int, all_: Environments) -> None:
        self._section = section
        self._label = label
        self._gpus = gpus
        self._all = all_
        self._said: dict[str, Any] = {}
        self._kind = ""

    def environment(self) -> Environment | None:
        got = take(self._section, ENVIRONMENT, "an environment")
        kinds = [key for key in KINDS if key in self._section.table]
        if len(kinds) != 1:
            self._tell_count(kinds)
            return None
        self._kind = kinds[0]
        self._check_extras(got)
        filled = {key: self._fill(key, value) for key, value in got.items()}
        if None in filled.values() or self._kind not in filled:
            return None
        self._said = filled
        match self._kind:
            case "conda" | "mamba":
                return self._conda(filled[self._kind])
            case "pixi":
                return self._pixi(filled["pixi"])
            case "venv":
                return self._venv(filled["venv"])
            case "modules":
                return self._modules(filled["modules"])
            case "docker":
                return self._docker(filled["docker"])
            case _:
                return self._apptainer(filled[self._kind], "singularity")

    def _tell_count(self, kinds: Sequence[str]) -> None:
        if len(kinds) > 1:
            message = f"an environment is of one kind, and this names {' and '.join(kinds)}"
            self._section.error("several-environments", message, kinds[1], hint="keep one of them")
        elif self._section.table:
            message = f"this says of no environment: it needs one of {', '.join(KINDS)}"
            key = next(iter(self._section.table))
            self._section.error("no-environment", message, key)

    def _check_extras(self, got: Mapping[str, Any]) -> None:
        for key, kinds in _EXTRAS.items():
            if key in got and self._kind not in kinds:
                message = f"'{key}' has no effect with '{self._kind}': it goes with {' or '.join(kinds)}"
                self._section.error("misplaced-extra", message, key)

    def _fill(self, key: str, value: Any) -> Any:
        if isinstance(value, str):
            return self._all.filled(self._section, value, key)
        each = [self._all.filled(self._section, one, key, at) for at, one in enumerate(value)]
        return None if None in each else tuple(each)

    def _conda(self, value: str) -> Environment | None:
        kind, tools = self._kind, _TOOLS[self._kind]
        prefix = self._said.get(f"{kind}_prefix", "")
        if not value.endswith(_FILES):
            if prefix:
                message = f"'{kind}_prefix' has no effect: '{clip(value)}' names an environment that is there"
                self._section.error("misplaced-extra", message, f"{kind}_prefix")
            if "/" not in value:
                text = entry.in_named_conda(value, tools)
                return Environment(kind=kind, said=((kind, value),), entry=text, tools=tools)
            text = entry.in_conda(seen(value))
            return Environment(kind=kind, said=((kind, value),), entry=text, wanted=seen(value))
        content = self._all.content(self._section, kind, value)
        if content is None:
            return None
        lines = setup.of_conda(self._filed(value))
        place = seen(prefix) if prefix else _in_cache("conda", kind, content)
        making = self._making(kind, value, place, "conda-meta", content, lines, tools)
        return Environment(
            kind=kind, said=((kind, value),), content=content, entry=entry.in_conda(place), making=making
        )

    def _pixi(self, value: str) -> Environment | None:
        manifest = f"{value.rstrip('/')}/pixi.toml" if self._all.is_folder(self._section, value) else value
        content = self._all.content(self._section, "pixi", manifest)
        if content is None:
            return None
        own = self._said.get("pixi_environment", "")
        place = _in_cache("pixi", self._filed(manifest), own, content)
        lines = setup.of_pixi(self._filed(manifest), own)
        making = self._making("pixi", own or value, place, "", content, lines, ("pixi",))
        said = (("pixi", value), *((("pixi_environment", own),) if own else ()))
        text = entry.in_pixi(self._filed(manifest), own)
        return Environment(
            kind="pixi", said=said, content=content, entry=text, tools=("pixi",), making=making
        )

    def _venv(self, value: str) -> Environment | None:
        place, file = seen(value), self._said.get("venv_requirements", "")
        text = entry.in_venv(place)
        if not file:
            return Environment(kind="venv", said=(("venv", value),), entry=text, wanted=place)
        content = self._all.content(self._section, "venv_requirements", file)
        if content is None:
            return None
        lines = setup.of_venv(self._filed(file))
        making = self._making("venv", value, place, "bin/python", content, lines, ("python3",))
        said = (("venv_requirements", file),)
        return Environment(kind="venv", said=said, content=content, entry=text, making=making)

    def _modules(self, value: tuple[str, ...]) -> Environment | None:
        if not value:
            self._section.error("empty", "this names no module", "modules")
            return None
        for at, one in enumerate(value):
            if one.startswith("-"):
                self._section.error("bad-name", f"'{clip(one)}' cannot name a module", "modules", at)
        said = (("modules", " ".join(value)),)
        return Environment(kind="modules", said=said, entry=entry.with_modules(value))

    def _docker(self, image: str) -> Environment | None:
        program = self._all.program
        if program in ("apptainer", "singularity"):
            return self._apptainer(f"docker://{image}", "docker", image)
        if image.startswith("-") or _REFERENCE.match(image):
            message = f"'{clip(image)}' is not a reference of an image"
            self._section.error("bad-image", message, "docker", hint='write it as docker = "alpine:3.20"')
            return None
        own = self._container("--volume")
        text = entry.in_docker(program, image, own.args, binds=own.words, gpus=self._gpus)
        return Environment(
            kind="docker",
            said=(("docker", image), *self._options()),
            entry=text,
            container=program,
            bound=own.inside,
            reads=self._all.paths,
            tools=(program,),
        )

    def _apptainer(self, image: str, kind: str, shown: str = "") -> Environment | None:
        own = self._container("--bind")
        tools = ("apptainer", "singularity")
        said = ((kind, shown or image), *self._options())
        making, content = None, ""
        if _REFERENCE.match(image):
            place = _in_cache("image", image) + ".sif"
            digest = _digest(image)
            lines = setup.of_image(image)
            making = self._making(self._kind, image, place, "", digest, lines, tools)
        elif self._all.is_folder(self._section, image):  # a sandbox: its content is not looked at
            place = self._filed(image)
        else:
            place = self._filed(image)
            found = self._all.content(self._section, self._kind, image)
            if found is None:
                return None
            content = found
        text = entry.in_apptainer(place, own.args, binds=own.words, gpus=self._gpus)
        return Environment(
            kind=kind,
            said=said,
            content=content,
            entry=text,
            container="apptainer",
            bound=own.inside,
            reads=self._all.paths,
            tools=tools,
            making=making,
        )

    def _making(
        self,
        key: str,
        value: str,
        place: str,
        probe: str,
        content: str,
        lines: Sequence[str],
        tools: Sequence[str],
    ) -> Making:
        stem = os.path.basename(value.rstrip("/"))
        for ending in _FILES:
            stem = stem.removesuffix(ending)
        name = _NOT_PLAIN.sub("-", self._label or stem).strip("-") or key
        making = setup.making(f"{TASKS}{name}", place, probe, content[:32], lines, tools)
        return self._all.made(self._section, key, making)

    def _filed(self, path: str) -> str:
        """An environment file in token form: seen from the workflow's folder, or the checkout of a pin."""
        findings = self._section.findings
        root = findings.pin or findings.root or FLOWDIR
        return path if path.startswith("/") else f"{root}/{normal(path)}"

    def _options(self) -> tuple[tuple[str, str], ...]:
        """What bears on what a container is, as it was said."""
        return tuple((key, shlex.join(self._said[key])) for key in ("args", "binds") if self._said.get(key))

    def _container(self, option: str) -> Options:
        """What the author asks of a container; `option` is the one that binds."""
        words: list[str] = []
        insides: list[str] = []
        for at, text in enumerate(self._said.get("binds", ())):
            parts = text.split(":")
            if not (1 <= len(parts) <= 3 and all(parts)) or (parts[2:] and parts[2] not in _BIND_MODES):
                message = f"'{clip(text)}' is not PATH, PATH:INSIDE or PATH:INSIDE:ro"
                self._section.error("bad-bind", message, "binds", at)
                continue
            inside = seen(parts[1] if len(parts) > 1 else parts[0])
            mode = f":{parts[2]}" if len(parts) > 2 else ""
            insides.append(inside)
            words += [option, f"{entry.quoted(seen(parts[0]))}:{entry.quoted(inside)}{mode}"]
        return Options(self._said.get("args", ()), tuple(words), tuple(insides))


def seen(path: str) -> str:
    """A folder in token form: seen from the work folder."""
    return path if path.startswith("/") else f"{WORKDIR}/{normal(path)}"


def _in_cache(kind: str, *of: str) -> str:
    return f"{ENVIRONMENTS}/{kind}-{_digest(*of)[:16]}"


def _digest(*texts: str) -> str:
    joined = "".join(f"{len(text)}:{text}" for text in texts)
    return blake2b(joined.encode(), digest_size=16, person=b"treadle env").hexdigest()
