"""Writes the pages below docs/codes from the texts that ship: `python docs/make_codes.py`.

A test holds them to it.
"""

from __future__ import annotations

import pathlib

from treadle.cli.codes import GROUPS, Explained, explained

FOLDER = pathlib.Path(__file__).with_name("codes")
NOTE = "<!-- made by docs/make_codes.py from src/treadle/cli/codes -->\n"


def pages() -> dict[str, str]:
    """File name -> text, the index first."""
    codes = list(explained().values())
    return {"README.md": _index(codes), **{f"{group}.md": _page(group, codes) for group in GROUPS}}


def _index(codes: list[Explained]) -> str:
    about = (
        "What each means, a small workflow that gives it, and how to mend that. `treadle check --explain "
        "CODE` prints the same. Codes of runs, steps and stores stand in [messages](../messages.md)."
    )
    parts = [f"{NOTE}# Codes of `treadle check`", about]
    for group, title in GROUPS.items():
        links = [f"[`{one.code}`]({group}.md#{one.code})" for one in codes if one.group == group]
        parts += [f"## [{title}]({group}.md)", " · ".join(links)]
    return "\n\n".join(parts) + "\n"


def _page(group: str, codes: list[Explained]) -> str:
    sections = [f"## {one.code}\n\n{one.text()}" for one in codes if one.group == group]
    return "\n\n".join([f"{NOTE}# {GROUPS[group]}", "[All codes](README.md)", *sections]) + "\n"


def main() -> None:
    """Write the pages anew."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
