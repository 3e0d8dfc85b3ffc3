"""Values come back exactly from a real shell, whatever they hold and wherever they stand."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.base.place import Diagnostic, Place
from treadle.rules.text.command import Filling, Known, ShellTemplate

KNOWN = Known(wildcards=frozenset({"v", "w"}))
NASTY = " '\"$`\\*?[]~-#!;&|<>(){}=^%,./:+@aZ09_éß漢\u00a0\u3000"
WORDS = [
    "", "-x", "--", "if", "esac", "a=b", "$(id)", "`id`", "${HOME}", "~", "~root", "*", "{a,b}", "{1..3}",
    "x[$(id)]", "\\", "\\\\", "'", "''", '"', "a'b\"c", "!", "!!", "#", "-", "2", "&1", ")", "(", ";;", "EOF",
    "$'a'", "\\n", " ", "  a  ", "%s", "in", "{", "}", "[[", "a\\'b", "\\'; echo x; '",
]  # fmt: skip
values = st.one_of(st.sampled_from(WORDS), st.text(NASTY, max_size=8))
SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]


def output_of(shell: str, text: str) -> list[str]:
    """What the commands of a text printed, each ended by a NUL."""
    ran = subprocess.run([shell, "-c", text], capture_output=True, check=False, timeout=20)
    assert ran.returncode == 0, f"{ran.stderr.decode()}\n{text}"
    assert ran.stderr == b"", f"{ran.stderr.decode()}\n{text}"
    return ran.stdout.decode().split("\0")[:-1]


def rendered(text: str, problems: list[Diagnostic], **wildcards: str) -> str:
    template = ShellTemplate.parse(text, KNOWN, Place(), problems)
    return template.render(Filling(wildcards=wildcards), problems)


# Each way of writing an argument, and what it is for the value v.
PLACES: dict[str, tuple[str, Callable[[str], str]]] = {
    "bare": ("{v}", lambda v: v),
    "double": ('"{v}"', lambda v: v),
    "single": ("'{v}'", lambda v: v),
    "joined bare": ("pre{v}post", lambda v: f"pre{v}post"),
    "joined double": ('"a b{v} c"', lambda v: f"a b{v} c"),
    "joined single": ("'a b{v} c'", lambda v: f"a b{v} c"),
    "twice": ("{v}{v}\"{v}\"'{v}'", lambda v: v * 4),
    "after an option": ("--in={v}", lambda v: f"--in={v}"),
    "after a variable": ("$z{v}", lambda v: f"Z{v}"),
    "after a variable in quotes": ('"$z{v}"', lambda v: f"Z{v}"),
    "after a backslash pair": ('"\\\\{v}"', lambda v: f"\\{v}"),
    "substitution": ('"$(printf %s {v})"', lambda v: v),
    "quotes in a substitution": ('"$(printf %s "{v}")"', lambda v: v),
    "single in a substitution": ("\"$(printf %s '{v}')\"", lambda v: v),
    "two substitutions": ('"$(printf %s "$(printf %s "{v}")")"', lambda v: v),
    "case in a substitution": ('"$(case a in b) :;; (a|c) printf %s {v};; esac)"', lambda v: v),
    "comment in a substitution": ("\"$( # don't ) {v}\n printf %s {v})\"", lambda v: v),
    "here-document in a substitution": ("\"$(: <<'E'\nit's \" $( `\nE\nprintf %s {v})\"", lambda v: v),
    "backticks in a substitution": ('"$(x=`printf %s {v}`; printf %s "$x")"', lambda v: v),
    "arithmetic before": ("$((1 << 2)){v}", lambda v: f"4{v}"),
    "parameter before": ("\"${q:-it is}\"{v}\"${#z}{v}\"", lambda v: f"it is{v}1{v}"),
    "line continuation": ("a\\\n{v}", lambda v: f"a{v}"),
    "escapes before": ("\\'\\\"\\\\{v}", lambda v: f"'\"\\{v}"),
}  # fmt: skip
BASH_PLACES: dict[str, tuple[str, Callable[[str], str]]] = {
    "ansi": ("$'{v}'", lambda v: v),
    "joined ansi": ("$'it\\'s {v}'", lambda v: f"it's {v}"),
    "locale": ('$"{v}"', lambda v: v),
    "process substitution": ('"$(cat <(printf %s {v}))"', lambda v: v),
    "here-string": ('"$(cat <<< {v})"', lambda v: v.rstrip("\n")),
}


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=20, deadline=None)
@given(st.lists(values, min_size=1, max_size=12))
def test_every_value_comes_back_from_every_place(shell: str, chosen: list[str]) -> None:
    places = PLACES | (BASH_PLACES if shell == "bash" else {})
    problems: list[Diagnostic] = []
    templates = [
        ShellTemplate.parse(f"printf '%s\\0' {text}", KNOWN, Place(), problems) for text, _ in places.values()
    ]
    lines, expected = ["z=Z"], []
    for value in chosen:
        for template, (_, meaning) in zip(templates, places.values(), strict=True):
            lines.append(template.render(Filling(wildcards={"v": value}), problems))
            expected.append(meaning(value))
    assert problems == []
    assert output_of(shell, "\n".join(lines)) == expected


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=20, deadline=None)
@given(st.lists(values, min_size=1, max_size=12))
def test_values_come_back_from_backticks(shell: str, chosen: list[str]) -> None:
    lines, expected, problems = [], [], list[Diagnostic]()
    for value in chosen:
        for word in ("{v}", '"{v}"', "'{v}'", "a\\\\\\\\b{v}", '"a b"{v}', "'it is'{v}"):
            lines.append(rendered(f"x=`printf %s {word}`; printf '%s\\0' \"$x\"", problems, v=value))
            prefix = {"a\\\\\\\\b{v}": "a\\b", '"a b"{v}': "a b", "'it is'{v}": "it is"}.get(word, "")
            expected.append(prefix + value)
    assert problems == []
    assert output_of(shell, "\n".join(lines)) == expected


# Statements whose quotes must not confuse what is read after them.
NOISE = [
    "# don't \" ` $( {v}",
    ": 'it is' \"it's\" \\' \\\" # \"",
    ": <<EOF\nit's \" {w}\nEOF",
    ": <<'EOF' <<-\"B C\"\nit's $( ` \"\nEOF\n\tit's {w}\n\tB C",
    ": <<\\EOF | :\n'\"`$(\nEOF",
    "case \"{v}\" in {v}) : ;; '(') : ;; (x|y) : ;; *) : ;; esac",
    "if : && : || :; then :; else :; fi",
    ": $(( (1 + 2) * 3 )) $((1 << 2)) ${z#'a}'} ${z%%\"b}\"} \"${z:-\"q\"}\" ${#z} $# $$ $?",
    "f() { : \"{v}\"; }; f () { :; }",
    "( : '{v}' ); ( ( : ) ); { :; }",
    "for i in a {v} 'b c'; do :; done",
    "while case x in x) false;; esac; do :; done",
    ": `: \\`: 'a b'\\` \"c d\"` \"`: 'a' $z`\"",
    ": a#b c\\ #d '#' \"#\"",
    ": ${q:-a b} ${q+'x y'} \"${q-x y}\" ${q:-{w}}",
    ": \"$(case a in (a) : \")\" ;; esac; : ')' \"$(: ')' # )\n)\")\"",
    ": \\\n'{v}' \\\n\"{v}\"",
    ": >/dev/null 2>&1 </dev/null",
    "awk 'BEGIN {print \"it is\" $1}' </dev/null >/dev/null",
    "x={v}; x=\"{v}\"'{v}'",
]  # fmt: skip
BASH_NOISE = [
    "[[ a =~ (a|b)$ ]]; [[ {v} == {v} && -n 'x' ]]",
    "((1 < 2)); ((x = 1 << 3)); for ((i = 0; i < 2; i++)); do :; done",
    "arr=(a 'b c' {v}) ; arr+=(x # it's )\n)",
    ": $'it\\'s' $\"it's\" <(: {v}) <<< 'x y'",
    "shopt -s extglob\ncase x in @(x|y)|!(z)) : ;; esac",
    ': "$(cat <<EOF\nit\'s "$z" $(: "{v}" \')\')\nEOF\n)"',
    "declare -A m; m[{w}]={v}",
    "! false; coproc { : {v}; }; wait",
]


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_quotes_before_a_value_do_not_change_its_place(shell: str, data: st.DataObject) -> None:
    noise = NOISE + (BASH_NOISE if shell == "bash" else [])
    lines = data.draw(st.lists(st.sampled_from(noise), min_size=1, max_size=5))
    value = data.draw(values)
    last = data.draw(st.sampled_from(sorted(PLACES)))
    text, meaning = PLACES[last]
    problems: list[Diagnostic] = []
    whole = "\n".join(("z=Z", *lines, f"printf '%s\\0' {text}"))
    script = rendered(whole, problems, v=value, w="plain")
    if "[[ {v}" in whole and "[" in value and ("$" in value or "`" in value):
        assert [one.code for one in problems] in (["cannot-quote"], ["cannot-quote"] * len(problems))
        return
    assert problems == []
    assert output_of(shell, script)[-1] == meaning(value)


# Words as a text, and as what they say with \1 for the value.
LEAVES = [("{v}", "\1"), ('"{v}"', "\1"), ("'{v}'", "\1"), ('"x {v}{v}"', "x \1\1"), ("k", "k")]
AROUND = [
    ('"$(printf %s WORD)"', "WORD"),
    ('"$(case a in a) printf %s WORD;; esac)"', "WORD"),
    ('"$( : \')\' "`: k`"; printf %s WORD # it\'s )\n)"', "WORD"),
    ('"$( (f() { printf %s "$1"; }; f WORD) )"', "WORD"),
    ('"$(cat <<E\nit\'s "\nE\nprintf k%s WORD)"', "it's \"\nkWORD"),
]


def joined(chosen: list[tuple[str, str]]) -> tuple[str, str]:
    return "".join(text for text, _ in chosen), "".join(said for _, said in chosen)


words = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.lists(
        st.tuples(st.sampled_from(AROUND), inner).map(
            lambda pair: (pair[0][0].replace("WORD", pair[1][0]), pair[0][1].replace("WORD", pair[1][1]))
        ),
        min_size=1,
        max_size=2,
    ).map(joined),
    max_leaves=5,
)


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(words, values), min_size=1, max_size=4))
def test_constructs_inside_of_each_other_keep_the_value(
    shell: str, chosen: list[tuple[tuple[str, str], str]]
) -> None:
    problems: list[Diagnostic] = []
    lines = [rendered(f"printf '%s\\0' {text}", problems, v=value) for (text, _), value in chosen]
    assert problems == []
    expected = [said.replace("\1", value) for (_, said), value in chosen]
    assert output_of(shell, "\n".join(lines)) == expected


@settings(max_examples=30, deadline=None)
@given(st.text(NASTY, min_size=1, max_size=6))
def test_a_here_document_takes_plain_values_and_refuses_others(value: str) -> None:
    for delimiter in ("EOF", "'EOF'"):
        problems: list[Diagnostic] = []
        script = rendered(f"printf '%s\\0' \"$(cat <<{delimiter}\na {{v}} b\nEOF\n)\"", problems, v=value)
        if problems:
            assert [one.code for one in problems] == ["cannot-quote"]
            assert not value.replace("_", "").isalnum()
        else:
            assert output_of("bash", script) == [f"a {value} b"]


@settings(max_examples=20, deadline=None)
@given(st.lists(values, min_size=2, max_size=5))
def test_a_list_of_paths_becomes_exactly_its_words(paths: list[str]) -> None:
    known, problems = Known(), list[Diagnostic]()
    template = ShellTemplate.parse(
        "printf '%s\\0' {input}\nprintf '%s\\0' {input:each=-V }\nprintf '%s\\0' {input:each=--in=}",
        known, Place(), problems,
    )  # fmt: skip
    script = template.render(Filling(inputs=tuple(paths)), problems)
    assert problems == []
    safe = [f"./{path}" if path.startswith("-") else path for path in paths]
    expected = [*safe, *(word for path in safe for word in ("-V", path)), *(f"--in={path}" for path in paths)]
    assert output_of("bash", script) == expected
