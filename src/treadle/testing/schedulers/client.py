"""What stands behind every command of a fake cluster: it asks the cluster's process, and prints the answer.

It is run by its path, without site packages and with as few imports as can be, for it is started for every
call: `socket` and `json` alone would double its time (11 ms, against 22).

Both sides speak frames: eight bytes of length, then a value of plain types by `marshal`, which is safe here
because both are the same Python of the same user, and the socket stands in a folder of theirs.
"""

from __future__ import annotations

import _socket
import marshal
import os
import sys

SOCKET = "socket"
STDIN = "stdin"  # the answer that asks for the standard input first
HEAD = 8


def frame(value: object) -> bytes:
    """A value as it goes over the wire."""
    data = marshal.dumps(value)  # type: ignore[arg-type]
    return len(data).to_bytes(HEAD, "big") + data


def ask(connection: _socket.socket, value: object) -> object:
    """Send a value, and wait for the answer. Raises `ConnectionError` when the other side is gone."""
    connection.sendall(frame(value))
    size = int.from_bytes(_exactly(connection, HEAD), "big")
    return marshal.loads(_exactly(connection, size))


def _exactly(connection: _socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise ConnectionError("the other side is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main(folder: str, program: str, arguments: list[str]) -> int:
    """Ask for one command; the exit code that it has."""
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = os.environ.get("PWD", "/")
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        os.chdir(folder)  # the whole path may be too long for an address
        connection.connect(SOCKET)
        answer = ask(connection, (program, arguments, cwd, dict(os.environ)))
        if answer == STDIN:
            answer = ask(connection, sys.stdin.buffer.read() if sys.stdin else b"")
    except OSError as error:
        _write(2, f"{program}: the fake cluster in {folder} is not running ({error})\n".encode())
        return 1
    assert isinstance(answer, tuple)
    code, out, err = answer
    _write(2, err)
    _write(1, out)
    return int(code)


def _write(fd: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:  # nobody reads
        pass


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
