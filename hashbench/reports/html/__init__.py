"""The results as one page that a browser opens by itself: sorted, filtered, drawn, query by query.

    page          writes the file or folder
    content       results, lines, the papers' values, changes since another commit, datasets and methods, for JSON
    cached        codes in the data folder: times, usage, queries with their tie groups, thumbnails; and what makes
                  codes that are missing
    page.html     the template: the frame; datasets.html, methods.html and words.html hold fixed parts as <template>
                  elements, page.css the styles
    js/           draws what depends on the user's choice: base, forms, tables and axes are shared, main draws, each
                  other file is a view

Imports pandas, matplotlib and Jinja2.
"""

from hashbench.reports.html.page import PAGE_SUFFIXES, write_report

__all__ = ["PAGE_SUFFIXES", "write_report"]
