"""What is written by `base` can be read back, and what must not be seen is not."""

from __future__ import annotations

import json
import math
import shlex
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.base.mask import Mask
from treadle.base.units import (
    format_clock,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

decimals = st.from_regex(r"[0-9]{1,9}(\.[0-9]{1,15})?", fullmatch=True)


@given(st.integers(0, 1 << 70))
def test_a_written_size_reads_back(size):
    assert parse_size(format_size(size), zero=True) == size


@given(decimals, st.sampled_from([("K", 1024), ("MB", 10**6), ("GiB", 1024**3), ("", 1024**2), ("B", 1)]))
def test_a_size_is_the_exact_product_rounded_up(number, unit):
    word, factor = unit
    assert parse_size(f"{number} {word}", zero=True) == math.ceil(Fraction(number) * factor)


@given(st.integers(0, 10**12))
def test_a_written_duration_reads_back(thousandths):
    seconds = thousandths / 1000
    assert parse_duration(format_duration(seconds), zero=True) == seconds


@given(decimals, st.sampled_from([("s", 1), ("m", 60), ("h", 3600), ("d", 86400)]))
def test_a_duration_is_the_nearest_to_the_exact_product(number, unit):
    word, factor = unit
    assert parse_duration(f"{number}{word}", zero=True) == float(Fraction(number) * factor)


@given(st.floats(0, 10**9))
def test_the_clock_of_a_scheduler_reads_back_rounded_up(seconds):
    expected = max(1, math.ceil(seconds))
    assert parse_duration(format_clock(seconds)) == expected
    assert parse_duration(format_clock(seconds, days=False)) == expected


@given(st.text(), st.sampled_from([parse_size, parse_duration]))
def test_any_text_is_read_or_refused_with_a_value_error(text, parse):
    try:
        value = parse(text)
    except ValueError:
        return
    assert value > 0


secrets = st.text(st.characters(codec="utf-8", exclude_characters="*"), min_size=1, max_size=12)


@settings(max_examples=60)
@given(
    st.lists(secrets, min_size=1, max_size=4), st.lists(st.integers(0, 30), max_size=5), st.text(max_size=20)
)
def test_no_secret_is_left_in_any_form(values, picks, filler):
    mask = Mask()
    for value in values:
        mask.add(value)
    chosen = [values[pick % len(values)] for pick in picks]
    plain = filler.join(chosen)
    for text in (plain, json.dumps(plain), shlex.quote(plain), f'"{plain}"'):
        masked = mask.text(text)
        assert not any(value in masked for value in values)
