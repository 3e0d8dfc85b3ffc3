"""What goes to a worker and comes back: private files, functions by value or name, exceptions."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading

import pytest

from treadle.backends.answers import (
    Answered,
    WorkerError,
    WorkerTraceback,
    answer_of,
    encode_answer,
    error_of,
    read_answer,
)
from treadle.backends.payload import (
    Head,
    check_picklable,
    decode,
    disagreement,
    encode,
    make_private_folder,
    read_payload,
    write_payload,
)
from treadle.base.errors import StepError
from treadle.steps.book import Entry
from treadle.steps.loading import is_loading
from treadle.steps.order import Done, Order
from treadle.steps.record import ArtifactRecord, Owner
from treadle.steps.spec import StepRef, StepSpec


def order(fn, **changes) -> Order:
    fields = {
        "identity": "0" * 32,
        "name": "train",
        "path": "/nowhere/train",
        "attempt": "run.1",
        "number": 1,
    }
    return Order(fn=fn, owner=Owner(host="here"), **{**fields, **changes})


class OddError(Exception):
    """Cannot be read back: its __init__ wants more than its args."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.fixture
def folder(tmp_path):
    path = str(tmp_path / "payloads")
    make_private_folder(path)
    return path


def written(folder, made: bytes) -> str:
    path = f"{folder}/1.call"
    write_payload(path, made, f"{folder}/1.result")
    return path


def test_files_and_folder_are_their_owners_alone(folder):
    path = written(folder, encode(order(len), "answer"))
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o604])
def test_a_payload_that_others_can_reach_is_not_read(folder, mode):
    path = written(folder, encode(order(len), "answer"))
    os.chmod(path, mode)
    with pytest.raises(StepError, match="can be written or read by others"):
        read_payload(path)


def test_a_payload_in_a_folder_that_others_can_enter_is_not_read(folder):
    path = written(folder, encode(order(len), "answer"))
    os.chmod(folder, 0o755)
    with pytest.raises(StepError, match="can be written or read by others"):
        read_payload(path)


def test_a_link_in_the_place_of_a_payload_is_not_followed(folder, tmp_path):
    path = written(folder, encode(order(len), "answer"))
    os.rename(path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(StepError):
        read_payload(path)


def test_the_answer_of_an_earlier_try_goes_when_a_payload_is_written(folder):
    with open(f"{folder}/1.result", "w") as file:
        file.write("old")
    written(folder, b"{}\n")
    assert read_answer(f"{folder}/1.result") is None


def test_a_function_travels_with_what_it_closes_over(folder):
    layers = [1, 2]
    head, body = read_payload(written(folder, encode(order(lambda out: (out, layers)), "answer")))
    assert head.answer == "answer"
    assert head.path == tuple(map(os.path.abspath, sys.path))
    assert decode(body).fn("x") == ("x", [1, 2])


def test_steps_that_a_function_closes_over_travel_as_references():
    step = StepSpec("vocab", fn=threading.Lock().acquire)  # could not be sent itself
    made = decode(encode(order(lambda out: step), "answer").partition(b"\n")[2])
    assert made.fn("x") == step
    assert type(made.fn("x")) is StepRef


def test_a_function_of_a_module_that_only_we_have_travels_by_value(tmp_path):
    """As that of a pipeline file, which is loaded under a name of its own."""
    text = "SIZE = 5\ndef inner(): return SIZE\ndef make(out): return out, inner()\n"
    program = f"""
import sys, types, importlib.util
sys.path.insert(0, {os.getcwd()!r})
from treadle.backends.payload import encode
from treadle.steps.order import Order
from treadle.steps.record import Owner
module = types.ModuleType("treadle_pipeline_x")
sys.modules["treadle_pipeline_x"] = module
exec({text!r}, module.__dict__)
owner = Owner(host="h")
order = Order(fn=module.make, identity="", name="n", path="/n", attempt="r.1", number=1, owner=owner)
sys.stdout.buffer.write(encode(order, "answer").partition(b"\\n")[2])
"""
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert decode(made).fn("x") == ("x", 5)


def test_modules_know_that_they_are_only_being_loaded():
    class Telling:
        def __reduce__(self):
            return is_loading, ()

    assert not is_loading()
    assert decode(pickle.dumps(order(Telling(), name="loading"))).fn is True
    assert not is_loading()


@pytest.mark.parametrize("name", ["python", "treadle"])
def test_another_version_is_refused_with_both_named(name):
    ours, _ = encode(order(len), "a").split(b"\n", 1)
    import msgspec

    fields = msgspec.json.decode(ours)
    assert disagreement(msgspec.convert(fields, Head)) == ""
    told = disagreement(msgspec.convert({**fields, name: "2.7"}, Head))
    assert "2.7" in told
    assert fields[name] in told


def test_a_function_that_cannot_be_sent_is_told_with_the_way_out():
    lock = threading.Lock()
    spec = StepSpec("train", fn=lambda out: lock)
    told = check_picklable(Entry(spec=spec, path="/nowhere"))
    assert told is not None
    assert told.code == "function-not-picklable"
    assert "'train'" in told.message
    assert "lock" in told.message
    assert "thread" in told.hint
    with pytest.raises(StepError, match="'train'"):
        encode(order(spec.fn), "answer")


def test_a_function_that_can_be_sent_is_fine():
    assert check_picklable(Entry(spec=StepSpec("train", fn=lambda out: None), path="/nowhere")) is None


def there_and_back(outcome):
    import msgspec

    from treadle.backends.answers import Answer

    return msgspec.json.decode(encode_answer(answer_of(outcome)), type=Answer)


def test_a_record_comes_back():
    record = ArtifactRecord(identity="0" * 32, name="train", path="/nowhere", hash_attrs={"lr": 0.1})
    assert there_and_back(Done(record)).record == record
    assert there_and_back(Done(record, taken=True)).state is Answered.TAKEN


def test_who_holds_the_lease_comes_back():
    owner = Owner(host="there", pid=5)
    assert there_and_back(owner).holder == owner


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def test_an_exception_comes_back_with_its_traceback_as_its_cause():
    class LocalError(ValueError):
        pass

    error = error_of(there_and_back(raised(LocalError("no such layer"))))
    assert type(error) is LocalError
    assert error.args == ("no such layer",)
    assert isinstance(error.__cause__, WorkerTraceback)
    assert "in raised" in str(error.__cause__)
    assert "no such layer" in str(error.__cause__)


def test_errors_of_ours_keep_what_they_told():
    error = error_of(there_and_back(raised(StepError("bad", hint="mend it", code="odd"))))
    assert [(one.code, one.hint) for one in error.diagnostics] == [("odd", "mend it")]


@pytest.mark.parametrize("error", [OddError(1, 2), ValueError(threading.Lock())])
def test_an_exception_that_cannot_travel_is_told_by_its_text(error):
    made = error_of(there_and_back(raised(error)))
    assert type(made) is WorkerError
    assert type(error).__name__ in str(made)


def test_an_exception_without_words_travels():
    answer = there_and_back(raised(SilentError()))
    assert "cannot be had" in answer.line
    assert type(error_of(answer)) is SilentError


def test_an_answer_that_is_cut_is_no_answer(folder):
    path = f"{folder}/1.result"
    with open(path, "wb") as file:
        file.write(encode_answer(answer_of(ValueError("x")))[:-5])
    assert read_answer(path) is None
