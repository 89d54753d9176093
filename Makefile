PYTHON ?= python

.PHONY: help test slow pages services lint types imports check bench docs site dist spelling fuzz mutation

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):  *## /\1\t/p' $(MAKEFILE_LIST)

test:  ## all tests but those that are slow, of pages or of services
	$(PYTHON) -m pytest

slow:  ## the tests that take long, and most fuzz tests
	$(PYTHON) -m pytest -m slow

pages:  ## the code of the documentation: its blocks, docstrings, examples and figures
	$(PYTHON) -m pytest -m pages

services:  ## the tests that need servers or a browser, or kill processes; those that are missing are skipped
	$(PYTHON) -m pytest -m services

lint:  ## style
	$(PYTHON) -m ruff check .

types:  ## static types
	$(PYTHON) -m mypy

imports:  ## the import layers
	lint-imports

docs:  ## generate docs/bounds.md, docs/learners, the quickstart report and docs/game.png
	$(PYTHON) docs/generate_bounds.py
	$(PYTHON) docs/generate_learners.py
	$(PYTHON) docs/generate_report.py
	$(PYTHON) docs/draw_game.py

site:  ## build the documentation site: build/site/html
	$(PYTHON) docs/site/build.py
	$(PYTHON) docs/site/check.py build/site/html

dist:  ## build the wheel and the source distribution, and check them
	$(PYTHON) -m build --outdir build/dist
	twine check --strict build/dist/*
	check-wheel-contents build/dist/*.whl

spelling:  ## misspelled words in code and pages
	codespell

check:  ## everything that CI runs
	bash .ci/run

bench:  ## measure the learners against floors and rivals, and update docs/benchmarks.md
	$(PYTHON) -m benchmarks --write

fuzz:  ## random cases over every public learner, SECONDS per test (20 by default)
	REGRETLESS_FUZZ_SECONDS=$(or $(SECONDS),20) $(PYTHON) -m pytest -m "" tests/fuzz

mutation:  ## put faults into core and learners/second_order, and count those that the tests notice: build/mutation.json
	$(PYTHON) tests/mutation.py prepare --tree . --out build/mutation
	$(PYTHON) tests/mutation.py run build/mutation --result build/mutation.json
