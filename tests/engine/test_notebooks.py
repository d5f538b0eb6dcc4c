"""`%load_ext loopcanary`, without IPython: it calls two functions of the package."""

from __future__ import annotations

from .watching import PATIENT_END, PRELUDE, Place


def test_a_cell_that_stalls_is_told_below_it(place: Place) -> None:
    program = """
    import loopcanary
    loopcanary.load_ipython_extension(None)
    stall("cell")
    loopcanary.unload_ipython_extension(None)
    print(loopcanary.statistics())
    """
    done = place.run(place.program(program, prelude=PRELUDE + PATIENT_END), LOOPCANARY="")
    assert "in cell\n" in done.stderr
    assert done.stdout == "{}\n"
    assert place.culprits() == ["cell"]
