"""Files on disk, written whole or not at all, and records of what made them.

files         the data folder, locks between processes, writing whole or not at all
inputs        checks of files before they are read, and of free memory
provenance    the one value that says what made a file, from which all keys derive
origin        the commit, machine and day behind codes and rows
hdf5          dataset, codes and score files, checked on reading
models        fitted methods as files of plain arrays
remembered    what importing hashbench's own modules tells, such as cards of methods
array_cache   arrays that are computed once, such as features of images
score_cache   the scores of every query, of a job's earlier codes too
result_rows   what a row of results is; a new column is a field of ``Row``, filled in pipeline/steps
result_files  where rows of results are, the text of their files
results       the committed rows of a folder: reading, adding, converting
"""
