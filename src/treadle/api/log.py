"""The engine's own log of a run (`engine.log`, logger `treadle`): what happened to us, not to the tasks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from treadle.base.layout import RunFolder
from treadle.base.mask import Mask


class _Masked(logging.Formatter):
    """Every line passes the mask, tracebacks and all."""

    def __init__(self, mask: Mask) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return self._mask.text(super().format(record))


class _Quiet(logging.FileHandler):
    """What cannot be written (the disk is full, the folder is gone) is lost, and nobody is told: the log is
    for looking into other troubles."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            super().emit(record)
        except OSError:
            pass

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        pass


@contextmanager
def engine_log(folder: RunFolder, mask: Mask) -> Iterator[logging.Logger]:
    """Let the logger `treadle` write into the run's folder; what is raised in the block is written, too."""
    logger = logging.getLogger("treadle")
    handler = _Quiet(folder.engine_log, encoding="utf-8", delay=True)
    handler.setFormatter(_Masked(mask))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield logger
    except Exception:
        logger.exception("the run was given up")
        raise
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        with suppress(OSError):
            handler.close()
