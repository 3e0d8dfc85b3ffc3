"""The nearest older artifact, and in which fields it differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treadle.steps.canon import freeze
from treadle.steps.compare import difference, older
from treadle.steps.local_store import LocalStore
from treadle.steps.owner import this_owner
from treadle.steps.record import ArtifactRecord, Dep, Owner, Provenance


def record(attrs: dict[str, Any], **known: Any) -> ArtifactRecord:
    return ArtifactRecord(
        **{"identity": "a" * 32, "name": "train", "path": "/t", "hash_attrs": attrs, **known}
    )


def differs(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str]]:
    return list(difference(record(old), version="", hash_attrs=new, deps=()))


def test_equal_values_do_not_differ() -> None:
    attrs = {"lr": 3e-4, "layers": [1, {"a": None}], "x": {}}
    assert differs(attrs, attrs) == []


def test_a_frozen_copy_of_the_same_values_does_not_differ() -> None:
    attrs = {"lr": 3e-4, "layers": [1, {"a": None}], "x": {}}
    faults: list[Any] = []
    assert differs(attrs, freeze(attrs, "hash_attrs", faults)) == []
    assert faults == []


def test_fields_are_told_with_their_path_and_both_values() -> None:
    old = {"lr": 3e-4, "opt": {"name": "adam", "eps": 1e-8}, "layers": [1, 2], "gone": 1, "same": "x"}
    new = {"lr": 1e-4, "opt": {"name": "sgd", "eps": 1e-8}, "layers": [1, 3], "come": None, "same": "x"}
    assert differs(old, new) == [
        ("come", "", "null"),
        ("gone", "1", ""),
        ("layers[1]", "2", "3"),
        ("lr", "0.0003", "0.0001"),
        ("opt.name", '"adam"', '"sgd"'),
    ]


def test_types_that_only_look_alike_differ() -> None:
    assert differs({"a": 1, "b": True, "c": "1"}, {"a": 1.0, "b": 1, "c": 1}) == [
        ("a", "1", "1.0"),
        ("b", "true", "1"),
        ("c", '"1"', "1"),
    ]


def test_lists_of_other_lengths_are_told_whole() -> None:
    assert differs({"a": [1, 2]}, {"a": [1]}) == [("a", "[1,2]", "[1]")]


def test_version_name_and_deps_are_fields_too() -> None:
    old = record({}, version="1", deps=(Dep("tok", "1" * 32, "/a"), Dep("same", "2" * 32, "/b")))
    deps = (Dep("tok", "3" * 32, "/c"), Dep("same", "2" * 32, "/elsewhere"), Dep("more", "4" * 32, "/d"))
    assert difference(old, version="2", hash_attrs={}, deps=deps, name="fit") == (
        ("version", "1", "2"),
        ("name", "train", "fit"),
        ("deps.more", "", "4" * 12),
        ("deps.tok", "1" * 12, "3" * 12),
    )


def test_the_nearest_older_artifact_is_the_last_one_of_that_name(tmp_path: Path) -> None:
    store = LocalStore()
    for n, (name, ended) in enumerate([("train", 10.0), ("train", 30.0), ("train", 20.0), ("other", 99.0)]):
        path = f"{tmp_path}/{name}_{n}"
        lease = store.claim(path, this_owner("r.1"))
        assert not isinstance(lease, Owner)
        made = record({"n": n}, identity=f"{n}" * 32, name=name, path=path)
        made = ArtifactRecord(
            **{
                **{field: getattr(made, field) for field in made.__struct_fields__},
                "provenance": Provenance(ended=ended),
            }
        )
        store.publish(lease, store.work(path, "r.1"), made)
        lease.release()
    found = older(store, f"{tmp_path}/train_9", "train")
    assert found is not None
    assert found.hash_attrs == {"n": 1}
    found = older(store, f"{tmp_path}/train_1", "train", identity="1" * 32)
    assert found is not None
    assert found.hash_attrs == {"n": 2}
    assert older(store, f"{tmp_path}/train_9", "evaluate") is None
    assert older(store, f"{tmp_path}/nowhere/train_9", "train") is None
