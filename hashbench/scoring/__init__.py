"""From packed codes and an affinity to the scores of every query.

Codes, real-valued outputs, runs and other lists are scored the same way. A `Problem` holds a `Ranking` and what is
relevant. The ranking orders each query's items into tie groups: `HammingRanking`, `RealRanking` or `ListRanking`. The
one loop, `score` in `ranking`, fills a table of scores with what the ranking counts.

    problem          what is scored, and `hashbench.evaluate`; precision-recall curves
    ranking          what orders the items of each query, and the loop that scores all queries
    hamming          codes by Hamming distance, in memory or read in slices
    real_rankings    items by a real-valued distance: of outputs, or of codes to real-valued queries
    lists            any rankings by scores that tie, such as runs, with only NumPy
    compilation      reports that numba compiles, or is missing
    equal_rows       equal queries and database rows, which are counted once; hashes of rows
    counting         the database in blocks, each prepared for the rule of its affinity; items that share a code
    engine           the counting loops that run here: in NumPy, or those of `kernels`
    kernels          the counting loops, compiled: XOR, popcount, tally
    histogram        items per query, level and distance: all that a metric needs
    runs             runs and their judgements, as lists
    thresholds       pairs that match at each Hamming radius, over all queries
    intervals        intervals of shares of pairs, which depend on each other
    candidates       the smallest number of candidates whose re-ranking reaches a recall
    ignored          pairs that no ranking has, by an affinity or by options; queries that never find themselves
    score_table      scores filled in query by query, and what one order of the database does to their means
    item_sample      the items that stand for a large database there
    random_orders    scores under random orders of tied items
    reranking        the nearest items by Hamming distance in the order of float vectors
    metrics/         from histograms to expectation, extremes and standard deviation over tie orders
    evaluation       the result: scores of every query, and their means
    comparison       the difference of two methods, with an interval over queries and seeds
    may_be_best      which of several methods may be the best; variances over seeds, which code lengths share
    scorer           scores of fitted methods, for scikit-learn's searches
    code_statistics  how codes use their bits, and how far two codes differ, without any labels

`evaluation`, `histogram`, `lists` and `metrics` import only NumPy; modules that count import numba, if it is there.
"""
