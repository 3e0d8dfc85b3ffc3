"""The environments of a workflow's files, and who runs its images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from treadle.rules.config.config import Config
from treadle.rules.environment.choose import Choice
from treadle.rules.profile.layers import Layered
from treadle.rules.toml.section import Section, clip

if TYPE_CHECKING:
    from treadle.plan.environment import Making
    from treadle.rules.environment.table import Environments

PROGRAMS = ("docker", "podman", "apptainer", "singularity")


class Shared:
    """What all files of a workflow have in common: `folder` is that of the workflow file, `makings` are known
    by the place in which they make something."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.makings: dict[str, Making] = {}


def environments_of(
    groups: Section, defaults: Layered, config: Config, shared: Shared, above: Choice | None
) -> Choice:
    """What the rules of a file may run in; `above` is that of the file that includes it, whose groups it
    sees."""
    program = _program(defaults)

    def reader() -> Environments:
        from treadle.rules.environment.table import Environments  # most workflows have none

        paths = [config.values.get(name) for name, one in config.declared.items() if one.type == "path"]
        return Environments(
            config.values,
            config.sensitive,
            shared.folder,
            groups.findings.found,
            shared.makings,
            program=program,
            paths=tuple(path for path in paths if isinstance(path, str) and path),
        )

    section = defaults.origins.get("environment")
    default = section.inner(defaults.values["environment"], "environment") if section is not None else None
    return Choice(reader, groups, default, above)


def _program(defaults: Layered) -> str:
    """What runs images of `docker`."""
    program: str = defaults.values.get("container_program", "docker")
    if program in PROGRAMS:
        return program
    section = defaults.origins["container_program"]
    message = f"'{clip(program)}' does not run containers here: write one of {', '.join(PROGRAMS)}"
    hint = section.findings.guess(program, PROGRAMS)
    section.error("bad-value", message, "container_program", hint=hint)
    return "docker"
