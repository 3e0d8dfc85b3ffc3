"""The command texts of parts that nobody wrote: cutting an input, putting pieces together.

They run under any POSIX shell, strict or not. Paths come in as placeholders, and so are quoted by place.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from treadle.rules.schema import Combine

# What a record is, by the ending of the file (`.gz` may stand behind it).
_FASTA = (".fa", ".fasta", ".fna", ".faa", ".ffn")
_FASTQ = (".fq", ".fastq")
KINDS = (*_FASTA, *_FASTQ)

_READ = """\
set -e
for f in {input}; do
  case $f in
    *.gz) gzip -t < "$f" ;;
    *) [ -r "$f" ] ;;
  esac
done
treadle_read() {
  for f in {input}; do
    case $f in
      *.gz) gzip -dc < "$f" ;;
      *) cat < "$f" ;;
    esac
  done
}
"""
_KIND = """\
for f in {input}; do
  case $f in
    FASTA) treadle_kind=fasta ;;
    FASTQ) treadle_kind=fastq ;;
    *) echo "what a record of $f is, is not known" >&2; exit 1 ;;
  esac
done
"""
# Two passes: how many there are, then as many to each piece. The second sees that it read what the first did.
_CUT = """\
treadle_total=$(treadle_read | LC_ALL=C awk -v kind="$treadle_kind" '
  kind == "fasta" && /^>/ { n++ }
  END { print NR, (kind == "fasta" ? n + 0 : kind == "fastq" ? int((NR + 3) / 4) : NR) }')
set -- {output}
treadle_tail=
case $1 in *.gz) treadle_tail=.plain ;; esac
treadle_read | LC_ALL=C awk -v kind="$treadle_kind" -v total="$treadle_total" -v tail="$treadle_tail" '
  BEGIN {
    pieces = ARGC - 1
    split(total, count, " ")
    each = int((count[2] + pieces - 1) / pieces)
    if (each < 1) each = 1
    for (i = 1; i < ARGC; i++) {
      out[i - 1] = ARGV[i] tail
      printf "" > out[i - 1]
      close(out[i - 1])
      ARGV[i] = ""
    }
    ARGC = 1
    at = -1
  }
  kind == "fasta" && /^>/ { n++ }
  {
    record = kind == "fasta" ? (n ? n - 1 : 0) : kind == "fastq" ? int((NR - 1) / 4) : NR - 1
    to = int(record / each)
    if (to != at) {
      if (at >= 0) close(out[at])
      at = to
    }
    print > out[at]
  }
  END {
    if (NR != count[1] + 0) {
      print "the input changed while it was cut" > "/dev/stderr"
      exit 1
    }
  }' "$@"
if [ -n "$treadle_tail" ]; then
  for f do
    gzip -nc < "$f.plain" > "$f"
    rm -f "$f.plain"
  done
fi
"""

_CONCAT = 'for f in {{input.{name}}}; do cat < "$f" || exit 1; done > {{output[{at}]}}\n'
# A first line of a piece that is the header itself is not said again.
_HEADED = """\
{{ printf '%s\\n' "$TREADLE_HEADER" | {pack}
for f in {{input.{name}}}; do
  {unpack} < "$f" | LC_ALL=C awk '
    NR == 1 && $0 == ENVIRON["TREADLE_HEADER"] {{ next }}
    {{ print }}' | {pack} || exit 1
done
}} > {{output[{at}]}}
"""
_MERGE = """\
printf '%s\\n' {{input.{name}}} | python3 -c '
import json, sys

def merged(one, other, where):
    if isinstance(one, dict) and isinstance(other, dict):
        for key, value in other.items():
            one[key] = merged(one[key], value, [*where, key]) if key in one else value
    elif isinstance(one, list) and isinstance(other, list):
        one.extend(other)
    elif type(one) is not type(other) or one != other:
        sys.exit("json_merge: the pieces differ in " + (" / ".join(where) or "what they are"))
    return one

pieces = []
for name in sys.stdin.read().split("\\n")[:-1]:
    with open(name, encoding="utf-8") as file:
        pieces.append(json.load(file))
whole = pieces[0]
for piece in pieces[1:]:
    whole = merged(whole, piece, [])
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(whole, file, ensure_ascii=False, indent=2)
    file.write("\\n")
' {{output[{at}]}}
"""


def cut_text(*, records: bool) -> str:
    """The command that cuts all inputs together into its outputs, in order.

    Each gets as many lines or records as the others, the last ones fewer; a file may be left empty.
    """
    fasta, fastq = ("|".join(f"*{one}|*{one}.gz" for one in kind) for kind in (_FASTA, _FASTQ))
    kind = _KIND.replace("FASTA)", f"{fasta})").replace("FASTQ)", f"{fastq})")
    return _READ + (kind if records else "treadle_kind=lines\n") + _CUT


def aggregate_text(combine: Combine, names: Sequence[str], outputs: Sequence[str]) -> str:
    """The command that puts the pieces of each output together; `names` are those of the inputs."""
    text = f"TREADLE_HEADER={shlex.quote(combine.header)}\nexport TREADLE_HEADER\n" if combine.header else ""
    for at, (name, output) in enumerate(zip(names, outputs)):
        if combine.method == "json_merge":
            text += _MERGE.format(name=name, at=at)
        elif not combine.header:
            text += _CONCAT.format(name=name, at=at)
        else:
            packed = output.endswith(".gz")
            pack, unpack = ("gzip -nc", "gzip -dc") if packed else ("cat", "cat")
            text += _HEADED.format(name=name, at=at, pack=pack, unpack=unpack)
    return text
