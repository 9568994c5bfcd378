# Two commands do everything: `make demo` and `make test`. `make check` is what CI runs.
PYTHON ?= python3
VENV   := .venv
BIN    ?= $(VENV)/bin
# With BIN set to another environment (CI does that), nothing is installed here.
READY  := $(if $(filter $(VENV)/bin,$(BIN)),$(VENV)/.installed,)

.PHONY: demo test test-long check format bench-data bench-memory bench-attention bench-stream faults soak wheel clean

demo: $(READY)
	$(BIN)/infoset run treasury
	@echo "Runs:    $(CURDIR)/runs/treasury (report.html is the file to open)"
	@echo "MLflow:  $(CURDIR)/mlflow.db ($(BIN)/mlflow ui --backend-store-uri sqlite:///mlflow.db)"

test: $(READY)
	$(BIN)/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-long: $(READY)
	$(BIN)/pytest -m long

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory test BIN=$(BIN)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-memory: $(READY)
	$(BIN)/python tests/bench/build_memory.py

bench-data: $(READY)
	$(BIN)/python tests/bench/bench_data.py

bench-attention: $(READY)
	$(BIN)/python tests/bench/bench_attention.py

bench-stream: $(READY)
	$(BIN)/python tests/bench/bench_stream.py

faults: $(READY)
	$(BIN)/python tests/faults/kill_ingests.py

soak: $(READY)
	PYTHONPATH=tests $(BIN)/python tests/soak/soak_stream.py

wheel: $(READY)
	$(BIN)/python -m build --wheel --outdir dist .

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("infoset needs Python >= 3.11; set PYTHON=") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
