"""The page of `hashbench report` as people use it: by mouse or keyboard, on a phone, in light and dark colours."""

from urllib.parse import urlencode

import h5py
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from helpers.browser import visiting, wait_for_violation
from helpers.report_pages import (
    FEW,
    LENGTHS,
    METHODS,
    PARAM,
    TALR,
    VIEWS,
    WORDS,
    few,
    keys,
    report,
    rows_of,
    wait_for,
)
from playwright.sync_api import expect

pytestmark = pytest.mark.slow  # make test-figures
WILD = urlencode({"data": f"wild:{WORDS}", "method": "gone", "a": f"gone a={PARAM}"})
SHOWN = {"overview": WORDS, "leaderboard": "gone", "method": PARAM, "changes": PARAM, "rows": PARAM}

# ---------------------------------------------------------------- for everyone


@pytest.mark.parametrize("view", VIEWS)
def test_view_is_accessible_and_fits_any_screen(visit, view):
    page = visit(VIEWS[view])
    assert page.locator("nav [aria-current=page]").count() == page.locator("main h1").count() == 1
    assert page.locator("table, svg.chart").count() >= 1
    for width in (320, 390, 1400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    for scheme, rules in (("light", None), ("dark", {"runOnly": ["color-contrast"]})):
        page.emulate_media(color_scheme=scheme)
        violations = Axe().run(page, options=rules).response["violations"]
        assert [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in violations] == []


@pytest.mark.parametrize(
    ("fragment", "row", "name", "value"),
    [
        (f"rows?{FEW}", "[data-test=rows] tbody tr", "th", ".column-value"),
        (f"leaderboard?{FEW}&sort=b12&desc=1", "tbody tr", "th", ".column-b16"),
        (f"queries?{FEW}&a=itq&b=lsh", "[data-test=queries] tbody tr", ".column-query", ".column-change"),
        ("changes", "tbody tr:not(.heading)", "th", ".column-change"),
        ("overview", ".dots li", ".track b", ".value"),
    ],
)
def test_name_and_value_are_in_sight_on_a_phone(visit, fragment, row, name, value):
    page = visit(fragment, viewport={"width": 360, "height": 800})
    ends = "element => [element.getBoundingClientRect().left, element.getBoundingClientRect().right]"
    (left, middle), (start, right) = (
        page.locator(row).first.locator(part).first.evaluate(ends) for part in (name, value)
    )
    assert 0 <= left < middle <= start + 1 < right <= 360


def test_keyboard_alone_reaches_the_table_and_sorts_it(visit):
    page = visit(VIEWS["leaderboard"])
    has_focus, head = "selector => document.activeElement.matches(selector)", "button[data-sort=b12]"
    page.keyboard.press("Tab")
    assert page.evaluate(has_focus, "a.skip")
    n_tabs = next(n for n in range(50) if page.keyboard.press("Tab") or page.evaluate(has_focus, head))
    assert n_tabs < 30
    orders = set()
    for _ in range(2):
        page.keyboard.press("Enter")
        orders.add(page.locator(f"th:has({head})").get_attribute("aria-sort"))
        assert page.evaluate(has_focus, head)
    assert orders == {"ascending", "descending"}


# ---------------------------------------------------------------- tables and plots


@pytest.mark.parametrize(("kind", "mark"), [("latex", r"\begin{tabular}"), ("markdown", "| --- |")])
def test_table_is_copied_or_shown_where_the_clipboard_is_denied(visit, kind, mark):
    page = visit(VIEWS["leaderboard"])
    clipboard = "value => Object.defineProperty(navigator, 'clipboard', {value, configurable: true})"
    page.evaluate(f"({clipboard})({{writeText: async (text) => {{ window.copied = text; }}}})")
    page.locator(f"button[data-copy={kind}]").click()
    expect(page.locator("#status")).to_have_text(f"{'LaTeX' if kind == 'latex' else 'Markdown'} is copied.")
    assert mark in page.evaluate("copied")
    expect(page.locator("#status")).to_be_in_viewport(ratio=1)
    width = "document.getElementById('status').getBoundingClientRect().width"
    assert page.evaluate(width) > 50
    expect(page.locator("#status")).to_have_class("hidden")  # after two seconds
    assert page.evaluate(width) <= 1
    page.evaluate(f"({clipboard})(undefined)")
    page.locator(f"button[data-copy={kind}]").click()
    area = page.locator("textarea#copied")
    assert area.input_value() == page.evaluate("copied")
    assert area.evaluate("area => [area.selectionStart, area.selectionEnd - area.value.length]") == [0, 0]


def test_filters_leave_what_they_say(visit):
    page = visit(VIEWS["leaderboard"])
    for name, methods in (("SD", ["sdh"]), ("h", ["lsh", "sdh"]), ("", ["itq", "lsh", "sdh"])):
        page.locator("input[name=text]").fill(name)
        assert sorted(keys(page)) == methods
    page.get_by_text("More filters").click()
    page.locator("input[name=group][value=unsupervised]").click()
    assert keys(page) == ["sdh"]
    page.locator("input[name=bits][value='12']").click()
    assert page.locator("button[data-sort=b12]").count() == 0


@pytest.mark.parametrize(
    ("fragment", "element", "texts"),
    [
        (VIEWS["plots"], "[data-point][data-line=itq][data-bits='16']", ("itq", "AP 0.", "at 16 bits", "over 2 seeds")),
        (VIEWS["overview"], "[data-point][data-line=itq]", ("itq", "over 2 seeds")),
        (VIEWS["rows"], "td.column-seed abbr", ("by hashbench 0.", "s to fit and encode")),
        (VIEWS["leaderboard"], "tr[data-key=itq] .value", ("by hashbench 0.", "over 2 seeds")),
        (f"leaderboard?{urlencode({'data': f'wild:{WORDS}'})}", "button.settings", (f"a={PARAM}",)),
    ],
)
def test_mouse_and_keyboard_show_what_is_behind_a_number(visit, fragment, element, texts):
    page = visit(fragment)
    tip, element = page.locator("#tip"), page.locator(element).first
    away = {element.hover: lambda: page.mouse.move(0, 0), element.focus: lambda: page.keyboard.press("Escape")}
    for reach, leave in away.items():
        reach()
        for text in texts:
            expect(tip).to_contain_text(text)
        expect(tip).to_be_visible()
        leave()
        expect(tip).to_be_hidden()


def test_legend_hides_and_shows_a_line(visit):
    page = visit(VIEWS["plots"])
    button, points = page.locator("button[data-line=lsh]"), page.locator("[data-point][data-line=lsh]:visible")
    expect(points).to_have_count(len(LENGTHS))
    for pressed, n_points in (("false", 0), ("true", len(LENGTHS))):
        button.click()
        expect(button).to_have_attribute("aria-pressed", pressed)
        expect(points).to_have_count(n_points)


def test_plot_of_times_is_listed_with_the_reason_where_none_are_known(visit):
    page = visit(f"plots?{TALR}&kind=times")
    assert page.locator("select[name=kind] option[value=times]").is_disabled()
    assert page.locator("select[name=kind]").input_value() == "bits"
    expect(page.locator("main")).to_contain_text("hashbench run, then hashbench report")
    with_times = visit(f"plots?{FEW}&kind=times")
    assert with_times.locator("select[name=kind]").input_value() == "times"
    above = with_times.locator("svg.chart").first.locator("[data-point] + text").all_text_contents()
    assert sorted(above) == sorted(str(n_bits) for n_bits in LENGTHS for _ in METHODS)


def test_a_method_looks_the_same_in_every_view(visit):
    looks = "marks => marks.map(one => one.getAttribute('d') + getComputedStyle(one).fill)"
    shown = {
        "overview": "[data-test=dots] article:has(a[href*=few]) li:has-text('{}') .mark",
        f"leaderboard?{FEW}": "tr[data-key={}] .sign .mark",
        f"plots?{FEW}": "[data-point][data-line={}], button[data-line={}] .mark",
    }
    seen = {method: set() for method in METHODS}
    for fragment, selector in shown.items():
        page = visit(fragment)
        for method in METHODS:
            marks = page.locator(selector.format(method, method)).evaluate_all(looks)
            assert marks
            seen[method].update(marks)
    assert [len(marks) for marks in seen.values()] == [1] * len(METHODS)
    assert len(set.union(*seen.values())) == len(METHODS)


def test_change_is_shown_with_its_difference(visit):
    page = visit("changes?text=gone")
    assert rows_of(page, "changes").count() == 1
    for text in ("0.550000", "0.500000", "\N{MINUS SIGN}0.050000"):
        assert text in rows_of(page, "changes").inner_text()
    assert page.locator("table[data-test=changes] .heading").inner_text() == f"wild:{WORDS}, gone a={PARAM}"
    line = rows_of(page, "changes")
    assert line.locator("del").inner_text() == "0.550000"
    assert line.locator("ins").inner_text() == "0.500000"
    senses = [line.locator(f".column-{name}").inner_text() for name in ("seeds", "shuffle", "order")]
    assert senses == ["1 of 1", "apart", "not apart"]
    with page.expect_download() as download:
        page.locator("button[data-copy=csv]").click()
    assert ",-0.05," in download.value.path().read_text()


# ---------------------------------------------------------------- one page, view after view


@pytest.fixture(scope="module")
def page(browser, folder):
    """The page, opened once; what goes wrong on it in any test is an error in the end."""
    with visiting(browser, folder / "report.html", "#rows") as page:
        yield page


def go(page, fragment):
    """Go to another view of the open page, and wait until it is drawn."""
    page.evaluate(
        """(fragment) => new Promise((done) => {
            addEventListener("hashchange", () => done(), {once: true});
            location.hash = fragment;
        })""",
        fragment,
    )


def test_queries_open_one_after_the_other_and_rows_are_sorted(page):
    go(page, "overview")
    page.locator("nav a[data-nav=queries]").focus()
    page.keyboard.press("Enter")
    wait_for(page, "queries")
    assert page.evaluate("document.activeElement.dataset.nav") == "queries"
    go(page, VIEWS["queries"])
    head = page.locator("section#query h2")
    assert head.inner_text() == "Query 3"
    queries = page.locator("button[data-open]").evaluate_all("all => all.map(one => one.dataset.open)")
    for query in queries[:2]:
        page.locator(f"button[data-open='{query}']").click()
        assert head.inner_text() == f"Query {query}"
    assert "3" not in queries[:2]
    before = keys(page, "queries")
    page.locator("table[data-test=queries] button[data-sort=query]").click()
    after = keys(page, "queries")
    assert after != before
    assert sorted(after) == sorted(before)


@pytest.mark.parametrize(
    "view", ["overview", "leaderboard", "plots", "methods", "method", "queries", "changes", "rows"]
)
def test_names_are_text_whatever_they_hold(page, view):
    go(page, f"{view}?{WILD}")
    assert page.locator("img, [onerror]").count() == 0  # and no alert, at which `visiting` fails
    assert SHOWN.get(view, "") in page.locator("main").inner_text()


def test_link_restores_what_was_chosen(page, visit):
    go(page, VIEWS["leaderboard"])
    page.locator("select[name=metric]").select_option("AP@5")
    page.get_by_text("More filters").click()
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


# ---------------------------------------------------------------- queries


def test_query_opens_as_boxes_of_its_tie_groups(visit, folder):
    page = visit(f"queries?{FEW}&a=itq&b=lsh&order=loss")
    page.locator("button[data-open='3']").click()
    figures = page.locator("section#query figure[data-test=groups]")
    expect(figures).to_have_count(2)
    for figure, method in zip(figures.all(), ("itq", "lsh"), strict=True):
        boxes = figure.locator("[data-test=group]").evaluate_all("boxes => boxes.map(box => ({...box.dataset}))")
        numbers = [[int(box[key]) for key in ("distance", "size", "relevant")] for box in boxes]
        assert numbers == tie_groups(folder, method, 3)


def tie_groups(folder, method, query):
    """Distance, size and relevant items of each tie group, nearest first, counted from the codes in their file."""
    with h5py.File(folder / "data" / "codes" / "few" / f"{method}-{max(LENGTHS)}-s0.h5") as file:
        codes = {role: np.unpackbits(file[role]["codes"][:], axis=1) for role in ("query", "database")}
    data = few()
    distances = (codes["query"][query] != codes["database"]).sum(1)
    is_relevant = data.labels[data.database] == data.labels[data.query[query]]
    tied = {int(distance): distances == distance for distance in np.unique(distances)}
    return [[distance, int(where.sum()), int(is_relevant[where].sum())] for distance, where in tied.items()]


def test_folder_loads_queries_and_images_from_beside_its_page(visit, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HASHBENCH_DATA", str(folder / "data"))
    report(folder, tmp_path / "site", "--thumbnails")
    page = visit(f"queries?{FEW}&a=itq&b=lsh", path=tmp_path / "site" / "index.html")
    page.locator("button[data-open]").first.click()
    expect(page.locator("figure[data-test=groups]")).to_have_count(2)
    pictures = page.locator("section#query .picture")
    assert pictures.count() > 2
    is_loaded = """async (one) => {
        const image = new Image();
        image.src = getComputedStyle(one).backgroundImage.slice(5, -2);
        await image.decode();
        return image.naturalWidth;
    }"""
    assert pictures.first.evaluate(is_loaded) >= 8


# ---------------------------------------------------------------- the net under these tests


@pytest.mark.parametrize(
    "script",
    [
        "new Image().src = 'http://127.0.0.1/x.png'",
        "console.warn('x')",
        "alert('x')",
        "setTimeout(() => { throw Error('x'); })",
        "fetch('https://example.org/').catch(() => 0)",
        "document.write('<script src=gone.js></' + 'script>')",
    ],
)
def test_page_that_breaks_the_rules_is_caught(browser, tmp_path, script):
    (tmp_path / "bad.html").write_text(f"<!doctype html><script>{script}</script>")
    with pytest.raises(AssertionError), visiting(browser, tmp_path / "bad.html") as page:
        wait_for_violation(page)
