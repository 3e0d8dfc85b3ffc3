"""One command of an engine as a whole process: its time, CPU time and memory, and the environment it gets."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

from engine import ROOT

HERE = pathlib.Path(__file__).resolve().parent
HZ = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


def proc_table():
    t = {}
    for p in os.listdir("/proc"):
        if p.isdigit():
            try:
                with open(f"/proc/{p}/stat") as f:
                    s = f.read().rsplit(")", 1)[1].split()
                t[int(p)] = (int(s[1]), int(s[21]) * PAGE, int(s[11]) + int(s[12]))
            except (OSError, IndexError):
                pass
    return t


def hwm(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def pss(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def cpu_busy():
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:]]
    return (sum(v[:3]) + v[5] + v[6]) / HZ, v[7] / HZ  # busy, steal


class Sampler(threading.Thread):
    """Peak memory (sum of Pss) of a process and its descendants, twice a second at most."""

    def __init__(self, pid, every=0.5):
        super().__init__(daemon=True)
        self.pid, self.every, self.peak, self.nprocs, self.seen = pid, every, 0, 0, set()
        self.hwm = 0
        self.stop = threading.Event()

    def sample(self):
        t = proc_table()
        kids = {}
        for p, (pp, _, _) in t.items():
            kids.setdefault(pp, []).append(p)
        todo, tree = [self.pid], []
        while todo:
            p = todo.pop()
            if p in t:
                tree.append(p)
            todo += kids.get(p, [])
        self.seen.update(tree)
        self.peak = max(self.peak, sum(pss(p) for p in tree))
        self.nprocs = max(self.nprocs, len(tree))
        self.hwm = max(self.hwm, hwm(self.pid))

    def run(self):
        d = 0.15
        while not self.stop.wait(d):
            a = time.perf_counter()
            self.sample()
            d = max(self.every, 20 * (time.perf_counter() - a))  # at most 5% of one core


def run_cmd(argv, cwd, env, timeout):
    inner = pathlib.Path(cwd) / ".inner.json"
    inner.unlink(missing_ok=True)
    env = dict(env, BENCH_INNER=str(inner), BENCH_DIR=str(HERE))
    log = open(pathlib.Path(cwd) / ".log", "wb")  # noqa: SIM115 (closed once the command has ended)
    load = os.getloadavg()[0]
    busy0, steal0 = cpu_busy()
    t0 = time.perf_counter()
    p = subprocess.Popen(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
    )
    s = Sampler(p.pid)
    s.start()
    dnf = threading.Event()

    def expire():
        dnf.set()
        s.sample()
        try:
            os.killpg(p.pid, signal.SIGTERM)
        except OSError:
            pass
        time.sleep(2)
        for q in sorted(s.seen):  # only what this run started
            try:
                os.kill(q, signal.SIGKILL)
            except OSError:
                pass

    timer = threading.Timer(timeout, expire)
    timer.start()
    _, status, ru = os.wait4(p.pid, 0)
    wall = time.perf_counter() - t0
    timer.cancel()
    if dnf.is_set():
        timer.join()
    p.returncode = os.waitstatus_to_exitcode(status)
    s.stop.set()
    s.join()
    busy1, steal1 = cpu_busy()
    log.close()
    own = ru.ru_utime + ru.ru_stime
    r = {
        "wall": round(wall, 5),
        "rc": p.returncode,
        "dnf": dnf.is_set(),
        "user": round(ru.ru_utime, 3),
        "sys": round(ru.ru_stime, 3),
        "maxrss_mb": round(ru.ru_maxrss / 1024, 1),
        "hwm_mb": round(s.hwm / 2**20, 1),
        "tree_pss_mb": round(s.peak / 2**20, 1),
        "procs": s.nprocs,
        "load1": round(load, 2),
        "other_cpu": round((busy1 - busy0 - own) / wall, 2),
        "steal": round(steal1 - steal0, 2),
    }
    if inner.exists():
        r["inner"] = json.loads(inner.read_text())["inner"]
    return r


def clean_env(e):
    path = ["/usr/local/bin", "/usr/bin", "/bin"]
    if e.venv:
        path.insert(0, str(ROOT / "venvs" / e.venv / "bin"))
    env = {
        "PATH": ":".join(path),
        "HOME": str(ROOT / "home"),
        "LANG": "C.UTF-8",
        "USER": "bench",
        "TMPDIR": str(ROOT / "tmp"),
        "BENCH_ROOT": str(ROOT),
        "XDG_CACHE_HOME": str(ROOT / "cache"),
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    for k in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):
        os.makedirs(env[k], exist_ok=True)
    env.update(e.env)
    return env
