"""Subinterpreters are left alone: patches, threads and signals are the process's."""

from __future__ import annotations

import sys

import pytest

pytestmark = pytest.mark.native

_OWN_GIL = pytest.mark.skipif(
    sys.version_info[:2] == (3, 12), reason="this CPython crashes beside any other thread, also unwatched"
)
_WITHIN = """
import asyncio
asyncio.run(asyncio.sleep(0))
import loopcanary
assert loopcanary.install() is None
asyncio.run(asyncio.sleep(0))
loopcanary.uninstall()
"""
_RUN = f"""
    stall("before")
    if sys.version_info >= (3, 13):
        import _interpreters
        other = _interpreters.create(sys.argv[1])
        assert _interpreters.exec(other, {_WITHIN!r}) is None
        _interpreters.destroy(other)
    else:
        import _xxsubinterpreters
        other = _xxsubinterpreters.create(isolated=sys.argv[1] == "isolated")
        _xxsubinterpreters.run_string(other, {_WITHIN!r})
        _xxsubinterpreters.destroy(other)
    stall("after")
"""


@pytest.mark.parametrize("engine", ["native", "portable"])
@pytest.mark.parametrize("kind", ["legacy", pytest.param("isolated", marks=_OWN_GIL)])
def test_a_subinterpreter_is_not_watched(place, kind, engine):
    done = place.run(place.program(_RUN), kind, LOOPCANARY_ENGINE=engine)
    assert done.stderr == "loopcanary: subinterpreters are not watched\n"
    assert place.culprits() == ["after", "before"]


def test_no_frames_are_made_beside_another_interpreter(place):
    """Its frames would be made with our allocator, and freed with its own."""
    program = place.program("""
        import importlib
        from loopcanary.thread_frames import thread_frames
        name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
        interpreters = importlib.import_module(name)
        seen = [len(thread_frames()) > 0]
        other = interpreters.create()
        seen.append(thread_frames())
        interpreters.destroy(other)
        seen.append(len(thread_frames()) > 0)
        print(seen)
    """)
    assert place.run(program).stdout == "[True, {}, True]\n"
