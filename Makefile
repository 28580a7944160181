# Everything a newcomer needs: `make demo`, `make test`. Python 3.11 or later, git and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet install --constraint constraints.txt
TASKS := tasks/aigo_tasks
OUT ?= out/demo
RUN := $(BIN)/aigo-bridge run --out $(OUT)

.PHONY: frontend editors site pictures gallery manual dist sbom install locked lock demo unit test e2e durations coverage coverage-core check format containers environments oldest bench bench-update golden-update mutants clean fuzz nightly soak conformance published support-table field-tables error-pages registries
.DEFAULT_GOAL := test

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[stats]'
	@touch $@

$(VENV)/installed-for-tests: $(VENV)/installed
	$(PIP) --editable '.[test]'
	@touch $@

## Install extras beside what is there, which stays editable: `make install EXTRAS=openai,parquet`.
install: $(VENV)/installed
	$(PIP) --editable '.$(if $(EXTRAS),[$(EXTRAS)])'

## The environment of the tests from requirements.lock: every file has the digest that it had when it was chosen. Before anything else is made.
locked:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip --disable-pip-version-check --quiet install --require-hashes --no-deps --requirement requirements.lock
	$(PIP) --no-build-isolation --editable '.[test]'
	@touch $(VENV)/installed $(VENV)/installed-for-tests

## Write requirements.lock anew, after a change of constraints.txt or of requirements in pyproject.toml.
lock:
	$(PYTHON) -m tests.environments --write-lock

## Run the three example tasks offline and say where the evidence is.
demo: $(VENV)/installed
	$(RUN) $(TASKS)/singleturn-generic-input --model scripted/$(TASKS)/singleturn-generic-input/answers.jsonl
	$(RUN) $(TASKS)/hp-trivia --model scripted/$(TASKS)/hp-trivia/answers.jsonl \
		--model-map 'openai$$gpt-4-1-nano=scripted/$(TASKS)/hp-trivia/judge.jsonl'
	$(RUN) $(TASKS)/uniqueness-task --dataset contacts=$(TASKS)/uniqueness-task/contacts.csv --config field=email
	@echo
	@echo "The evidence of the three runs:"
	@ls $(OUT)/*.tasklog.json

## Run the tests of the core without an engine, in under a minute on two cores: after every save. ARGS="-k scorer".
unit: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -n auto -m "not engine and not slow and not nightly" tests/bridge tests/extras $(ARGS)

# Tests of the repository's own text: `make check` runs them, `make test` does not.
TEXT := tests/architecture tests/security/test_one_sink.py tests/bridge/catalogue/test_catalogue.py \
	$(addprefix tests/docs/test_,contributing.py links.py pictures.py site.py)

## Install the test requirements and run the tests of a submission, offline. One extra: `make test ARGS=tests/extras/aigo_stats`.
# Bytecode is compiled first: each of the hundreds of commands that tests start would compile it again if Python cannot write it.
test: $(VENV)/installed-for-tests
	$(BIN)/python -m compileall -q bridge adapters extras
	$(BIN)/python -m pytest -p tests.support.durations -n auto --dist loadgroup -m "not nightly" $(TEXT:%=--ignore=%) $(ARGS)

## Whole jobs, as users do them.
e2e: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -n auto --dist loadgroup tests/end_to_end $(ARGS)

## Compare the CPU seconds of each test with the budgets of tests/durations.toml. Some only: ARGS=tests/bridge/metrics.
durations: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -p tests.support.durations --each-duration -n auto --dist loadgroup -m "not nightly" $(ARGS)

## Branches that the mirrored tests and the conformance suite reach, child processes included; fails below `fail_under` of pyproject.toml.
coverage: $(VENV)/installed-for-tests
	rm -rf out/coverage && mkdir -p out/coverage
	$(BIN)/coverage run -m pytest -n auto --dist loadgroup $(or $(ARGS),tests/bridge tests/extras tests/adapters tests/conformance)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

## Branches of the core that the tests of `make unit` reach, in some six CPU minutes; they reached 79.9 %.
coverage-core: $(VENV)/installed-for-tests
	rm -rf out/coverage && mkdir -p out/coverage
	$(BIN)/coverage run -m pytest -n auto -m "not engine and not slow and not nightly" tests/bridge tests/extras
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='bridge/*,extras/*' --fail-under=78

## Rewrite the golden outputs that `make test` compares, after an intended change. Name the changed promise in the commit message. ARGS="-k export".
golden-update: $(VENV)/installed-for-tests
	AIGO_GOLDEN=update $(BIN)/python -m pytest -n auto --dist loadgroup tests/golden/outputs $(ARGS)

## Check format, lint, types, import contracts, prose, and run the tests of the repository's own text.
check: $(VENV)/installed-for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.docs.prose
	$(BIN)/python -m pytest -n auto -q $(TEXT)

format: $(VENV)/installed-for-tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## Build the page of reports into the package, from frontend/; needs Node and npm. Nobody needs them to use it.
frontend:
	cd frontend && npm ci --no-audit --no-fund && npm run check && npm run build

## Build and test the extension for VS Code in editors/vscode; needs Node and npm. With VSIX=1 also package it, as aigo-bridge.vsix there.
editors:
	cd editors/vscode && npm ci --no-audit --no-fund && npm test $(if $(VSIX),&& npm run package)

## The documentation as a site, in out/site/html; it needs no network, and ends when a link leads nowhere.
site: $(VENV)/installed-for-tests
	$(BIN)/python -m tools.site

## Make the pictures of docs/pictures anew; needs Chromium.
pictures: $(VENV)/installed-for-tests
	$(BIN)/python tools/pictures.py

## The gallery of shipped tasks anew, page and pictures; needs Chromium. Some only: ARGS=gsm8k.
gallery: $(VENV)/installed-for-tests
	$(BIN)/python -m tools.gallery $(ARGS)

DIST ?= dist
SBOM ?= out/sbom.cdx.json
## Build wheel and source archive in DIST, byte for byte the same at any time and place, and check their metadata with twine.
dist: $(VENV)/installed-for-tests
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 315532800)} \
		$(BIN)/python -m build --no-isolation --outdir $(DIST)
	$(PYTHON) -m venv out/twine
	out/twine/bin/pip --disable-pip-version-check --quiet install 'twine>=6'
	out/twine/bin/twine check --strict $(DIST)/aigo_bridge-*

## The components that aigo-bridge is tested with, as CycloneDX, in SBOM; the tool that lists them has an environment of its own.
sbom:
	$(PYTHON) -m venv out/sbom
	out/sbom/bin/pip --disable-pip-version-check --quiet install 'cyclonedx-bom==7.*'
	mkdir -p $(dir $(SBOM))
	out/sbom/bin/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --output-reproducible \
		--output-format JSON --output-file $(SBOM) requirements.lock

## Write docs/aigo-bridge.1, the manual page, from the command line.
manual: $(VENV)/installed
	$(BIN)/python tools/manual.py

## What is promised of snippets and sandbox, in simulated containers: fewer capabilities, another user, no namespaces, no Landlock.
containers: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.support.containers --tests

## Run every verb in clean environments: core only, extras, oldest versions, `make install`, other Pythons (PYTHONS="python3.13 …").
## A submission runs NAMES=core alone unless the sandbox, snippets or requirements change (.ci/run).
environments:
	$(PYTHON) -m tests.environments $(NAMES)

## Find the oldest versions anew, after a change of requirements in pyproject.toml.
oldest:
	$(PYTHON) -m tests.environments --write-oldest

## Speed and memory as ratios to floors, against the committed ones; minutes, on a quiet machine. Some only: ARGS="reading templates".
bench: $(VENV)/installed-for-tests
	$(BIN)/python benchmarks/ratios.py $(ARGS)

## Write benchmarks/reference.json anew, after a change that is meant: the commit says what it buys.
bench-update: $(VENV)/installed-for-tests
	$(BIN)/python benchmarks/ratios.py --update $(ARGS)

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

## How many tasks of lighteval's registry become AI GO tasks: the table in docs/; minutes. Each task with its outcome: ARGS=--list.
registries: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.registries $(ARGS)

## Try hostile input for a minute or longer: `make fuzz SECONDS=600 TARGETS="yaml logs"`. `make nightly` runs it; a submission
## replays the inputs in tests/fuzz/crashes/, where each new crash is stored. ARGS=--atheris if that is installed.
fuzz: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(ARGS) $(TARGETS)

## Apply small faults from tests/mutants.toml one at a time and check that the tests of a submission find each. Some only: ARGS="metrics scale".
mutants: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.mutants $(ARGS)

## Shipped tasks against the published definitions of their benchmarks, with 2,000 random answers to a row.
published: $(VENV)/installed-for-tests
	AIGO_FUZZ_EXAMPLES=$(or $(EXAMPLES),2000) $(BIN)/python -m pytest -n 0 -o timeout=0 tests/tasks

## Run what a submission leaves out, for hours: tests marked `nightly`, containers, clean environments, hostile input, odd logs, random tasks.
nightly: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -n auto --dist loadgroup -m nightly
	AIGO_FUZZ_EXAMPLES=$${EXAMPLES:-1000} $(BIN)/python -m pytest -n auto --dist loadgroup -o timeout=0 -m hypothesis tests/bridge tests/adapters tests/extras
	$(MAKE) containers
	$(MAKE) environments
	$(MAKE) mutants
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),7200) $(TARGETS)
	AIGO_FUZZ_EXAMPLES=$${EXAMPLES:-100000} $(BIN)/python -m pytest -n 0 -o timeout=0 \
		tests/adapters/inspect/importing/test_importing_malformed_logs.py tests/property/test_import_any_bytes.py -k any
	AIGO_FUZZ_EXAMPLES=$${EXAMPLES:-20000} $(BIN)/python -m pytest -n 0 -o timeout=0 tests/property/test_validate_and_run_agree.py
	AIGO_TEMPLATE_STRIDE=1 $(BIN)/python -m pytest -n 0 -o timeout=0 tests/security/test_templates_in_the_runner.py
	AIGO_ALTERATIONS=$${ALTERATIONS:-2000} $(BIN)/python -m pytest -n 0 -o timeout=0 tests/end_to_end/test_altered_results.py
	AIGO_KILLS=20 AIGO_KILLS_SEED=$$$$ $(BIN)/python -m pytest -n 0 -o timeout=0 tests/end_to_end/test_ray.py -k killed
	AIGO_EVIDENCE_KILLS=30 AIGO_KILLS_SEED=$$$$ $(BIN)/python -m pytest -n 0 -o timeout=0 tests/end_to_end/test_killed_evidence.py
	AIGO_BENCH=all $(BIN)/python -m pytest -n 0 -o timeout=0 tests/benchmarks
	$(MAKE) coverage
	$(MAKE) conformance
	$(MAKE) soak

## Runs with injected faults, one after the other: nothing is lost, nothing grows. `make soak MINUTES=480 SAMPLES=2000`; not part of the tests.
soak: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.soak --minutes $${MINUTES:-30} --samples $${SAMPLES:-1000}

## A thousand random tasks on both engines, every feature recorded and answered on both, and in shards; not part of the tests.
conformance: $(VENV)/installed-for-tests
	AIGO_CONFORMANCE_EXAMPLES=$${EXAMPLES:-1000} $(BIN)/python -m pytest -n 0 -o timeout=0 tests/conformance/test_random_plans.py tests/conformance/test_shards.py
	AIGO_CONFORMANCE_CASSETTES=all $(BIN)/python -m pytest -n auto --dist loadgroup tests/conformance/test_cassettes.py

## The table of docs/reference/feature-matrix.md.
support-table: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.conformance.support_table

## The tables of fields in docs/reference/task-format/ and docs/reference/result-log.md.
field-tables: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.docs.field_tables

## Make docs/errors.md and a page for each code anew, from the catalogue and what its examples say.
error-pages: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.docs.error_pages
