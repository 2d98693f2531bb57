"""A real browser for pages of ours: chromium over file://, without a network, where nothing that goes wrong passes."""

import os
import shutil
from contextlib import contextmanager

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def browsing():
    """Start the browser, which takes a second: one is enough for many pages."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        switches = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=switches)
        yield browser
        browser.close()


@contextmanager
def visiting(browser, path, fragment="", **options):
    """Open a page on disk; in the end, what it asked of a network, failed at, warned of or popped up is an error."""
    wrong = []

    def refuse(route):
        wrong.append(route.request.url)
        route.abort()

    def dismiss(dialog):
        wrong.append(dialog.message)
        dialog.dismiss()

    context = browser.new_context(offline=True, **options)
    context.set_default_timeout(10_000)
    context.route(lambda url: not url.startswith("file:"), refuse)
    page = context.new_page()
    page.on("console", lambda told: wrong.append(told.text) if told.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", dismiss)
    page.goto(path.as_uri() + fragment)
    yield page
    context.close()
    assert wrong == []
