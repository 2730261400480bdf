# Two commands do all: `make run` and `make test`. Both install what they need into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
QUESTION ?= how is a LoRA adapter loaded at run time

.PHONY: run test test-fast lint bench ui lock clean

run: $(VENV)/.run ## install, fetch and index the corpus, ask it a question
	$(BIN)/cgrag run
	$(BIN)/cgrag search "$(QUESTION)" --k 3
	$(BIN)/cgrag search 'who calls `make_zmq_socket`?' --graph --k 4
	@echo
	@echo "Ask more:            $(BIN)/cgrag search \"...\""
	@echo "The asset graph:     $(BIN)/cgrag ui    then open http://127.0.0.1:3000"

test: lint ## every test that this machine has the parts for
	$(BIN)/python -m pytest --numprocesses auto tests/unit tests/dagster
	$(BIN)/python -m pytest tests/e2e

test-fast: lint ## the unit tests: no server, no Dagster instance, no network
	$(BIN)/python -m pytest --numprocesses auto tests/unit

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.test ## speed and memory on the whole corpus
	$(BIN)/python -m tests.bench.pipeline
	$(BIN)/python -m tests.bench.graph

ui: $(VENV)/.run
	$(BIN)/cgrag ui

lock: $(VENV)/.test ## write constraints.txt anew from what is installed
	(sed -n '/^#/p' constraints.txt; $(BIN)/python -m pip freeze --exclude-editable \
	  | grep -Evi '^(torch|vllm|nvidia|triton)' | sort -f) > constraints.new && mv constraints.new constraints.txt

clean: ## remove what make installed; the data stays
	rm -rf $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4) and "Python 3.11.4 or later is needed: make PYTHON=python3.12 run")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.run
	$(PIP) --editable '.[dev]'
	@touch $@
