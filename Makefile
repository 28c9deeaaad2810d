# Everything a checkout needs. `make up` starts the product, `make test` proves it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

# What chaos draws from: each run its own, unless it is named.
SEED ?= $(shell date +%s)

# What is ours: programs that somebody tries beside it are not.
CODE   := src tests bench

# Where this is set, each of the hundreds of processes that the tests start compiles all of ours again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help up demo test check core fmt docs bench sim chaos long mutants clean

help:                ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 12

$(VENV)/run.stamp: pyproject.toml constraints.txt
	@echo 'Installing what Gnomon needs into $(VENV); that takes a minute, once.' >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) -e . && touch $@

$(VENV)/test.stamp: $(VENV)/run.stamp
	@$(PIP) -e '.[test]' && touch $@

up: $(VENV)/run.stamp     ## install what is missing and start Gnomon on SQLite
	@exec $(BIN)/gnomon up

demo: $(VENV)/run.stamp   ## the same, with a sample agent, a team and schedules to watch
	@exec $(BIN)/gnomon up --demo

check: $(VENV)/test.stamp ## lint, types, import contracts
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The pure core is covered branch by branch, by its own unit tests alone.
CORE   := tests/unit/cadence tests/unit/domain
COVER  := --cov=gnomon.cadence --cov=gnomon.domain --cov-branch --cov-fail-under=100 \
          --cov-report=term-missing:skip-covered

# One more than there are cores, of which a test that waits for a process, a lease or a slot leaves its own to another.
WORKERS ?= 3

core: $(VENV)/test.stamp  ## the pure core by itself, with its coverage
	$(BIN)/pytest $(CORE) $(COVER)

test: $(VENV)/test.stamp  ## everything: check beside core, then every other test
	$(MAKE) --jobs 2 --output-sync check core
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup $(addprefix --ignore=,$(CORE))

fmt: $(VENV)/test.stamp   ## format, and fix what can be fixed
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

docs: $(VENV)/test.stamp  ## write the reference pages anew, from the program itself
	PYTHONPATH=tests $(BIN)/python -m support.reference

$(VENV)/bench.stamp: $(VENV)/test.stamp
	@$(PIP) -e '.[bench]' && touch $@

bench: $(VENV)/bench.stamp ## measure, beside peers and raw limits, in interleaved runs
	$(BIN)/python -m bench

sim: $(VENV)/test.stamp   ## the seeded simulator, 1,000 seeds of schedules and 250 of the board and of jobs
	$(BIN)/pytest tests/sim -n 2 --seeds 1000 $(if $(PLANT),--plant "$(PLANT)")

# SEED repeats a run; PLANT="unfenced close" puts a bug in, which both must find: tests/support/simulation_plants.py (and
# simulation_board_plants.py, for the simulator alone)
chaos: $(VENV)/test.stamp ## the whole matrix of faults, over real processes on both engines
	$(BIN)/pytest tests/chaos -n 3 --long --seed $(SEED) $(if $(PLANT),--plant "$(PLANT)")

long: $(VENV)/test.stamp  ## what `make test` leaves out: more pages, starts, ends (chaos apart)
	$(BIN)/pytest -n 2 --dist loadgroup --long -m long --ignore=tests/chaos

mutants: $(VENV)/test.stamp ## take each guard out and see its test go red
	$(BIN)/python tests/support/mutants.py

clean:               ## remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
