# Everything a newcomer needs: `make demo`, `make test`. Python 3.11 or later, git and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet install --constraint constraints.txt
TASKS := tasks/aigo_tasks
OUT ?= out/demo
RUN := $(BIN)/aigo-bridge run --out $(OUT)

.PHONY: install demo test check format environments oldest bench clean fuzz conformance support-table field-tables
.DEFAULT_GOAL := test

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

$(VENV)/installed-for-tests: $(VENV)/installed
	$(PIP) --editable '.[test]'
	@touch $@

## Install extras beside what is there, which stays editable: `make install EXTRAS=openai,parquet`.
install: $(VENV)/installed
	$(PIP) --editable '.$(if $(EXTRAS),[$(EXTRAS)])'

## Run the three example tasks offline and say where the evidence is.
demo: $(VENV)/installed
	$(RUN) $(TASKS)/singleturn-generic-input --model scripted/$(TASKS)/singleturn-generic-input/answers.jsonl
	$(RUN) $(TASKS)/hp-trivia --model scripted/$(TASKS)/hp-trivia/answers.jsonl \
		--model-map 'openai$$gpt-4-1-nano=scripted/$(TASKS)/hp-trivia/judge.jsonl'
	$(RUN) $(TASKS)/uniqueness-task --dataset contacts=$(TASKS)/uniqueness-task/contacts.csv --config field=email
	@echo
	@echo "The evidence of the three runs:"
	@ls $(OUT)/*.tasklog.json

## Install what the tests need and run all of them, offline.
test: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -n auto --dist loadgroup

## Format, lint, types, import contracts.
check: $(VENV)/installed-for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed-for-tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## Every verb in clean environments: core only, extras, oldest versions, `make install`, other Pythons (PYTHONS="python3.13 …").
environments:
	$(PYTHON) -m tests.environments

## Find the oldest versions anew, after a change of requirements in pyproject.toml.
oldest:
	$(PYTHON) -m tests.environments --write-oldest

## Speed and memory against the floors; minutes, not part of the tests.
bench: $(VENV)/installed-for-tests
	for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

## Odd bytes for the log reader, and tasks that something happened to, for as long as you like; not part of the tests.
fuzz: $(VENV)/installed-for-tests
	AIGO_FUZZ_EXAMPLES=$${EXAMPLES:-100000} $(BIN)/python -m pytest -n 0 -o timeout=0 \
		tests/adapters/inspect/importing/test_malformed_logs.py tests/property/test_import_any_bytes.py -k any
	AIGO_FUZZ_EXAMPLES=$${EXAMPLES:-20000} $(BIN)/python -m pytest -n 0 -o timeout=0 tests/property/test_validate_and_run_agree.py

## A thousand random tasks on both engines; minutes, not part of the tests.
conformance: $(VENV)/installed-for-tests
	AIGO_CONFORMANCE_EXAMPLES=$${EXAMPLES:-1000} $(BIN)/python -m pytest -n 0 tests/conformance/test_random_plans.py

## The table of docs/what-runs-where.md.
support-table: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.conformance.support_table

## The tables of fields in docs/task-format.md and docs/tasklog.md.
field-tables: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.docs.field_tables
