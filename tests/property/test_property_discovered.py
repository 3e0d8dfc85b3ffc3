"""Small random workflows whose checkpoints find random values, in any order: what has begun stays as it is.

The runs are played without processes: tasks begin when all that they need has ended, and end in any order.
"""

from __future__ import annotations

import pathlib
import tempfile

from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from treadle.api.pipe import Planned, Request, plan_of
from treadle.api.reentry import found_by, grown
from treadle.base.errors import UserError
from treadle.plan.discovered import Discovered
from treadle.plan.task import ScheduledTask

NAMES = ("x", "y", "z")
HEAD = '[workflow]\nname = "random"\nstrict_shell = true\n[[values]]\nname = "x"\nvalues = ["0", "1"]\n'
LISTS = st.lists(st.sampled_from("0123"), max_size=3, unique=True)


@st.composite
def workflows(draw: st.DrawFn) -> str:
    """Two to six rules, each of which reads what some before it make; one or more are checkpoints."""
    text, outputs = HEAD, []
    number = draw(st.integers(2, 6))
    checkpoints = draw(st.sets(st.integers(0, number - 1), min_size=1, max_size=3))
    for at in range(number):
        names = draw(
            st.lists(st.sampled_from(NAMES), unique=True, min_size=at not in checkpoints, max_size=2)
        )
        output = f"r{at}/" + ("_".join(f"{{{name}}}" for name in names) or "whole")
        inputs = draw(st.lists(st.sampled_from(outputs), unique=True, max_size=2)) if outputs else []
        text += f'[[rules]]\nname = "r{at}"\ninput = {inputs}\noutput = ["{output}"]\nshell = "true"\n'
        if draw(st.booleans()) and at:
            text += f'depends_on = ["r{draw(st.integers(0, at - 1))}"]\n'
        if at in checkpoints:
            text += f'checkpoint = true\ncheckpoint_manifest = "{output}.toml"\n'
            adds = draw(st.lists(st.sampled_from("yyzx"), unique=True, max_size=2))
            if adds:
                text += f"checkpoint_extends = {[f'values.{name}' for name in adds]}\n"
        outputs.append(output)
        if draw(st.booleans()):
            outputs.append(f"r{at}/*")
    return text


def planned_of(text: str, folder: str) -> Planned:
    (pathlib.Path(folder) / "main.oxoflow").write_text(text)
    return plan_of(Request(file=f"{folder}/main.oxoflow", workdir=folder))


def drawn(planned: Planned, task: ScheduledTask, data: st.DataObject) -> Discovered:
    """Values that the task may find."""
    rule = next(one for one in planned.workflow.rules if one.name == task.rule)
    names = [one.partition(".")[2] for one in rule.adds] or [
        "y",
        *data.draw(st.lists(st.sampled_from("xz"), max_size=2)),
    ]
    return Discovered(values={name: tuple(data.draw(LISTS)) for name in names})


def what(planned: Planned) -> dict[str, ScheduledTask]:
    """The tasks, but for who found them: of several the one that came first counts."""
    return {
        task.id: replace(task, needs=(), born=frozenset())
        for task in planned.plan.tasks.values()
        if not task.awaits
    }


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(workflows(), st.data())
def test_a_task_that_has_begun_never_changes_and_a_restart_sees_the_same(
    text: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            planned = first = planned_of(text, folder)
        except UserError:
            assume(False)
            return
        begun: set[str] = set()
        ended: set[str] = set()
        failed: set[str] = set()
        found: dict[str, Discovered] = {}
        for _ in range(60):
            tasks = planned.plan.tasks
            ready = [
                task.id
                for task in tasks.values()
                if task.skip is None
                and task.id not in begun
                and all(need in ended or tasks[need].skip is not None for need in task.needs)
            ]
            assert not [task for task in ready if tasks[task].awaits], "it would begin before it is final"
            running = sorted(begun - ended - failed)
            if not ready and not running:
                break
            begun.update(ready if data.draw(st.booleans()) or not running else ready[:1])
            ending = data.draw(
                st.lists(st.sampled_from(sorted(begun - ended - failed)), unique=True, min_size=1)
            )
            here = []
            for task in ending:
                if tasks[task].manifest:
                    values = drawn(planned, tasks[task], data)
                    here.append((task, values))
                else:
                    ended.add(task)
            for task, values in here:
                try:
                    after = grown(planned, [found_by(tasks[task], values, planned.base.found)])
                except UserError:
                    failed.add(task)
                    event("refused")
                    continue
                for one in begun:
                    assert after.plan.tasks.get(one) == planned.plan.tasks[one], f"{one} changed by {task}"
                event(f"grown by {len(after.plan.tasks) - len(planned.plan.tasks) > 0}")
                planned = after
                found[task] = values
                ended.add(task)
        again = first
        while True:
            known = {one.task for one in again.base.found}
            more = [
                found_by(task, found[task.id], again.base.found)
                for task in again.plan.tasks.values()
                if task.id in found and task.id not in known and not task.awaits
            ]
            if not more:
                break
            again = grown(again, more)
        assert what(again) == what(planned)
