"""`treadle schema`: the JSON schema of workflow files or profiles, for editors."""

from __future__ import annotations

import argparse

from treadle.cli.printer import Printer


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", action="store_true", help="of profiles instead of workflow files")


def execute(args: argparse.Namespace) -> int:
    from treadle.rules.toml.json_schema import profile_schema, workflow_schema

    Printer(quiet=args.quiet, json=True).object(profile_schema() if args.profile else workflow_schema())
    return 0
