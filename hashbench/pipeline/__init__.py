"""From a name to rows: prepare, encode, score, whatever of it is not done yet.

grid         the jobs that options span, each with its method
study        all that spans a grid, as options or a TOML file say it
preparation  datasets: where they lie, made when asked for, found again by name
steps        encode and score one job, each found again by its provenance
failures     what plug-ins raise, told in a sentence, with the traceback in a log file
runner       the jobs of a grid one after the other
workers      the same side by side
rows         what a job's scores give for a results file
models       new items encoded with a kept method
exporting    models and codes in the forms of other programs, compared with ours
onnx_graphs  fitted methods as ONNX
own_codes    scores of codes that users bring in files
sharded_codes  the same of a database larger than memory
"""
