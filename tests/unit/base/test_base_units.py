"""Sizes and durations in and out."""

from __future__ import annotations

import pytest

from treadle.base.units import (
    format_clock,
    format_duration,
    format_size,
    parse_duration,
    parse_size,
)

G = 1024**3


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8G", 8 * G),
        ("8g", 8 * G),
        ("8 G", 8 * G),
        (" 8GiB ", 8 * G),
        ("8 gib", 8 * G),
        ("8GB", 8 * 10**9),
        ("500MB", 500 * 10**6),
        ("500MiB", 500 * 1024**2),
        ("500M", 500 * 1024**2),
        ("1K", 1024),
        ("1KB", 1000),
        ("2T", 2048 * G),
        ("1P", 1024**5),
        ("17B", 17),
        ("1.5G", 3 * G // 2),
        (".5G", G // 2),
        ("1.G", G),
        ("4000", 4000 * 1024**2),
        (4000, 4000 * 1024**2),
        (1.5, 1536 * 1024),
        ("0.1K", 103),
        ("0.0000001B", 1),
        ("1.00000000000000000000000001B", 2),
        ("123456789012345678901B", 123456789012345678901),
    ],
)
def test_sizes_are_read_exactly_and_rounded_up(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["", "G", "8 gigs", "-1G", "1e3", "8G8", "1,5G", "٣G", "8 X", "0x10", "nan", "1 000M", "8G\n8"]
)
def test_what_is_no_size_is_an_error_with_a_way_out(text):
    with pytest.raises(ValueError, match="8G") as caught:
        parse_size(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("value", [True, None, ["8G"], 1 + 2j])
def test_values_of_other_types_are_errors(value):
    for parse in (parse_size, parse_duration):
        with pytest.raises(ValueError, match="neither a text nor a number"):
            parse(value)


def test_a_size_of_zero_is_refused_unless_it_means_something():
    for text in ("0", "0G", 0, "0.0M"):
        with pytest.raises(ValueError, match="leave the field out"):
            parse_size(text)
        assert parse_size(text, zero=True) == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90m", 5400),
        ("1h30m", 5400),
        ("1h 30m", 5400),
        ("1 hour 30 min", 5400),
        ("2d", 172800),
        ("1.5h", 5400),
        ("0.5s", 0.5),
        ("1.1h", 3960),
        ("1w", 604800),
        ("2D", 172800),
        ("01:30:00", 5400),
        ("100:00:00", 360000),
        ("1-12:00:00", 129600),
        ("0-00:00:01", 1),
    ],
)
def test_durations_are_read_exactly(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "30m1h",
        "1h1h",
        "1x",
        "-5m",
        "1:2:3:4",
        "00:60:00",
        "00:00:60",
        "1-24:00:00",
        "1h,30m",
        "1-",
        "5m 3",
    ],
)
def test_what_is_no_duration_is_an_error_with_a_way_out(text):
    with pytest.raises(ValueError, match="1h30m") as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("value", "first", "second"),
    [
        ("10:00", "'10h00m'", "'10m00s'"),
        ("90", "'90s'", "'90m'"),
        (90, "'90s'", "'90m'"),
        (1.5, "'1.5s'", "'1.5m'"),
    ],
)
def test_what_has_two_readings_is_refused_with_both_and_these_can_be_read(value, first, second):
    with pytest.raises(ValueError, match="may mean") as caught:
        parse_duration(value)
    assert first in str(caught.value)
    assert second in str(caught.value)
    assert parse_duration(first.strip("'")) != parse_duration(second.strip("'"))


def test_a_duration_of_zero_is_refused_unless_it_means_something():
    for text in ("0s", "00:00:00"):
        with pytest.raises(ValueError, match="leave the field out"):
            parse_duration(text)
        assert parse_duration(text, zero=True) == 0


@pytest.mark.parametrize(
    ("size", "text"),
    [(8 * G, "8G"), (3 * G // 2, "1536M"), (1000, "1000B"), (0, "0B"), (1024, "1K"), (1024**5, "1P")],
)
def test_sizes_are_written_in_the_largest_unit_that_is_exact(size, text):
    assert format_size(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(5400, "1h30m"), (0, "0s"), (0.25, "0.25s"), (59.9996, "1m"), (172800, "2d"), (90061, "1d1h1m1s")],
)
def test_durations_are_written_in_parts(seconds, text):
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "full", "hours"),
    [
        (5400, "0-01:30:00", "01:30:00"),
        (90000, "1-01:00:00", "25:00:00"),
        (0.1, "0-00:00:01", "00:00:01"),
        (0, "0-00:00:01", "00:00:01"),
        (59.2, "0-00:01:00", "00:01:00"),
        (360000, "4-04:00:00", "100:00:00"),
    ],
)
def test_schedulers_get_whole_seconds_rounded_up_and_never_zero(seconds, full, hours):
    assert format_clock(seconds) == full
    assert format_clock(seconds, days=False) == hours
