# The one front door. `make` alone lists what it can do.

PYTHON ?= python3
RUN := .venv/bin/python
PIP := $(RUN) -m pip install --quiet --quiet --disable-pip-version-check --constraint constraints.txt
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench fmt clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-7s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## make .venv with everything in it (PYTHON=python3.12 picks the Python)

demo: $(READY)  ## build a sketch of 336,776 real flights and ask it three questions
	@$(RUN) -m synopsis demo

test: $(READY)  ## run every test (PYTEST_ARGS="tests/grid -x" passes arguments on)
	@$(RUN) -m pytest $(PYTEST_ARGS)

check: $(READY)  ## lint, format, types and the order of the rooms
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy
	@.venv/bin/lint-imports --no-logo

bench: $(READY)  ## run every benchmark, or one (NAME=build)
	@for bench in benches/$(or $(NAME),[a-z]*).py; do \
		echo "== $$bench"; $(RUN) "$$bench" || failed="$$failed $$bench"; \
	done; test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

fmt: $(READY)  ## put the code into the house format
	@$(RUN) -m ruff check --fix-only --quiet .
	@$(RUN) -m ruff format .

clean:  ## remove caches and build results (.venv stays)
	@rm -rf build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache spark-warehouse src/*.egg-info
	@find src tests benches -name __pycache__ -type d -prune -exec rm -rf {} +

# pip and setuptools come first and are pinned too; the few packages that are built here are then built with those.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "synopsis needs Python 3.11 or newer; $(PYTHON) is $$(command -v $(PYTHON) >/dev/null && $(PYTHON) --version 2>&1 || echo missing)." \
			"Name another one: make PYTHON=python3.12 $(or $(MAKECMDGOALS),setup)" >&2; exit 1; }
	@echo "Setting up .venv: the first time about 1 GB to fetch and unpack, a minute or two."
	@$(RUN) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(PIP) pip setuptools
	@$(PIP) --no-build-isolation --editable '.[spark,java,plot,demo,dev]'
	@touch $@
