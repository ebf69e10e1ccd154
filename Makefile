# `make demo`, `make test`, `make bench`: everything they need is installed into .venv from constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two more than there are cores: tests of hosts, screens and kills wait a good part of their time.
WORKERS = $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 2)')
# Python compiles what it imports, a third of the 11,000 files that pip would compile, one after another.
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -q --no-compile

# Tests start hundreds of processes: each would compile all it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check suite bench clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	@$(BIN)/dflash-tui demo

test: $(VENV)/.test
	@sh tests/pvehost/install.sh
	@$(MAKE) -j 2 check suite

check:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

suite: $(VENV)/.compiled
	$(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

bench: $(VENV)/.test
	$(BIN)/python -m tests.bench

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "dflash-tui needs Python 3.11 or newer; %s is %d.%d: make PYTHON=/path/to/python3.11" % (sys.executable, v[0], v[1]))'
	$(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --upgrade 'pip>=25.1'

# torch goes first and by its exact version: a range would let pip choose a CUDA build of several GB.
$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) $(shell grep '^torch==' constraints.txt)
	$(PIP_INSTALL) -c constraints.txt -e '.[trainer]'
	@touch $@

$(VENV)/.test: $(VENV)/.demo
	$(PIP_INSTALL) -c constraints.txt --group dev
	@touch $@

# What tests import: once, while mypy has the other core, and not by each worker.
$(VENV)/.compiled: $(VENV)/.test
	-@$(BIN)/pytest --collect-only -q >/dev/null
	@touch $@

clean:
	rm -rf $(VENV) .venv-bench build dist
