# Every target sets up .venv by itself; when nothing changed that costs a checksum.
# PYTHON=python3.12 make test    uses another interpreter

BIN := .venv/bin
# one more than processors: tests often wait for a process
JOBS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
# each worker begins with a third of the tests, so that a browser or server of a module is started once
SPREAD := -n $(JOBS) --dist=worksteal
DIRS := src tests scripts $(wildcard benchmarks/*.py examples/*.py)

# tests are compiled once, not by each worker of each run
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test coverage lint format fuzz docs api definitions checklist shape picture pictures bench bench-table bench-peers conformance mcp-servers clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## make .venv ready for development (implied by all but demo)
	@scripts/setup

demo: ## watch an agent repair a project with the real tools, offline
	@scripts/setup run
	@$(BIN)/handrail demo

test: lint ## the whole gate: lint, types, layers, tests
	@echo "== pytest"
	@scripts/in-memory $(BIN)/pytest -q $(SPREAD)

coverage: setup ## the tests with branch coverage, and its floors; takes twice as long
	@scripts/in-memory $(BIN)/pytest -q $(SPREAD) --cov --cov-report=term --cov-report=json:coverage.json
	@$(BIN)/python scripts/coverage_floors.py coverage.json

lint: setup ## ruff, mypy, import-linter
	@echo "== ruff"
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --check; echo "run: make format"; exit 1; }
	@echo "== mypy"
	@$(BIN)/mypy $(DIRS)
	@echo "== import layers"
	@$(BIN)/lint-imports --no-logo

format: setup ## let ruff fix and format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

fuzz: setup ## the property tests with many more random examples, and the fuzzer of the shell analysis
	@scripts/in-memory $(BIN)/pytest -q $(SPREAD) -m hypothesis --hypothesis-profile=thorough -o faulthandler_timeout=3600
	@scripts/fuzz 180

docs: setup ## check the links and run the examples of README and docs/
	@$(BIN)/pytest -q tests/project/test_docs.py

api: setup ## accept the present public API as the pinned one
	@$(BIN)/python scripts/public_api.py > tests/project/public_api.txt.new
	@mv tests/project/public_api.txt.new tests/project/public_api.txt

checklist: setup ## promised behaviours: proven, unproven, not landed
	@$(BIN)/python scripts/checklist.py

shape: setup ## measures of the source beside their bars: sizes, names, late imports
	@$(BIN)/python scripts/shape.py

picture: setup ## draw the packages and what they use into docs/architecture.md
	@$(BIN)/python scripts/shape.py --embed

conformance: setup ## the official MCP conformance runner: a table of its scored scenarios (needs npm)
	@scripts/conformance

mcp-servers: setup ## install the public MCP servers that some tests use (npm, PyPI)
	@PYTHON=$(BIN)/python scripts/mcp-servers

pictures: setup ## draw the pictures of README and docs from a real conversation
	@$(BIN)/python scripts/pictures.py
	@$(BIN)/python scripts/page_pictures.py

bench: setup ## measure our own speed
	@$(BIN)/python -m benchmarks.start_bench
	@$(BIN)/python -m benchmarks.first_call_bench
	@$(BIN)/python -m benchmarks.stream_bench
	@$(BIN)/python -m benchmarks.view_bench
	@$(BIN)/python -m benchmarks.engine_bench
	@$(BIN)/python -m benchmarks.telemetry_bench
	@$(BIN)/python -m benchmarks.agent_bench
	@$(BIN)/python -m benchmarks.pool_bench
	@$(BIN)/python -m benchmarks.definitions_bench
	@$(BIN)/python -m benchmarks.shell_bench
	@$(BIN)/python -m benchmarks.permissions_bench
	@$(BIN)/python -m benchmarks.bash_bench
	@$(BIN)/python -m benchmarks.providers_bench
	@$(BIN)/python -m benchmarks.loop_bench
	@$(BIN)/python -m benchmarks.hooks_bench
	@$(BIN)/python -m benchmarks.sessions_bench
	@$(BIN)/python -m benchmarks.edit_bench
	@$(BIN)/python -m benchmarks.search_bench
	@$(BIN)/python -m benchmarks.session_search_bench
	@$(BIN)/python -m benchmarks.sandbox_bench
	@$(BIN)/python -m benchmarks.sdk_bench
	@$(BIN)/python -m benchmarks.agents_bench
	@$(BIN)/python -m benchmarks.mcp_bench
	@$(BIN)/python -m benchmarks.gateway_bench
	@$(BIN)/python -m benchmarks.terminal_bench

bench-table: setup ## measure the rows of the table in docs/benchmarks.md, and draw it
	@$(BIN)/python -m benchmarks.table

bench-peers: setup ## measure beside other frameworks and programs, in environments of their own
	@scripts/peers
	@.venv-peers/bin/python -m benchmarks.peers_bench
	@.venv-peers/bin/python -m benchmarks.peer_programs_bench --keep

definitions: setup ## write down what requests say of the built-in tools, after one was added or changed
	@$(BIN)/python scripts/definitions.py

clean: ## remove everything made here except .wheels
	rm -rf .venv .venv-peers .peers-npm .venv-fuzz .conformance .mcp-servers .xterm .cluster .fuzz .coverage* coverage.json .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache build dist
	find src tests scripts -name __pycache__ -prune -exec rm -rf {} +
