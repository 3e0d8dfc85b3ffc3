"""Opening object stores by URL: one client per bucket and process, with times that fit what it is for."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any

from treadle.base.errors import StepError
from treadle.steps.object_errors import store_error
from treadle.steps.object_url import MEMORY

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Remote

_SETTINGS = {"s3": "AWS_", "s3a": "AWS_", "gs": "GOOGLE_"}
# Our own wishes replace what obstore reads of these in the environment: so we read them.
_CLIENT = (
    *("allow_http", "allow_invalid_certificates", "proxy_url", "proxy_ca_certificate", "proxy_excludes"),
    *("http1_only", "http2_only", "connect_timeout", "user_agent", "root_certificate"),
)
_memory: list[Remote] = []
_lock = Lock()


def open_remote(root: str) -> tuple[Remote, Remote]:
    """(for small objects, for data): the first gives up within half a minute, the second only on silence.

    All of one process share what stands at `memory://`. Raises `StepError` where obstore is not there,
    `DiskError` where the environment does not say what the store needs.
    """
    try:
        from obstore.store import MemoryStore, from_url
    except ImportError as error:
        raise StepError(
            f"'{root}' needs the package obstore, which is not installed",
            hint="pip install 'treadle[remote]'",
            code="no-obstore",
        ) from error
    scheme = root.partition(":")[0]
    if scheme == MEMORY:
        with _lock:
            if not _memory:
                _memory.append(MemoryStore())
        return _memory[0], _memory[0]
    from obstore.exceptions import BaseError

    client = _client_settings(_SETTINGS.get(scheme, "AZURE_"))
    brief, patient = {"timeout": "20s", **client}, {"timeout": "24h", "read_timeout": "60s", **client}
    try:
        return (
            from_url(root, client_options=_typed(brief), retry_config=_retries(3, 15)),
            from_url(root, client_options=_typed(patient), retry_config=_retries(6, 60)),
        )
    except (BaseError, ValueError) as error:
        raise store_error("open", root, error) from None


def _client_settings(before: str) -> dict[str, Any]:
    found: dict[str, Any] = {"connect_timeout": "5s"}
    for name in _CLIENT:
        value = os.environ.get(before + name.upper())
        if value is not None:
            found[name] = _switch(value) if name.startswith(("allow_", "http")) else value
    return found


def _switch(value: str) -> bool:
    return value.strip().lower() in ("1", "true", "on", "yes", "y")


def _retries(times: int, seconds: int) -> Any:
    from datetime import timedelta

    backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=5), "base": 2}
    return {"max_retries": times, "retry_timeout": timedelta(seconds=seconds), "backoff": backoff}


def _typed(options: dict[str, Any]) -> Any:
    return options
