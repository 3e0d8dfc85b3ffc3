"""Times and sizes for schedulers never lose, whatever is asked; what they print is read, or is nothing."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.backends.cluster.amounts import (
    hours_and_minutes,
    memory_in,
    per_slot,
    read_seconds,
    read_size,
    read_time,
    whole_seconds,
)
from treadle.backends.cluster.dialect import Said
from treadle.backends.cluster.words import chunks, complaint, indices, job_name
from treadle.base.units import format_clock

seconds = st.floats(min_value=0, max_value=10**8) | st.integers(min_value=0, max_value=10**8)


@given(size=st.integers(min_value=0, max_value=10**16), unit=st.sampled_from(["", "K", "M", "G", "T"]))
def test_memory_never_loses_and_is_never_nothing(size: int, unit: str) -> None:
    count = memory_in(size, unit)
    bytes_of = 1024 ** " KMGT".index(unit or " ")
    assert count * bytes_of >= max(1, size)
    assert (count - 1) * bytes_of <= size
    assert read_size(f"{count}{unit}") == count * bytes_of


@given(size=st.integers(min_value=1, max_value=10**16), slots=st.integers(min_value=1, max_value=999))
def test_slots_together_hold_what_was_asked(size: int, slots: int) -> None:
    assert per_slot(size, slots) * slots >= size
    assert (per_slot(size, slots) - 1) * slots < size


@given(asked=seconds)
def test_times_never_lose_and_are_never_nothing(asked: float) -> None:
    assert whole_seconds(asked) >= max(1, asked)
    days = read_seconds(format_clock(asked))
    hours = read_seconds(format_clock(asked, days=False))
    assert days == hours
    assert days is not None
    assert max(1, asked) <= days < asked + 1.1
    hour, minute = hours_and_minutes(asked).split(":")
    minutes = int(hour) * 60 + int(minute)
    assert minutes >= 1
    assert asked <= minutes * 60 <= max(60, asked + 60)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("97060K", 97060 * 1024),
        ("94536kb", 94536 * 1024),
        ("89.730MB", round(89.73 * 1024**2)),
        ("5.2 Gbytes", round(5.2 * 1024**3)),
        ("0.000B", 0),
        ("16?", None),
        ("", None),
        ("-", None),
        ("9" * 40 + "T", None),
    ],
)
def test_sizes_that_schedulers_print(text: str, size: int | None) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("00:02.569", 2.569),
        ("00:00:05", 5.0),
        ("1-02:03:04", 93_784.0),
        ("2.183s", 2.183),
        ("16038 second(s)", 16038.0),
        ("INVALID", None),
        ("", None),
    ],
)
def test_durations_that_schedulers_print(text: str, value: float | None) -> None:
    assert read_seconds(text) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    "text", ["Unknown", "None", "N/A", "-/-", "", "Thu Jan  1 00:00:00 1970", "2026-13-45T99:99:99x"]
)
def test_times_that_are_none(text: str) -> None:
    assert read_time(text) is None


def test_all_ways_to_write_a_time_say_the_same() -> None:
    texts = ("2026-11-29T11:35:40", "Sun Nov 29 11:35:40 2026", "11/29/2026 11:35:40.123")
    assert len({read_time(text) for text in texts}) == 1
    assert read_time("1795952140") == 1795952140.0


@given(st.text(alphabet="0123456789-:,%.KMG ²9e", max_size=40) | st.text(max_size=20))
def test_junk_never_raises(text: str) -> None:
    assert (read_size(text) or 0) < inf
    assert (read_seconds(text) or 0) < inf
    assert (read_time(text) or 0) < inf
    assert len(indices(text)) < 10**6
    assert len(complaint(Said(1, "", text))) <= 500
    assert job_name(text, 15)[0].isalpha()


def test_ranges_of_elements() -> None:
    assert indices("1,4-5,7-11:2%3") == [1, 4, 5, 7, 9, 11]
    assert indices("2-4%2") == [2, 3, 4]
    assert indices("1-999999999") == []


def test_many_ids_are_split_into_commands_that_fit() -> None:
    groups = chunks([str(10**9 + n) for n in range(20_000)])
    assert len(groups) == 3
    assert all(len(",".join(group)) < 128 * 1024 for group in groups)
    assert [len(group) for group in chunks(["1"] * 5, most=2)] == [2, 2, 1]
