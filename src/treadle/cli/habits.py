"""Options of other programs that hands type by habit, and what says the same here."""

from __future__ import annotations

_LOOK = "treadle plan shows what would run"
_CPUS = "-j 8: eight CPUs together"
_AGAIN = "--force: again, whatever the records say; with names, these alone"
_GOES_ON = "treadle run goes on by itself after a kill"

_HERE = {
    "-n": _LOOK,
    "--dry-run": _LOOK,
    "--dryrun": _LOOK,
    "--just-print": _LOOK,
    "-c": _CPUS,
    "--cores": _CPUS,
    "-B": _AGAIN,
    "--always-make": _AGAIN,
    "-F": _AGAIN,
    "--forceall": _AGAIN,
    "-R": _AGAIN,
    "--forcerun": _AGAIN,
    "--rerun-incomplete": _GOES_ON,
    "--resume": _GOES_ON,
    "-t": "treadle touch takes outputs as they stand",
    "--touch": "treadle touch takes outputs as they stand",
    "--until": "name the rules or files that are wanted: treadle run RULE",
    "--unlock": "treadle unlock removes a lock that was left behind",
}


def meant(option: str) -> str:
    """A hint for an option that this command has not: what says the same here, or nothing."""
    return _HERE.get(option if option.startswith("--") else option[:2], "")
