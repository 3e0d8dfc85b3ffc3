"""Entering an environment: text for bash that ends by becoming its arguments (`"$@"`) in there.

The whole command, its shell, hooks and script, stands in the arguments, so all of it runs inside, and what
is said of its strictness, signals and exit codes holds as without an environment. All that a person wrote
goes through `shlex.quote`; paths stand in token form, and tokens are filled quoted.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from treadle.plan.tokens import BINDS, VARIABLES, WORKDIR

_FAIL = "treadle_fail() { printf 'treadle: %s\\n' \"$1 (on $(uname -n))\" >&2; exit 1; }"

# The site's own set-up, where the shell of a job has not read it: Environment Modules and Lmod.
_MODULES = r"""
treadle_has_module() { command -v module >/dev/null 2>&1; }
treadle_has_module || for treadle_file in \
  "${LMOD_PKG-/usr/share/lmod/lmod}/init/bash" "${MODULESHOME-/usr/share/modules}/init/bash" \
  /etc/profile.d/z00_lmod.sh /etc/profile.d/lmod.sh /etc/profile.d/modules.sh
do
  [ ! -r "$treadle_file" ] || . "$treadle_file"
  ! treadle_has_module || break
done
treadle_has_module || treadle_fail 'there is no module command, and no set-up of one was found'
""".strip()

# Activation, without the program `conda`: its hook takes a quarter of a second, and nodes may lack it.
_CONDA = r"""
[ -d "$treadle_prefix/conda-meta" ] || treadle_fail "there is no conda environment in $treadle_prefix"
export CONDA_PREFIX="$treadle_prefix" CONDA_DEFAULT_ENV="$treadle_prefix" CONDA_SHLVL=1
export PATH="$treadle_prefix/bin:$PATH"
unset PYTHONHOME
for treadle_file in "$treadle_prefix"/etc/conda/activate.d/*.sh; do
  [ ! -r "$treadle_file" ] || . "$treadle_file"
done
""".strip()

# A folder on PATH cannot be told from two of them.
_NO_COLON = (
    "case $treadle_prefix in *:*) "
    'treadle_fail "an environment cannot stand in $treadle_prefix, for it has a colon" ;; esac'
)

# Ends the container when nobody holds the other end of its stdin any more. macOS has no setsid(1).
_WATCH = r"""
treadle_watch() {
  trap '' HUP INT TERM
  session=(setsid)
  command -v setsid >/dev/null || session=(perl -e 'use POSIX; POSIX::setsid(); exec @ARGV' --)
  exec env -u TREADLE_ATTEMPT "${session[@]}" sh -c 'cat >/dev/null; exec "$0" kill "$1"' \
    "$treadle_tool" "$treadle_name"
}
""".strip()

_BECOME = 'exec "$@"'


def in_venv(folder: str) -> str:
    """Into the virtual environment of Python in `folder` (token form)."""
    return _lines(
        f"treadle_prefix={quoted(folder)}",
        _NO_COLON,
        '[ -x "$treadle_prefix/bin/python" ] || '
        'treadle_fail "there is no virtual environment in $treadle_prefix"',
        'export VIRTUAL_ENV="$treadle_prefix" PATH="$treadle_prefix/bin:$PATH"',
        "unset PYTHONHOME",
    )


def in_conda(prefix: str) -> str:
    """Into the conda environment in the folder `prefix` (token form)."""
    return _lines(f"treadle_prefix={quoted(prefix)}", _NO_COLON, _CONDA)


def in_named_conda(name: str, tools: Sequence[str]) -> str:
    """Into the conda environment that the first of `tools` that is there knows as `name`."""
    return _lines(
        f"treadle_name={shlex.quote(name)}",
        tool(tools),
        # `name  *  /path`: the name is the first word, the path is what begins with the first slash.
        'treadle_prefix=$("$treadle_tool" env list | awk -v name="$treadle_name" '
        '\'$1 == name && index($0, "/") { print substr($0, index($0, "/")); exit }\')',
        '[ -n "$treadle_prefix" ] || treadle_fail "${treadle_tool##*/} knows no environment $treadle_name"',
        _CONDA,
    )


def in_pixi(manifest: str, environment: str) -> str:
    """Into an environment of the pixi project of `manifest` (token form), as it is locked."""
    options = f" --environment {shlex.quote(environment)}" if environment else ""
    return _lines(
        tool(("pixi",)),
        f'treadle_text=$("$treadle_tool" shell-hook --frozen --shell bash '
        f"--manifest-path {quoted(manifest)}{options}) || treadle_fail 'pixi cannot enter its environment'",
        'eval "$treadle_text"',
    )


def with_modules(modules: Sequence[str]) -> str:
    """With modules of the site loaded, in this order."""
    names = shlex.join(modules)
    return _lines(
        _MODULES,
        # Old versions of `module` succeed whatever becomes of it, and tell it on stderr alone.
        f"module load {names} || treadle_fail {shlex.quote(f'module load {names} failed')}",
        *(
            f"module is-loaded {shlex.quote(one)} 2>/dev/null || case :${{LOADEDMODULES-}}: in "
            f"*:{shlex.quote(one)}:* | *:{shlex.quote(one)}/*) ;; "
            f"*) treadle_fail {shlex.quote(f'module load {one} left it unloaded')} ;; esac"
            for one in modules
        ),
    )


def in_docker(
    program: str, image: str, args: Sequence[str], *, binds: Sequence[str] = (), gpus: int = 0
) -> str:
    """Into a container of `image` by `docker` or `podman`.

    A container is no child of its client, so a killed client would leave it at work. What waits for the end
    of the client holds the other end of a pipe, in a session of its own, and ends the container then.
    """
    user = '--user "$(id -u):$(id -g)"'
    if program == "podman":  # who is root there is you, unless you are root here
        user = '$([ "$(id -u)" -eq 0 ] || echo --userns=keep-id)'
    device = 'treadle_args+=(--gpus "\\"device=$CUDA_VISIBLE_DEVICES\\"")'
    every = f"treadle_args+=(--gpus {gpus})"
    if program == "podman":
        device = every = "treadle_args+=(--device nvidia.com/gpu=all --env CUDA_VISIBLE_DEVICES)"
    options = ["--rm --init --entrypoint ''", user, '--workdir "$PWD"', "--env HOME=/tmp", VARIABLES]
    return _lines(
        tool((program,)),
        'treadle_name="treadle-${TREADLE_ATTEMPT:-exec}-$$"',
        f'treadle_args=(--name "$treadle_name" {" ".join(options)} {BINDS})',
        "[ ! -t 0 ] || treadle_args+=(--interactive --tty)",  # `treadle exec`
        *_private("--volume"),
        '[ ! -d "${TMPDIR-}" ] || treadle_args+=(--env TMPDIR)',
        *_temporary("--volume"),
        *([f'if [ -n "${{CUDA_VISIBLE_DEVICES-}}" ]; then {device}; else {every}; fi'] if gpus else []),
        f"treadle_args+=({' '.join([*binds, *map(shlex.quote, args)])})" if args or binds else "",
        _WATCH,
        "exec 3> >(treadle_watch >/dev/null 2>&1)",
        become=f'exec "$treadle_tool" run "${{treadle_args[@]}}" {quoted(image)} "$@"',
    )


def in_apptainer(image: str, args: Sequence[str], *, binds: Sequence[str] = (), gpus: int = 0) -> str:
    """Into a container of the image file `image` (token form) by apptainer, or singularity as it was called.

    `args` are options as they are, `binds` words of shell text.
    """
    options = ["--nv"] if gpus else []
    return _lines(
        tool(("apptainer", "singularity")),
        f"treadle_image={quoted(image)}",
        '[ -e "$treadle_image" ] || treadle_fail "there is no image $treadle_image"',
        " ".join(["treadle_args=(", *options, '--pwd "$PWD"', BINDS, ")"]),
        *_private("--bind"),
        *_temporary("--bind"),
        f"treadle_args+=({' '.join([*binds, *map(shlex.quote, args)])})" if args or binds else "",
        become='exec "$treadle_tool" exec "${treadle_args[@]}" "$treadle_image" "$@"',
    )


def _private(option: str) -> list[str]:
    """A task with a private folder (`scratch`) works there, or some folders named `up` below that."""
    return [
        f'if [ "$PWD" != {WORKDIR} ]; then',
        "  treadle_seen=$PWD",
        '  while [ "${treadle_seen##*/}" = up ]; do treadle_seen=${treadle_seen%/*}; done',
        f'  treadle_args+=({option} "$treadle_seen:$treadle_seen")',
        "fi",
    ]


def _temporary(option: str) -> list[str]:
    """The folder for temporary files; a place that is bound twice is refused."""
    return [
        '[ ! -d "${TMPDIR-}" ] || case " ${treadle_args[*]} " in',
        '  *" $TMPDIR:$TMPDIR"[\\ :]*) ;;',
        f'  *) treadle_args+=({option} "$TMPDIR:$TMPDIR") ;;',
        "esac",
    ]


def tool(names: Sequence[str]) -> str:
    """The first of some programs that is on PATH, as `$treadle_tool`; else the end, with words."""
    found = " || ".join(f"command -v {name}" for name in names)
    return f"treadle_tool=$({found}) || treadle_fail {shlex.quote(missing(names))}"


def missing(names: Sequence[str]) -> str:
    """`neither mamba nor micromamba is on PATH`."""
    return f"neither {' nor '.join(names)} is on PATH" if len(names) > 1 else f"no {names[0]} is on PATH"


def quoted(path: str) -> str:
    """A path in token form as one word; its token, at the beginning, will be filled quoted."""
    head, mark, rest = path.rpartition("\0")
    return f"{head}{mark}{shlex.quote(rest)}" if rest or not mark else path


def _lines(*lines: str, become: str = _BECOME) -> str:
    return "\n".join([_FAIL, *filter(None, lines), become])
