"""Writes the part of docs/commands.md that comes from the parsers: `python docs/make_commands.py`.

A test holds the page to it. Prose about a command stands here, beside its name; options come from parsers.
"""

from __future__ import annotations

import argparse
import pathlib
import textwrap
from collections.abc import Iterable, Iterator

from treadle.cli.completion_command import whole_parser

PAGE = pathlib.Path(__file__).with_name("commands.md")
BEGIN, END = "<!-- begin: made by make_commands.py -->\n", "<!-- end: made by make_commands.py -->\n"

ABOUT = {
    "init": "Writes a small workflow that runs. It overwrites nothing.",
    "run": (
        "Runs what must run: what `treadle plan` shows. At a terminal it asks first when more than an "
        "hour of finished work would be done again; without a yes nothing is run, and the exit code is "
        "1. After a failure nothing new is started, what runs is let end, and the exit code is 1; a "
        "pipeline goes on with what the failure leaves. Ctrl-C ends what runs, in good order; a second "
        "one ends it at once."
    ),
    "plan": (
        "Shows what would run, and why. Takes no lock and writes nothing. A line per rule and per step "
        "goes to stdout; what it adds up to goes to stderr. Of a pipeline that yields its steps it takes "
        "the first 10,000."
    ),
    "dry-run": "Another name for `plan`.",
    "why": (
        "Explains the decision on a task, with old and new text where a command changed. A cascade is "
        "told with its beginning. Of a step without an artifact it shows the nearest one from before, and "
        "what differs."
    ),
    "status": (
        "How the last run went, or goes. Reads the records only, so it works while a run is on, and "
        "without the workflow file; that may be named for the folder that it stands in."
    ),
    "cancel": (
        "Cancels what the last run has in flight, also when its driver is gone: ends the driver if it lives "
        "on this machine or is a job, cancels the run's jobs in batches, and asks the queue until none is "
        "left. What cannot be cancelled is listed with the command that removes it, and the exit code is 3."
    ),
    "logs": (
        "What tasks wrote to stdout and stderr: of the last attempt of each, in the newest run that tried "
        "it. Steps that run in a thread have no log: they print where the run does."
    ),
    "path": (
        "Prints where the artifacts of steps stand: a path or a URL each. Looks at none of them. Without "
        "names: of the steps that the file lists."
    ),
    "exec": (
        "Runs one task in front of you, with your terminal, and records nothing. Its inputs must be "
        "there. Its exit code is yours. Outputs are written as in a run, but the next run does not "
        "take them for done. The function of a step is called with a path in a temporary folder, which is "
        "named; nothing is published."
    ),
    "graph": "Draws the plan: a node per rule with the number of its tasks.",
    "check": (
        "Checks a workflow file: errors and warnings, all at once. Nothing runs. The exit code is 2 "
        "if there is an error."
    ),
    "fmt": (
        "Puts workflow files and profiles in one layout, in place: spaces, blank lines, quotes, and the "
        "order of the keys of a table between its blank lines. Comments and values stay as they are, so the "
        "plan does, too. What is no TOML is left as it is, with an error."
    ),
    "schema": (
        "Prints the JSON schema (draft 2020-12) of workflow files, or with `--profile` of profiles, for "
        "editors that check and complete TOML. It is made from the table that the reader goes by."
    ),
    "touch": (
        "Records the tasks that are named (without names: all that a run would make) as up to date, "
        "as they stand. No file is changed, not even its time. Every output must be there."
    ),
    "evict": (
        "Deletes outputs on purpose, where everything that reads them is done. They do not count as "
        "missing, and are made again when something that must run needs them. Outputs that are gone "
        "already are accepted in the same way."
    ),
    "clean": (
        "Deletes outputs, logs and benchmark files of the tasks that are named (without names: of "
        "all); the next run makes them again. It lists them and asks. Files that no task makes are "
        "never touched; what Treadle did not make, or somebody changed since, only with `--all`. "
        "With `--artifacts` it deletes the artifacts of the steps that are named, or, with "
        "`--unreachable`, those below the prefix that no step of the file names, builds on or grows; name "
        "every pipeline that shares the prefix. What is being made stays, and so do development versions."
    ),
    "unlock": (
        "Removes a lock that was left behind. Reads no workflow. The lock of a run of your own that "
        "died on this machine needs no unlocking: the next run takes it over."
    ),
    "completion": (
        "Prints a completion script for a shell, for example `treadle completion bash > "
        "~/.local/share/bash-completion/completions/treadle`."
    ),
}

EVERYWHERE = ("help", "quiet", "json")
WITH_WORKFLOW = ("words", "workdir", "config", "prefix", "samples", "strict")


def renewed(page: str) -> str:
    """The page with its made part as the parsers have it now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{made()}\n{END}{after}"


def made() -> str:
    """The made part: what all commands have, then each command."""
    commands = parsers()
    some = commands["plan"]
    blocks = [
        "Every command has",
        table(action for action in some._actions if action.dest in EVERYWHERE),
        "and every command that looks at a workflow has",
        table(action for action in some._actions if action.dest in WITH_WORKFLOW),
    ]
    for name, parser in commands.items():
        blocks += command(name, parser)
    return "\n\n".join(blocks) + "\n"


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, in the order of `treadle --help`."""
    (subcommands,) = (
        action for action in whole_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(subcommands.choices)


def command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """Heading, synopsis, prose, and the options that are the command's own."""
    yield f"### treadle {name}"
    if name != "dry-run":
        words = [_argument(action) for action in parser._actions if not action.option_strings]
        yield f"`{' '.join(['treadle', name, '[options]', *words])}`"
    yield textwrap.fill(ABOUT[name], 118, break_long_words=False, break_on_hyphens=False)
    general = {*EVERYWHERE, *(WITH_WORKFLOW if _takes_workflow(parser) else ())}
    own = [action for action in parser._actions if action.dest not in general and action.help]
    if own and name != "dry-run":
        yield table(own)


def _takes_workflow(parser: argparse.ArgumentParser) -> bool:
    return any(action.dest == "words" for action in parser._actions)


def table(actions: Iterable[argparse.Action]) -> str:
    """Options and arguments, a row each."""
    rows = [f"| {_cell(_names(action))} | {_cell(_help(action))} |" for action in actions]
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_argument(action)}`"
    value = "" if action.nargs == 0 else f" {_value(action)}"
    return ", ".join(f"`{name}{value}`" for name in action.option_strings)


def _argument(action: argparse.Action) -> str:
    shown = _value(action)
    if shown.startswith("["):
        return f"{shown}..."
    return {"?": f"[{shown}]", "*": f"[{shown}...]"}.get(str(action.nargs), shown)


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    return action.dest.upper()


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {"default": action.default}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(renewed(PAGE.read_text()))


if __name__ == "__main__":
    main()
