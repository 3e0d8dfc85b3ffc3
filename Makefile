# One obvious command for each habit. `make example` and `make test` set up what they need.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
WORKERS ?= auto

.PHONY: example test check docs bench clean-venv

example: $(VENV)/.installed
	cd examples/quickstart && ../../$(BIN)/treadle run

test: $(VENV)/.installed-test
	sh tests/debian-packages.sh
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

check: $(VENV)/.installed-test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-test
	$(BIN)/python docs/make_commands.py
	$(BIN)/python docs/make_codes.py

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/run.py --help

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Treadle needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

clean-venv:
	rm -rf $(VENV)
