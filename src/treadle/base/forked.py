"""What this process forks hears signals as if we had never caught them.

A child of a function (a pool, the workers of a data loader) has our handlers, and nobody there looks at what
they note: it would be deaf to who ends it. So the handlers of before are put back in it. Signals that come
earlier are held back until then: one that was noted would be lost.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

CAUGHT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_put_backs: list[Callable[[], None]] = []  # the latest last
_masks = threading.local()


def restore_in_children(put_back: Callable[[], None]) -> None:
    """From now on call this in each child, before anything else: it puts back handlers of `CAUGHT`."""
    _put_backs.append(put_back)


def leave_children(put_back: Callable[[], None]) -> None:
    """Do not call it any more; one that is not known, as in a child, is fine."""
    if put_back in _put_backs:
        _put_backs.remove(put_back)


def _before() -> None:
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, CAUGHT) if _put_backs else None


def _in_parent() -> None:
    if _masks.before is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _in_child() -> None:
    while _put_backs:
        _put_backs.pop()()
    _in_parent()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
