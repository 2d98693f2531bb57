"""From packed codes and an affinity to the scores of every query.

    evaluator        the way through all of the below: `hashbench.evaluate`, in parts that fit memory
    compilation      who is told that numba compiles
    equal_rows       queries and database rows that are equal are counted once
    counting         the database in blocks, each prepared for the rule of its affinity
    kernels          the counting loops: XOR, popcount, tally
    histogram        what they give: items per query, level and distance, all that a metric needs to know
    buckets          how many items share a code, for the metrics that ask
    cosine           the same of real-valued outputs, grouped by equal distance
    runs             the same of scored lists of documents, held against judgements
    shards           databases larger than memory, by the histograms of some rows each
    random_orders    the same rankings with ties in random orders, one by one: what luck does, measured
    reranking        the nearest items by Hamming distance in the order of float vectors, as `candidates`
    metrics/         from histograms to expectation, extremes and standard deviation over tie orders
    evaluation       the result: scores of every query, and their means
    curves           precision and recall of many cutoffs as the points of curves
    scorer           of fitted methods, for scikit-learn's searches
    code_statistics  how codes use their bits, without any labels

`evaluation` and `metrics` import NumPy alone; what counts imports numba.
"""
