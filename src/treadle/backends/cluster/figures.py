"""What a request comes to in a scheduler's own figures, as its directives say it."""

from __future__ import annotations

from treadle.backends.cluster.configured import placed
from treadle.backends.cluster.dialect import Dialect, Request
from treadle.backends.cluster.settings import ClusterSettings
from treadle.plan.task import Resources


def figures_of(dialect: Dialect, settings: ClusterSettings, wanted: Resources) -> str:
    """The options that ask for these resources, in one line: `--cpus-per-task=2 --mem=2048M`.

    What Treadle sets for itself (names, logs) is left out.
    """
    request = Request(name="t", script="/t", log="/t", workdir="/", resources=placed(settings, wanted))
    options = [line.split(None, 1)[1] for line in dialect.directives(request)]
    return " ".join(option for option in options if not _is_ours(dialect, option))


def _is_ours(dialect: Dialect, option: str) -> bool:
    return bool(dialect.owned(option.split(None, 1)))
