# Start with `make demo` and `make test`. They need Python 3.11 or later, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet install --constraint constraints.txt
TASKS := tasks/aigo_tasks
OUT ?= out/demo
RUN := $(BIN)/aigo-bridge run --out $(OUT)

.PHONY: frontend editors site pictures gallery manual dist sbom install locked lock demo unit test lint texts e2e durations coverage coverage-core check format containers environments oldest bench bench-update golden-update mutants clean fuzz nightly soak conformance published support-table field-tables error-pages registries
.DEFAULT_GOAL := test

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[stats]'
	@touch $@

$(VENV)/installed-for-tests: $(VENV)/installed
	$(PIP) --editable '.[test]'
	@touch $@

## Add extras to the editable installation: `make install EXTRAS=openai,parquet`.
install: $(VENV)/installed
	$(PIP) --editable '.$(if $(EXTRAS),[$(EXTRAS)])'

## Create the test environment from requirements.lock, with checked digests of all files. Run it before all other targets.
locked:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip --disable-pip-version-check --quiet install --require-hashes --no-deps --requirement requirements.lock
	$(PIP) --no-build-isolation --editable '.[test]'
	@touch $(VENV)/installed $(VENV)/installed-for-tests

## Rewrite requirements.lock after a change of constraints.txt or of requirements in pyproject.toml.
lock:
	$(PYTHON) -m tests.environments --write-lock

## Run the three example tasks offline and print the paths of the evidence.
demo: $(VENV)/installed
	$(RUN) $(TASKS)/singleturn-generic-input --model scripted/$(TASKS)/singleturn-generic-input/answers.jsonl
	$(RUN) $(TASKS)/hp-trivia --model scripted/$(TASKS)/hp-trivia/answers.jsonl \
		--model-map 'openai$$gpt-4-1-nano=scripted/$(TASKS)/hp-trivia/judge.jsonl'
	$(RUN) $(TASKS)/uniqueness-task --dataset contacts=$(TASKS)/uniqueness-task/contacts.csv --config field=email
	@echo
	@echo "The evidence of the three runs:"
	@ls $(OUT)/*.tasklog.json

## Run the tests of the core without an engine, in under a minute on two cores. Selection: ARGS="-k scorer".
unit: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -n auto -m "not engine and not slow and not nightly" tests/bridge tests/extras $(ARGS)

# Tests of the repository's own text: `make check` runs them, `make test` does not.
TEXT := tests/architecture tests/security/test_one_sink.py tests/bridge/catalogue/test_catalogue.py \
	$(addprefix tests/docs/test_,contributing.py links.py pictures.py site.py)

## Install the test requirements and run the tests of a submission, offline. One extra: `make test ARGS=tests/extras/aigo_stats`.
# Bytecode is compiled first: each of the hundreds of commands that tests start would compile it again if Python cannot write it.
test: $(VENV)/installed-for-tests
	$(BIN)/python -m compileall -q -j 0 bridge adapters extras
	$(BIN)/python -m pytest -p tests.support.durations -n auto --dist loadgroup -m "not nightly" $(TEXT:%=--ignore=%) $(ARGS)

## Run the tests of complete jobs.
e2e: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -n auto --dist loadgroup tests/end_to_end $(ARGS)

## Compare the CPU seconds of each test with the budgets of tests/durations.toml. Selection: ARGS=tests/bridge/metrics.
durations: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -p tests.support.durations --each-duration -n auto --dist loadgroup -m "not nightly" $(ARGS)

## Measure the branch coverage of the mirrored tests and the conformance suite, with child processes. Fail below `fail_under` in pyproject.toml.
coverage: $(VENV)/installed-for-tests
	rm -rf out/coverage && mkdir -p out/coverage
	$(BIN)/coverage run -m pytest -n auto --dist loadgroup $(or $(ARGS),tests/bridge tests/extras tests/adapters tests/conformance)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

## Measure the branch coverage of the core by `make unit`, in about six CPU minutes (last: 79.9 %).
coverage-core: $(VENV)/installed-for-tests
	rm -rf out/coverage && mkdir -p out/coverage
	$(BIN)/coverage run -m pytest -n auto -m "not engine and not slow and not nightly" tests/bridge tests/extras
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='bridge/*,extras/*' --fail-under=78

## Rewrite the golden outputs that `make test` compares, after an intended change. Name the changed promise in the commit message. ARGS="-k export".
golden-update: $(VENV)/installed-for-tests
	AIGO_GOLDEN=update $(BIN)/python -m pytest -n auto --dist loadgroup tests/golden/outputs $(ARGS)

## Check format, lint, types, import contracts, prose, and run the tests of the repository's own text, both at the same time.
check: $(VENV)/installed-for-tests
	$(MAKE) --jobs=2 lint texts

# Mypy uses one core for a minute in a fresh clone.
lint: $(VENV)/installed-for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.docs.prose

texts: $(VENV)/installed-for-tests
	$(BIN)/python -m pytest -n auto -q $(TEXT)

format: $(VENV)/installed-for-tests
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## Build the report page from frontend/ into the package. Needs Node and npm; users of the package do not need them.
frontend:
	cd frontend && npm ci --no-audit --no-fund && npm run check && npm run build

## Build and test the extension for VS Code in editors/vscode; needs Node and npm. VSIX=1 also packages it as aigo-bridge.vsix.
editors:
	cd editors/vscode && npm ci --no-audit --no-fund && npm test $(if $(VSIX),&& npm run package)

## Build the documentation site in out/site/html, without a network. Broken links are errors.
site: $(VENV)/installed-for-tests
	$(BIN)/python -m tools.site

## Create the pictures of docs/pictures again. Needs Chromium.
pictures: $(VENV)/installed-for-tests
	$(BIN)/python tools/pictures.py

## Create the gallery of shipped tasks again, page and pictures. Needs Chromium. Selection: ARGS=gsm8k.
gallery: $(VENV)/installed-for-tests
	$(BIN)/python -m tools.gallery $(ARGS)

DIST ?= dist
SBOM ?= out/sbom.cdx.json
## Build a reproducible wheel and source archive in DIST, and check their metadata with twine.
dist: $(VENV)/installed-for-tests
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 315532800)} \
		$(BIN)/python -m build --no-isolation --outdir $(DIST)
	$(PYTHON) -m venv out/twine
	out/twine/bin/pip --disable-pip-version-check --quiet install 'twine>=6'
	out/twine/bin/twine check --strict $(DIST)/aigo_bridge-*

## Write the tested components as a CycloneDX file to SBOM. The tool that lists them has its own environment.
sbom:
	$(PYTHON) -m venv out/sbom
	out/sbom/bin/pip --disable-pip-version-check --quiet install 'cyclonedx-bom==7.*'
	mkdir -p $(dir $(SBOM))
	out/sbom/bin/cyclonedx-py requirements --pyproject pyproject.toml --mc-type application --output-reproducible \
		--output-format JSON --output-file $(SBOM) requirements.lock

## Write docs/aigo-bridge.1, the manual page, from the command line.
manual: $(VENV)/installed
	$(BIN)/python tools/manual.py

## Test snippets and sandbox in simulated containers: fewer capabilities, another user, no namespaces, no Landlock.
containers: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.support.containers --tests

## Run every verb in clean environments: core only, extras, oldest versions, `make install`, other Pythons (PYTHONS="python3.13 …").
## A submission runs only NAMES=core unless the sandbox, snippets or requirements change (.ci/run).
environments:
	$(PYTHON) -m tests.environments $(NAMES)

## Find the oldest supported versions again, after a change of requirements in pyproject.toml.
oldest:
	$(PYTHON) -m tests.environments --write-oldest

## Compare speed and memory with the committed ratios. Takes minutes and needs an idle machine. Selection: ARGS="reading templates".
bench: $(VENV)/installed-for-tests
	$(BIN)/python benchmarks/ratios.py $(ARGS)

## Rewrite benchmarks/reference.json after an intended change. The commit message explains the benefit.
bench-update: $(VENV)/installed-for-tests
	$(BIN)/python benchmarks/ratios.py --update $(ARGS)

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

## Count the tasks of lighteval's registry that can be converted, for the table in docs/. Takes minutes. All outcomes: ARGS=--list.
registries: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.registries $(ARGS)

## Try hostile input for a minute or longer: `make fuzz SECONDS=600 TARGETS="yaml logs"`. `make nightly` runs it; a submission
## replays the inputs in tests/fuzz/crashes/, where each new crash is stored. ARGS=--atheris if that is installed.
fuzz: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(ARGS) $(TARGETS)

## Apply small faults from tests/mutants.toml one at a time and check that the tests of a submission find each. Selection: ARGS="metrics scale".
mutants: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.mutants $(ARGS)

## Compare shipped tasks with the published definitions of their benchmarks, with 2,000 random answers per row.
published: $(VENV)/installed-for-tests
	AIGO_FUZZ_EXAMPLES=$(or $(EXAMPLES),2000) $(BIN)/python -m pytest -n 0 -o timeout=0 tests/tasks

## Run everything that a submission leaves out, for hours: tests marked `nightly`, containers, clean environments, hostile input, odd logs, random tasks.
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

## Repeat runs with injected faults, and check for lost samples and memory growth: `make soak MINUTES=480 SAMPLES=2000`. Not part of the tests.
soak: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.soak --minutes $${MINUTES:-30} --samples $${SAMPLES:-1000}

## Compare both engines on a thousand random tasks, with recordings of every feature, and in shards. Not part of the tests.
conformance: $(VENV)/installed-for-tests
	AIGO_CONFORMANCE_EXAMPLES=$${EXAMPLES:-1000} $(BIN)/python -m pytest -n 0 -o timeout=0 tests/conformance/test_random_plans.py tests/conformance/test_shards.py
	AIGO_CONFORMANCE_CASSETTES=all $(BIN)/python -m pytest -n auto --dist loadgroup tests/conformance/test_cassettes.py

## Write the table of docs/reference/feature-matrix.md.
support-table: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.conformance.support_table

## Write the field tables in docs/reference/task-format/ and docs/reference/result-log.md.
field-tables: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.docs.field_tables

## Write docs/errors.md and a page for each code, from the catalog and the output of its examples.
error-pages: $(VENV)/installed-for-tests
	$(BIN)/python -m tests.docs.error_pages
