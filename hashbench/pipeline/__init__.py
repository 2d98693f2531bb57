"""From a name to rows: prepare, encode and score whatever is not done yet.

preparation   datasets: where their files are, whether they are current, preparing, finding and loading them
recipes       how users' own datasets were prepared, to prepare them again
grid          the jobs that options span, each with its method, and errors of plug-ins in one sentence
study         what spans a grid, from options or a TOML file
steps         encoding and scoring one job, each step cached by its provenance, and the rows of its scores
one_job       one job, from its dataset to rows
runner        the jobs of a grid, one after the other, in processes or on a cluster
cluster       jobs, and counting of codes, on the workers of a Dask cluster
tuning        settings of methods, chosen on held-out training items
own_codes     users' own codes: read from files, scored, saved and compared
own_grid      users' own codes of several lengths and seeds
sliced_codes  users' own codes and labels of a database that is read in slices
exporting     saved models that encode new items; models and codes in other programs' formats
onnx_graphs   hyperplanes and learned heads as ONNX graphs
"""
