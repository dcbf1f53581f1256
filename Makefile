# make demo and make test set up everything on a fresh Debian 12 (packages as root, a virtual environment, the build) and run.
# Variables: JOBS (compiler processes), SHARED (where the conformance samples, benchmark and listings are).
APT := ca-certificates ccache clang-format cmake g++ git libeigen3-dev libgtest-dev libhwy-dev lld ninja-build pkg-config \
       python3-dev python3-venv
PIP := hypothesis matplotlib mpmath nanobind numpy pytest ruff scikit-build-core

SHELL := /bin/bash
JOBS ?= $(shell nproc)
SHARED ?= ../shared
BUILD := build/release
REPORTS := build/reports
PYTHON := $(CURDIR)/.venv/bin/python
export PYTHONPATH := $(CURDIR)/python

.PHONY: setup build test test-cpp test-python demo format format-check bench conformance listings wheel clean

build: setup
	@[ -f $(BUILD)/build.ninja ] || cmake --preset release -DPython_EXECUTABLE=$(PYTHON)
	cmake --build --preset release -j $(JOBS)

demo: build
	$(PYTHON) examples/digits.py --cpp $(BUILD)/bin/digits --out out

# Both run to the end, so that one failure does not hide the other.
test: build
	@failed=0; $(MAKE) --no-print-directory test-cpp || failed=1; $(MAKE) --no-print-directory test-python || failed=1; exit $$failed

test-cpp:
	ctest --test-dir $(BUILD) --output-on-failure --output-junit $(CURDIR)/$(REPORTS)/ctest.xml

test-python:
	$(PYTHON) -m pytest -q tests --junitxml $(REPORTS)/pytest.xml

format: setup
	git ls-files '*.h' '*.cpp' | xargs clang-format -i
	.venv/bin/ruff check --fix -q .
	.venv/bin/ruff format -q .

format-check: setup
	git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run -Werror
	.venv/bin/ruff check -q .
	.venv/bin/ruff format -q --check .

# The three below need SHARED. bench compares with the PyTorch of the interpreter RUSHLIGHT_PEER_PYTHON.
bench: build
	$(PYTHON) $(SHARED)/bench/bench.py --modules torch@$(RUSHLIGHT_PEER_PYTHON),rushlight --limits $(BENCH)

conformance: build
	$(PYTHON) $(SHARED)/conformance/replay.py --module rushlight $(CONFORMANCE)

listings: build
	$(SHARED)/listings/run.sh $(PYTHON) -m rushlight

wheel: setup
	.venv/bin/pip wheel --no-deps --no-build-isolation -w build/wheel .

setup: .venv/ready

.venv/ready: Makefile
	@missing=$$(for p in $(APT); do dpkg -s $$p >/dev/null 2>&1 || echo $$p; done); \
	if [ -n "$$missing" ]; then apt-get update -q && apt-get install -qy --no-install-recommends $$missing; fi
	@/usr/bin/env python3 -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or later is needed")'
	/usr/bin/env python3 -m venv .venv
	.venv/bin/pip install -q --disable-pip-version-check $(PIP)
	touch $@

clean:
	rm -rf build out python/rushlight/*.so
