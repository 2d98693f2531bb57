"""From packed codes and an affinity to the scores of every query.

Codes, real-valued outputs, runs and other lists are scored the same way. A `Problem` holds a `Ranking` and what is
relevant. The ranking orders each query's items into tie groups: `HammingRanking`, `RealRanking` or `ListRanking`. The
one loop, `score` in `ranking`, fills a table of scores with what the ranking counts.

    problem          what is scored, and `hashbench.evaluate`
    ranking          what orders the items of each query, and the loop that scores all queries
    hamming          codes by Hamming distance, in memory or read in slices
    real_rankings    items by a real-valued distance
    lists            lists of scored items, such as runs
    compilation      reports that numba compiles, or is missing
    equal_rows       equal queries and equal database rows, which are counted once
    counting         the database in blocks, each prepared for the rule of its affinity; items that share a code
    engine           the counting loops that run here: those of `kernels`, or of `plain_kernels` without numba
    kernels          the counting loops: XOR, popcount, tally
    plain_kernels    the same in NumPy
    histogram        items per query, level and distance: all that a metric needs
    cosine           distances of real-valued outputs
    asymmetric       distances of codes to real-valued queries
    runs             runs and their judgements, as lists
    rankings         any rankings by scores that tie, as lists, with only NumPy
    thresholds       pairs that match at each Hamming radius, over all queries
    intervals        intervals of shares of pairs, which depend on each other
    candidates       the smallest number of candidates whose re-ranking reaches a recall
    ignored          pairs that no ranking has, by an affinity or by options
    self_pairs       queries of the database that never find themselves
    score_table      scores filled in query by query, and what one order of the database does to their means
    item_sample      the items that stand for a large database there
    row_hashes       hashes of rows of numbers, the same on every machine
    random_orders    scores under random orders of tied items
    reranking        the nearest items by Hamming distance in the order of float vectors
    metrics/         from histograms to expectation, extremes and standard deviation over tie orders
    evaluation       the result: scores of every query, and their means
    comparison       the difference of two methods, with an interval over queries and seeds
    may_be_best      which of several methods may be the best
    seed_variances   variances over seeds, which code lengths share
    curves           precision and recall at many cutoffs
    scorer           scores of fitted methods, for scikit-learn's searches
    code_statistics  how codes use their bits, without any labels
    drift            how far two codes of the same items differ

`evaluation`, `histogram`, `metrics` and `rankings` import only NumPy; modules that count import numba, if it is there.
"""
