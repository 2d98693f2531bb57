"""From a name to rows: prepare, encode and score whatever is not done yet.

preparation       datasets: where their files are, whether they are current, preparing, finding and loading them
recipes           how users' own datasets were prepared, to prepare them again
grid              the jobs that options span, each with its method
study             what spans a grid, from options or a TOML file
steps             encoding and scoring one job, each step cached by its provenance, and the rows of its scores
failures          errors of plug-ins in one sentence, with the traceback in a log file
one_job           one job, from its dataset to rows
runner            the jobs of a grid, one after the other, in processes or on a cluster
cluster           connecting to a Dask cluster, and leaving out unfit workers
cluster_jobs      jobs on the workers of a cluster
cluster_counting  a database of codes, counted on the workers of a cluster
tuning            settings of methods, chosen on held-out training items
own_codes         users' own codes: read from files, scored and saved
own_grid          users' own codes of several lengths and seeds
two_codes         two codes of the same items: how far they differ, and what queries of one find in the other
sliced_codes      users' own codes and labels of a database that is read in slices
encoding          new items encoded with a saved model
exporting         models and codes in other programs' formats, compared with hashbench's
onnx_graphs       hyperplanes and learned heads as ONNX graphs
"""
