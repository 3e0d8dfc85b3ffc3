"""Whatever stands in a workflow file or a profile: a plan, or diagnostics; never a traceback.

A few seconds each here; `TREADLE_FUZZ=50` makes fifty times as many examples.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from treadle.api.check import check
from treadle.api.pipe import Request
from treadle.base.errors import WorkflowError
from treadle.base.place import Diagnostic
from treadle.cli.printer import Printer
from treadle.cli.words import diagnostic_lines, shortened
from treadle.rules.expand.manifest import read_manifest
from treadle.rules.toml.fields import (
    DECLARED,
    INCLUDE,
    PARTITION,
    PROFILE,
    REENTRY,
    TOP,
    Field,
    Fields,
    Kind,
    Top,
)
from treadle.rules.toml.format import formatted

CORPUS = sorted((Path(__file__).parents[1] / "corpus").glob("*/main.oxoflow"))
BYTES = [file.read_bytes() for file in CORPUS]
MORE = int(os.environ.get("TREADLE_FUZZ", "1"))
PRINTER = Printer()
LONGEST = 4000  # characters of a finding


def fuzz(examples: int) -> settings:
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=examples * MORE, deadline=None, suppress_health_check=slow)


def told(data: bytes, profile: bytes | None = None, part: bytes | None = None) -> None:
    """Check the file; whatever is found is short, and says where it stands."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "main.oxoflow")
        file.write_bytes(data)
        if part is not None:
            Path(folder, "part.oxoflow").write_bytes(part)
        profiles: tuple[str, ...] = ()
        if profile is not None:
            Path(folder, "profiles").mkdir()
            Path(folder, "profiles", "p.toml").write_bytes(profile)
            profiles = ("p",)
        found = check(Request(file=str(file), profiles=profiles))
    for one in (*found.errors, *found.warnings):
        assert one.code
        assert one.message
        text = diagnostic_lines(shortened(one), PRINTER)
        assert len(text) < LONGEST
        assert text.encode()
        assert msgspec.json.encode(shortened(one))
        assert all(each.isprintable() or each == "\n" for each in text), ascii(text)
        assert one.place.file or one.place.key, one
    assert found.errors or found.rules


# ---- bytes: files that were cut, flipped, joined, or saved by an odd editor


@given(st.sampled_from(BYTES), st.lists(st.tuples(st.integers(0), st.integers(0, 7)), min_size=1, max_size=4))
@fuzz(60)
def test_a_file_with_flipped_bits(data: bytes, flips: list[tuple[int, int]]) -> None:
    changed = bytearray(data)
    for at, bit in flips:
        changed[at % len(changed)] ^= 1 << bit
    told(bytes(changed))


@given(st.sampled_from(BYTES), st.integers(0), st.sampled_from(BYTES), st.integers(0))
@fuzz(40)
def test_a_file_that_was_cut_off_or_joined_with_another(one: bytes, at: int, two: bytes, start: int) -> None:
    told(one[: at % len(one)])
    told(one[: at % len(one)] + two[start % len(two) :])


ODD_BYTES = st.sampled_from(
    [
        *(
            b"\xef\xbb\xbf",
            b"\xff\xfe",
            b"\x00",
            b"\r",
            b"\r\n",
            b"\x85",
            b"\xe2\x80\xa8",
            b"\x1b[31m",
            b"\x7f",
        ),
        *(b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"'''", b'"""', b"\\", b"\\u0000"),
        *(b"{", b"}", b"{input}", b"{config.x}", b"{sample", b"[[", b"]]", b"[" * 2000, b"{a=" * 2000),
        *(
            b"9" * 5000,
            b"a." * 3000,
            b"1979-05-27",
            b"inf",
            b"0x" + b"f" * 300,
            b"[rules.x]\n",
            b'\n"" = 1\n',
        ),
    ]
)


@given(st.sampled_from(BYTES), st.lists(st.tuples(st.integers(0), ODD_BYTES), min_size=1, max_size=3))
@fuzz(60)
def test_a_file_with_odd_bytes_in_it(data: bytes, odd: list[tuple[int, bytes]]) -> None:
    for place, new in odd:
        at = place % (len(data) + 1)
        data = data[:at] + new + data[at:]
    told(data)


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
@fuzz(40)
def test_any_bytes(data: bytes) -> None:
    told(data)


# ---- values: every field of every table with what it wants, or with anything else

SOME_WORDS = """
a {config.k} {input} 8G x2 90m true slurm * S1 r .. / a/../b k {a}{b} **/x [ ( $(id) é +8G none
1..9 {sample} {{sample}} {step.x} x.py s.sh #! ~ a,b first:1 [^/]+ (?P<x> (a+)+$ \\1 out/{sample}.txt int
"""
WORDS = st.sampled_from(["", "config.k == 1", *SOME_WORDS.split()])
TEXTS = WORDS | st.text(max_size=8, alphabet=st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-2, 9) | st.sampled_from([2**31, 2**63, -(2**63) - 1, 10**30]) | st.floats()
DATES = st.sampled_from(
    [datetime.date(1979, 5, 27), datetime.time(7, 32), datetime.datetime(1979, 5, 27, 7, 32)]
)
PLAIN = TEXTS | NUMBERS | st.booleans() | DATES
KEYS = st.sampled_from(["name", "k", "sample", "a", "b.c", "", "é", "x y", "max", "default", "rules", "path"])
ANY = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)
INCLUDES = {name: one for name, one in INCLUDE.items() if name != "repo"}  # which would be asked by git
TOPS = {**TOP, "include": Top(INCLUDES, array=True)}
FITTING: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.FLAG: st.booleans(),
    Kind.COUNT: st.integers(1, 4),
    Kind.NATURAL: st.integers(0, 4),
    Kind.TEXTS: st.lists(TEXTS, max_size=3),
    Kind.NAMES: st.lists(TEXTS, max_size=3),
    Kind.PATHS: st.lists(TEXTS, max_size=3),
    Kind.LIST: st.lists(ANY, max_size=3),
    Kind.VALUES: st.dictionaries(KEYS, ANY, max_size=3),
    Kind.VARIABLES: st.dictionaries(KEYS, PLAIN, max_size=3),
    Kind.COUNTS: st.dictionaries(KEYS, st.integers(0, 3), max_size=3),
    Kind.FILES: TEXTS | st.lists(TEXTS, max_size=3) | st.dictionaries(KEYS, TEXTS, max_size=3),
}


def field(one: Field) -> st.SearchStrategy[Any]:
    fits = FITTING.get(one.kind, TEXTS)
    if one.inside is not None:
        fits = fits | table(one.inside) | st.lists(table(one.inside), max_size=2)
    return st.one_of(fits, fits, fits, ANY)


def table(fields: Fields) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the fields; now and then one that there is not."""
    known = st.fixed_dictionaries({}, optional={name: field(one) for name, one in fields.items()})
    odd = st.dictionaries(KEYS, ANY, max_size=1)
    few = known.flatmap(
        lambda all_of: (
            st.sets(st.sampled_from(sorted(all_of)), max_size=6).map(
                lambda names: {name: all_of[name] for name in all_of if name in names}
            )
            if all_of
            else st.just({})
        )
    )
    return st.tuples(few, odd).map(lambda both: {**both[0], **(both[1] if len(both[0]) % 3 == 0 else {})})


def top(name: str, one: Top) -> st.SearchStrategy[Any]:
    if name == "config":
        inside: st.SearchStrategy[Any] = st.dictionaries(KEYS, ANY | table(DECLARED), max_size=3)
    elif name == "partitions":
        inside = st.dictionaries(KEYS, table(PARTITION), max_size=2)
    else:
        inside = st.dictionaries(KEYS, ANY, max_size=3) if one.fields is None else table(one.fields)
    many = st.lists(inside, min_size=1, max_size=2)
    return st.one_of(*[many if one.array else inside] * 5, many, inside)


def document(tops: dict[str, Top], most: int) -> st.SearchStrategy[dict[str, Any]]:
    every = {name: top(name, one) for name, one in tops.items()}
    return st.lists(st.sampled_from(sorted(every)), max_size=most, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: every[name] for name in names})
    )


RULES = st.lists(
    st.builds(
        lambda at, given: {"name": f"r{at}", "output": [f"o{at}"], "shell": "touch {output}", **given},
        st.integers(0, 3),
        table(TOP["rules"].fields or {}),
    ),
    min_size=1,
    max_size=3,
)


def toml(value: dict[str, Any]) -> bytes:
    return tomlkit.dumps(value).encode("utf-8", "surrogatepass")


@given(document(TOPS, 4), RULES)
@fuzz(60)
def test_any_value_in_any_field(tables: dict[str, Any], rules: list[dict[str, Any]]) -> None:
    told(toml({"workflow": {"name": "w"}, "rules": rules, **tables}))


@given(document(PROFILE, 4))
@fuzz(40)
def test_any_value_in_any_field_of_a_profile(tables: dict[str, Any]) -> None:
    told(CORPUS[0].read_bytes(), toml(tables))


SOME_SHELL = """
{input} {output} {sample} {config.k} {params.p} {{ }} { } ' " \\ $ ` ) # | ; && a {a,b} {1..3} é {input.x}
{input[9]} {input:sep=,} {input.list} {log} {threads} ${x} ${x:-{y}} {input: $( ((
"""
SPACED = ["<<E\n", "\nE\n", "\n", " ", "\t", "{input:each=-V }"]
SHELL = st.lists(st.sampled_from([*SPACED, *SOME_SHELL.split()]), max_size=12).map("".join)


@given(SHELL, TEXTS, TEXTS, TEXTS)
@fuzz(80)
def test_any_command_path_and_condition(shell: str, path: str, when: str, script: str) -> None:
    rule = {"name": "r", "input": ["in/{sample}.txt", path], "output": ["o/{sample}.txt"], "shell": shell}
    other = {"name": "s", "input": [path], "output": ["o2"], "script": script, "when": when, "log": path}
    told(
        toml(
            {
                "workflow": {"name": "w"},
                "config": {"k": path},
                "sample_groups": [{"name": "g", "samples": ["A", "b c"]}],
                "rules": [{**rule, "params": {"p": path}}, other],
            }
        )
    )


@given(document(TOPS, 3), RULES, table(INCLUDES))
@fuzz(40)
def test_any_value_in_any_field_of_an_included_file(
    tables: dict[str, Any], rules: list[dict[str, Any]], include: dict[str, Any]
) -> None:
    main = {"workflow": {"name": "w"}, "include": [{**include, "path": "part.oxoflow"}]}
    told(toml({**main, "rules": [{"name": "m", "input": ["o1"]}]}), part=toml({**tables, "rules": rules}))


@given(document(TOPS, 4), RULES)
@fuzz(30)
def test_a_formatted_file_says_the_same_whatever_it_says(
    tables: dict[str, Any], rules: list[dict[str, Any]]
) -> None:
    text = toml({"workflow": {"name": "w"}, "rules": rules, **tables}).decode()
    try:
        made = formatted(text, "f")
    except WorkflowError:
        return  # no TOML of ours: it stays as it is
    assert formatted(made, "f") == made
    assert codes_of(made) == codes_of(text)


def codes_of(text: str) -> list[tuple[str, str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "main.oxoflow").write_text(text)
        found = check(Request(file=f"{folder}/main.oxoflow"))
    return sorted((one.code, one.place.table, one.place.key) for one in (*found.errors, *found.warnings))


MANIFEST = b"""[reentry]
group = "found"
sample = ["S1", "S2"]
pairs = [{ pair_id = "P1", experiment = "S1", control = "S2", age = 7 }]
[reentry.values]
chunk = [1, 2, "x"]
"""
REENTRIES = table(REENTRY).map(lambda given: toml({"reentry": given}))
SPOILED = st.tuples(st.integers(0, len(MANIFEST)), ODD_BYTES).map(
    lambda odd: MANIFEST[: odd[0]] + odd[1] + MANIFEST[odd[0] :]
)
EXTENDED = st.sampled_from([(), ("sample",), ("values.chunk", "pairs")])


@given(REENTRIES | SPOILED | st.binary(max_size=50), EXTENDED)
@fuzz(120)
def test_any_manifest_is_read_or_refused(data: bytes, extends: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "found.toml").write_bytes(data)
        found: tuple[Diagnostic, ...] = ()
        try:
            read_manifest(folder, "found.toml", extends, {})
        except WorkflowError as error:
            found = error.diagnostics
    assert all(one.code and len(str(shortened(one))) < LONGEST for one in found)
