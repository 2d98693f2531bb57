# hashbench: `make` alone lists the targets. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One thread a worker; bytecode is kept, since many tests start processes of their own. xdist would put the files of few
# tests last, and some of these take long.
TEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist loadfile --no-loadscope-reorder
# Matplotlib's cache, too, stays in this folder.
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install -c constraints.txt
# uv installs in a third of pip's time, but does not read pip's settings: where these name another index, pip does it.
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt

methods = $(shell $(BIN)/hashbench list methods --speed $(1) | sed 's/ .*//;s/^/--method /')
DATASETS := digits digits-pairs digits-unlabelled
LENGTHS := 12 16 24 32 48 64
SEEDS := 0 1 2
METRICS := AP AP@1000 NDCG NDCG@100 P@100 P@r2 LGAP@r2
GRID := $(DATASETS:%=--dataset %) $(LENGTHS:%=--bits %) $(SEEDS:%=--seed %) $(METRICS:%=--metric %)
SUPERVISED := talr-ap hashnet dtsh dpsh sdh ksh mihash
UNSUPERVISED := itq lsh sph sh sklsh pcah
COLUMN := --format svg --width 3.3 --no-title --output docs/figures
ROWS_ONLY := HASHBENCH_DATA=$(CURDIR)/$(VENV)/no-data # whose figures are the same on every machine
SHOWN := itq lsh sph bre fasthash sdh structhash

.DEFAULT_GOAL := help
.PHONY: help install dev docs test-docs format lint workflows types links dist test test-dist test-cluster test-figures test-originals test-all coverage falls golden numbers pictures cards reproduce-tables reproduce-all tables bench check clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "hashbench needs Python 3.11 or newer, $(PYTHON) is `$(PYTHON) -V 2>&1`. Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing hashbench with PyTorch into $(VENV) (a minute or two the first time) ..."
	$(PIP) torch
	-@$(PIP) uv
	@$(UV) -e '.[figures,learned]' || $(PIP) -e '.[figures,learned]'
	@touch $@

# A stamp for each extra. Since hashbench is there, only what the extra lacks is added.
$(VENV)/.test $(VENV)/.dev $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: $(VENV)/.installed
	@echo "Adding the packages of the extra '$*' to $(VENV) ..."
	@$(UV) 'hashbench[$*]' || $(PIP) 'hashbench[$*]'
	@touch $@

install: $(VENV)/.installed ## Set up .venv with hashbench and PyTorch

dev: $(VENV)/.dev ## Set up .venv for development, with the commit hooks
	$(BIN)/pre-commit install

reproduce-tables: $(VENV)/.installed ## Run the quick methods on the built-in datasets, and make all tables and figures
	$(BIN)/hashbench run $(call methods,quick) $(GRID) --jobs -1 > $(VENV)/.grid
	@$(MAKE) --no-print-directory tables

reproduce-all: $(VENV)/.installed ## Make all committed rows, with downloads: some 37 hours of one core
	for grid in benchmarks/rows/*.toml; do $(BIN)/hashbench run --grid $$grid --resume --jobs -1 > $(VENV)/.grid || exit; done
	@$(MAKE) --no-print-directory tables

tables: $(VENV)/.installed ## Make tables and figures of the results there are
	$(BIN)/hashbench tables
	$(ROWS_ONLY) $(BIN)/hashbench plot ranking tie-ranges ap-bits $(if $(wildcard results/*-unseen),unseen) --format svg
	$(ROWS_ONLY) $(BIN)/hashbench plot ap-bits --dataset cifar10-s1:squeezenet $(SUPERVISED:%=--method %) $(COLUMN)
	$(ROWS_ONLY) $(BIN)/hashbench plot tie-ranges --dataset digits $(UNSUPERVISED:%=--method %) $(COLUMN)
	$(BIN)/hashbench tables --dataset digits $(SHOWN:%=--method %) --bits 12 --bits 24 --bits 32 --bits 48 \
	--output $(VENV)/paper > $(VENV)/.shown
	@cmp -s $(VENV)/paper/selection.tex docs/table.tex || cp $(VENV)/paper/selection.tex docs/table.tex

pictures: $(VENV)/.docs tables ## Make all pictures of the documents; those of the report need chromium
	$(BIN)/python benchmarks/why_numbers_differ.py --again
	$(BIN)/python benchmarks/script_orders.py --again
	$(BIN)/python benchmarks/binary_quantisation.py --again
	$(BIN)/python benchmarks/pictures.py

test: $(VENV)/.test ## Run the tests, as before every commit
	$(TEST) -m "not slow" --durations 5

dist: $(VENV)/.dev ## Build the source distribution and the wheel into dist/, and check what they say of themselves
	rm -rf dist build/lib build/bdist.* build/from-tree *.egg-info
	$(BIN)/python -m build --quiet --outdir dist .
	$(BIN)/python -m build --quiet --wheel --outdir build/from-tree .
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff

test-dist: dist ## Build them and test what is in them, and types of a user's project
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/test_distributions.py

test-cluster: $(VENV)/.test ## Run those of jobs side by side, which start and kill processes; test-all has them, too
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/pipeline/test_cluster.py \
	tests/pipeline/test_workers.py tests/cli/test_tuning.py -m slow --durations 3

test-originals: $(VENV)/.test ## Run those beside other libraries: originals of scripts, models of transformers; test-all has them, too
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -q tests/reports/test_originals.py \
	tests/sources/test_transformers_models.py --durations 3

test-figures: $(VENV)/.test ## Run those of figures, and of the report in a browser; test-all has them, too
	$(TEST) tests/reports/test_plots.py tests/reports/test_html.py tests/reports/test_report_*.py --durations 3

docs: $(VENV)/.docs ## Build the site into docs/_build/html; every warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

test-docs: $(VENV)/.docs ## Run every command of the site, page by page, and build it
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto tests/test_site.py -m slow --durations 3

test-all: $(VENV)/.test $(VENV)/.bench $(VENV)/.docs dist ## Run them in their long forms, too, and beside the libraries they are of
	HASHBENCH_TESTS=all $(TEST) --durations 20

coverage: $(VENV)/.dev ## Measure which lines the quick tests run
	@rm -rf build/coverage && mkdir -p build/coverage
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest -q -n auto --dist loadfile -m "not slow" -k "not full_disk"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --show-missing > build/coverage/report.txt
	$(BIN)/coverage report --format=total

format: $(VENV)/.dev ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

links: # what is installed as one package lies in three folders; tools that read files need it in one
	@rm -rf build/types && mkdir -p build/types/hashbench
	@ln -s $(CURDIR)/hashbench/* $(CURDIR)/methods $(CURDIR)/datasets build/types/hashbench/

lint: $(VENV)/.dev links ## Check style, docstrings and the order of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd build/types && $(CURDIR)/$(BIN)/lint-imports --config $(CURDIR)/pyproject.toml --no-cache --no-logo > lint-imports.log 2>&1 || { cat lint-imports.log; exit 1; }
	$(BIN)/python -m numpydoc.hooks.validate_docstrings --config . $$(git ls-files 'hashbench/*.py' 'methods/*.py' 'datasets/*.py')

workflows: $(VENV)/.dev ## Check the workflows of GitHub by actionlint and shellcheck
	$(BIN)/python tests/check_workflows.py

types: $(VENV)/.dev links ## Check types
	$(BIN)/mypy

falls: $(VENV)/.installed ## Check that the changelog names all scores of results/ that fell or were lost since BASE
	$(BIN)/python tests/check_results.py $(BASE)

golden: $(VENV)/.test ## Rewrite tests/golden, pinned numbers only under a raised version; review the diff
	$(BIN)/python tests/make_golden.py

numbers: $(VENV)/.installed ## Put numbers of the committed rows into the documents; a sentence that is no longer true is named
	$(BIN)/python benchmarks/documents.py

cards: $(VENV)/.test ## Rewrite hashbench/cards.json, what is known of methods without importing them
	$(BIN)/python tests/make_cards.py

bench: $(VENV)/.test $(VENV)/.bench ## Measure speed side by side with peers
	$(BIN)/python benchmarks/evaluator.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/reranking.py
	$(BIN)/python benchmarks/jobs.py
	$(BIN)/python benchmarks/report.py

check: lint workflows types test ## All that must be green before a commit

clean: ## Remove the virtual environment and build products
	rm -rf $(VENV) build dist *.egg-info
