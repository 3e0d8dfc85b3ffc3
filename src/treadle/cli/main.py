"""The command `treadle`: finds the subcommand, runs it, and turns errors into words and exit codes."""

from __future__ import annotations

import errno
import gc
import importlib
import os
import sys
from typing import NoReturn

from treadle import __version__
from treadle.cli import streams

# Name -> (module, what it does in one line). Each module has `configure(parser)` and `execute(args)`.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "start a workflow from a template"),
    "run": ("run", "run what must run"),
    "plan": ("plan", "show what would run, and why"),
    "dry-run": ("plan", "the same as plan"),
    "why": ("why", "explain one task's decision"),
    "status": ("status", "how the last run went, or goes"),
    "cancel": ("cancel", "cancel what the last run has in flight"),
    "logs": ("logs", "what tasks wrote to stdout and stderr"),
    "path": ("path", "print where artifacts of steps stand"),
    "exec": ("exec", "run one task in front, recording nothing"),
    "graph": ("graph", "draw the plan (dot, mermaid, tree)"),
    "check": ("check", "check a workflow file"),
    "fmt": ("fmt", "put workflow files in one layout"),
    "schema": ("schema", "print the JSON schema of workflow files, for editors"),
    "touch": ("touch", "record outputs that are there as up to date"),
    "evict": ("evict", "delete outputs on purpose, without making them again"),
    "clean": ("clean", "delete outputs (lists, asks, never sources)"),
    "unlock": ("unlock", "remove a lock that was left behind"),
    "completion": ("completion", "print a completion script for a shell"),
}


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code (DESIGN: 0, 1, 2, 3, 130, 143)."""
    args = list(sys.argv[1:] if argv is None else argv)
    streams.prepare()
    as_json = "--json" in args
    try:
        code = dispatch(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # a reader that went away (`treadle plan | head`) is no error
        streams.drop(1)
        return 141
    except Exception as error:
        if isinstance(error, OSError) and (words := _world_is_gone(error)):
            print(f"error: {words}", file=sys.stderr)
            return 3
        return failed(error, as_json)
    finally:
        if argv is None:
            gc.freeze()  # we end: else the collector walks over all modules several times (15 ms)


def dispatch(args: list[str]) -> int:
    """Parse the arguments with the parser of one subcommand alone, and execute it."""
    if args in (["--version"], ["-V"]):
        print(f"treadle {__version__}")
        return 0
    if sys.platform == "win32":
        print("Treadle runs on Linux and macOS; on Windows use WSL (wsl --install).", file=sys.stderr)
        return 2
    name = args[0] if args else ""
    if name not in COMMANDS:
        return _no_command(args)
    if name != "logs":  # which may follow a run for days
        gc.disable()  # a plan makes no rings, and the collector would walk over 100,000 tasks again and again

    from treadle.cli.options import subcommand_parser

    module = importlib.import_module(f"treadle.cli.{COMMANDS[name][0]}_command")
    parser = subcommand_parser(name, COMMANDS[name][1])
    module.configure(parser)
    code: int = module.execute(parser.parse(args[1:]))
    return code


def failed(error: Exception, as_json: bool) -> int:
    """Say an error; a bug shows its traceback and how to report it."""
    from treadle.base.errors import TreadleError

    if not isinstance(error, TreadleError):
        bug(error)
    from treadle.cli.printer import Printer
    from treadle.cli.words import diagnostic_lines, shortened

    printer = Printer(json=as_json)
    found = [shortened(one) for one in error.diagnostics]
    if as_json:
        printer.object({"schema": 1, "exit_code": error.exit_code, "errors": found})
    for one in found:
        printer.problem(diagnostic_lines(one, printer))
    return error.exit_code


def _world_is_gone(error: OSError) -> str:
    """What explains an OSError from anywhere: no more files, no folder to stand in, nowhere to write to."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open files: raise the limit (ulimit -n)"
    try:
        os.getcwd()
    except OSError:
        return "the folder you are in was removed: change to another one (cd)"
    if words := streams.stdout_refuses():
        streams.drop(1)
        return f"cannot write to stdout: {words}"
    return ""


def bug(error: Exception) -> NoReturn:
    """Re-raise what should never have happened, with a word on how to report it."""
    error.add_note(
        f"This is a bug in Treadle {__version__}, not in your workflow. Please report it with this "
        "traceback and the workflow file. Nothing recorded is lost: run again to go on."
    )
    raise error


def _no_command(args: list[str]) -> int:
    wanted = next((arg for arg in args if not arg.startswith("-")), "")
    if wanted and wanted not in COMMANDS:
        from treadle.base.errors import OptionError
        from treadle.base.names import did_you_mean

        near = did_you_mean(wanted, COMMANDS)
        raise OptionError(
            f"no command '{wanted}'",
            hint=f"{near} treadle --help lists the commands".lstrip(),
            code="unknown-command",
        )
    unknown = [arg for arg in args if arg not in ("-h", "--help")]
    out = sys.stderr if unknown or not args else sys.stdout
    width = max(map(len, COMMANDS)) + 2
    print("usage: treadle COMMAND [FILE] [options]\n", file=out)
    for name, (_, what) in COMMANDS.items():
        print(f"  {name:<{width}}{what}", file=out)
    print("\n  treadle COMMAND --help tells more; treadle --version", file=out)
    return 2 if unknown or not args else 0


if __name__ == "__main__":
    sys.exit(main())
