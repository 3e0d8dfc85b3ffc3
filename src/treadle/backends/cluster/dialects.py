"""Which dialect a site's settings call for."""

from __future__ import annotations

from treadle.backends.cluster.dialect import Dialect
from treadle.backends.cluster.settings import ClusterSettings
from treadle.base.errors import OptionError


def dialect_of(settings: ClusterSettings, *, user: str = "") -> Dialect:
    """The words of `settings.backend`; `user` is who submits (SGE's accounting is asked by user).

    PBS without a `dialect` is taken for OpenPBS: `pbs.version_question` finds it out. Raises OptionError
    for a backend or a dialect that there is not.
    """
    match settings.backend, settings.dialect:
        case "slurm", _:
            from treadle.backends.cluster.slurm import Slurm

            return Slurm(settings)
        case "pbs", "" | "pbspro" | "openpbs" | "torque":
            from treadle.backends.cluster.pbs import Pbs, Torque

            return Torque(settings) if settings.dialect == "torque" else Pbs(settings)
        case "sge", _:
            from treadle.backends.cluster.sge import Sge

            return Sge(settings, user)
        case "lsf", _:
            from treadle.backends.cluster.lsf import Lsf

            return Lsf(settings)
    if settings.backend == "pbs":
        message = f"there is no dialect '{settings.dialect}' of PBS"
        raise OptionError(message, hint="set 'dialect' to 'pbspro' or 'torque', or leave it out")
    message = f"there is no batch system '{settings.backend}'"
    raise OptionError(message, hint="'backend' is one of slurm, pbs, sge, lsf")
