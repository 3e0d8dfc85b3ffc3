"""How an attempt ended that could not tell it itself: Ray's errors as the reasons of an outcome."""

from __future__ import annotations

from treadle.records.event import EndReason, Outcome

_OOM = ("OutOfMemory", "running low on memory", "memory usage threshold", "memory pressure")
_NODE = ("its node has died", "its node died", "node it was running on is dead", "node was terminated")
_NEVER = ("RuntimeEnvSetupError", "ActorUnschedulableError")
_SHOWN = 600


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of an attempt whose actor died."""
    kind, text = type(error).__name__, str(error)
    if getattr(error, "preempted", False) is True:
        return Outcome(reason=EndReason.PREEMPTED, message="its node was taken away")
    if kind == "OutOfMemoryError" or _says_oom(text):
        return Outcome(reason=EndReason.OOM, message=f"Ray ended it for lack of memory: {_short(text)}")
    if kind in ("NodeDiedError", "LocalRayletDiedError") or any(word in text for word in _NODE):
        return Outcome(reason=EndReason.NODE, message=f"its node was lost: {_short(text)}")
    if "No module named 'treadle" in text:
        message = "Treadle is not installed on the nodes of the cluster: they need the version of the driver"
        return Outcome(reason=EndReason.NEVER_STARTED, message=message)
    if kind in _NEVER or getattr(error, "actor_init_failed", False):
        return Outcome(reason=EndReason.NEVER_STARTED, message=_short(text))
    if "worker process has died" in text or "worker process died" in text or kind == "WorkerCrashedError":
        return Outcome(reason=EndReason.APP, message=f"its process died: {_exit_detail(text)}")
    return Outcome(reason=EndReason.LOST, message=_short(text))


def _says_oom(text: str) -> bool:
    """Ray's hint on what might have happened names the OOM killer, too: that is no evidence."""
    said = text.partition("Some common causes include")[0]
    return any(word in said for word in _OOM)


def _exit_detail(text: str) -> str:
    detail = text.partition("Worker exit detail:")[2].partition("Some common causes include")[0].strip()
    return detail or _short(text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]} ..."
