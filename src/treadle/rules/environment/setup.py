"""Making an environment: text for bash, run once, under a lock of its own, by a task of the plan.

Most environments cannot be moved, so one is made where it will stand. Beside it a lock file says that the
place is ours, and a file written last, by a rename, that it is whole. What has the one and not the other is
what a killed attempt left: it is removed and made again. `flock` lets go of itself when its holder dies.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from treadle.base.layout import environment_lock, environment_ready
from treadle.plan.environment import Making
from treadle.rules.environment.entry import quoted, tool

_HEAD = r"""
treadle_fail() { printf 'treadle: %s\n' "$1 (on $(uname -n))" >&2; exit 1; }
case $treadle_place in */*) mkdir -p -- "${treadle_place%/*}" ;; esac
if [ -e "$treadle_place" ] && [ ! -e "$treadle_lock" ]; then
  treadle_fail "$treadle_place was not made by treadle: remove it, or name another place"
fi
treadle_take_lock() {
  if command -v flock >/dev/null 2>&1; then flock "$@" 9
  else perl -e 'use Fcntl ":flock"; open(my $f, ">>&=", 9) or die; flock($f, LOCK_EX) or die $!'
  fi
}
exec 9>>"$treadle_lock"
if ! treadle_take_lock -n; then
  echo "treadle: $treadle_place is being made by another run: waiting for that"
  treadle_take_lock
fi
if [ -e "$treadle_probe" ] && [ "$(cat -- "$treadle_ready" 2>/dev/null)" = "$treadle_digest $treadle_place" ]
then
  echo "treadle: $treadle_place is made already"
  exit 0
fi
rm -f -- "$treadle_ready"
rm -rf -- "$treadle_place" "$treadle_part"
echo "treadle: making $treadle_place"
""".strip()

_TAIL = r"""
[ -e "$treadle_probe" ] || treadle_fail "$treadle_place was made, but lacks ${treadle_probe##*/}"
printf '%s\n' "$treadle_digest $treadle_place" >"$treadle_ready.part"
mv -f -- "$treadle_ready.part" "$treadle_ready"
""".strip()


def making(
    task: str, place: str, probe: str, digest: str, lines: Sequence[str], tools: Sequence[str] = ()
) -> Making:
    """The making of what stands at `place`; `probe` is seen from there (empty: the place itself).

    `lines` make `$treadle_place`, and may use `$treadle_part` for what is renamed. A place that is not of the
    cache may be somebody's own: what stands there and is not ours is left alone.
    """
    whole = f"{place}/{probe}" if probe else place
    ready = environment_ready(place)
    head = [
        f"treadle_place={quoted(place)}",
        f"treadle_probe={quoted(whole)}",
        f"treadle_lock={quoted(environment_lock(place))}",
        f"treadle_ready={quoted(ready)}",
        'treadle_part="$treadle_place.part"',
        f"treadle_digest={shlex.quote(digest)}",
        _HEAD,
    ]
    if tools:
        head.append(tool(tools))
    text = "\n".join([*head, *lines, _TAIL])
    return Making(
        task=task, text=text, place=place, probe=whole, ready=ready, digest=digest, tools=tuple(tools)
    )


def of_venv(requirements: str) -> list[str]:
    """A virtual environment of Python with what the file `requirements` lists, as pip reads it."""
    python = '"$treadle_place/bin/python"'
    return [
        '"$treadle_tool" -m venv -- "$treadle_place"',
        f"treadle_file={quoted(requirements)}",
        'cd -- "${treadle_file%/*}"',  # paths in the file are seen from its folder
        f'{python} -m pip install --disable-pip-version-check --no-input --requirement "$treadle_file"',
        f"{python} -c ''",
    ]


def of_conda(file: str) -> list[str]:
    """A conda environment from an environment file, or from a list of packages (`.txt`), by whichever of the
    programs there is: micromamba has another word for it."""
    verb = "create" if file.endswith(".txt") else "env create"
    return [
        "export CONDA_ALWAYS_YES=true MAMBA_ALWAYS_YES=true",
        f"treadle_verb={shlex.quote(verb)}",
        "case ${treadle_tool##*/} in micromamba) treadle_verb=create ;; esac",
        f'"$treadle_tool" $treadle_verb --prefix "$treadle_place" --file {quoted(file)} </dev/null',
    ]


def of_pixi(manifest: str, environment: str) -> list[str]:
    """What a pixi project says, in its own folder; what stands in the cache only says that it was done."""
    options = f" --environment {shlex.quote(environment)}" if environment else ""
    return [
        f'"$treadle_tool" install --manifest-path {quoted(manifest)}{options}',
        'mkdir -p -- "$treadle_place"',
    ]


def of_image(reference: str) -> list[str]:
    """An image file of a reference such as `docker://alpine:3.20`."""
    return [
        f'"$treadle_tool" pull --force "$treadle_part" {shlex.quote(reference)}',
        'mv -f -- "$treadle_part" "$treadle_place"',
    ]
