"""Files on disk, written whole or not at all, and records of what made them.

files         the data folder, locks between processes, writing whole or not at all
inputs        checks of files before they are read, and of free memory
provenance    the one value that says what made a file, from which all keys derive
origin        the commit, machine and day behind codes and rows
artifact      the one form of all cached files, checked on reading; what is computed unless it is cached
hdf5          files of datasets, codes and fitted methods
score_cache   the scores of every query, of a job's earlier codes too
result_rows   what a row of results is; a new column is a field of ``Row``, filled in pipeline/steps
results       the committed rows of a folder and where they come from: their files, reading and adding
"""
