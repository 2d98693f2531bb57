"""From rows of results to what people read.

    view          what tables, figures and the page show: cells, each with all that is said of it
    marks         what ties leave open between two values, the marks of cells, and the notes below them
    selection     which results users choose, by the names of datasets and features
    aggregate     means over seeds, the label of each line; means over folds with unseen classes
    row_origins   when, where and with what each row was computed
    uncertainty   intervals of cells, and tests against one of a column
    comparison    one method with others: differences, intervals and sentences
    tables/       tables laid out like the papers', with their values
    plots/        figures of the results, and of the codes behind them
    explain/      why numbers differ: the same codes through the scripts that people use
    html/         all of it as one page for a browser
    revisions     the two sides of a comparison: results at a git revision, in a folder or file
    diff          what changed between them, whether it matters; as text, CSV, JSON and Markdown
    submissions   checks of results files: format, agreement, and rerunning a cell
    formatting    what commands print: records as tables, Markdown, CSV and JSON

`formatting` and `revisions` are light; the others import pandas or SciPy.
"""
