"""Stand-ins for programs that make and enter environments: they check what they are told, and do it."""

from __future__ import annotations

import os
from typing import Any

CONDA_FILE = "channels: [conda-forge]\ndependencies:\n  - tool\n"

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
mkdir -p "$prefix/conda-meta" "$prefix/etc/conda/activate.d"
printf '#!/bin/sh\necho tool of %s\n' "${0##*/}" >"$prefix/bin/tool"
chmod +x "$prefix/bin/tool"
echo 'export FROM_ACTIVATION=yes' >"$prefix/etc/conda/activate.d/x.sh"
"""

PROGRAMS = {"conda": _CONDA, "micromamba": _CONDA, "mamba": _CONDA}


def tools(folder: Any, *names: str, **more: str) -> dict[str, str]:
    """Put stand-ins into `bin` of the folder, and give the environment that has them first on PATH."""
    for name in names:
        file = folder.write(f"bin/{name}", PROGRAMS[name].replace("@HERE@", f"'{folder.path}'"))
        file.chmod(0o755)
    found: dict[str, str] = folder.env(PATH=f"{folder / 'bin'}:{os.environ['PATH']}", **more)
    return found
