"""What `qstat -f` and `tracejob` print, as plain entries: JSON, JSON that is broken, or text."""

from __future__ import annotations

import json
import re
from typing import Any

Entry = dict[str, str]
"""One job: attribute names in lower case, those below a resource list as `resources_used.mem`."""

_ID = re.compile(r"([0-9]{1,18})(\[[0-9]{0,18}\])?(?:\.[\w.-]+)?(?:@[\w.-]+)?\Z")
_JOB_LINE = re.compile(r'\s*"([0-9]+(?:\[[0-9]*\])?(?:\.[\w.-]+)?)":\s*\{')
_FOLDER_LINE = re.compile(r'\s*"([^"]+)":\s*\{\s*\Z')
_VALUE_LINE = re.compile(r'\s*"([^"]+)":\s*(.*?),?\s*\Z')
_TEXT_VALUE = re.compile(r"\s+([\w.]+) = (.*)\Z")
_TRACED = re.compile(r"(Exit_status|resources_used\.\w+|ctime|start|end|jobname|exec_host)=(\S+)")
_TRACED_NAMES = {"start": "stime", "end": "obittime", "jobname": "job_name"}


def bare_id(text: str) -> str:
    """`24[2]` of `24[2].host`: the server's name comes in several spellings. Empty: it is no job id."""
    found = _ID.match(text.strip())
    return found[1] + (found[2] or "") if found else ""


def read_entries(out: str) -> dict[str, Entry] | None:
    """Entries by bare id, in any of the forms; None: it is none of them."""
    if not out.strip():
        return {}
    if out.lstrip().startswith("{"):
        return _from_json(out)
    if re.search(r"^Job Id:", out, re.MULTILINE):
        return _from_text(out)
    if re.match(r"\s*Job: [0-9]", out):
        return _from_trace(out)
    return None


def _from_json(out: str) -> dict[str, Entry]:
    try:
        document: Any = json.loads(out, strict=False)
        jobs = document.get("Jobs", {})
        flat = {bare_id(job): _flat(values) for job, values in jobs.items() if isinstance(values, dict)}
    except (ValueError, AttributeError, RecursionError):
        flat = _from_broken_json(out)
    return {job: entry for job, entry in flat.items() if job}


def _flat(values: dict[str, Any]) -> Entry:
    entry: Entry = {}
    for key, value in values.items():
        if isinstance(value, dict):
            entry |= {f"{key}.{name}".lower(): str(one) for name, one in value.items()}
        else:
            entry[key.lower()] = str(value)
    return entry


def _from_broken_json(out: str) -> dict[str, Entry]:
    """Line by line: a value that JSON cannot hold spoils only its own line."""
    jobs: dict[str, Entry] = {}
    entry: Entry | None = None
    folder = ""
    for line in out.splitlines():
        if found := _JOB_LINE.match(line):
            entry, folder = jobs.setdefault(bare_id(found[1]), {}), ""
        elif found := _FOLDER_LINE.match(line):
            folder = found[1] + "."
        elif line.strip() in ("}", "},"):
            folder = ""
        elif entry is not None and (found := _VALUE_LINE.match(line)):
            entry[(folder + found[1]).lower()] = found[2].strip('"')
    return jobs


def _from_text(out: str) -> dict[str, Entry]:
    """`    key = value`, where long values go on in lines that begin with a tab."""
    jobs: dict[str, Entry] = {}
    entry: Entry = {}
    key = ""
    for line in out.splitlines():
        if line.startswith("Job Id:"):
            entry, key = {}, ""
            if job := bare_id(line.partition(":")[2]):
                jobs[job] = entry
        elif line.startswith("\t") and key:
            entry[key] += line.strip()
        elif found := _TEXT_VALUE.match(line):
            key = found[1].lower()
            entry[key] = found[2].strip()
    return jobs


def _from_trace(out: str) -> dict[str, Entry]:
    """The last record of an end in the server's logs; where there is none, nothing is known."""
    job = ""
    jobs: dict[str, Entry] = {}
    for line in out.splitlines():
        if line.strip().startswith("Job:"):
            job = bare_id(line.partition(":")[2])
        elif job and "Exit_status=" in line:
            entry = jobs.setdefault(job, {"job_state": "F"})
            entry |= {_TRACED_NAMES.get(key, key).lower(): value for key, value in _TRACED.findall(line)}
    return jobs
