"""An S3-speaking server on loopback, by moto: conditional requests are answered one at a time, as S3 does.

    python s3_server.py PORT [ignore-conditions]

Moto looks whether an object exists and writes it in two steps, and other requests may come in between.
`ignore-conditions` makes of it what many servers are that speak S3: they take the headers and do not look.
"""

from __future__ import annotations

import sys
from threading import Lock
from typing import Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    MotoRequestHandler,
    create_backend_app,
)
from werkzeug.serving import run_simple

_CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")
_lock = Lock()


def main(port: int, ignores: bool) -> None:
    moto = DomainDispatcherApplication(create_backend_app)

    def one_at_a_time(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if ignores and environ["REQUEST_METHOD"] == "PUT":
            for name in _CONDITIONS:
                environ.pop(name, None)
        with _lock:
            return list(moto(environ, start_response))

    run_simple("127.0.0.1", port, one_at_a_time, threaded=True, request_handler=MotoRequestHandler)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] == ["ignore-conditions"])
