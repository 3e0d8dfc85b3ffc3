"""A workflow file read: TOML text to a Workflow of typed values, with everything wrong told at once.

load -> tables of all files -> sources -> config -> rules -> checks across them
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic, Place, Severity
from treadle.rules.config.config import Config, Gap, read_config
from treadle.rules.file.all_rules import read_rules
from treadle.rules.file.execution import execution_groups, resource_budget
from treadle.rules.file.head import Head
from treadle.rules.file.head_texts import on_end_text
from treadle.rules.file.parts import Part, gather_parts, reference_keys
from treadle.rules.file.step_modules import step_modules
from treadle.rules.file.values_from import filled_sources
from treadle.rules.file.views import (
    inherited,
    joined_constraints,
    modules_of,
    read_configs,
    read_heads,
    shared_pools,
    views_of,
)
from treadle.rules.parts.written_out import written_out
from treadle.rules.pattern.constraint import Constraint, constraint
from treadle.rules.profile.cluster import read_cluster
from treadle.rules.profile.layers import Layers, read_profiles
from treadle.rules.profile.overrides import read_overrides
from treadle.rules.schema import Workflow
from treadle.rules.sources.sources import NamedSheet, read_sources
from treadle.rules.toml.document import Document, load, parse
from treadle.rules.toml.fields import Kind
from treadle.rules.toml.kinds import VARIABLE, text
from treadle.rules.toml.section import LONGEST_NAME, Findings, Section, clip
from treadle.rules.toml.tables import Tables

if TYPE_CHECKING:
    from treadle.rules.file.understood import Understood


class ReadOptions(Struct, frozen=True, kw_only=True):
    """How a file is read.

    `config` are (key, text) of `--config`. `sheets` are sheets of the command line: `@path` replaces the
    workflow's pairs or sample groups, `+@path` or a bare path adds to them; like all sheets they are
    looked for in the workflow's folder. `workdir` is where `must_exist` looks (default: that folder).
    `strict` makes errors of warnings. `profiles` are names, `backend` is that of the command line, and
    `settings` are (rule, field of its resources, text): what stands above profile and workflow.
    """

    config: tuple[tuple[str, str], ...] = ()
    profiles: tuple[str, ...] = ()
    backend: str = ""
    settings: tuple[tuple[str, str, str], ...] = ()
    sheets: tuple[str, ...] = ()
    strict: bool = False
    workdir: str = ""


class Reading(Struct, frozen=True):
    """What came of a file: the workflow (None where it has errors), and all findings, by line.

    `sound` is the workflow without the rules that have errors, where all errors stand in rules; `understood`
    has the rules whose texts can be looked at, wherever they stand.
    """

    workflow: Workflow | None
    findings: tuple[Diagnostic, ...]
    sound: Workflow | None = None
    understood: Understood | None = None


def read(file: str, options: ReadOptions | None = None) -> Workflow:
    """Read the workflow file at `file`.

    Raises WorkflowError with every error of the file (of its syntax: the first); its warnings are in
    `Workflow.warnings`.
    """
    document = load(file)
    return _finished(examine(document, _folder(file), options or ReadOptions()))


def read_again(file: str, options: ReadOptions) -> Reading:
    """What `read` could understand of a file that it refused. Raises WorkflowError for one that cannot be
    parsed."""
    return examine(load(file), _folder(file), options)


def read_text(
    source: str, file: str = "main.oxoflow", folder: str = "", options: ReadOptions | None = None
) -> Workflow:
    """Read the text of a workflow file as if it stood at `file`. Raises as `read` does."""
    folder = os.path.abspath(folder) if folder else _folder(file)
    return _finished(examine(parse(source, file), folder, options or ReadOptions()))


def _folder(file: str) -> str:
    try:
        folder = os.path.dirname(os.path.abspath(file))
        folder.encode()
    except FileNotFoundError:
        message = "the current folder is gone"
        raise WorkflowError(message, hint="go to a folder that exists", code="cannot-read") from None
    except UnicodeEncodeError:
        message = f"the path of the folder '{clip(folder, 200)}' is not UTF-8 text"
        raise WorkflowError(message, hint="rename it", code="not-utf8") from None
    return folder


def _finished(reading: Reading) -> Workflow:
    if reading.workflow is None:
        raise WorkflowError(one for one in reading.findings if one.severity is Severity.ERROR)
    return reading.workflow


def examine(document: Document, folder: str, options: ReadOptions) -> Reading:
    """Understand a parsed file: the workflow, and everything found on the way, errors and warnings."""
    findings = Findings(document.text)
    workflow = written_out(_understood(document, folder, options, findings), findings)
    found = _told(findings.found, document.file, options.strict)
    errors = [one for one in found if one.severity is Severity.ERROR]
    if errors:
        from treadle.rules.file.understood import understood  # only where something is wrong

        config = document.values.get("config")
        seen = understood(workflow, errors, document.file, config if isinstance(config, dict) else {})
        return Reading(None, found, without_rules(workflow, errors), seen)
    return Reading(replace(workflow, warnings=found), found)


def without_rules(workflow: Workflow, errors: Iterable[Diagnostic]) -> Workflow | None:
    """The workflow without the rules in which the errors stand, and without those that take over fields of
    them; None where one stands elsewhere."""
    tables = {(one.place.file, one.place.table) for one in errors}
    if tables.difference((rule.place.file, rule.place.table) for rule in workflow.rules):
        return None
    wrong = {rule.name for rule in workflow.rules if (rule.place.file, rule.place.table) in tables}
    more = wrong
    while more:
        more = {rule.name for rule in workflow.rules if rule.extends in wrong} - wrong
        wrong |= more
    return replace(workflow, rules=tuple(rule for rule in workflow.rules if rule.name not in wrong))


def _understood(document: Document, folder: str, options: ReadOptions, findings: Findings) -> Workflow:
    """The workflow as far as it can be understood; whoever finds an error goes on without the thing."""
    acts = bool(options.profiles or options.backend)
    tables = Tables(document, findings, acts=acts)
    layers = Layers(
        read_profiles(options.profiles, folder, findings, site=acts),
        tables.one("workflow").table.get("profile_mode") == "override",
    )
    cluster = read_cluster(tables.one("cluster"), layers, options.backend, findings) if acts else None
    findings.scheduler = cluster is not None and cluster.is_scheduler
    parts = gather_parts(tables, folder)
    heads = read_heads(parts, layers)
    overrides = read_overrides(layers.profiles, options.settings, folder, findings)
    constraints = inherited(parts, [_constraints(part.tables.one("wildcard_constraints")) for part in parts])
    sources = read_sources(
        lambda name: [section for part in parts for section in part.tables.many(name)],
        _sheets(parts, heads, options),
        folder,
        joined_constraints(constraints),
        findings,
        discovers=any(head.sample_pattern for head in heads),
    )

    references = reference_keys(parts)

    def config_with(gaps: Sequence[Gap], rest: Config | None) -> Config:
        return read_config(
            tables.one("config"),
            options.config,
            sources,
            options.workdir or folder,
            [one.tables.one("config") for one in layers.profiles],
            override=layers.override,
            gaps=gaps,
            references=references,
            rest=rest,
        )

    views = views_of(parts, heads, constraints, read_configs(parts, config_with), overrides, folder)
    head, config = heads[0], views[0].config
    sources = filled_sources(sources, views, joined_constraints(constraints), findings)
    on_end = on_end_text(tables.one("workflow"), head.on_end, config)
    rules = read_rules(views, overrides, findings)
    if not any(document.values.get(name) for name in ("rules", "references", "include", "steps")):
        hint = "add one: [[rules]] with a name, an output and a shell command"
        findings.error("no-rules", "this workflow has no rules", Place(document.file), hint)
    return Workflow(
        file=document.file,
        folder=folder,
        name=head.name,
        config=config.values,
        declared=config.declared,
        sensitive=config.sensitive,
        rules=rules,
        sources=sources,
        constraints={name: one.text for name, one in constraints[0].items()},
        sample_pattern=_pattern("sample_pattern", parts, heads),
        pairs_pattern=_pattern("pairs_pattern", parts, heads),
        pools=shared_pools(parts),
        sequences=execution_groups(parts, rules),
        ceilings=resource_budget(tables.one("resource_budget"), rules, findings),
        modules=tuple(
            dict.fromkeys(
                one for view in views for one in step_modules(view.part.tables.many("steps"), view.config)
            )
        ),
        includes=modules_of(views, folder, findings),
        interpreters=head.interpreters,
        cluster=cluster,
        on_end=on_end.text,
        on_end_secrets=on_end.secrets,
        places=_places(parts),
        about=head.about,
    )


def _pattern(key: str, parts: Sequence[Part], heads: Sequence[Head]) -> str:
    """A pattern of discovery: the main file's, else the first of an included one; another is named."""
    found = ""
    for part, head in zip(parts, heads):
        text: str = getattr(head, key)
        if text and found and text != found:
            section = part.tables.one("workflow")
            section.warn("no-effect", f"'{key}' has no effect here: '{clip(found)}' counts", key)
        found = found or text
    return found


def _places(parts: Sequence[Part]) -> dict[str, Place]:
    """Where the keys of single tables stand; of a pattern of discovery where the one stands that counts."""
    found = parts[0].tables.places()
    for part in parts[1:]:
        for key in ("sample_pattern", "pairs_pattern"):
            section = part.tables.one("workflow")
            if key in section.table:
                found.setdefault(f"workflow.{key}", section.place(key))
    return found


def _sheets(parts: Sequence[Part], heads: Sequence[Head], options: ReadOptions) -> list[NamedSheet]:
    """The sheets of `[workflow]`, then those of the command line."""
    named = [
        NamedSheet(path, place, holds, root=part.findings.root)
        for part, head in zip(parts, heads)
        for holds, path, place in head.sheets
    ]
    for given in options.sheets:
        place = Place("the command line", 0, "", "--samples")
        path = given.removeprefix("+").removeprefix("@")
        named.append(NamedSheet(path, place, replaces=given.startswith("@")))
    return named


def _constraints(section: Section) -> dict[str, Constraint]:
    """`[wildcard_constraints]`: name -> what its whole value must match."""
    import warnings

    found: dict[str, Constraint] = {}
    for name, value in section.table.items():
        if not VARIABLE.match(name) or len(name) > LONGEST_NAME:
            section.error("bad-name", f"'{clip(name)}' cannot name a wildcard", name)
        elif (given := text(section, value, Kind.TEXT, (name,))) is not None:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of Python's own, on sets that it may read anew one day
                    found[name] = constraint(given)
            except (re.error, OverflowError, RecursionError) as error:
                message = f"'{clip(given)}' is not a regular expression: {clip(str(error))}"
                section.error("bad-constraint", message, name)
    return found


def _told(found: Iterable[Diagnostic], file: str, strict: bool) -> tuple[Diagnostic, ...]:
    """The findings by place, those of the workflow file first; each once; all errors where strict."""
    told = dict.fromkeys(found)
    if strict:
        told = dict.fromkeys(replace(one, severity=Severity.ERROR) for one in told)
    return tuple(sorted(told, key=lambda one: (one.place.file != file, one.place.file, one.place.line)))
