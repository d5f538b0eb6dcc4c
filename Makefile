# Needs make, a C compiler and Python >= 3.11 with its headers; everything else goes into $(VENV).
#
#   make test        builds the wheel, installs it into $(VENV), runs pytest (test-crowd, test-alone) and the C tests
#   make test-all    everything on every CPython from 3.11 to 3.15 that is here or can be made; an hour and more
#   make test-asan   pytest with the C core built for the address and undefined-behaviour sanitizers
#   make churn       samples threads that do their worst to a reader of frames, for a minute and longer
#   make churn-asan  the same with the C core built for the sanitizers
#   make cycles      installs and uninstalls hundreds of times beside loads of every hook; cycles-asan as above
#   make kills       kills watched programs at any moment, and says what their reports lack
#   make method-kills  kills programs whose calls are traced, and compares what was open with what they noted
#   make method-cycles  switches the tracing of calls on and off in a program that calls all the time
#   make lint        ruff, mypy, clang-format, the C core with warnings as errors
#   make lock        renews constraints.txt, the versions of everything that is installed here
#   make demo        a service that stalls in many ways, watched by loopcanary
#   make bench       every program in benchmarks/; bench-smallest: each as small as can be, to see that it runs
#   make reports     problems of public reports, with the libraries that they were reported of
#   make gains       the delay that a report promises for the end of a bug, and what came
#   make zoo         stalls with known truth under loopcanary and its peers (benchmarks/zoo/README.md)
#   make deadlocks   programs whose tasks or threads wait for each other, and what is reported of them
#   make suites      test suites of others, plain and watched (docs/internals/suites.md)
#   make dist        in dist/: sdist, wheel and pure wheel, and of each package in packages/; all of them checked
#   make clean       removes what make made here
#
#   PYTHON=python3.13    another interpreter (with another VENV=)
#   PYTEST_ARGS="-k pth" for pytest
#   WORKERS=8            for test-crowd: how many tests at once
#   TIER=every_python    only what depends on the interpreter's version (docs/internals/tests.md); or every_layout
#   PROFILE=ci           hypothesis's examples: ci and few (tests/conftest.py)
#   LOOPCANARY_FULL=1    all of CPython's test_asyncio, twice
#   CHURN_SECONDS=600    for each way of sampling
#   CYCLES=1000          for each load
#   METHOD_KILLS=1000    how many programs
#   METHOD_CYCLES=10000  how often
#   KILLS=1000           how many programs; KILLS_ARGS="--margin 100"
#   REPORTS_ARGS="slack-* --mended"
#   GAINS_ARGS="--only burst --load idle"
#   DEADLOCKS_ARGS="--kind 'trio_*'"
#   SUITES_ARGS="--suite trio --python 3.13"

PYTHON ?= python3
VENV ?= .venv
BUILD ?= build/$(patsubst .%,%,$(notdir $(VENV)))
PYTEST_ARGS ?=
PYTEST_LAUNCHER ?=
# Most tests wait for programs that they started.
WORKERS ?= 4
TIER ?=
PROFILE ?=
# Extras of pyproject.toml that tests run real programs with.
TOOLKITS ?= loops servers browser
export LOOPCANARY_FULL ?=
SANITIZE ?=
CHURN_SECONDS ?= 60
CYCLES ?= 300
KILLS ?= 100
KILLS_ARGS ?=
METHOD_KILLS ?= 200
METHOD_CYCLES ?= 10000
ASAN_VENV ?= .venv-asan

SHELL := /bin/bash
.SHELLFLAGS := -o errexit -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# cmake and ninja may come from the environment's own packages.
tool_path := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"

# Files only: a folder changes when somebody imports from it, and a wheel that is installed again under running tests breaks them.
sources := pyproject.toml CMakeLists.txt README.md LICENSE \
	$(shell find native/core native/cpython native/probes native/module src packages \( -name __pycache__ -prune \) -o -type f -print 2>/dev/null)

empty :=
tools_stamp := $(VENV)/.loopcanary-tools
wheel_stamp := $(BUILD)/.wheel
install_stamp := $(VENV)/.loopcanary-installed
toolkits_stamp := $(VENV)/.loopcanary-toolkits-$(subst $(empty) $(empty),-,$(TOOLKITS))
lint_stamp := $(VENV)/.loopcanary-lint-tools

pytest = $(PYTEST_LAUNCHER) env LOOPCANARY_TEST_WHEEL="$$(echo $(CURDIR)/$(BUILD)/dist/loopcanary-*.whl)" \
	$(VENV)/bin/pytest --junitxml=$(BUILD)/$@.xml $(if $(PROFILE),--hypothesis-profile=$(PROFILE))
# What was asked for by PYTEST_ARGS may all be in the other pass.
or_none = $(if $(PYTEST_ARGS), || [ $$? = 5 ])
tier = $(if $(TIER), and $(TIER))
# pytest, given paths, does not load all other tests to leave them out.
paths = $(if $(PYTEST_ARGS),,$(if $(TIER),$$($(VENV)/bin/python tests/tiers.py $(TIER))))

.PHONY: prepare lint-tools test test-python test-crowd test-alone test-c test-all test-asan churn churn-asan \
	cycles cycles-asan kills method-kills method-cycles lint lock demo bench bench-smallest reports gains zoo zoo-toolkits zoo-peers deadlocks suites dist install clean

# The wheel is compiled while pip installs the toolkits.
prepare: $(tools_stamp)
	$(MAKE) -j2 $(wheel_stamp) $(toolkits_stamp)
	$(MAKE) $(install_stamp)

test: prepare
	tools/beside "$(MAKE) test-c" -- $(MAKE) test-crowd
	$(MAKE) test-alone

test-python: test-crowd
	$(MAKE) test-alone

# Many at once; and those that measure, or need a core for themselves, one by one. A worker that dies ends the run: another in
# its place waits for ever with pytest-xdist 3.8.
test-crowd: prepare
	$(pytest) -n $(WORKERS) --max-worker-restart=0 --dist loadgroup --no-loadscope-reorder -m "not alone$(tier)" $(paths) $(PYTEST_ARGS)$(or_none)

test-alone: prepare
	$(pytest) -m "alone$(tier)" $(paths) $(PYTEST_ARGS)$(or_none)

test-c: $(tools_stamp)
	$(tool_path) tools/c-tests build/c

test-all:
	$(PYTHON) tools/test_all.py --make LOOPCANARY_FULL=1 "TOOLKITS=$(TOOLKITS) frozen"

# The interpreter is not built for the sanitizer, which must therefore be loaded before it (with the C++ library, whose
# exceptions gevent and Qt throw), and which cannot tell its leaks from ours. A program that tests kill by SIGSEGV
# dies of it as others do; a wild access of ours is a test that fails, too. What a test compiles by itself is told by LOOPCANARY_TEST_SANITIZE.
sanitized := VENV=$(ASAN_VENV) SANITIZE=address,undefined \
	PYTEST_LAUNCHER="env LD_PRELOAD=$$($(CC) -print-file-name=libasan.so):$$($(CC) -print-file-name=libstdc++.so) ASAN_OPTIONS=detect_leaks=0:handle_segv=0 \
		LOOPCANARY_TEST_SANITIZE=address,undefined"

# Building a wheel under the sanitizer would test the compiler.
test-asan:
	$(MAKE) test-python $(sanitized) PYTEST_ARGS="--ignore=tests/packaging $(PYTEST_ARGS)"

# They take as long as they are asked to: no limit for one test.
as_long_as_it_takes := -o faulthandler_timeout=0

churn: $(install_stamp)
	LOOPCANARY_CHURN_SECONDS=$(CHURN_SECONDS) $(PYTEST_LAUNCHER) $(VENV)/bin/pytest -s $(as_long_as_it_takes) $(PYTEST_ARGS) \
		tests/native_walker/test_churn.py tests/native_walker/test_churn_watched.py

churn-asan:
	$(MAKE) churn $(sanitized)

cycles: prepare
	LOOPCANARY_CYCLES=$(CYCLES) $(PYTEST_LAUNCHER) $(VENV)/bin/pytest -v $(as_long_as_it_takes) $(PYTEST_ARGS) tests/loops/test_under_load.py

cycles-asan:
	$(MAKE) cycles $(sanitized)

kills: prepare
	cd benchmarks && ../$(VENV)/bin/python -m kills --kills $(KILLS) $(KILLS_ARGS)

method-kills: $(install_stamp)
	LOOPCANARY_METHOD_KILLS=$(METHOD_KILLS) $(VENV)/bin/pytest -v $(as_long_as_it_takes) $(PYTEST_ARGS) tests/methods/test_kills.py

method-cycles: $(install_stamp)
	LOOPCANARY_METHOD_CYCLES=$(METHOD_CYCLES) $(VENV)/bin/pytest -v $(as_long_as_it_takes) $(PYTEST_ARGS) tests/methods/test_switching.py

install: $(install_stamp)

# The tests test what is shipped: a wheel, installed. Not isolated from $(VENV), so that the build folder
# stays valid and a second build compiles only what changed.
$(wheel_stamp): $(tools_stamp) $(sources)
	rm -rf $(BUILD)/dist
	$(tool_path) LOOPCANARY_REQUIRE_NATIVE=1 $(VENV)/bin/pip wheel --quiet --no-deps --no-build-isolation \
		--config-settings=build-dir=$(BUILD)/wheel \
		--config-settings=cmake.define.LOOPCANARY_SANITIZE=$(SANITIZE) --wheel-dir=$(BUILD)/dist .
	$(VENV)/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir=$(BUILD)/dist ./packages/*
	touch $@

$(install_stamp): $(wheel_stamp)
	$(VENV)/bin/pip install --quiet --force-reinstall --no-deps $(BUILD)/dist/*.whl
	touch $@

installing := pyproject.toml constraints.txt tools/extras.py tools/install_extras.py

$(tools_stamp): $(installing) tools/system-packages
	tools/system-packages $(PYTHON)
	test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python tools/install_extras.py build package test all
	touch $@

$(toolkits_stamp): $(installing) tools/test-packages | $(tools_stamp)
	tools/test-packages $(VENV)/bin/python $(TOOLKITS)
	$(VENV)/bin/python tools/install_extras.py --where-possible $(TOOLKITS)
	touch $@

$(lint_stamp): $(installing) | $(tools_stamp)
	$(VENV)/bin/python tools/install_extras.py dev
	touch $@

lint-tools: $(lint_stamp)

lint: $(lint_stamp) $(install_stamp)
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	git ls-files '*.c' '*.h' | xargs $(VENV)/bin/clang-format --dry-run -Werror
	$(VENV)/bin/mypy
	$(tool_path) cmake -S . -B build/lint -DPython_EXECUTABLE="$(CURDIR)/$(VENV)/bin/python" \
		-DLOOPCANARY_WERROR=ON -DLOOPCANARY_TESTS=ON >/dev/null
	$(tool_path) cmake --build build/lint --parallel $$(nproc) >build/lint.log 2>&1 || { cat build/lint.log; exit 1; }

lock:
	$(PYTHON) tools/lock.py

demo: $(install_stamp)
	$(VENV)/bin/python examples/service/demo.py --wheel $(BUILD)/dist/loopcanary-*.whl

# Ends with the first that fails. Benchmarks of toolkits need their libraries.
bench-smallest: $(install_stamp)
	BENCHMARK_SMALLEST=1 $(MAKE) bench

bench: $(install_stamp)
	for program in $(sort $(wildcard benchmarks/*.py)); do \
		echo "== $$program"; $(VENV)/bin/python "$$program"; done

# In an environment of its own: the peers bring a hundred packages. One that cannot be installed is left out,
# and the tables say so; so is a loop whose library is missing.
zoo:
	$(MAKE) install zoo-toolkits zoo-peers VENV=.venv-zoo
	nice=$$( [ "$$(id -u)" = 0 ] && echo nice -n -10 || true ); cd benchmarks && \
		$$nice ../.venv-zoo/bin/python -m zoo --results ../build/zoo/results.json $(ZOO_ARGS)

# Environments with the pinned libraries are made in build/reports, once.
reports: $(wheel_stamp)
	cd benchmarks && $(CURDIR)/$(VENV)/bin/python -m reports --wheel $(CURDIR)/$(BUILD)/dist/loopcanary-0*.whl $(REPORTS_ARGS)

gains: $(install_stamp)
	cd benchmarks && ../$(VENV)/bin/python -m gains $(GAINS_ARGS)

zoo-toolkits: $(toolkits_stamp)

zoo-peers:
	grep -v '^#' benchmarks/zoo/requirements.txt | while read -r peer; do \
		$(VENV)/bin/pip install --quiet "$$peer" || echo "not installed: $$peer"; done

deadlocks: prepare
	cd benchmarks && ../$(VENV)/bin/python -m zoo.deadlocks $(DEADLOCKS_ARGS)

suites:
	$(PYTHON) tools/suites.py $(SUITES_ARGS)

dist: $(tools_stamp)
	$(VENV)/bin/pip install --quiet build twine
	rm -rf dist
	for folder in . packages/*; do $(VENV)/bin/python -m build --outdir dist $$folder; done
	CC=there-is-no-compiler $(VENV)/bin/python -m build --wheel --outdir dist .
	$(VENV)/bin/twine check --strict dist/*

clean:
	rm -rf build dist $(VENV) .venv-3.* .venv-asan .venv-zoo .mypy_cache .ruff_cache .pytest_cache .hypothesis
