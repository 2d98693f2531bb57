"""The results as one page that a browser opens by itself: sorted, filtered, drawn, query by query.

    page        the file, or folder, and what goes into it
    content     results, lines, methods and the papers' values as plain values
    cached      times, use of codes, and queries with their tie groups, of what is kept in the data folder
    changes     what changed since another commit
    thumbnails  images of queries and of the items near to them
    page.html   the template, page.css its look
    js/         what the page does: base, forms, tables and axes are shared, each other file is a view; main draws

Imports pandas, matplotlib and Jinja2.
"""

from hashbench.reports.html.page import write_report

__all__ = ["write_report"]
