"""Rules times values gives drafts: every task that a workflow stands for, with final paths and commands.

sources --.
disk -----+--> rows of each rule --> groups --> drafts --> without what skipped tasks would have made
plan -----'
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from treadle.base.errors import WorkflowError
from treadle.base.layout import pins_folder
from treadle.base.place import Severity
from treadle.plan.discovered import Found
from treadle.plan.paths import normal
from treadle.plan.tokens import bind
from treadle.rules.config.config import engine_keys
from treadle.rules.expand.blueprint import Blueprint, Ground, read_blueprint
from treadle.rules.expand.cohort import complete, known_samples, select, unselected
from treadle.rules.expand.contract import check_contracts
from treadle.rules.expand.expansion import Expansion, RuleInfo
from treadle.rules.expand.fewer import Fewer
from treadle.rules.expand.finder import Finder
from treadle.rules.expand.found import additions, check_pairs, extended, tell_alike
from treadle.rules.expand.grounds import Grounds
from treadle.rules.expand.hunting import feeders
from treadle.rules.expand.makings import makings
from treadle.rules.expand.ordering import Feeds, Makers, feeds, in_order
from treadle.rules.expand.own_logs import check_logs
from treadle.rules.expand.prune import prune
from treadle.rules.expand.reach import Reach, awaited_patterns, reach
from treadle.rules.expand.rows import Values
from treadle.rules.expand.samples_on_disk import Hunt, bag, empty_source, hunts
from treadle.rules.expand.script import fixed_file
from treadle.rules.expand.told import info, tell
from treadle.rules.expand.trip import Expanded, Trip
from treadle.rules.expand.values import check_sources, gathered
from treadle.rules.expand.waiting import wait
from treadle.rules.pattern.constraint import read_constraints
from treadle.rules.pattern.listing import Listing
from treadle.rules.schema import Rule, Source, Workflow
from treadle.rules.selection import EVERYTHING, Selection
from treadle.rules.sources.pairs import samples_of_pairs
from treadle.rules.toml.section import Findings

__all__ = ["Expansion", "RuleInfo", "expand", "look_at_texts"]


def expand(
    workflow: Workflow,
    listing: Listing,
    selection: Selection = EVERYTHING,
    *,
    lenient: bool = False,
    found: Sequence[Found] = (),
) -> Expansion:
    """All tasks of a workflow, for what `listing` says is there.

    The same workflow and listing give the same drafts, in the order of the rules in the file and of the
    values in their tables. `lenient`: where no source file matches, that is a warning, and the rule has no
    tasks. `found` is what checkpoint tasks found. Raises WorkflowError with everything that is wrong,
    OptionError when it is the selection that is.
    """
    return _Expander(workflow, listing, selection, lenient, found).expansion()


def look_at_texts(workflow: Workflow, listing: Listing) -> None:
    """Read the texts of all rules, and make no tasks of them. Raises WorkflowError with all that is wrong."""
    _Expander(workflow, listing, EVERYTHING, lenient=True).texts()


class _Expander:
    """The pipe with what flows through it: findings, what is planned so far, what rules are read against."""

    def __init__(
        self,
        workflow: Workflow,
        listing: Listing,
        selection: Selection,
        lenient: bool = False,
        found: Sequence[Found] = (),
    ) -> None:
        self.found = found
        self.workflow = workflow
        self.listing = listing
        self.selection = selection
        self.findings = Findings()
        ghosts = not selection.narrows
        self.finder = Finder(listing, self.findings, tell_ghosts=ghosts, lenient=lenient)
        self.trip = Trip(self.finder, self.findings, replaced=selection.replaced)

    def texts(self) -> None:
        ground = self._ground()
        found = hunts(self.workflow, ground.paths, self.findings)
        self._read(
            self.workflow.rules, self._with_found(self._with_sources(ground, [*map(empty_source, found)]))
        )

    def expansion(self) -> Expansion:
        ground = self._ground()
        found = hunts(self.workflow, ground.paths, self.findings)
        ground = self._with_found(self._with_sources(ground, [empty_source(hunt) for hunt in found]))
        blueprints = self._read(self.workflow.rules, ground)
        makers = Makers(blueprints)
        fed_by = feeds(blueprints, makers, ground.sources)
        order = in_order(blueprints, fed_by, self.findings)
        first = feeders(found, blueprints, makers, fed_by, self.findings)
        check_logs(blueprints, makers, self.findings)
        self._settle()
        reached = self._reached(blueprints, makers, fed_by, ground)
        if found:
            self._expand(blueprints, [n for n in order if n in first], fed_by, _all(ground))
            bags = [self._bag(hunt) for hunt in found]
            ground = self._with_found(self._with_sources(self._ground(), bags))
            blueprints = self._read(self.workflow.rules, ground)
        values, ground = self._selected(blueprints, order, fed_by, ground)
        if ground.unselected:
            blueprints = self._read(self.workflow.rules, ground)
        self._expand(blueprints, order, fed_by, values)
        if reached is not None:
            ended = {one.task for one in self.found}
            wait(self.trip.done, blueprints, reached, self.finder, ended, self.workflow.sequences)
        rules = self.trip.in_file_order()
        prune(rules)
        self.finder.finish()
        tell(rules, self.listing, self.findings)
        if self.workflow.includes:
            check_contracts(self.workflow, rules, ground, whole=not self.selection.narrows)
        self._settle()
        coming = {} if reached is None else reached.coming(blueprints)
        return self._result(rules, values, ground, coming)

    def _ground(self) -> Ground:
        """What the rules are read against, without what is found on the disk."""
        workflow, findings = self.workflow, self.findings
        constraints = read_constraints(workflow.constraints, workflow.places, findings.found)
        check_sources(workflow.sources, constraints, findings)
        return Ground(
            config=workflow.config,
            sensitive=workflow.sensitive,
            sources=gathered(workflow.sources),
            constraints=constraints,
            interpreters=workflow.interpreters,
            findings=findings,
            steps=workflow.steps,
        )

    def _with_sources(self, ground: Ground, more: Sequence[Source]) -> Ground:
        """With further sources, and the config keys that list what they hold."""
        if not more:
            return ground
        sources = gathered((*ground.sources.all, *more))
        pairs = next((source for source in sources.all if source.kind == "pairs"), None)
        if pairs and "sample" not in sources.names:
            sources = gathered((*sources.all, samples_of_pairs(pairs)))
        unknown = {} if any(source.rows for source in more) else dict.fromkeys(_LISTS, "?")
        config = {**unknown, **ground.config, **engine_keys(ground.config, sources.all)}
        return replace(ground, sources=sources, config=config)

    def _with_found(self, ground: Ground) -> Ground:
        """With what checkpoint tasks found, and what they may still find."""
        sources = extended(ground.sources, self.workflow.rules, self.found)
        if sources is ground.sources:
            return ground
        check_pairs(sources, self.findings)
        tell_alike(sources, self.workflow.rules, self.findings)
        check_sources([one for one in sources.all if one.awaited], ground.constraints, self.findings)
        unknown = dict.fromkeys(_LISTS, "")
        config = {**unknown, **ground.config, **engine_keys(ground.config, sources.all)}
        return replace(ground, sources=sources, config=config)

    def _reached(
        self, blueprints: Sequence[Blueprint], makers: Makers, fed_by: Feeds, ground: Ground
    ) -> Reach | None:
        """What checkpoint rules may bring to which rules."""
        rules = self.workflow.rules
        adding = {
            one.name: additions(one, rules, ground.sources, self.found) for one in rules if one.manifest
        }
        found = reach(blueprints, adding, makers, fed_by, ground.sources)
        if found is not None:
            self.finder.awaited = awaited_patterns(blueprints, makers, found)
        return found

    def _bag(self, hunt: Hunt) -> Source:
        source = bag(hunt, self.finder, self.findings)
        if not source.rows:
            self.finder.missing(f"no file matches {hunt.key} '{hunt.pattern.text}'", hunt.pattern.place)
        return source

    def _read(self, rules: Sequence[Rule], ground: Ground) -> list[Blueprint]:
        """All rules, parsed. Raises WorkflowError."""
        grounds = Grounds(self.workflow, ground)
        read = [read_blueprint(rule, grounds.of(rule)) for rule in rules]
        grounds.check_values([blueprint for blueprint in read if blueprint is not None])
        self._check_rules(read)
        self._settle()
        return [blueprint for blueprint in read if blueprint is not None]

    def _check_rules(self, blueprints: Sequence[Blueprint | None]) -> None:
        names: set[str] = set()
        for blueprint in blueprints:
            if blueprint is None:
                continue
            rule = blueprint.rule
            if rule.name in names:
                self.findings.error("duplicate-rule", f"two rules are named '{rule.name}'", rule.at("name"))
            names.add(rule.name)
            path = fixed_file(rule, blueprint.texts.script) if blueprint.texts.script else ""
            if not path:
                continue
            folder = bind(rule.pin, {"pins": pins_folder()}) or self.workflow.folder
            if not self.listing.exists(_under(folder, path)):
                message = f"the script '{path}' of rule {rule.name} is not there"
                hint = f"scripts are looked for in {_whose(rule)}, {folder}"
                self.findings.error("no-script", message, rule.at("script"), hint)

    def _selected(
        self, blueprints: Sequence[Blueprint], order: Sequence[int], fed_by: Feeds, ground: Ground
    ) -> tuple[Values, Ground]:
        if not self.selection.narrows:
            return _all(ground), ground
        known = known_samples(ground.sources, blueprints, self.listing)

        def ready() -> Collection[str]:
            survey = _Expander(self.workflow, self.listing, EVERYTHING, lenient=True)
            survey.finder.awaited = self.finder.awaited
            survey._expand(blueprints, order, fed_by, _all(ground))
            survey._settle()
            return complete(survey.trip.in_file_order(), ground.sources, known, survey.finder)

        values = select(self.selection, ground.sources, known, ready)
        return values, replace(ground, unselected=unselected(values, known))

    def _expand(
        self, blueprints: Sequence[Blueprint], order: Sequence[int], fed_by: Feeds, values: Values
    ) -> None:
        waiting = [number for number in order if number not in self.trip.done]
        self.trip.expand(blueprints, waiting, fed_by, values)

    def _settle(self) -> None:
        errors = [one for one in self.findings.found if one.severity is Severity.ERROR]
        if errors:
            raise WorkflowError(dict.fromkeys(errors))

    def _result(
        self,
        rules: Sequence[Expanded],
        values: Values,
        ground: Ground,
        coming: dict[str, tuple[str, ...]],
    ) -> Expansion:
        narrowed = [rule.drafts[at].outputs[0] for rule in rules for at in rule.narrowed]
        cluster = self.workflow.cluster
        return Expansion(
            drafts=(
                *(draft for rule in rules for draft in rule.drafts),
                *makings(rules, here=cluster is None or cluster.values.get("env_setup") != "job"),
            ),
            notes=tuple(dict.fromkeys(self.findings.found)),
            sources=tuple(map(info, rules)),
            narrowed=frozenset(narrowed),
            samples=None if values.chosen is None else tuple(sorted(values.chosen)),
            config=dict(ground.config),
            fewer=_fewer(rules),
            coming=coming,
        )


_LISTS = ("samples_list", "pairs_list", "samples_auto-discovered")


def _fewer(rules: Sequence[Expanded]) -> Fewer | None:
    """What fills in gathers that may go on without some of their inputs."""
    policies = [(rule, rule.blueprint.rule.policy) for rule in rules]
    found = [rule.drafter for rule, own in policies if own.allow_missing or own.allow_missing_part]
    return Fewer(found) if found else None


def _all(ground: Ground) -> Values:
    return Values(ground.sources, None, ground.sources)


def _under(folder: str, path: str) -> str:
    return normal(path if path.startswith("/") else f"{folder}/{path}")


def _whose(rule: Rule) -> str:
    return "the checkout of its git pin" if rule.pin else "the workflow's folder"
