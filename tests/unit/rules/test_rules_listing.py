"""Listings: the disk and lists of paths, searched alike."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rules_world import pattern

from treadle.base.errors import DiskError
from treadle.rules.pattern.listing import DiskListing, Listing, PathListing

FILES = [
    "data/S1/reads_1.fq",
    "data/S1/reads_2.fq",
    "data/S2/reads_1.fq",
    "data/.hidden/reads_1.fq",
    "data/S3/.reads_1.fq",
    "data/notes.txt",
    "x/a-b.txt",
    "x/a/c.txt",
    "x/old.txt.failed",
    "x/old.txt.failed.2",
    "x/gone.failed/c.txt",
    ".treadle/runs/a.txt",
    "x/.treadle/a.txt",
    "umlaut/Ä.txt",
    "umlaut/z.txt",
    "top.txt",
]


@pytest.fixture(params=["disk", "paths"])
def listing(request: pytest.FixtureRequest, tmp_path: Path) -> Listing:
    if request.param == "paths":
        return PathListing(FILES)
    for file in FILES:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return DiskListing(str(tmp_path))


def paths(listing: Listing, text: str, known: dict[str, str] | None = None, **constraints: str) -> list[str]:
    return [path for path, _ in listing.match(pattern(text, **constraints), known or {})]


def test_a_match_gives_the_path_and_the_values_of_the_names(listing: Listing) -> None:
    found = listing.match(pattern("data/{s}/reads_{r}.fq"), {})
    assert found == [
        ("data/S1/reads_1.fq", ("S1", "1")),
        ("data/S1/reads_2.fq", ("S1", "2")),
        ("data/S2/reads_1.fq", ("S2", "1")),
    ]


def test_known_values_are_held_fast(listing: Listing) -> None:
    assert paths(listing, "data/{s}/*_1.fq", {"s": "S2"}) == ["data/S2/reads_1.fq"]
    assert paths(listing, "data/{s}/*_1.fq", {"s": "S9"}) == []
    assert paths(listing, "data/{s}/{s}_1.fq", {"s": "reads"}) == []


def test_known_values_are_no_globs(listing: Listing) -> None:
    assert paths(listing, "data/{s}/*.fq", {"s": "*"}) == []
    assert paths(listing, "data/{s}/*.fq", {"s": "S?"}) == []


def test_globs_find_files_and_folders_sorted_by_bytes(listing: Listing) -> None:
    assert paths(listing, "x/a*") == ["x/a", "x/a-b.txt"]
    assert paths(listing, "x/**/*.txt") == ["x/a-b.txt", "x/a/c.txt"]
    assert paths(listing, "umlaut/*") == ["umlaut/z.txt", "umlaut/Ä.txt"]


def test_hidden_files_and_folders_are_not_found(listing: Listing) -> None:
    assert paths(listing, "data/*/reads_1.fq") == ["data/S1/reads_1.fq", "data/S2/reads_1.fq"]
    assert paths(listing, "data/S3/*") == []
    assert paths(listing, "data/.h*/*.fq") == ["data/.hidden/reads_1.fq"]
    assert paths(listing, "data/**/.r*.fq") == ["data/S3/.reads_1.fq"]


def test_what_was_set_aside_is_never_found(listing: Listing) -> None:
    assert paths(listing, "x/*failed*") == []
    assert paths(listing, "x/old.*") == []
    assert paths(listing, "x/{d}/c.txt") == ["x/a/c.txt"]
    assert paths(listing, "x/old.txt.failed") == []


def test_the_engines_own_folder_is_never_found(listing: Listing) -> None:
    assert paths(listing, ".treadle/*/*.txt") == []
    assert paths(listing, ".t*/*/*.txt") == []
    assert paths(listing, "x/.treadle/{a}") == []
    assert paths(listing, "**/a.txt") == []
    assert paths(listing, ".treadle/runs/a.txt") == []


def test_a_wildcard_with_a_wide_constraint_goes_down(listing: Listing) -> None:
    assert paths(listing, "data/{f}.fq", f=".+_1") == ["data/S1/reads_1.fq", "data/S2/reads_1.fq"]


def test_a_pattern_without_holes_is_a_question(listing: Listing) -> None:
    assert paths(listing, "top.txt") == ["top.txt"]
    assert paths(listing, "data/S1") == ["data/S1"]
    assert paths(listing, "top.tx") == []


def test_exists_tells_of_files_and_folders(listing: Listing) -> None:
    assert listing.exists("top.txt")
    assert listing.exists("data/S1")
    assert not listing.exists("data/S9")


def test_an_absolute_pattern_is_searched_from_the_root(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("")
    found = DiskListing("/").match(pattern(f"{tmp_path}/{{d}}/*.txt"), {})
    assert found == [(f"{tmp_path}/a/b.txt", ("a",))]


def test_a_pattern_may_begin_above_the_work_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b.txt").write_text("")
    assert DiskListing(str(tmp_path / "a")).match(pattern("../{x}.txt"), {}) == [("../b.txt", ("b",))]


def test_each_folder_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    listing = DiskListing(str(tmp_path))
    assert paths(listing, "*.txt") == ["a.txt"]
    (tmp_path / "b.txt").write_text("")
    assert paths(listing, "*.txt") == ["a.txt"]


def test_a_link_to_a_folder_is_followed_by_name_but_not_by_two_stars(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("")
    os.symlink(".", tmp_path / "real" / "loop")
    os.symlink("real", tmp_path / "link")
    listing = DiskListing(str(tmp_path))
    assert paths(listing, "link/*.txt") == ["link/a.txt"]
    assert paths(listing, "l*/*.txt") == ["link/a.txt"]
    assert paths(listing, "**/*.txt") == ["real/a.txt"]


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="too long"):
        DiskListing(str(tmp_path)).match(pattern("{s}/*"), {"s": "x" * 300})


def test_a_file_in_the_place_of_a_folder_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    assert DiskListing(str(tmp_path)).match(pattern("a/*"), {}) == []


def test_paths_can_be_added_later() -> None:
    listing = PathListing(["a/1.txt"])
    assert paths(listing, "a/*") == ["a/1.txt"]
    listing.add(["a/2.txt", "a/1.txt", "b/3.txt"])
    assert paths(listing, "a/*") == ["a/1.txt", "a/2.txt"]
    assert paths(listing, "*/3.txt") == ["b/3.txt"]


def test_a_listing_of_outputs_finds_no_folders_above_them() -> None:
    listing = PathListing(["a/b/1.txt", "a/c"], folders=False)
    assert paths(listing, "a/*") == ["a/c"]
    assert not listing.exists("a/b")
    assert listing.within("a/b")
    assert not listing.within("a/c")
