# Needs Python 3.11+ (PYTHON=... chooses which) and a network for the first run.
PYTHON ?= python3
BIN := .venv/bin

# One process for each core, and one thread of BLAS and of OpenMP (scikit-learn) for each process.
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --durations=25

.PHONY: demo test test-all lint format docs benchmarks clean

demo: .venv/demo.stamp  ## kernel classifiers on the digits: error, time, size, a plot
	$(BIN)/craftmaps demo

test: .venv/dev.stamp  ## the tests that every change needs
	$(PYTEST) --dist worksteal -m "not (slow or spark or site or packaging or papers)" $(ARGS)

test-all: .venv/dev.stamp  ## all tests, then the delicate ones again with each kind of BLAS kernel
	$(PYTEST) --dist loadgroup
	SCIPY_ARRAY_API=1 $(PYTEST) -k array_api $$(grep -rl parametrize_with_checks tests)
	.ci/coretypes --rest

lint: .venv/dev.stamp  ## format, lint, types, and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/docs.stamp  ## the site, with every example of the gallery run: docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@echo "open docs/_build/html/index.html"

benchmarks: .venv/dev.stamp  ## measure, and write benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv demo-output docs/_build docs/gallery docs/generated

.venv/created.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "craftmaps needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	@touch $@

.venv/demo.stamp: .venv/created.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[plots]'
	@touch $@

.venv/dev.stamp: .venv/created.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[plots,dask,spark,files]' --group dev
	@touch $@

.venv/docs.stamp: .venv/created.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[all]' --group docs
	@touch $@
