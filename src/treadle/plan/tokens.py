"""Tokens: places in a command that only an attempt fills, or that must not bear identity.

A token is a name between two NUL characters, which no file name, no value and no shell text can
hold, so nothing that a person writes can be taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MARK = "\0"

WORKDIR = "\0workdir\0"  # the work folder, absolute
FLOWDIR = "\0flowdir\0"  # the folder of the main workflow file, absolute
PINS = "\0pins\0"  # where the files of git pins are kept, absolute; a key and a commit stand behind it
THREADS = "\0threads\0"  # what the rule asks for
MEMORY = "\0memory\0"  # what the rule asks for, as the author would write it (`8G`)
EFFECTIVE_THREADS = "\0effective_threads\0"  # what the attempt gets
EFFECTIVE_MEMORY_MB = "\0effective_memory_mb\0"  # what the attempt gets, in MiB
ENVIRONMENTS = "\0environments\0"  # the folder in which environments are made, absolute
BINDS = "\0binds\0"  # options of a container: the folders that it sees
VARIABLES = "\0variables\0"  # options of a container: the names of the variables that it is given
INPUT_LIST = "\0input_list\0"  # a file that the engine makes: one input path a line

_TOKEN = re.compile("\0([A-Za-z0-9_]+)\0")
_CHECKOUT = re.compile("\0pins\0/[0-9a-f]+/[0-9a-f]+")


def secret(variable: str) -> str:
    """The token for a sensitive value that is named by its environment variable (`TREADLE_SECRET_KEY`)."""
    return f"{MARK}{variable}{MARK}"


def pin(key: str, commit: str) -> str:
    """The folder of a git pin: `key` stands for the repository, both are hex digits."""
    return f"{PINS}/{key}/{commit}"


def unpinned(text: str) -> str:
    """The text with the workflow's folder for that of any git pin: which commit it is bears no identity."""
    return _CHECKOUT.sub(FLOWDIR, text) if PINS in text else text


def bind(text: str, values: Mapping[str, str]) -> str:
    """Fill every token of `text` from `values` (token name -> text that is already quoted).

    Raises KeyError for a token that has no value: that is a bug, never the user's fault.
    """
    if MARK not in text:
        return text
    return _TOKEN.sub(lambda found: values[found[1]], text)


def shown(text: str) -> str:
    """The text for a reader or for JSON: each token as `{name}`."""
    return _TOKEN.sub(r"{\1}", text) if MARK in text else text
