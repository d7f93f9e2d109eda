# What people and machines type. `make run` is all that is needed to try Cato.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes

.PHONY: run test test-long test-services check lock messages

run: $(VENV)/.installed $(BIN)/cato
	@exec $(BIN)/python -m cato_web.supervisor $(ARGS)

# A module is run by one process, so that it starts its servers once; tests/conftest.py puts the longest modules first.
# Compiled files are kept whatever the environment says: the suite starts some hundred processes.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Everything as `serve` runs it, each process of pytest with a data directory of its own. The browser's tests run
# separately: its driver keeps an event loop in the main thread, in which Django refuses to use the database.
test: $(VENV)/.installed-dev
	@$(PYTEST) --ignore tests/e2e $(ARGS)
	@$(PYTEST) tests/e2e $(ARGS)

# All examples of the tests of which `make test` runs a part.
test-long: $(VENV)/.installed-dev
	@CATO_TEST_LONG=1 $(PYTEST) $(shell grep -l IS_LONG tests/test_*.py) $(ARGS)

# The same against PostgreSQL, a Redis server and a Chroma server, with two web processes and two workers, without the
# modules that tests/topology.py lists.
test-services: $(VENV)/.installed-dev
	@CATO_TEST_TOPOLOGY=services $(PYTEST) --ignore tests/e2e $(ARGS)
	@CATO_TEST_TOPOLOGY=services $(PYTEST) tests/e2e $(ARGS)

check: $(VENV)/.installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=. $(BIN)/lint-imports --no-cache
	@$(BIN)/codespell
	@$(BIN)/djlint --quiet --lint templates

# What pages say in other languages: the texts that are marked in the code, and then what was translated of them.
MESSAGES = $(BIN)/python manage.py
messages: $(VENV)/.installed-dev
	@$(MESSAGES) makemessages --locale de --no-wrap --no-location --no-obsolete --ignore tests --ignore benchmarks
	@$(MESSAGES) compilemessages --locale de --ignore $(VENV)

LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-annotate pyproject.toml
lock:
	@$(LOCK) -o requirements.lock
	@$(LOCK) --group dev -o requirements-dev.lock

# The stamps say which lock file the environment was last filled from.
$(VENV)/.installed: requirements.lock | $(BIN)/python
	@echo "Installing what Cato needs into $(VENV) ..."
	@$(PIP) -r $<
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock | $(BIN)/python
	@echo "Installing what developing Cato needs into $(VENV) ..."
	@$(PIP) -r $<
	@touch $@

# The command line, from any folder.
$(BIN)/cato: | $(BIN)/python
	@printf '#!/bin/sh\nexec "%s" "%s" cato "$$@"\n' "$(abspath $(BIN)/python)" "$(CURDIR)/manage.py" >$@
	@chmod +x $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || \
		{ echo "There is no $(PYTHON) here. Cato needs Python 3.11 or later."; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "Cato needs Python 3.11 or later. Name one: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c "import ensurepip, venv" 2>/dev/null || \
		{ echo "Python's venv module is missing. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
