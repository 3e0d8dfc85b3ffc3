"""Stand-ins for programs that make and enter environments (they check what they are told, and do it), and a
workflow that needs one."""

from __future__ import annotations

import os
import shlex
from typing import Any

CONDA_FILE = "channels: [conda-forge]\ndependencies:\n  - tool\n"
CONDA = """
[[rules]]
name = "a"
output = ["a.txt"]
environment = { conda = "envs/qc.yml" }
shell = "tool > {output}"

[[rules]]
name = "b"
input = ["a.txt"]
output = ["b.txt"]
environment = { conda = "envs/qc.yml" }
shell = "tool > {output}"

[[rules]]
name = "c"
output = ["c.txt"]
shell = "echo plain > {output}"
"""

_CONDA = r"""#!/bin/bash
# conda and micromamba, as far as they make an environment from a file
set -eu
here=@HERE@
printf '%s\n' "${0##*/} $*" >>"$here/calls"
prefix= file=
if [ "$1 $2" = "env list" ]; then
  printf '# conda environments:\n#\nbase     /nowhere\nmine  *  %s\n' "$here/an env"
  exit
fi
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=$2; shift ;;
    --file) file=$2; shift ;;
    env | create | --yes | --quiet) ;;
    *) echo "unknown: $1" >&2; exit 2 ;;
  esac
  shift
done
[ -r "$file" ] && grep -q dependencies "$file"
[ ! -e "$prefix" ] || { echo "prefix exists: $prefix" >&2; exit 1; }
[ ! -e "$here/broken" ] || { echo 'no such package: tool' >&2; exit 1; }
mkdir -p "$prefix/bin"
if [ -e "$here/hang" ]; then : >"$here/half"; exec sleep 300; fi
[ ! -e "$here/hold" ] || : >"$here/half"
while [ -e "$here/hold" ]; do sleep 0.05; done
mkdir -p "$prefix/conda-meta" "$prefix/etc/conda/activate.d"
printf '#!/bin/sh\necho tool of %s\n' "${0##*/}" >"$prefix/bin/tool"
chmod +x "$prefix/bin/tool"
echo 'export FROM_ACTIVATION=yes' >"$prefix/etc/conda/activate.d/x.sh"
"""

_DOCKER = r"""#!/bin/bash
# docker, as far as tasks use it: a container is no child of its client, and has nothing of its environment
set -u
here=@HERE@
printf '%s\n' "$*" >>"$here/calls"
mkdir -p "$here/containers"
if [ "$1" = kill ]; then
  read -r pid <"$here/containers/$2" || exit 1
  kill -s KILL -- "-$pid"
  exit
fi
[ "$1" = run ] || exit 125
shift
vars=(PATH=/usr/bin:/bin) binds=: folder=/ name=
while :; do
  case $1 in
    --rm | --init) ;;
    --entrypoint) [ -z "$2" ] || exit 125; shift ;;
    --user) [ "$2" = "$(id -u):$(id -g)" ] || exit 125; shift ;;
    --name) name=$2; shift ;;
    --workdir) folder=$2; shift ;;
    --env) case $2 in *=*) vars+=("$2") ;; *) [ -z "${!2+x}" ] || vars+=("$2=${!2}") ;; esac; shift ;;
    --volume) [ -d "${2%%:*}" ] || exit 125; binds=$binds${2%%:*}:; shift ;;
    --network) shift ;;
    --mount) [ "${2%%,*}" = type=bind ] || exit 125; binds=$binds$2:; shift ;;
    -*) echo "unknown: $1" >&2; exit 125 ;;
    *) break ;;
  esac
  shift
done
image=$1
shift
[ "$image" = tool:1 ] || { echo "no such image: $image" >&2; exit 125; }
setsid env -i "${vars[@]}" IMAGE="$image" BINDS="$binds" \
  bash -c 'cd -- "$1" && shift && exec "$@"' inside "$folder" "$@" 3>&- &
pid=$!
echo "$pid" >"$here/containers/$name"
trap 'kill -s TERM "$pid"' TERM
wait "$pid"
code=$?
while kill -s 0 "$pid" 2>/dev/null; do wait "$pid"; code=$?; done
rm "$here/containers/$name"
exit "$code"
"""

_APPTAINER = r"""#!/bin/bash
# apptainer, as far as tasks use it
set -u
here=@HERE@
printf '%s\n' "$*" >>"$here/calls"
case $1 in
  pull) [ "$2" = --force ] && [ $# -eq 4 ] && echo "$4" >"$3"; exit ;;
  exec) shift ;;
  *) exit 255 ;;
esac
binds=: folder=/
while :; do
  case $1 in
    --nv | --cleanenv) ;;
    --pwd) folder=$2; shift ;;
    --mount) [ "${2%%,*}" = type=bind ] || exit 255; shift ;;
    --bind) [ -d "${2%%:*}" ] || exit 255; binds=$binds${2%%:*}:; shift ;;
    -*) echo "unknown: $1" >&2; exit 255 ;;
    *) break ;;
  esac
  shift
done
read -r IMAGE <"$1" || exit 255
shift
export IMAGE BINDS=$binds
cd -- "$folder" && exec "$@"
"""

_PIXI = r"""#!/bin/bash
# pixi, as far as it makes and enters an environment
set -eu
printf '%s\n' "pixi $*" >>@HERE@/calls
verb=$1 manifest= environment=default
while [ $# -gt 0 ]; do
  case $1 in
    --manifest-path) manifest=$2; shift ;;
    --environment) environment=$2; shift ;;
    --shell) [ "$2" = bash ]; shift ;;
    install | shell-hook | --frozen) ;;
    *) exit 2 ;;
  esac
  shift
done
place=$(dirname "$manifest")/.pixi/envs/$environment
case $verb in
  install) mkdir -p "$place"; echo locked >"$(dirname "$manifest")/pixi.lock" ;;
  shell-hook) [ -d "$place" ] && printf 'export PIXI=%q\n' "$environment" ;;
esac
"""

MODULES = r"""
module() {
  case $1 in
    load)
      shift
      for treadle_one do
        case $treadle_one in
          good/* | good) export LOADEDMODULES="${LOADEDMODULES:+$LOADEDMODULES:}$treadle_one" GOOD=yes ;;
          *) echo "Unable to locate a modulefile for '$treadle_one'" >&2 ;;  # and no failure, as it was once
        esac
      done ;;
    *) return 1 ;;
  esac
}
"""

PROGRAMS = {
    "conda": _CONDA,
    "micromamba": _CONDA,
    "mamba": _CONDA,
    "docker": _DOCKER,
    "apptainer": _APPTAINER,
    "pixi": _PIXI,
}


def tools(folder: Any, *names: str, **more: str) -> dict[str, str]:
    """Put stand-ins into `bin` of the folder, and give the environment that has them first on PATH."""
    for name in names:
        file = folder.write(f"bin/{name}", PROGRAMS[name].replace("@HERE@", shlex.quote(str(folder.path))))
        file.chmod(0o755)
    return {**folder.env(), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **more}


def conda_flow(folder: Any, flow: str = CONDA) -> dict[str, str]:
    """A workflow with an environment that a stand-in for conda makes; gives the environment to run in."""
    folder.flow(flow)
    folder.write("envs/qc.yml", CONDA_FILE)
    return tools(folder, "conda")
