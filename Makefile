# make demo   from nothing to an answer and the app (ARGS=--no-serve stops before serving)
# make test   lint, types, unit tests, notebook
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN     = $(VENV)/bin
DEMO   ?= .demo
ARGS   ?=
READY   = $(VENV)/.ready

.PHONY: demo test lint slurm-test browser-test bench docs clean

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed: set PYTHON=/path/to/it"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install -q --group dev -e '.[app,plot]'
	@touch $@

demo: $(READY)
	@BIN=$(BIN) DEMO=$(DEMO) sh data/demo.sh $(ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/python -m pytest -n auto --dist loadfile
	$(BIN)/python -m pytest --nbmake notebooks

# each group has a Slurm to itself: the jobs of one would keep those of another waiting
WAITING = tests/slurm/test_real_why.py tests/slurm/test_real_check_components.py
ENDED   = tests/slurm/test_real_retry.py tests/slurm/test_real_failed.py tests/slurm/test_real_use.py

slurm-test: $(READY)
	$(BIN)/python -m pytest -m slurm tests/slurm $(addprefix --ignore=,$(WAITING) $(ENDED))
	$(BIN)/python -m pytest -m slurm $(WAITING)
	$(BIN)/python -m pytest -m slurm $(ENDED)

browser-test: $(READY)
	$(BIN)/python -m pytest -m browser tests/app

bench: $(READY)
	$(BIN)/python -m pip install -q --group bench
	$(BIN)/python -m tests.benchmarks.run $(ARGS)

docs: $(READY)
	$(BIN)/python -m queuecast.schema > docs/data-model.md
	$(BIN)/pybabel -q extract -F src/queuecast/locale/babel.cfg -k _ -k N_ -k ngettext:1,2 --sort-by-file \
	    --add-location=file --project=queuecast -o src/queuecast/locale/queuecast.pot src/queuecast app

clean:
	rm -rf $(VENV) $(DEMO) build dist
