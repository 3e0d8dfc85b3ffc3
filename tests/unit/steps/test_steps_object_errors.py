"""Errors of object stores: what the storage said is told in a line, and no signature with it."""

from __future__ import annotations

import traceback

import pytest

from treadle.base.errors import DiskError
from treadle.steps.object_bucket import Bucket

SAID = (
    "Generic S3 error: Error performing PUT http://store/b/key?sig=HUSH in 11ms - Server returned non-2xx"
    ' status code: 403 Forbidden: <?xml version="1.0" encoding="UTF-8"?>\n'
    "<Error><Code>RequestTimeTooSkewed</Code><Message>The clocks are too far apart.</Message></Error>\n\n"
    "Debug source:\nuri: Some(http://store/b/key?sig=HUSH)"
)


@pytest.fixture
def failed() -> DiskError:
    exceptions = pytest.importorskip("obstore.exceptions")

    def ask() -> None:
        raise exceptions.GenericError(SAID)

    with pytest.raises(DiskError) as caught:
        Bucket("memory://").asked("write", "key", ask)
    return caught.value


def test_what_the_storage_answered_is_told(failed: DiskError) -> None:
    message = failed.diagnostics[0].message
    assert "403 Forbidden: RequestTimeTooSkewed: The clocks are too far apart." in message
    assert "\n" not in message


def test_neither_the_error_nor_its_traceback_shows_a_signature(failed: DiskError) -> None:
    shown = "".join(traceback.format_exception(failed))
    assert "http://store/b/key?..." in shown
    assert "HUSH" not in shown
