# The interface to this project. Everything needs nothing but make and Python 3.11, 3.12 or 3.13:
# the first target that runs makes .venv, installs tfdoctor and its tools there, and leaves a stamp.

SHELL := /bin/sh
VENV := .venv
READY := $(VENV)/.ready
BIN := $(VENV)/bin
PYTHONS := python3 python3.13 python3.12 python3.11
# Tests start hundreds of processes: each would compile all of tfdoctor again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check docs site screenshot bench compat plotly samples dist sbom rule fact chromium clean

help: ## Say what there is.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY) ## Profile a slow example and print the path of its report.
	@test ! -f demo/tfdoctor.json || rm -rf demo
	@$(BIN)/tfdoctor profile --out demo examples/input_bound.py
	@echo "Open the report: $(CURDIR)/demo/report.html"

test: $(READY) chromium ## Run the tests.
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

check: $(READY) ## Check style, types, the direction of imports, and that the generated docs are fresh.
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m scripts.document --check

docs: $(READY) ## Write the generated pages under docs/, and the real output in README and tutorial.
	@$(BIN)/python -m scripts.document

site: $(READY) ## Build the manual as a site that needs no server: site/index.html.
	@$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet -c scripts/site -d site/.doctrees docs site
	@echo "Open the manual: $(CURDIR)/site/index.html"

screenshot: $(READY) chromium ## Take the pictures that README and the docs show.
	@$(BIN)/python -m scripts.screenshot

bench: $(READY) ## Measure what tfdoctor rests on and what it claims, on this machine (over an hour).
	@$(BIN)/python -m benchmarks.precision
	@$(BIN)/python -m benchmarks.channels
	@$(BIN)/python -m benchmarks.batch_norm
	@$(BIN)/python -m benchmarks.steps
	@$(BIN)/python -m benchmarks.overhead
	@$(BIN)/python -m benchmarks.accuracy

compat: $(READY) ## Try the recorder in each supported TensorFlow (some GB of downloads, in .compat).
	@$(BIN)/python -m benchmarks.compat

plotly: $(READY) ## Build the plotly.js that reports contain, after an update of plotly (needs npm).
	@$(BIN)/python -m scripts.plotly_bundle

samples: $(READY) ## Record sample_traces/ again: some minutes, on a quiet machine.
	@$(BIN)/python scripts/record.py
	@$(BIN)/python scripts/synthesize.py

dist: $(READY) ## Build the wheel and the source archive in dist/, and check them.
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation
	@$(BIN)/twine check --strict dist/*
	@$(BIN)/check-wheel-contents dist/*.whl

# The tools run outside of that environment, so that they are not listed as its contents.
sbom: $(READY) ## Install the wheel in dist/ alone, list what that brings in sbom/, and check the licences.
	@test -e dist/*.whl || { echo "There is no wheel in dist/: run make dist first."; exit 2; }
	@rm -rf sbom && mkdir sbom
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python .sbom
	@$(BIN)/uv pip install --quiet --python .sbom dist/*.whl
	@$(BIN)/uvx --quiet --from cyclonedx-bom cyclonedx-py environment --pyproject pyproject.toml \
	  --output-reproducible --output-file sbom/tfdoctor.cdx.json .sbom/bin/python
	@$(BIN)/uvx --quiet pip-licenses --python .sbom/bin/python --from=mixed --format=markdown --with-urls \
	  --ignore-packages $(UNSTATED) --partial-match --allow-only "$(LICENCES)" > sbom/licences.md

# Permissive licences, and the MPL, which asks for nothing of those who use a package as it is.
LICENCES := Apache;BSD;MIT;ISC;MPL-2.0;Mozilla Public License 2.0;PSF;Python Software Foundation
# Its metadata names no licence; its repository has Apache-2.0.
UNSTATED := namex

rule: $(READY) ## Begin a rule: make rule NAME=wide-rows TOPIC=input
	@test -n "$(NAME)" -a -n "$(TOPIC)" || { echo "Give both, as in: make rule NAME=wide-rows TOPIC=input"; exit 2; }
	@$(BIN)/python -m scripts.new_rule $(NAME) --topic $(TOPIC)

fact: $(READY) ## Begin a fact: make fact NAME=queue-depth ROOM=input
	@test -n "$(NAME)" -a -n "$(ROOM)" || { echo "Give both, as in: make fact NAME=queue-depth ROOM=input"; exit 2; }
	@$(BIN)/python -m scripts.new_fact $(NAME) --room $(ROOM)

clean: ## Remove what make made: the environment, the demo, caches.
	rm -rf $(VENV) .compat .sbom demo dist sbom site tests/actual .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# pip learnt to install dependency groups in 25.1.
$(READY): pyproject.toml
	@python=; for one in $(PYTHONS); do \
	  if $$one -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	    2>/dev/null; then python=$$one; break; fi; done; \
	if [ -z "$$python" ]; then \
	  echo "tfdoctor needs Python 3.11, 3.12 or 3.13 with its venv module: none of $(PYTHONS) is that." >&2; \
	  exit 1; fi; \
	echo "Setting up $(VENV) with $$python; this takes a minute or two, once."; \
	$$python -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	@touch $@

# The browser tests skip, and say why, where there is no Chromium and none can be installed.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
	  || command -v google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && { \
	  echo "Installing chromium for the browser tests."; \
	  apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; }; } || true
