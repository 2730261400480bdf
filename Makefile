# Two commands do all: `make run` and `make test`. Both install what they need into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
LLM_CHUNKS ?= 64
LLM := $(if $(shell test -e /dev/nvidiactl && command -v nvidia-smi),llm-gpu,llm-cpu)
# vLLM's CPU build wants just this one, which only PyTorch's own index has, unless pip is set up to find it elsewhere
TORCH_CPU := torch==2.13.0+cpu
TORCH_INDEX := https://download.pytorch.org/whl/cpu
QUESTION ?= how is a LoRA adapter loaded at run time

.PHONY: run dense test test-fast lint bench bench-dense bench-extract bench-neo4j ui lock clean

run: $(VENV)/.run ## install, fetch, index and link the corpus, ask a model about a part of it, ask it a question
	$(BIN)/cgrag run
	$(BIN)/cgrag run --llm-chunks $(LLM_CHUNKS)
	$(BIN)/cgrag search "$(QUESTION)" --k 3
	$(BIN)/cgrag search 'who calls `make_zmq_socket`?' --graph --k 4
	@echo
	@echo "Ask more:            $(BIN)/cgrag search \"...\""
	@echo "The asset graph:     $(BIN)/cgrag ui    then open http://127.0.0.1:3000"

dense: $(VENV)/.dense ## sentence embeddings of the corpus, for search --mode hybrid: about 6 minutes on two cores
	$(BIN)/cgrag run --select chunk_embeddings
	$(BIN)/cgrag search "$(QUESTION)" --mode hybrid --k 3

test: lint ## every test that this machine has the parts for
	$(BIN)/python -m pytest --numprocesses auto tests/unit tests/dagster
	$(BIN)/python -m pytest --numprocesses 4 --dist loadfile --no-loadscope-reorder tests/e2e

test-fast: lint ## the unit tests: no server, no Dagster instance, no network
	$(BIN)/python -m pytest --numprocesses auto tests/unit

lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.test ## speed and memory on the whole corpus
	$(BIN)/python -m tests.bench.pipeline
	$(BIN)/python -m tests.bench.graph

bench-extract: $(VENV)/.test ## a real model: vLLM against Outlines + transformers, in one run
	$(BIN)/python -m tests.bench.models

bench-dense: $(VENV)/.test ## the embedding rate beside a plain loop, and hybrid search's latency and recall
	$(BIN)/python -m tests.bench.dense

bench-answers: $(VENV)/.test ## what a model cites, and what is told not to be there: QUESTIONS=FILE, with sources
	$(BIN)/python -m tests.bench.answers $(QUESTIONS)

bench-neo4j: $(VENV)/.test ## a real Neo4j: loaded, edited, walked and killed, beside DuckDB
	$(BIN)/python -m tests.bench.neo4j

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
ifeq ($(LLM),llm-cpu)
	$(PIP) '$(TORCH_CPU)' || $(PIP) --extra-index-url $(TORCH_INDEX) '$(TORCH_CPU)'
endif
	$(PIP) --editable '.[$(LLM)]'
ifeq ($(LLM),llm-cpu)
	@$(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec # they came for a GPU's PyTorch, and break this one
endif
	@touch $@

$(VENV)/.dense: $(VENV)/.run
	$(PIP) --editable '.[dense]'
	@touch $@

$(VENV)/.test: $(VENV)/.dense
	$(PIP) --editable '.[dev]'
	@touch $@
