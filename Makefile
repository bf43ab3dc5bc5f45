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
.PHONY: help demo test check format verify constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.ready ## first figure: no key, no network
	$(BIN)/opinionsim demo

# Tests that take minutes together: servers and workers that go away, providers with all faults at once, stores that are
# damaged in every place, terminals that are watched and interrupted, servers of models, clusters, parts from outside in all combinations, figures and
# metrics beside a second instrument, classic models in many variants, their statistics and pages, and all experiments
# that come with the package.
LONG := tests/test_restarts.py tests/test_faults.py tests/test_damage.py tests/store/test_damage.py \
	tests/test_durability.py tests/test_outside.py tests/test_secrets.py tests/test_structures_exactness.py \
	tests/test_serve.py tests/cli/test_run.py tests/cli/test_watch.py tests/cli/test_under_way.py \
	tests/plots/test_instruments.py tests/experiments/test_instruments.py \
	tests/metrics/test_instruments.py tests/classifiers/test_scripted_replies.py \
	tests/experiments/test_cluster.py tests/experiments/test_killed_sweeps.py tests/experiments/test_adaptive.py \
	tests/experiments/test_published.py tests/surveys/test_validate.py tests/classic/test_pages.py \
	tests/classic/test_endings.py tests/classic/test_compilation.py tests/classic/test_pairwise_models.py \
	tests/classic/test_outside.py tests/classic/test_algorithmic_bias.py tests/classic/test_activity_driven.py \
	tests/classic/test_group_rules.py tests/classic/test_lorenz.py tests/classic/test_coevolving.py \
	tests/classic/test_axelrod.py

test: .venv/.ready-test ## run the tests but for those of `verify`
	$(BIN)/pytest -n auto --dist loadfile tests $(addprefix --ignore ,$(LONG))

check: .venv/.ready-dev ## lint and type-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: .venv/.ready-lint ## format the code and mend what ruff can mend
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

verify: .venv/.ready-test ## long tests, closed forms, statistics, durability; figures in results/verification
	OPINIONSIM_FLIPS=100 $(BIN)/pytest -n auto --dist loadfile $(LONG)
	OPINIONSIM_FIGURES=results/verification $(BIN)/pytest verification

constraints: ## resolve constraints/py311.txt anew (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --constraint constraints/torch.txt --python-version 3.11 \
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

# Tests and type checks need every extra; formatting does not.
.venv/.ready-lint: .venv/.ready
	$(INSTALL) --group lint
	touch $@

.venv/.ready-%: .venv/.made pyproject.toml $(CONSTRAINTS)
	$(INSTALL) --editable ".[all]" --group $*
	touch $@
