"""The part of a private folder's text that is the same for all tasks (see `scratch`): plain sh.

Needs `treadle_home` (the work folder), `treadle_base`, `treadle_stem`, `treadle_beside`, `treadle_name`,
`treadle_work`, `treadle_log`, and the functions `treadle_fill` and `treadle_each`. Signals go to the whole
process group: the command hears them by itself, and this shell must outlive it.
"""

from __future__ import annotations

# A file is linked rather than copied where that can be (one file system): mode, time and group stay as the
# command left them. Copies keep mode and time; the group is that of the target's folder. Links to what is
# in the private folder itself would be dead without it: these are followed.
_FILES = r"""
treadle_say() { printf 'treadle: %s\n' "$*" >&2; }

treadle_remove() {
  [ -d "$1" ] && [ ! -L "$1" ] || return 0
  rm -rf -- "$1" 2>/dev/null || { chmod -R u+rwX -- "$1" 2>/dev/null; rm -rf -- "$1"; }
}

treadle_link() {
  treadle_folder=$1
  shift
  for treadle_path do
    [ -e "$treadle_folder/${treadle_path##*/}" ] || [ -L "$treadle_folder/${treadle_path##*/}" ] ||
      set -- "$@" "$treadle_home/$treadle_path"
    shift
  done
  [ $# -eq 0 ] || ln -s -- "$@" "$treadle_folder/"
}

treadle_unlink() {
  for treadle_path do
    [ ! -L "$treadle_path" ] || rm -f -- "./$treadle_path" || return
  done
}

treadle_open() {
  for treadle_path in "$treadle_home/$1"/* "$treadle_home/$1"/.[!.]* "$treadle_home/$1"/..?*; do
    treadle_entry=${treadle_path##*/}
    [ "$treadle_entry" != .treadle ] || continue
    [ -e "$treadle_path" ] || [ -L "$treadle_path" ] || continue
    [ ! -e "./$1/$treadle_entry" ] && [ ! -L "./$1/$treadle_entry" ] || continue
    printf '%s\0' "$treadle_path"
  done | xargs -0 sh -c '[ $# -eq 0 ] || ln -s -- "$@" "$0"' "./$1/"
}

treadle_cp() {
  if cp --version >/dev/null 2>&1; then
    cp -dRf --preserve=mode,timestamps -- "$@"
  else
    cp -pRf -- "$@"
  fi
}

treadle_points_inside() {
  if [ -L "$1" ]; then
    case $(readlink "$1") in "$treadle_root"/*) return 0 ;; *) return 1 ;; esac
  fi
  [ -d "$1" ] || return 1
  find "$1" -type l -exec readlink {} + 2>/dev/null | grep -qF -- "$treadle_root/"
}

treadle_take() {
  if treadle_points_inside "$1"; then
    cp -RL -- "$1" "$2"
    return
  fi
  cp -dRl -- "$1" "$2" 2>/dev/null && return
  rm -rf -- "$2"
  treadle_cp "$1" "$2"
}

treadle_merge() {
  if treadle_points_inside "$1"; then
    cp -RLf -- "$1/." "$2/"
  else
    treadle_cp "$1/." "$2/"
  fi
}

treadle_is_folder() { [ -d "$1" ] && [ ! -L "$1" ]; }

treadle_names() {
  treadle_source=./$2
  treadle_target=$treadle_home/$2
  treadle_aside=${treadle_target%/*}/$treadle_beside$1
}

treadle_copy() {
  treadle_names "$1" "$2"
  rm -rf -- "$treadle_aside"
  if [ ! -e "$treadle_source" ] && [ ! -L "$treadle_source" ]; then
    [ -e "$treadle_target" ] || treadle_lacking=1
  elif treadle_is_folder "$treadle_source" && [ -d "$treadle_target" ]; then
    :
  else
    treadle_take "$treadle_source" "$treadle_aside"
  fi
}

treadle_move() {
  treadle_names "$1" "$2"
  if treadle_is_folder "$treadle_source" && [ -d "$treadle_target" ]; then
    treadle_merge "$treadle_source" "$treadle_target"
  elif [ -e "$treadle_aside" ] || [ -L "$treadle_aside" ]; then
    if [ -d "$treadle_target" ]; then
      treadle_say "'$2' is a folder, and the task made a file of that name"
      return 1
    fi
    mv -f -- "$treadle_aside" "$treadle_target"
  fi
}

treadle_drop() {
  treadle_names "$1" "$2"
  rm -rf -- "$treadle_aside"
}

treadle_space() {
  df -Pk "$1" 2>/dev/null | {
    read -r treadle_line
    read -r treadle_device treadle_size treadle_used treadle_free treadle_line
    case $treadle_free in '' | *[!0-9]*) return 0 ;; esac
    [ "$treadle_free" -ge 16384 ] || {
      treadle_say "hardly anything is free on the file system of '$1' on $(uname -n)"
      return 1
    }
  }
}
"""

_RUN = r"""
treadle_asked=
trap 'treadle_asked=143' HUP INT TERM
trap : USR1 USR2
treadle_root=
treadle_lacking=
treadle_stop() {
  treadle_say "$1"
  treadle_space "$treadle_base"
  cd / && treadle_remove "$treadle_root"
  exit "${treadle_asked:-1}"
}

mkdir -p -- "$treadle_base" || treadle_stop "cannot make the folder for private folders: '$treadle_base'"
for treadle_path in "$treadle_base/$treadle_stem"*; do treadle_remove "$treadle_path"; done
treadle_root=$(mktemp -d "$treadle_base/$treadle_stem$treadle_name.XXXXXX") ||
  treadle_stop "cannot make a private folder in '$treadle_base'"
mkdir -p -- "$treadle_root/$treadle_work" && CDPATH= cd -- "$treadle_root/$treadle_work" && treadle_fill ||
  treadle_stop "cannot fill the private folder '$treadle_root'"

[ -z "$treadle_asked" ] || treadle_stop 'ended before it began'
"$@"
treadle_status=$?

CDPATH= cd -- "$treadle_root/$treadle_work" || treadle_stop "the private folder '$treadle_root' is gone"
[ -z "$treadle_log" ] || [ -L "./$treadle_log" ] || [ ! -f "./$treadle_log" ] ||
  cp -f -- "./$treadle_log" "$treadle_home/$treadle_log"
if [ "$treadle_status" -eq 0 ]; then
  treadle_each treadle_copy && treadle_each treadle_move || {
    treadle_status=1
    treadle_say 'its outputs could not be put in place'
    treadle_each treadle_drop
    treadle_space "$treadle_home"
  }
fi
if [ "$treadle_status" -eq 0 ] && [ -z "$treadle_lacking" ]; then
  cd / && treadle_remove "$treadle_root"
elif ! treadle_space "$treadle_root"; then
  treadle_say 'its private folder is removed, to make room'
  cd / && treadle_remove "$treadle_root"
else
  treadle_say "its private folder is kept until the next attempt:" \
    "'$treadle_root/$treadle_work' on $(uname -n)"
fi
exit "$treadle_status"
"""

RUNTIME = "".join((_FILES, _RUN)).replace("\n\n", "\n").strip()
