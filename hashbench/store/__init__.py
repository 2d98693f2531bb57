"""What lies on disk, whole or not at all, and what made it.

files        where things lie, locks between processes, writing whole or not at all
provenance   the one value that says what made a file, from which all keys derive
origin       the commit, machine and day behind codes and rows
hdf5         the layout of dataset, codes and score files, checked on reading
models       fitted methods as files of plain arrays
array_cache  arrays that are computed once, such as features of images
score_cache  the scores of every query, of a job's earlier codes too
results      the committed rows, results/<dataset>/<method>.csv
"""
