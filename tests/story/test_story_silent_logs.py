"""Tasks that print nothing leave no thousands of empty logs, and nobody gets the words of another."""

from __future__ import annotations

import os

from treadle.base.sole import is_sole

VALUES = """
[[values]]
name = "i"
values = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12"]
"""

MANY = """
[[rules]]
name = "quiet"
output = ["out/{i}"]
shell = "touch {output}"
"""

MIXED = """
[[rules]]
name = "some"
output = ["out/{i}"]
shell = "case {i} in *[369]) echo it is {i} ;; esac; touch {output}"
"""

LEFT = """
[[rules]]
name = "a"
output = ["a.txt"]
priority = 2
shell = '''
setsid sh -c 'touch apart; until [ -e go ]; do sleep 0.01; done; echo late; touch said' &
until [ -e apart ]; do :; done
touch {output}
'''

[[rules]]
name = "b"
output = ["b.txt"]
shell = "echo from b; touch {output}"
"""

LIAR = """
[[rules]]
name = "liar"
output = ["never.txt"]
priority = 2
shell = "true"

[[rules]]
name = "after"
output = ["after.txt"]
shell = "echo after; touch {output}"
"""


def tells_who_has_files_open(folder) -> bool:
    folder.write("probe", "")
    fd = os.open(folder / "probe", os.O_WRONLY)
    try:
        return is_sole(fd)
    finally:
        os.close(fd)


def logs(folder) -> dict[str, str]:
    return {
        name.rpartition("/")[2]: text.decode()
        for name, text in folder.snapshot(".treadle/runs/latest/logs").items()
    }


def test_tasks_that_print_nothing_leave_no_log_each(folder):
    folder.flow(VALUES + MANY)
    folder.treadle("run", "-j1")
    assert len(logs(folder)) == (1 if tells_who_has_files_open(folder) else 12)
    shown = folder.treadle("logs", "quiet/i=03")
    assert shown.stdout == ""
    assert shown.stderr in ("", "quiet/i=03 printed nothing\n")


def test_what_tasks_print_stands_in_their_own_logs(folder):
    folder.flow(VALUES + MIXED)
    folder.treadle("run", "-j2")
    for i in range(1, 13):
        told = f"it is {i:02}\n" if i % 10 in (3, 6, 9) else ""
        assert folder.treadle("logs", f"some/i={i:02}").stdout == told


def test_late_words_of_what_a_task_left_behind_are_not_the_next_ones(folder):
    folder.flow(LEFT)
    folder.treadle("run", "-j1")
    folder.write("go", "")
    folder.until("said")
    assert folder.treadle("logs", "a").stdout == "late\n"
    assert folder.treadle("logs", "b").stdout == "from b\n"


def test_a_task_that_failed_though_it_ended_well_keeps_its_log(folder):
    folder.flow(LIAR)
    folder.treadle("run", "-j1", "-k", exits=1)
    assert folder.treadle("logs", "after").stdout == "after\n"
    assert folder.treadle("logs", "liar").stderr == ""
    assert logs(folder) == {"1": "", "2": "after\n"}
