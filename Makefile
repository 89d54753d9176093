PYTHON ?= python

.PHONY: help test lint types imports check bench docs fuzz mutation

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):  *## /\1\t/p' $(MAKEFILE_LIST)

test:  ## all tests and doctests
	$(PYTHON) -m pytest

lint:  ## style
	$(PYTHON) -m ruff check .

types:  ## static types
	$(PYTHON) -m mypy

imports:  ## imports go one way
	lint-imports

docs:  ## make docs/bounds.md, docs/learners and docs/game.png anew from the code
	$(PYTHON) docs/generate_bounds.py
	$(PYTHON) docs/generate_learners.py
	$(PYTHON) docs/draw_game.py

check:  ## all that CI runs
	bash .ci/run

bench:  ## measure the learners against floors and rivals: docs/benchmarks.md, its speed part
	$(PYTHON) -m benchmarks --write

fuzz:  ## random cases over every public learner, SECONDS per test (20 by default)
	REGRETLESS_FUZZ_SECONDS=$(or $(SECONDS),20) $(PYTHON) -m pytest tests/fuzz

mutation:  ## put faults into core and learners/second_order, and count those that the tests notice: build/mutation.json
	$(PYTHON) tests/mutation.py prepare --tree . --out build/mutation
	$(PYTHON) tests/mutation.py run build/mutation --result build/mutation.json
