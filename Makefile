# The one way in. Needs make and Python 3.11 or newer, nothing else: `make help` lists what it can do.

PYTHON ?= python3
PORT ?= 8080
TEST_PROCESSES ?= 2
TESTS ?= tests

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
BUILT_FROM := pyproject.toml requirements/build.txt requirements/runtime.txt requirements/bookshop.txt

# An environment that was made in another folder, or by a Python that is gone, is made anew.
PLACE := $(shell test -x $(BIN)/python && cat $(VENV)/.place 2>/dev/null)
ifneq ($(PLACE),$(CURDIR))
STALE := stale
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-reports run test check bench torture format install clean stale

help: ## List these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.bookshop ## Set everything up, hand in two stock reports to the example bookshop and show what happens
	@PYTHONPATH=examples $(BIN)/python -m bookshop.demo

demo-reports: $(VENV)/.reports ## Start PostgreSQL and a FastAPI site, whose orders and their exports commit together
	@PYTHONPATH=examples $(BIN)/python -m report_jobs.demo

run: $(VENV)/.bookshop ## Leave the example bookshop running (PORT=8080) and print its addresses
	@PYTHONPATH=examples $(BIN)/python -m bookshop.run $(PORT)

# The tests start the command hundreds of times, and a machine may be told to keep no bytecode.
test: check ## Everything CI runs: `make check`, then all tests (TESTS=tests/unit for a part of them)
	@$(BIN)/python -m compileall -q src tests
	@$(BIN)/python -m pytest -n $(TEST_PROCESSES) $(TESTS)

check: $(VENV)/.dev ## Lint, formatting, types and import rules; runs no test
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "Some files are not formatted; run: make format" >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@PYTHONPATH=src $(BIN)/lint-imports --no-logo >$(VENV)/.imports.log 2>&1 || { cat $(VENV)/.imports.log >&2; exit 1; }
	@echo "Lint, formatting, types and import rules: all fine."

bench: $(VENV)/.dev ## Measure against a bare server and what else could be used (BENCH="accept status"); takes 20 minutes
	@$(BIN)/python -m benchmarks $(BENCH)

torture: $(VENV)/.dev ## Kill, cut power, fill disks and soak for hours (TORTURE="--scale 0.1"), and report what broke
	@PYTHONPATH=.:tests $(BIN)/python -m torture $(TORTURE)

format: $(VENV)/.dev ## Format the code and mend what the linter can
	@$(BIN)/ruff check --fix --quiet
	@$(BIN)/ruff format --quiet

install: $(VENV)/.dev ## Set up .venv with everything for development

clean: ## Remove .venv, caches and what the demo left
	@rm -rf $(VENV) out build dist .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python: $(STALE)
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "Coatcheck needs Python 3.11 or newer, which $(PYTHON) is not; name another with: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making $(VENV) ..."
	@"$(PYTHON)" -m venv --clear $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu, install the package python3-venv." >&2; exit 1; }
	@echo "$(CURDIR)" >$(VENV)/.place

$(VENV)/.bookshop: $(BUILT_FROM) $(STALE) | $(BIN)/python
	@echo "Installing Coatcheck and what the bookshop needs ..."
	@$(PIP) install -qq -r requirements/bookshop.txt
	@$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.reports: requirements/reports.txt requirements/postgres.txt $(VENV)/.bookshop
	@echo "Installing PostgreSQL and what the site on it needs ..."
	@$(PIP) install -qq -r requirements/reports.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/reports.txt requirements/postgres.txt $(VENV)/.bookshop
	@echo "Installing what the checks and tests need ..."
	@$(PIP) install -qq -r requirements/dev.txt
	@touch $@
