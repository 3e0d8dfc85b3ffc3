"""What a scheduler's backend remarked while a run went on, in words for people."""

from __future__ import annotations

from collections.abc import Mapping


def backend_words(code: str, values: Mapping[str, str]) -> str:
    """The sentence for a remark of a backend; empty for a code that is none of those."""

    def said(name: str) -> str:
        return values.get(name, "")

    match code:
        case "backend_down":
            return (
                f"{said('backend')} does not answer ({said('message')}): its jobs go on, and so does asking"
            )
        case "backend_up":
            return f"{said('backend')} answers again, after {said('seconds')} s"
        case "submission_limited":
            return f"the scheduler takes no more jobs for now ({said('message')}): the others wait for room"
        case "submission_unclear":
            return f"note: whether {said('name')} was taken is unclear ({said('message')}): looking for it"
        case "submitted_again":
            return f"note: nobody knows a job {said('name')}: it is submitted again"
        case "group_divided":
            why = (
                "one job cannot be had for all of them"
                if said("why") == "long"
                else "a path leaves the group and comes back"
            )
            return f"warning: connected tasks of group '{said('group')}' become several jobs: {why}"
        case "not_packed":
            return f"rule '{said('rule')}' has a pack by time and no 'time_limit': each of its tasks is a job"
        case "node_suspect":
            return (
                f"warning: node {said('node')} has failed {said('tasks')} different tasks: have a look at it"
            )
        case "not_cancelled":
            return (
                f"warning: {said('jobs')} cancelled jobs are still in the queue; this removes them: "
                f"{said('command')}"
            )
        case "accounting_silent":
            return (
                f"note: accounting does not answer ({said('message')}): jobs that left no word of their end "
                f"wait for it, up to {said('seconds')} s (lost_after)"
            )
        case "no_accounting":
            return (
                f"note: this site has no accounting ({said('message')}): jobs tell their ends by themselves"
            )
    return ""
