"""The process of one fake cluster: it answers commands, starts jobs, and ends with its owner."""

from __future__ import annotations

import marshal
import os
import selectors
import signal
import socket
import sys
import time
from functools import partial

import msgspec

from treadle.testing.schedulers import processes
from treadle.testing.schedulers.client import HEAD, SOCKET, STDIN, frame
from treadle.testing.schedulers.cluster import Cluster
from treadle.testing.schedulers.launch import Spool
from treadle.testing.schedulers.mischief import Do
from treadle.testing.schedulers.orders import obey
from treadle.testing.schedulers.site import Kind, Site
from treadle.testing.schedulers.timers import Clock, Timers
from treadle.testing.schedulers.voice import Call, Reply, StdinError, StopError, Voice

_LOOK = 0.5  # seconds between looks whether owner and folder are still there


class RealClock(Clock):
    """Our own time, which nobody moves on."""

    def __init__(self) -> None:
        super().__init__()

    def now(self) -> float:
        return time.monotonic()


class Client:
    """One connection: a call and its answer, or the owner's orders."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = b""
        self.call: Call | None = None

    def frames(self) -> list[bytes] | None:
        """What has come whole; None: the other side is gone."""
        try:
            data = self.connection.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            return None
        self.buffer += data
        found = []
        while len(self.buffer) >= HEAD:
            size = int.from_bytes(self.buffer[:HEAD], "big")
            if len(self.buffer) < HEAD + size:
                break
            found.append(self.buffer[HEAD : HEAD + size])
            self.buffer = self.buffer[HEAD + size :]
        return found

    def send(self, value: object) -> None:
        """The answer; a client that was killed meanwhile does not read it."""
        try:
            self.connection.setblocking(True)
            self.connection.settimeout(10)
            self.connection.sendall(frame(value))
        except OSError:
            pass


class Server:
    """The loop: connections, timers, children."""

    def __init__(self, site: Site, voice: Voice) -> None:
        self.site = site
        self.voice = voice
        self.clock = Clock(site.speed, site.skew)
        self.timers = Timers(self.clock)
        self.real = Timers(RealClock())
        self.cluster = Cluster(site, self.clock, self.timers, self.real)
        self.cluster.launcher = Spool(self.cluster, voice)
        self.cluster.add_strangers(site.others)
        self.calls: list[tuple[float, str, list[str]]] = []
        self.running = True
        self._selector = selectors.DefaultSelector()

    def serve(self) -> None:
        """Answer until the owner is gone, or says so."""
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(SOCKET)
        listener.listen(256)
        listener.setblocking(False)
        woken, waker = socket.socketpair()
        for end in (woken, waker):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "running", False))
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._selector.register(woken, selectors.EVENT_READ, woken)
        self._watch()
        try:
            while self.running:
                self._turn(listener)
        finally:
            self.cluster.kill_all()

    def _turn(self, listener: socket.socket) -> None:
        waits = [wait for wait in (self.timers.wait(), self.real.wait()) if wait is not None]
        for key, _ in self._selector.select(min(waits, default=None)):
            if key.data is None:
                connection, _ = listener.accept()
                self._selector.register(connection, selectors.EVENT_READ, Client(connection))
            elif isinstance(key.data, Client):
                self._read(key.data)
            else:
                key.data.recv(4096)
        for pid, status, cpu in processes.reaped():
            self.cluster.exited(pid, status, cpu)
        self.real.run_due()
        self.timers.run_due()

    def _watch(self) -> None:
        """End when nobody is there any more to end us."""
        gone = not os.path.exists(os.path.join(self.site.folder, SOCKET)) or os.getppid() != self.site.owner
        if gone:
            self.running = False
        self.real.after(_LOOK, self._watch)

    def _read(self, client: Client) -> None:
        frames = client.frames()
        if frames is None:
            self._selector.unregister(client.connection)
            client.connection.close()
            return
        for data in frames:
            self._frame(client, marshal.loads(data))

    def _frame(self, client: Client, value: object) -> None:
        match value:
            case bytes() if client.call:
                client.call.given = value
                self._answer(client, client.call)
            case (str(program), list(arguments), str(cwd), dict(env)):
                self.calls.append((self.clock.now(), program, list(arguments)))
                client.call = Call(program, arguments, cwd, env)
                self._answer(client, client.call)
            case (str(order), bytes(text)):
                client.send(obey(self, order, text))

    def _answer(self, client: Client, call: Call) -> None:
        wait = 0.0
        try:
            reply, wait = self._reply(call)
        except StdinError:
            client.send(STDIN)
            return
        except StopError as stop:
            reply = stop.reply
        except Exception as error:  # a fault of ours must not hang a test
            import traceback

            traceback.print_exc()
            reply = Reply(70, err=f"{call.program}: the fake cluster failed: {error!r}\n")
        answer = (
            reply.code,
            reply.out.encode(errors="surrogateescape"),
            reply.err.encode(errors="surrogateescape"),
        )
        if wait:
            self.real.after(wait, partial(client.send, answer))
        else:
            client.send(answer)

    def _reply(self, call: Call) -> tuple[Reply, float]:
        """The answer, and the seconds until it is given."""
        rules = {} if call.given is not None else {r.do: r for r in self.cluster.rules.of_call(call.program)}
        wait = rules[Do.HANG].seconds if Do.HANG in rules else 0.0
        if say := rules.get(Do.SAY):
            return Reply(say.code or 0, f"{say.words}\n" if say.words else ""), wait
        if (self.cluster.down or Do.DOWN in rules) and (reply := self.voice.down(call)):
            return reply, wait
        command = self.voice.commands[call.program]
        try:
            return command(self.cluster, call), wait
        except StopError as stop:
            return stop.reply, wait


def voice_of(kind: Kind) -> Voice:
    """The words of this scheduler."""
    match kind:
        case Kind.SLURM:
            from treadle.testing.schedulers.slurm import SlurmVoice

            return SlurmVoice()
        case Kind.PBS | Kind.TORQUE:
            from treadle.testing.schedulers.pbs import PbsVoice

            return PbsVoice(torque=kind is Kind.TORQUE)
        case Kind.SGE:
            from treadle.testing.schedulers.sge import SgeVoice

            return SgeVoice()
        case Kind.LSF:
            from treadle.testing.schedulers.lsf import LsfVoice

            return LsfVoice()


def main(folder: str) -> None:
    """Play the cluster that `folder` describes."""
    os.chdir(folder)
    with open("site.json", "rb") as file:
        site = msgspec.json.decode(file.read(), type=Site)
    Server(site, voice_of(site.kind)).serve()


if __name__ == "__main__":
    main(sys.argv[1])
