from contextlib import ExitStack

import pytest
from helpers.browser import CHROMIUM, browsing, visiting
from helpers.report_pages import LENGTHS, METHODS, SEEDS, few, hashbench, report, wait_for, write_wild

from hashbench.store import hdf5


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt-get install chromium")
    with browsing() as browser:
        yield browser


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Results with cached codes, others with wild names or beside a paper's; results of before; and their report."""
    folder = tmp_path_factory.mktemp("report")
    hdf5.write_dataset(few(), folder / "data" / "datasets" / "few.h5")
    write_wild(folder)
    grid = [("--method", METHODS), ("--bits", LENGTHS), ("--seed", SEEDS), ("--metric", ("AP", "AP@5"))]
    options = [word for option, values in grid for value in values for word in (option, value)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder / "data"))
        hashbench("run", "--dataset", "few", *options, "--results", folder / "results")
        report(folder, folder / "report.html", "--against", folder / "before")
    return folder


@pytest.fixture
def visit(browser, folder):
    """Open a view of the report and wait until it is drawn."""
    with ExitStack() as visits:

        def open_view(fragment, path=folder / "report.html", **options):
            page = visits.enter_context(visiting(browser, path, f"#{fragment}", **options))
            wait_for(page, fragment.partition("?")[0])
            return page

        yield open_view
