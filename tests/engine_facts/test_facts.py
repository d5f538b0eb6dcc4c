from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict

import pytest

from loopcanary import facts
from loopcanary.facts import (
    cgroup_limits,
    program_name,
    program_of_command_line,
    session_id,
)
from loopcanary.model import Config, Session, SessionEnd
from loopcanary.wire import from_wire, to_wire

_PRINT_FACTS = """\
import json
from loopcanary.facts import session_facts
from loopcanary.model import Config
facts = session_facts(Config())
print(json.dumps([facts["name"], facts["command"]]))
"""


def session_facts(config, **more) -> Session:
    return from_wire(Session, facts.session_facts(config, **more))


def test_what_is_written_of_a_session_is_its_form_on_the_wire():
    written = facts.session_facts(Config(version="7"), engine="native")
    assert to_wire(from_wire(Session, written)).items() >= written.items()


def test_a_session_tells_where_it_runs():
    session = session_facts(
        Config(version="7", labels=(("stage", "staging"),)), engine="portable", command="app.py"
    )
    assert (session.pid, session.parent_pid) == (os.getpid(), os.getppid())
    assert session.python.endswith(".".join(map(str, sys.version_info[:3])))
    assert (session.name, session.command, session.engine) == ("app.py", "app.py", "portable")
    assert (session.version, session.labels) == ("7", {"stage": "staging"})
    assert session.cores >= 1
    assert session.host
    assert session.system
    assert session.machine
    assert session.end is SessionEnd.RUNNING


def test_nothing_that_identifies_a_user_unless_it_is_configured(monkeypatch):
    monkeypatch.setenv("USER", "carol")
    monkeypatch.setenv("LOGNAME", "carol")
    session = session_facts(Config(), command="app.py")
    assert session.labels == {}
    assert "carol" not in json.dumps(asdict(session), default=str)
    session = session_facts(Config(labels=(("user", "u1"),)))
    assert session.labels == {"user": "u1"}


def test_facts_that_cannot_be_had_are_empty(monkeypatch):
    def fail(*_):
        raise OSError

    for name in ("_uname", "_python", "_cores", "_memory_bytes", "program"):
        monkeypatch.setattr(facts, name, fail)
    monkeypatch.setattr(facts, "cgroup_limits", fail)
    session = session_facts(Config())
    assert isinstance(session, Session)
    assert (session.host, session.cores, session.memory_bytes) == ("", 0, 0)
    assert (session.memory_limit_bytes, session.cpu_limit) == (None, None)


def test_session_ids_sort_by_time_and_differ():
    assert session_id(1_795_236_910_000_000_000, 4711, b"\x9f\x3c") == "20261121T045510-4711-9f3c"
    assert session_facts(Config()).id != session_facts(Config()).id
    early, late = session_id(10**18, 9, b"ff"), session_id(2 * 10**18, 1, b"00")
    assert early < late


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("python", ""),
        ("python app.py secret", "app.py"),
        ("python -W error -X dev app.py -m secret", "app.py"),
        ("python -Werror -Xdev app.py", "app.py"),
        ("python -m pkg.mod secret", "-m pkg.mod"),
        ("python -Im pkg secret", "-m pkg"),
        ("python -mpkg secret", "-m pkg"),
        ("python -uc secret more", "-c"),
        ("python --check-hash-based-pycs always app.py", "app.py"),
        ("python -", "-"),
        ("python -W", ""),
    ],
)
def test_the_program_is_found_and_its_arguments_are_not(line, program):
    assert program_of_command_line(line.split()) == program


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("-m a.b", "a.b"),
        ("/srv/x/app.py", "app.py"),
        ("/x/uvicorn/__main__.py", "uvicorn"),
        ("__main__.py", "__main__.py"),
        ("-c", "python -c"),
        ("", "python"),
        ("-", "python -"),
    ],
)
def test_a_program_has_a_short_name(command, name):
    assert program_name(command) == name


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["app.py", "--password=x"], ["app.py", "app.py"]),
        (["-m", "pkg.job", "--password=x"], ["pkg.job", "-m pkg.job"]),
        (["-m", "pkg", "--password=x"], ["pkg", "-m pkg"]),
        (["-c", _PRINT_FACTS, "--password=x"], ["python -c", "-c"]),
    ],
    ids=["script", "module", "package", "code"],
)
def test_a_real_program_is_named(tmp_path, arguments, expected):
    (tmp_path / "pkg").mkdir()
    for path in ("app.py", "pkg/job.py", "pkg/__main__.py"):
        (tmp_path / path).write_text(_PRINT_FACTS)
    outcome = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(outcome.stdout) == expected


_MOUNT = "31 23 0:28 {root} {point} rw,relatime shared:5 - {kind} none rw,{controllers}\n"


def machine(folder, *, groups, mounts, files):
    """A root file system with cgroups: `mounts` are (root, point, kind, controllers)."""
    proc = folder / "proc" / "self"
    proc.mkdir(parents=True)
    (proc / "cgroup").write_text(groups)
    lines = [_MOUNT.format(root=r, point=p, kind=k, controllers=c) for r, p, k, c in mounts]
    (proc / "mountinfo").write_text("garbage\n" + "".join(lines))
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


_V2 = [("/", "/sys/fs/cgroup", "cgroup2", "nsdelegate")]
_V1 = [
    ("/docker/abc", "/sys/fs/cgroup/memory", "cgroup", "memory"),
    ("/docker/abc", "/sys/fs/cgroup/cpu,cpuacct", "cgroup", "cpu,cpuacct"),
]


@pytest.mark.parametrize(
    ("groups", "mounts", "files", "limits"),
    [
        pytest.param("", [], {}, (None, None), id="no cgroups at all"),
        pytest.param(
            "0::/\n",
            _V2,
            {"sys/fs/cgroup/memory.max": "1048576\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"},
            (1_048_576, 1.5),
            id="version 2 in a container of its own namespace",
        ),
        pytest.param(
            "0::/\n",
            _V2,
            {"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/cpu.max": "max 100000\n"},
            (None, None),
            id="version 2 without limits",
        ),
        pytest.param(
            "0::/a/b\n",
            _V2,
            {
                "sys/fs/cgroup/a/memory.max": "100\n",
                "sys/fs/cgroup/a/b/memory.max": "200\n",
                "sys/fs/cgroup/a/b/cpu.max": "50000 100000\n",
                "sys/fs/cgroup/a/cpu.max": "max 100000\n",
            },
            (100, 0.5),
            id="the tightest of the group and all above it",
        ),
        pytest.param(
            "0::/../other\n",
            _V2,
            {"sys/fs/cgroup/memory.max": "300\n"},
            (300, None),
            id="a group outside the namespace",
        ),
        pytest.param(
            "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n",
            _V1,
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            (4096, 2.0),
            id="version 1 in a container that sees the host's path",
        ),
        pytest.param(
            "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n",
            _V1,
            {
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            (None, None),
            id="version 1 without limits",
        ),
        pytest.param(
            "nonsense\n0::" + "/x" * 1_000 + "\n",
            _V2,
            {"sys/fs/cgroup/memory.max": "many\n", "sys/fs/cgroup/cpu.max": "1 0\n"},
            (None, None),
            id="nonsense in every file",
        ),
    ],
)
def test_cgroup_limits(tmp_path, groups, mounts, files, limits):
    assert cgroup_limits(machine(tmp_path, groups=groups, mounts=mounts, files=files)) == limits


def test_links_of_folders_are_resolved_once(monkeypatch):
    """The first loop of a program asks for the same as its start, and waits for the answer."""
    first = facts.code_paths()
    monkeypatch.setattr(os.path, "realpath", None)
    assert facts.code_paths() == first


@pytest.mark.parametrize(("spare", "is_short"), [(40, False), (8, True), (0, True)])
def test_short_of_descriptors_before_there_are_none(spare, is_short):
    program = f"""
import os, resource, sys
from loopcanary.facts import is_short_of_descriptors
if not os.stat("/proc/self/fd").st_size:
    sys.exit("Linux says so from 6.2 on")
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
while os.dup(0) < 255 - {spare}: pass
print(is_short_of_descriptors())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if "from 6.2" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout == f"{is_short}\n"
