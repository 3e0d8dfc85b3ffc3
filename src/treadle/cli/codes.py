"""What each code of `treadle check` means: a text, a workflow that gives it, and how to mend that."""

from __future__ import annotations

from importlib import resources
from typing import Any

from msgspec import Struct

# The files beside the commands, in the order of the pages, and their titles.
GROUPS = {
    "file": "The file",
    "config": "Config",
    "profiles": "Profiles and backends",
    "sheets": "Sheets and values",
    "paths": "Paths and commands",
    "conditions": "Conditions",
    "plan": "The plan",
}
HEAD = '[workflow]\nname = "example"\nstrict_shell = true\n\n'


class Explained(Struct, frozen=True, kw_only=True):
    """One code. `flow` is empty where no text of a workflow shows it; `files` stand beside the workflow."""

    code: str
    group: str
    says: str
    mend: str
    kind: str = "error"
    flow: str = ""
    args: str = ""
    files: dict[str, str] = {}

    def workflow(self) -> str:
        """The whole file that gives the code."""
        return self.flow.lstrip("\n") if "[workflow]" in self.flow else HEAD + self.flow.lstrip("\n")

    def text(self) -> str:
        """What it means, an example and the way out, as Markdown without a heading."""
        parts = [f"*A warning.* {self.says}" if self.kind == "warning" else self.says]
        if self.flow:
            parts.append(_fenced(self.flow.strip("\n"), "toml"))
            parts += [f"with `{name}`:\n\n{_fenced(text, 'text')}" for name, text in self.files.items()]
            if self.args:
                parts.append(f"and the command `treadle check {self.args}`.")
        parts.append(f"**Mend it.** {self.mend}")
        return "\n\n".join(parts)


def explained() -> dict[str, Explained]:
    """All codes, in the order of the pages."""
    import tomli

    found: dict[str, Explained] = {}
    for group in GROUPS:
        text = resources.files("treadle.cli").joinpath("codes", f"{group}.toml").read_text(encoding="utf-8")
        entries: dict[str, dict[str, Any]] = tomli.loads(text)
        for code, entry in entries.items():
            found[code] = Explained(code=code, group=group, **entry)
    return found


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
