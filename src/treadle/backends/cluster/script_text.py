"""The part of `job.sh` that is the same in every job: functions in plain sh, with GNU coreutils.

    treadle_attempt    claim a start, look at inputs, run the command, look at outputs, write exit.json
    treadle_forward    pass a signal on to the command's process group

What a job does defines `treadle_see` (look at the inputs), `treadle_made` (at the outputs) and
`treadle_task` (become the command), sets the variables named in `script_task`, and calls
`treadle_attempt`. Nothing here knows a path or a name of a user's but through those.

Exit codes of a job: that of the command that failed first; 73 no space for the records, 74 the records
cannot be written for another reason, 75 refused to start twice. 99 and 100 become 1: they are orders to
SGE (start again; hold in an error state), and 99 often is to LSF.
"""

from __future__ import annotations

from treadle.base.layout import EXIT_FILE

NO_SPACE = 73
NO_RECORD = 74
REFUSED = 75

# A job whose shell has job control (bash; new versions of dash) gives the command a process group by that.
# Else timeout(1) makes one, with no time limit: then members of the group are told one by one, because
# timeout passes on what it hears, and a signal would arrive twice. With a terminal there is no job control:
# dash would wait for its turn in front.
_SIGNALS = r"""
treadle_say() { printf 'treadle: %s\n' "$*" >&2; }

treadle_mode=plain
if ! ( : </dev/tty ) 2>/dev/null; then
  set -m 2>/dev/null
  case $- in *m*) treadle_mode=monitor ;; esac
  set +m 2>/dev/null
fi
if [ "$treadle_mode" = plain ]; then
  timeout 0 sh -c 'exit 7' 2>/dev/null
  [ $? -ne 7 ] || treadle_mode=timeout
fi

treadle_members() {
  for treadle_file in /proc/[0-9]*/stat; do
    { IFS= read -r treadle_line <"$treadle_file"; } 2>/dev/null || continue
    treadle_line=${treadle_line##*) }
    case $treadle_line in Z*) continue ;; esac
    treadle_line=${treadle_line#* }
    treadle_line=${treadle_line#* }
    treadle_file=${treadle_file#/proc/}
    [ "${treadle_line%% *}" != "$1" ] || printf '%s\n' "${treadle_file%/stat}"
  done
}

treadle_signal() {
  case $treadle_mode in
    monitor) kill -s "$1" -- "-$treadle_pid" 2>/dev/null ;;
    timeout)
      treadle_told=0
      for treadle_one in $(treadle_members "$treadle_pid"); do
        [ "$treadle_one" != "$treadle_pid" ] || continue
        kill -s "$1" "$treadle_one" 2>/dev/null && treadle_told=1
      done
      [ "$treadle_told" = 1 ] || kill -s "$1" "$treadle_pid" 2>/dev/null ;;
    *) kill -s "$1" "$treadle_pid" 2>/dev/null ;;
  esac
}

treadle_asked=0
treadle_pass=
treadle_pid=
treadle_interrupted=0
treadle_forward() {
  [ "$treadle_asked" -ne 0 ] || treadle_asked=$1
  treadle_pass=$2
  treadle_interrupted=1
  [ -z "$treadle_pid" ] || treadle_signal "$2"
}
trap 'treadle_forward 15 TERM' TERM
trap 'treadle_forward 1 TERM' HUP
trap 'treadle_forward 2 TERM' INT
trap 'treadle_forward 12 TERM' USR2
trap '[ -z "$treadle_pid" ] || { treadle_interrupted=1; treadle_signal USR1; }' USR1
"""

# One of several attempts in a job is held to its own time limit, and ends when its driver asks for that by a
# file: the scheduler does either to the job as a whole only.
#
# `wait` that a signal interrupts has not told the status yet; a second `wait` may know it no more (127)
# when the signal came just behind the end.
_LAUNCH = r"""
treadle_wait() {
  treadle_interrupted=0
  wait "$treadle_pid"
  treadle_status=$?
  while [ "$treadle_interrupted" = 1 ]; do
    treadle_interrupted=0
    wait "$treadle_pid" 2>/dev/null
    treadle_again_status=$?
    [ "$treadle_again_status" -eq 127 ] || treadle_status=$treadle_again_status
  done
}

treadle_group_lives() {
  [ "$treadle_mode" != plain ] && kill -s 0 -- "-$treadle_pid" 2>/dev/null || return 1
  [ ! -r /proc/self/stat ] || [ -n "$(treadle_members "$treadle_pid")" ]
}

treadle_clear() {
  treadle_turns=0
  if [ "$treadle_asked" -ne 0 ] || [ "$treadle_passed" -ne 0 ]; then
    while treadle_group_lives && [ "$treadle_turns" -lt "$treadle_grace" ]; do
      sleep 0.1 2>/dev/null || sleep 1
      treadle_turns=$((treadle_turns + 1))
    done
  fi
  treadle_group_lives || return 0
  kill -s KILL -- "-$treadle_pid" 2>/dev/null
  treadle_turns=0
  while treadle_group_lives && [ "$treadle_turns" -lt 20 ]; do
    sleep 0.1 2>/dev/null || sleep 1
    treadle_turns=$((treadle_turns + 1))
  done
}

treadle_watch() {
  treadle_pause=5 treadle_turns=0
  [ "$treadle_most" -eq 0 ] || [ "$treadle_most" -ge 60 ] || treadle_pause=1
  while sleep "$treadle_pause"; do
    treadle_turns=$((treadle_turns + treadle_pause))
    [ -e "$treadle_unwanted" ] || {
      [ "$treadle_most" -gt 0 ] && [ "$treadle_turns" -ge "$treadle_most" ]
    } || continue
    : >"$treadle_start/passed"
    treadle_signal TERM
    sleep $(((treadle_grace + 9) / 10))
    treadle_signal KILL
    return
  done
}

treadle_launch() {
  [ "$treadle_mode" != monitor ] || set -m
  ( treadle_task ) </dev/null >>"$treadle_log" 2>&1 &
  treadle_pid=$!
  treadle_watcher=
  if [ "$treadle_alone" = 0 ]; then
    treadle_watch </dev/null >/dev/null 2>&1 &
    treadle_watcher=$!
  fi
  [ "$treadle_mode" != monitor ] || set +m
  [ "$treadle_asked" -eq 0 ] || treadle_signal "$treadle_pass"
  treadle_wait
  [ -z "$treadle_watcher" ] || {
    kill -s KILL -- "-$treadle_watcher" || kill -s KILL "$treadle_watcher"
    wait "$treadle_watcher"
  } 2>/dev/null
  [ ! -e "$treadle_start/passed" ] || treadle_passed=15
  treadle_clear
  treadle_pid=
}

treadle_become() {
  case $1 in -*) set -- env -- "$@" ;; esac
  case $treadle_mode in
    timeout) exec timeout 0 "$@" ;;
    *) exec "$@" ;;
  esac
}
"""

_FILES = r"""
treadle_stats() {
  treadle_found=$(LC_ALL=C stat -L -c '%f %s %.9Y' -- "$@" 2>/dev/null) && {
    printf '%s\n' "$treadle_found"
    return
  }
  for treadle_path do
    LC_ALL=C stat -L -c '%f %s %.9Y' -- "$treadle_path" 2>/dev/null && continue
    if [ -d "$treadle_path" ]; then echo '4000 0 0'
    elif [ -e "$treadle_path" ]; then echo '8000 0 0'
    else echo '- 0 0'
    fi
  done
}

treadle_small() { [ -z "$treadle_limit" ] || [ "$1" -le "$treadle_limit" ]; }

treadle_folder_sum() {
  BASH_ENV= bash -c "$treadle_digest_text" bash "$1" ${treadle_limit:+"$treadle_limit"} 2>/dev/null
}

treadle_all_small() {
  while IFS=' ' read -r treadle_kind treadle_size treadle_time; do
    case $treadle_kind in 8???) treadle_small "$treadle_size" || return 1 ;; *) return 1 ;; esac
  done <<END
$1
END
}

treadle_sums() {
  treadle_rows=$1
  shift
  if treadle_all_small "$treadle_rows"; then
    treadle_found=$(b2sum -l 256 -- "$@" 2>/dev/null) && {
      printf '%s\n' "$treadle_found"
      return
    }
  fi
  while IFS=' ' read -r treadle_kind treadle_size treadle_time; do
    treadle_sum=
    case $treadle_kind in
      8???)
        ! treadle_small "$treadle_size" || treadle_sum=$(b2sum -l 256 <"$1" 2>/dev/null) || treadle_sum= ;;
      4???) treadle_sum=$(treadle_folder_sum "$1" </dev/null) || treadle_sum= ;;
    esac
    printf '%s\n' "$treadle_sum"
    shift
  done <<END
$treadle_rows
END
}

treadle_checksums() {
  [ -n "$treadle_checksum" ] || return 0
  treadle_rows=$1
  shift
  while IFS=' ' read -r treadle_kind treadle_size treadle_time; do
    treadle_sum=
    case $treadle_kind in
      8???) treadle_sum=$("${treadle_checksum}sum" <"$1" 2>/dev/null) || treadle_sum= ;;
    esac
    printf '%s\n' "${treadle_sum%% *}"
    shift
  done <<END
$treadle_rows
END
}

treadle_entries() {
  treadle_index=$1
  while IFS=' ' read -r treadle_kind treadle_size treadle_time; do
    IFS= read -r treadle_sum <&3 || treadle_sum=
    IFS= read -r treadle_other <&4 || treadle_other=
    treadle_sum=${treadle_sum#\\}
    treadle_sum=${treadle_sum%% *}
    [ "${#treadle_sum}" -eq 64 ] || treadle_sum=
    case $treadle_time in
      *[!0-9.]*) treadle_time=0 ;;
      *.?????????) treadle_time=${treadle_time%.*}${treadle_time#*.} ;;
      *) treadle_time=${treadle_time%.*}000000000 ;;
    esac
    while :; do case $treadle_time in 0?*) treadle_time=${treadle_time#0} ;; *) break ;; esac; done
    case $treadle_kind in
      4???) treadle_kind=d treadle_size=0 treadle_time=0 ;;
      -) ;;
      *) treadle_kind=f ;;
    esac
    case $treadle_other in '' | *[!0-9a-f]*) treadle_other= ;; *) treadle_other=',"'$treadle_other'"' ;; esac
    printf ',[%d,"%s",%s,%s,"%s"%s]' \
      "$treadle_index" "$treadle_kind" "$treadle_size" "$treadle_time" "$treadle_sum" "$treadle_other"
    treadle_index=$((treadle_index + 1))
  done <<END 3<<SUMS 4<<OTHERS
$2
END
$3
SUMS
$4
OTHERS
}

treadle_look() {
  treadle_first=$1
  shift
  treadle_entries "$treadle_first" "$(treadle_stats "$@")" '' ''
}

treadle_check() {
  treadle_first=$1
  shift
  treadle_stood=$(treadle_stats "$@")
  treadle_entries "$treadle_first" "$treadle_stood" "$(treadle_sums "$treadle_stood" "$@")" \
    "$(treadle_checksums "$treadle_stood" "$@")"
}
"""

# A cgroup counts only where its path holds the job's id as a word: another one is shared with other jobs,
# even where the digits stand in a hash (a container's), in a user's slice or in the session of a login.
_FIGURES = r"""
treadle_now() {
  treadle_time=$(date +%s.%N)
  case $treadle_time in *[!0-9.]* | *.) treadle_time=$(date +%s) ;; esac
}

treadle_cgroup=
treadle_find_cgroup() {
  treadle_digits=${treadle_id%%[!0-9]*}
  [ -n "$treadle_digits" ] && [ -r "$treadle_root/proc/self/cgroup" ] || return 0
  while IFS=: read -r treadle_number treadle_names treadle_path; do
    case $treadle_path/ in
      */user-"$treadle_digits".slice/* | */user@"$treadle_digits".service/*) continue ;;
      */session-"$treadle_digits".scope/*) continue ;;
      *[!0-9A-Za-z]"$treadle_digits"[!0-9A-Za-z]*) ;;
      *) continue ;;
    esac
    case ,$treadle_names, in
      ,,) treadle_cgroup=$treadle_root/sys/fs/cgroup$treadle_path ;;
      *,memory,*) treadle_cgroup=$treadle_root/sys/fs/cgroup/memory$treadle_path ;;
      *) continue ;;
    esac
    [ -r "$treadle_cgroup/memory.events" ] || [ -r "$treadle_cgroup/memory.oom_control" ] || {
      treadle_cgroup=
      continue
    }
    return 0
  done <"$treadle_root/proc/self/cgroup"
}

treadle_kills() {
  treadle_count=
  [ -n "$treadle_cgroup" ] || return 0
  for treadle_file in "$treadle_cgroup/memory.events" "$treadle_cgroup/memory.oom_control"; do
    [ -r "$treadle_file" ] || continue
    while IFS=' ' read -r treadle_name treadle_value; do
      [ "$treadle_name" != oom_kill ] || treadle_count=$treadle_value
    done <"$treadle_file"
  done
}

treadle_peak() {
  treadle_memory=null
  [ -n "$treadle_cgroup" ] && [ "$treadle_alone" = 1 ] || return 0
  for treadle_file in "$treadle_cgroup/memory.peak" "$treadle_cgroup/memory.max_usage_in_bytes"; do
    [ -r "$treadle_file" ] || continue
    IFS= read -r treadle_value <"$treadle_file"
    case $treadle_value in '' | *[!0-9]*) ;; *) treadle_memory=$treadle_value ;; esac
  done
}

treadle_milliseconds() {
  treadle_part=${1#*m}
  treadle_part=${treadle_part%s}
  treadle_fraction=${treadle_part#*[.,]}000
  treadle_fraction=${treadle_fraction%"${treadle_fraction#???}"}
  treadle_value=$((${1%%m*} * 60000 + ${treadle_part%%[.,]*} * 1000 + 1$treadle_fraction - 1000))
}

treadle_cpu() {
  treadle_spent=
  times >"$treadle_start/times" 2>/dev/null || return 0
  {
    IFS=' ' read -r treadle_user treadle_system
    IFS=' ' read -r treadle_user treadle_system
  } <"$treadle_start/times" || return 0
  rm -f "$treadle_start/times"
  case $treadle_user$treadle_system in *[!0-9ms.,]* | '') return 0 ;; esac
  treadle_milliseconds "$treadle_user"
  treadle_spent=$treadle_value
  treadle_milliseconds "$treadle_system"
  treadle_spent=$((treadle_spent + treadle_value))
}

treadle_plain() {
  case $1 in *[!]A-Za-z0-9_.@:/[-]*) treadle_value= ;; *) treadle_value=$1 ;; esac
}
"""

# Some file systems know no fsync: then the file is written without.
_ATTEMPT = r"""
treadle_is_done() {
  IFS= read -r treadle_line <"$1" && case $treadle_line in *'"done":true,'*) ;; *) false ;; esac
} 2>/dev/null

treadle_claim() {
  treadle_number=1
  while :; do
    treadle_start=$treadle_stem$treadle_number
    treadle_why=$(LC_ALL=C mkdir "$treadle_start" 2>&1) && return 0
    if [ ! -d "$treadle_start" ]; then
      treadle_say "cannot begin, for the records cannot be written on $treadle_host: $treadle_why"
      treadle_result=@NO_RECORD@
      case $treadle_why in *'o space'* | *uota*) treadle_result=@NO_SPACE@ ;; esac
      return 1
    fi
    if treadle_is_done "$treadle_start/@EXIT_FILE@"; then
      treadle_say 'not started again: it is done already'
      treadle_result=0
      return 1
    fi
    if [ "$treadle_restartable" != 1 ]; then
      mkdir "$treadle_refused" 2>/dev/null
      treadle_say 'refused to start twice: the rule is not restartable'
      treadle_result=@REFUSED@
      return 1
    fi
    treadle_number=$((treadle_number + 1))
  done
}

treadle_ready() {
  treadle_problem=
  if ! CDPATH= cd -- "$treadle_workdir"; then
    treadle_problem=workdir
  elif [ -n "$treadle_secrets" ] && [ ! -r "$treadle_secrets" ]; then
    treadle_problem=secrets
  elif [ "$treadle_private" = 1 ]; then
    ( umask 077 && : >>"$treadle_log" ) && chmod 600 "$treadle_log" || treadle_problem=log
  else
    ( : >>"$treadle_log" ) || treadle_problem=log
  fi
  [ -z "$treadle_problem" ] || {
    treadle_say "not begun on $treadle_host: it has no $treadle_problem"
    return 1
  }
}

treadle_run() {
  treadle_inputs=$(treadle_see)
  treadle_cpu
  treadle_before=$treadle_spent
  treadle_kills
  treadle_counted=$treadle_count
  treadle_now
  treadle_begun=$treadle_time
  if [ "$treadle_asked" -eq 0 ]; then
    treadle_launch
  else
    treadle_status=$((128 + treadle_asked))
  fi
  treadle_now
  treadle_ended=$treadle_time
}

treadle_measure() {
  treadle_peak
  treadle_kills
  treadle_oom=null
  [ -z "$treadle_counted" ] || [ -z "$treadle_count" ] || treadle_oom=$((treadle_count - treadle_counted))
  treadle_cpu
  treadle_cpu_seconds=null
  [ -z "$treadle_before" ] || [ -z "$treadle_spent" ] || {
    treadle_spent=$((treadle_spent - treadle_before))
    treadle_cpu_seconds=$(printf '%d.%03d' $((treadle_spent / 1000)) $((treadle_spent % 1000)))
  }
}

treadle_write() {
  [ "$treadle_asked" -eq 0 ] || treadle_passed=$treadle_asked
  treadle_signal_number=$((treadle_status - 128))
  [ "$treadle_status" -gt 128 ] && [ "$treadle_status" -le 192 ] || treadle_signal_number=0
  treadle_plain "$treadle_id"
  treadle_text='{"format":1,"attempt":'$treadle_attempt_name',"start_number":'$treadle_number
  treadle_text=$treadle_text',"exit_code":'$treadle_status',"signal":'$treadle_signal_number
  treadle_text=$treadle_text',"asked":'$treadle_passed',"problem":"'$treadle_problem'"'
  treadle_text=$treadle_text',"skipped":'$treadle_skipped',"done":'$treadle_done
  treadle_text=$treadle_text',"start":'$treadle_begun',"end":'$treadle_ended
  treadle_text=$treadle_text',"host":"'$treadle_host'","job":"'$treadle_value'"'
  treadle_text=$treadle_text',"cpu":'$treadle_cpu_seconds',"memory":'$treadle_memory',"oom_kills":'$treadle_oom
  treadle_text=$treadle_text',"inputs":['${treadle_inputs#,}'],"outputs":['${treadle_outputs#,}']}'
  treadle_save conv=fsync || treadle_save
}

treadle_save() {
  printf '%s\n' "$treadle_text" | dd of="$treadle_start/@EXIT_FILE@.part" "$@" 2>/dev/null &&
    mv -f "$treadle_start/@EXIT_FILE@.part" "$treadle_start/@EXIT_FILE@" 2>/dev/null
}

treadle_finish() {
  treadle_done=false
  [ "$treadle_status" -ne 0 ] || case $treadle_outputs in *',"-",'*) ;; *) treadle_done=true ;; esac
  treadle_result=$treadle_status
  [ "$treadle_status" -ne 0 ] || [ "$treadle_done" = true ] || {
    treadle_say 'it ended with exit code 0 but did not make all of its outputs'
    treadle_result=1
  }
  treadle_write && return
  treadle_say "it ended with exit code $treadle_status, which cannot be written down on $treadle_host"
  rm -f "$treadle_start/@EXIT_FILE@.part"
  treadle_result=@NO_RECORD@
  treadle_why=$( (printf '%8192s' '' | LC_ALL=C dd of="$treadle_start/probe" conv=fsync) 2>&1 )
  rm -f "$treadle_start/probe"
  case $treadle_why in *'o space'* | *uota*) treadle_result=@NO_SPACE@ ;; esac
}

treadle_code=0
treadle_good=' '
treadle_can_begin() {
  for treadle_one in $treadle_after; do
    case $treadle_good in *" $treadle_one "*) ;; *) return 1 ;; esac
  done
}

treadle_attempt() {
  treadle_passed=0 treadle_problem= treadle_inputs= treadle_outputs= treadle_skipped=false
  treadle_cpu_seconds=null treadle_memory=null treadle_oom=null
  if treadle_claim; then
    treadle_now
    treadle_begun=$treadle_time treadle_ended=$treadle_time
    if [ "$treadle_code" -ne 0 ] && [ "$treadle_independent" = 0 ] || [ "$treadle_stopped" = 1 ] ||
      [ -e "$treadle_unwanted" ] || ! treadle_can_begin; then
      treadle_skipped=true treadle_status=1
    elif treadle_ready; then
      treadle_run
      treadle_measure
      treadle_outputs=$(treadle_made)
    else
      treadle_status=@NO_RECORD@
    fi
    treadle_finish
  fi
  [ "$treadle_result" -ne 0 ] || treadle_good="$treadle_good$treadle_n "
  [ "$treadle_code" -ne 0 ] || treadle_code=$treadle_result
  [ "$treadle_asked" -eq 0 ] || treadle_stopped=1
}

treadle_stopped=0
treadle_plain "$(uname -n)"
treadle_host=$treadle_value
treadle_find_cgroup
"""

END = r"""
case $treadle_code in 99 | 100) exit 1 ;; *) exit "$treadle_code" ;; esac
"""


def _filled(text: str) -> str:
    for name, value in (
        ("NO_RECORD", NO_RECORD),
        ("NO_SPACE", NO_SPACE),
        ("REFUSED", REFUSED),
        ("EXIT_FILE", EXIT_FILE),
    ):
        text = text.replace(f"@{name}@", str(value))
    return text


RUNTIME = _filled("".join((_SIGNALS, _LAUNCH, _FILES, _FIGURES, _ATTEMPT))).replace("\n\n", "\n").strip()
