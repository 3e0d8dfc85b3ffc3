"""The log of an attempt that printed nothing becomes that of the next one, and no other log does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.base import sole

ASKING = """
import os, sys
from treadle.base.sole import is_sole
fd = os.open(sys.argv[1], os.O_WRONLY)
print(sum(is_sole(fd) for _ in range(20_000)))
"""


@pytest.fixture
def silent(local) -> int:
    """An attempt that has ended and printed nothing."""
    local.sh("true")
    if not sole.is_sole(opened := os.open(local.log(local.n), os.O_WRONLY)):
        pytest.skip("the file system of temporary files does not tell who has a file open")
    os.close(opened)
    return local.n


def logs(local) -> list[str]:
    return sorted(os.listdir(local.folder / "logs"))


def test_an_empty_log_is_renamed_for_the_next_attempt(local, silent):
    inode = os.stat(local.log(silent)).st_ino
    local.sh("echo hello", log_from=local.log(silent))
    assert logs(local) == [str(local.n)]
    assert os.stat(local.log(local.n)).st_ino == inode
    assert local.told() == "hello\n"


def test_a_log_with_something_in_it_stays(local):
    local.sh("echo first")
    first = local.n
    local.sh("echo second", log_from=local.log(first))
    assert (local.told(first), local.told()) == ("first\n", "second\n")


def test_a_log_that_somebody_may_still_write_to_stays(local, silent):
    """As of a process that left the group of its attempt: what it prints later is not the next one's."""
    with open(local.log(silent), "ab") as left:
        local.sh("echo mine", log_from=local.log(silent))
        left.write(b"late words\n")
    assert (local.told(silent), local.told()) == ("late words\n", "mine\n")


def test_a_log_that_stands_under_a_second_name_stays(local, silent):
    os.link(local.log(silent), local.folder / "rule.log")
    local.sh("echo mine", log_from=local.log(silent))
    assert (local.folder / "rule.log").read_bytes() == b""
    assert local.told(silent) == ""


def test_what_stands_in_the_place_of_a_log_by_now_is_not_written_to(local, silent):
    other = local.folder / "precious"
    other.touch()
    Path(local.log(silent)).unlink()
    Path(local.log(silent)).symlink_to(other)
    local.sh("echo mine", log_from=local.log(silent))
    assert other.read_bytes() == b""
    assert local.told() == "mine\n"


def test_where_the_log_is_gone_a_new_one_is_made(local, silent):
    Path(local.log(silent)).unlink()
    local.sh("echo mine", log_from=local.log(silent))
    assert local.told() == "mine\n"


def test_who_opens_the_log_in_that_very_moment_does_not_end_the_driver(local, silent):
    """The kernel signals the holder of a lease when somebody wants the file, with a signal that ends it."""
    asking = subprocess.Popen([sys.executable, "-c", ASKING, local.log(silent)], stdout=subprocess.PIPE)
    opened = 0
    while asking.poll() is None:
        os.close(os.open(local.log(silent), os.O_RDONLY))
        opened += 1
    answers, _ = asking.communicate()
    assert asking.returncode == 0, f"ended by signal {-asking.returncode} after {opened} looks"
    assert int(answers) > 0


def test_where_the_system_cannot_tell_nothing_is_taken_over(local, silent, monkeypatch):
    monkeypatch.setattr(sole, "_LEASES", False)
    local.sh("echo mine", log_from=local.log(silent))
    assert logs(local) == sorted([str(silent), str(local.n)])
