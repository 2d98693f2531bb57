"""The page of `hashbench report` opens from disk in a browser."""

from urllib.parse import urlencode

import pytest
from helpers.browser import CHROMIUM, visiting
from helpers.report_pages import PARAM, VIEWS, WORDS, keys, wait_for

if CHROMIUM is None:
    pytest.skip("needs a browser: apt-get install chromium", allow_module_level=True)

pytestmark = pytest.mark.slow  # make test-figures
WILD = urlencode({"data": f"wild:{WORDS}", "method": "gone", "a": f"gone a={PARAM}"})
SHOWN = {"overview": WORDS, "leaderboard": PARAM, "method": PARAM, "changes": PARAM, "rows": PARAM}


@pytest.fixture(scope="module")
def page(browser, folder):
    """The page, opened once; what goes wrong on it in any test is an error in the end."""
    with visiting(browser, folder / "report.html", "#rows") as page:
        yield page


def test_every_view_is_drawn(page):
    for view, fragment in VIEWS.items():
        go(page, fragment)
        assert page.locator(f"main[data-view={view.partition(' ')[0]}][data-ready=true] h1").count() == 1
        assert page.locator("table, svg.chart").count() >= 1


def test_queries_open_one_after_the_other_and_rows_are_sorted(page):
    go(page, "overview")
    page.locator("nav a[data-nav=queries]").focus()
    page.keyboard.press("Enter")
    wait_for(page, "queries")
    assert page.evaluate("document.activeElement.dataset.nav") == "queries"
    go(page, VIEWS["queries"])
    first = page.locator("section#query h2").inner_text()
    others = page.locator("button[data-open]").evaluate_all("all => all.map(one => one.dataset.open)")
    for query in others[:2]:
        page.locator(f"button[data-open='{query}']").click()
        assert page.locator("section#query h2").inner_text() == f"Query {query}"
    assert first == "Query 3"
    assert "3" not in others[:2]
    before = keys(page, "queries")
    page.locator("table[data-test=queries] button[data-sort=query]").click()
    assert sorted(keys(page, "queries")) == sorted(before)
    assert keys(page, "queries") != before


def test_names_are_text_whatever_they_hold(page):
    for view in ("overview", "leaderboard", "plots", "methods", "method", "queries", "changes", "rows"):
        go(page, f"{view}?{WILD}")
        assert page.locator("img, [onerror]").count() == 0  # and no alert, which `visiting` would tell
        assert SHOWN.get(view, "") in page.locator("main").inner_text()


def go(page, fragment):
    """Go to another view of the page that is open, and wait until it is drawn."""
    page.evaluate(
        """(fragment) => new Promise((done) => {
            addEventListener("hashchange", () => done(), {once: true});
            location.hash = fragment;
        })""",
        fragment,
    )


def test_link_restores_what_was_chosen(page, visit):
    go(page, VIEWS["leaderboard"])
    page.locator("select[name=metric]").select_option("AP@5")
    page.locator("input[name=bits][value='12']").click()
    page.locator("input[name=text]").fill("h")
    for _ in range(2):
        page.locator("button[data-sort=method]").click()
    again = visit(page.url.partition("#")[2])
    for selector, state in (
        ("form#filters", "form => [...new FormData(form)].map(String)"),
        ("table[data-test=leaderboard]", "table => table.outerHTML"),
    ):
        assert again.locator(selector).evaluate(state) == page.locator(selector).evaluate(state)
    assert keys(again) == ["sdh", "lsh"]
    page.locator("nav a[data-nav=plots]").click()
    wait_for(page, "plots")
    page.go_back()
    wait_for(page, "leaderboard")
    assert keys(page) == ["sdh", "lsh"]
