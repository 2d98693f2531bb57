"""From rows of results to what people read.

    aggregate     means over seeds, and what people call each line
    names         what users call datasets and features of results
    folds         classes that training does not see: means over folds, beside what training saw all classes of
    significance  whether a difference is more than luck in the choice of queries
    tables/       tables laid out like the papers', their values beside ours
    plots/        figures of the results, and of the codes behind them
    html/         all of it as one page for a browser
    revisions     the two sides of a comparison: results at a git revision, in a folder or file
    diff          what changed between them, and does it matter
    diff_text     a diff in words: for a terminal, a comment, or a program
    submissions   results by others: whether files are as we write them, and a cell comes out again
    python        run, tables and plot as functions
    formatting    tables as text, which all of them and the command line share

`formatting` and `revisions` are light; the others import pandas or SciPy.
"""
