"""Where the artifacts of a run come from, asked of git once and aside, while the first steps are prepared."""

from __future__ import annotations

import threading

from treadle.base.mask import Mask
from treadle.steps.order import NOT_SAID
from treadle.steps.record import Provenance


class Origins:
    """What `provenance` says of the folder of the run. `mask` knows the secrets in the command line."""

    def __init__(self, mask: Mask | None) -> None:
        self._mask = mask
        self._asking: threading.Thread | None = None
        self._found: Provenance = NOT_SAID
        self._told = False

    def ask(self, workdir: str) -> None:
        """Begin to ask; once."""
        if self._asking is None:
            self._asking = threading.Thread(
                target=self._ask, args=(workdir,), name="treadle origins", daemon=True
            )
            self._asking.start()

    def _ask(self, workdir: str) -> None:
        from treadle.steps.provenance import provenance

        self._found = provenance(workdir, self._mask)

    def get(self) -> Provenance:
        """What was found; waits for it."""
        if self._asking is not None and not self._told:
            self._asking.join()
            self._told = True
        return self._found
