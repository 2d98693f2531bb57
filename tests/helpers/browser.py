"""A real browser for reports: chromium over file://, without a network; anything that goes wrong is an error."""

import os
import shutil
from contextlib import contextmanager

PATIENCE = 60_000  # milliseconds
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def browsing():
    """Start the browser, which takes a second and serves many pages."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        switches = ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=switches)
        yield browser
        browser.close()


@contextmanager
def visiting(browser, path, fragment="", **options):
    """Open a page on disk; requests to a network, errors, warnings and dialogs fail when it is closed."""
    violations = []

    def refuse(route):
        violations.append(route.request.url)
        route.abort()

    def dismiss(dialog):
        violations.append(dialog.message)
        dialog.dismiss()

    context = browser.new_context(offline=True, **options)
    context.set_default_timeout(PATIENCE)
    context.route(lambda url: not url.startswith("file:"), refuse)
    page = context.new_page()
    page.violations = violations
    page.on(
        "console", lambda message: violations.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: violations.append(str(error)))
    page.on("dialog", dismiss)
    page.goto(path.as_uri() + fragment)
    yield page
    context.close()
    assert violations == []


def wait_for_violation(page):
    """Return once the page that `visiting` has opened has broken a rule."""
    while not page.violations:
        page.wait_for_timeout(50)
