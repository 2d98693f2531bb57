"""The results as one page that a browser opens by itself: sorted, filtered, drawn, query by query.

    page          the file, or folder, and what goes into it
    content       results, lines and the papers' values as plain values
    descriptions  datasets and methods, the same whatever is chosen
    cached        times, use of codes, and queries with their tie groups, from codes in the data folder
    changes       what changed since another commit
    thumbnails    images of queries and of the items nearest to them
    page.html     the template: the frame, and in datasets.html, methods.html and words.html what does not depend on a
                  choice, as <template> elements; page.css its look
    js/           what depends on a choice: base, forms, tables and axes are shared, each other
                  file is a view; main draws

Imports pandas, matplotlib and Jinja2.
"""

from hashbench.reports.html.page import PAGE_SUFFIXES, write_report

__all__ = ["PAGE_SUFFIXES", "write_report"]
