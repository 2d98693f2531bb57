"""Bad input of every kind: what it must say, with which exit code, and that nothing was written.

A row of ``COMMANDS`` is the exit code, the command line, and words that its one line on stderr must hold, apart by
``|``; one of ``CALLS`` is an expression of Python and the words of its error. The files are those of
``helpers/bad_files.py``. What all options of a kind refuse, such as a missing file or a word in the place of a number,
is drawn from the declarations of the commands.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
from hashlib import sha256
from itertools import chain
from pathlib import Path

import click
import numpy as np
import pytest
import scipy.sparse as sp  # noqa: F401 - for the rows of calls
from click.testing import CliRunner
from helpers.bad_files import lay_out
from helpers.command_options import commands

import hashbench
from hashbench.cli.main import cli
from hashbench.cli.options import ArrayFile, Jobs, OneEach
from hashbench.errors import HashbenchError
from hashbench.registry import get_method
from hashbench.store.results import FILE_COLUMNS

HEADER = ",".join(FILE_COLUMNS) + "\n"
ROW = "digits,pixels,itq,44136fa3,16,0,AP,0.5,0.01,0.4,0.6,200,3,0123,1\n"


def changed(old, new):
    """Return rows of which one differs."""
    return HEADER + ROW.replace(old, new)


RESULTS = {  # files of rows, and what is wrong with each
    "twice-other": (changed("", "") + ROW.replace("0.5", "0.55"), "a second time | with different numbers. Delete one"),
    "above": (changed("0.5", "1.5"), "line 2: value 1.5, low 0.4 and high 0.6 are not all between 0 and 1"),
    "outside": (changed("0.5", "0.7"), "value 0.7 lies outside its range over tie orders, 0.4 to 0.6"),
    "large-sd": (changed("0.01", "0.11"), "tie_sd 0.11 is not between 0 and half of the range, 0.4 to 0.6"),
    "undefined": (changed("200,3", "200,201"), "201 of 200 queries are undefined"),
    "nan": (changed("0.5,", "nan,"), "value is nan, 0.4 to 0.6, though 197 of 200 queries have a score"),
    "version": (changed("0123,1", "0123,-1"), "line 2: n_bits is 16, seed 0 and method_version -1"),
    "conflict": (
        HEADER + "<<<<<<< HEAD\n" + ROW + "=======\n" + ROW.replace("0.5", "0.55") + ">>>>>>> topic\n",
        "line 2, is a conflict marker | <<<<<<< HEAD | lines of both sides",
    ),
    "marker": (HEADER + ROW + "=======\n", "line 3, is a conflict marker | --ours"),
    "lacking": ((HEADER + ROW).replace("metric,", "").replace(",AP,", ","), "has columns dataset,"),
    "swapped": (HEADER.replace("low,high", "high,low") + ROW, "has columns | expected"),
    "newer": (
        HEADER.replace("method_version", "method_version,more") + ROW.replace("0123,1", "0123,1,2"),
        "has columns dataset, | method_version,more, expected",
    ),
    "short": (HEADER + "digits,pixels,itq\n", "line 2: it has 3 cells, expected 15"),
    "no-number": (changed("0.5", "half"), "line 2: could not convert string to float: 'half'"),
    "out": (changed("digits", "x/../../.."), "line 2: column dataset | 'x/../../..' | names files"),
    "formula": (changed("pixels", "=1+1"), "column features must begin with none of =+-@, got '=1+1'. Rename it."),
    "no-results": ("a,b\n1,2\n", "has columns a,b, expected dataset,features,method"),
    "empty": ("", "has columns none"),
    "binary": ("\x00\x01\x02", "digits/itq.csv"),
    "latin": (changed("digits", "d\udcff"), "digits/itq.csv"),
}

STUDIES = {
    "bit = 16": "unknown key 'bit'. Did you mean 'bits'",
    "bits = [16": "as TOML: Unclosed array",
    "a = " + 9_000 * "[": "cannot read study-2.toml as TOML: ",
    "bits = []": "bits is an empty list",
    "seeds = [0, -1]": "seeds are from 0 to 4294967295, got -1",
    "methods = [1]": "methods must be names in quotes, or a table for each, got 1",
    "methods.itq = 20": "methods.itq must be a table of parameters, got 20",
    "methods.itq.n_iter = []": "methods.itq.n_iter is an empty list",
    "params = 3": "params must be a table of parameters, got 3",
    "rename = 'ITQ'": "rename must be a table of names, each with the text to show, got 'ITQ'",
    "rename.itq.n_iter = 'ITQ'": "rename: the text for 'itq' must be in quotes, got {",
    "rename.itq = ''": "rename: the text for 'itq' must be words with single blanks, got ''",
    'preset = "paper"\nparams.preset = "paper"': "gives preset twice",
    'methods.itq.tuned = "9 trials"': "tuned of itq is '9 trials', expected the number of settings that were tried",
    "methods.itq.tuned = true": "tuned of itq is True, expected the number",
    "methods.itq.tuned = [9, 10]": "tuned of itq is (9, 10), expected the number",
    "methods.itq.tunned = 9": "unknown itq parameter 'tunned'. Did you mean 'tuned'?",
}


GRID_OF_MINE = """
datasets = ["mine"]
methods = "lsh"
bits = 8
[prepare.mine]
from = "X.npy"
"""
STUDIES |= {  # tables of `prepare`
    GRID_OF_MINE + line: words
    for line, words in {
        "quieres = 5": "prepare.mine.quieres'. Did you mean 'queries'?",
        "queries = '5'": "prepare.mine.queries must be a whole number, got '5'.",
        "queries = 0": "prepare.mine.queries is 0, expected 1 to 4294967295.",
        "seed = true": "prepare.mine.seed must be a whole number, got True.",
        "skip-bad-images = 1": "prepare.mine.skip-bad-images must be true or false, got 1.",
        "affinity = 'same'": "prepare.mine.affinity 'same'. Did you mean 'same-label'?",
        "leave-out = ['zeros', 1]": "prepare.mine.leave-out must be a text in quotes, or a list of such, ",
        "weights = 1": "prepare.mine.weights must be a text in quotes, got 1.",
        "[prepare.other]\nfrom = 'x.npy'": "prepares other, which is not among its datasets.",
        "[prepare.digits]": "prepare.digits must be a table of options of hashbench prepare, from among",
    }.items()
}


def named(params):
    """Return a record with these parameters, by their name."""
    settings = {sha256(json.dumps(params).encode()).hexdigest()[:8]: params}
    return json.dumps({"settings": settings, "origins": {}, "jobs": [], "recipes": {}})


NOW, NAMED = HEADER + ROW, named({})
BY_METHOD = {  # rows and their record
    "good": (NOW, NAMED),
    "missing": (NOW, ""),
    "other": (NOW, NAMED.replace("{}", '{"a": 1}', 1)),
    "cut": (NOW, NAMED[:-4]),
    "short": (NOW[: NOW.index("44136fa3")] + "\n", NAMED),
    "no-parameter": (NOW, named({"=a": 1})),
    "no-label": (NOW, named({"codes": "own", "label": 5})),
    "ours": (NOW, f"<<<<<<< ours\n{NAMED}"),
    "jobs": (NOW, NAMED.replace("[]", '[{"settings": "44136fa3", "origin": "0"}]')),
    "no-object": (NOW, named([])),
    "no-group": (NOW, named({"codes": "own", "group": "pairs"})),
    "unnamed": (NOW.replace("44136fa3", "0" * 8), NAMED),
    "version-99": (NOW.replace("0123,1", "0123,99"), NAMED),
}


OWN = "evaluate --query-codes codes.npy --database-codes codes.npy"
OF_LABELS = "--query-labels labels.npy --database-labels labels.npy"
LABELLED = f"{OWN} {OF_LABELS}"
OF = LABELLED.removeprefix("evaluate ")
OF_CODES = OWN.removeprefix("evaluate ")
OF_SHARDS = f"--query-codes codes.npy --database-codes code[s].npy {OF_LABELS}"
EXPLAINED = LABELLED.replace("evaluate", "explain")
SHARDED = f"evaluate {OF_SHARDS}"
GROUPS = "--groups groups.npy groups.npy"
COARSE = "--coarse coarse.npy coarse.npy"
GRID = "evaluate --query-codes grid_{bits}_{seed}.npz:query --database-codes grid_{bits}_{seed}.npz:database"
SAVED_GRID = f"{GRID.replace('evaluate', 'save mine')} --dataset flowers"
SAVED = f"save mine {OF_CODES} {OF_LABELS} --dataset d --query-codes"
PREPARED = "prepare --name mine --from"
VECTORS = "--vectors outputs.npy outputs.npy"
OF_WORDS = "prepare --from X.npy --labels word-y.npy --name mine"
INDEXED = "prepare --from X.npy --query-from X.npy --name mine --train-index"
EXPLAINED_RUN = "explain --run run.txt qrels.txt"
RUN = "evaluate --run run.txt qrels.txt"
ITQ = "run --method itq --bits 8"
LONG = "a" * 300
COMMANDS = f"""
2 | run | Missing option '--method' / '-m'. `hashbench list methods`
2 | xyz | No such command 'xyz'. Commands: candidates, check, compare, diff,
2 | tune digits-pairs itq --bits 8 | arguments (digits-pairs itq). Did you mean --dataset digits-pairs?
1 | {ITQ} --param n_iter=True | itq got n_iter=True, but n_iter is not a switch
1 | {ITQ} --param n_iter={"9" * 30} | itq got n_iter beyond 1e+18
1 | info NDGC@100 | Did you mean 'NDCG@100'?
1 | info nothing | hashbench list
1 | info codes.npy | hashbench evaluate
1 | info r | is a folder
1 | prepare digts-unseen1-fold0 | unknown dataset
1 | prepare digits-unseen1-fold0:gits | unknown feature kind
1 | {ITQ} --dataset digts | unknown dataset 'digts' | 'digits'
1 | {ITQ} --dataset text.h5 | text.h5 | not HDF5
1 | {ITQ} --metric APP | unknown metric 'APP' | 'AP'
1 | {ITQ} --metric Recall@10:reranked | option 'reranked'; options of R@k: relevant, capped, reranked=m, dot, sigmoid.
1 | run --method itq --bits 0 | codes must have 1 to 4096 bits, got 0.
1 | run --method itq --bits 100 | itq needs n_bits <= 61 | 64 features | got n_bits=100
1 | run --method oracle-label --bits 3 | oracle-label needs 4 bits | 10 classes | n_bits=3
1 | {ITQ} --method lsh --param n_itr=20 | unknown itq or lsh parameter 'n_itr'. Did you mean 'n_iter'?
1 | {ITQ} --param n_iter=-1 | 'n_iter' parameter of itq must be an int in the range [0, inf). Got -1
1 | {ITQ} --param n_iter=20, | comma with nothing before or after it
1 | {ITQ} --param n_iter=20 --param n_iter=50 | 'n_iter' twice; for several values write n_iter=20,50
1 | {ITQ} --param ksh:n_items=5000 | n_items is only for ksh, and the methods here are itq | --method ksh
1 | run --grid codes.npy | cannot read codes.npy as TOML
1 | {ITQ} --preset paper | none of itq has a preset, got 'paper'
1 | {ITQ} --param n_bits=16 | n_bits is not a --param | --bits
1 | run --method dpsh --bits 8 --preset papers | unknown dpsh preset 'papers'. Did you mean 'paper'
1 | run --method dpsh --bits 8 --param backbone=resnet18 | dpsh with a backbone reads images | digits:images
1 | run --method dsh --bits 8 --param backbone=dsh-net --param weights=X.npy | weights, which is for pretrained networks
2 | encode --method itq --bits 8 --packed | --packed needs --model
2 | encode --model none.npz --from X.npy --output o.npy --seed 1 | --seed does not go with
2 | encode --model none.npz --from none.npy --output o.csv | --output o.csv is written | a name that ends in .npy.
1 | export text.npy --to npy --output o.npy | text.npy is neither codes nor a model | .h5 | .model.h5 file of encode
1 | export codes.h5 --to hex --output o --precision float32 | --precision has no effect on codes
1 | export codes.h5 --to onnx --output o | holds codes, got --to onnx. Expected one of faiss, hex
1 | prepare cifar10-s1 --source loop | cannot read loop: Too many levels
1 | tables --results before | before/digits.csv has columns dataset,features,method,params,n_bits | move it out
1 | results merge n/missing --results n/good | itq.json is missing
1 | {ITQ} --results n/missing | itq.json is missing, which holds the parameters
1 | results check n/other | 44136fa3 is not what hashbench calls the parameters {{"a": 1}}
1 | tables --results r/good --rename iqt ITQ | there is no 'iqt' in these tables. Did you mean 'itq'? Names: AP,
1 | tables --results r/good --rename itq '' | words with single blanks, got ''
1 | plot ap-bits --results n/cut | itq.json is damaged
1 | tables --results n/ours | itq.json, line 1, is a conflict marker of git
1 | {ITQ} --results n/short | itq.csv, line 2: it has 4 cells, expected 15
1 | {ITQ} --results n/jobs | itq.json lacks '0'
1 | {ITQ} --results n/version-99 | itq.csv has rows of version 99 of itq, and those to add are of version 1. Upgrade itq
1 | report --results r/good --against text.npy --output r.html | text.npy has columns
1 | report --results r/good --output r.pdf | r.pdf ends in .pdf as other files do | give r.html
1 | report --results r/good --output text.npy | text.npy is another kind of file | give text.html
1 | plot ap-bit --results r/good | unknown figure 'ap-bit' | 'ap-bits'
1 | plot ap-bits --results r/good --metric NDCG | no results in NDCG | AP
2 | thresholds --pairs pairs.csv | --pairs needs --database-codes
2 | thresholds --database-codes 'c*.npy' --pairs pairs.csv | --pairs needs codes in one file each
1 | thresholds --database-codes codes.npy --pairs pairs.csv | 'a', expected one of the row numbers | name a column or
1 | thresholds --database-codes named-hashes.csv --pairs codes.npy | from a table such as .csv or .parquet, got
1 | thresholds --database-codes named-hashes.csv --pairs rows.csv | rows.csv has 1 column, expected three: two ids
1 | thresholds --database-codes named-hashes.csv --pairs pairs-maybe.csv | has 'maybe', expected 1 (true, yes, same)
1 | thresholds --database-codes named-hashes.csv --pairs pairs-both.csv | items 0 and 1 of the codes (counted
1 | thresholds --database-codes twice-named.csv --pairs pairs.csv | has 2 distinct ids in 3 rows for 3 codes.
1 | prepare digits --device cpu | digits:pixels does not use --device
1 | {PREPARED} X.npy --labels y.npy --affinity distance | --labels have no effect
1 | {PREPARED} X.npy --labels y.npy --neighbours 3 | --neighbours compares features, so --labels
1 | {PREPARED} X.npy --affinity distance --neighbours 3 | got --affinity distance with --neighbours 3
1 | {PREPARED} X.npy --neighbours 37 | 36 database items, 37 neighbours of each query
1 | {PREPARED} X.npy --true-distance cosine | Euclidean distance
1 | results check r/formula | column features must begin with none of =+-@, got '=1+1'. Rename it.
1 | results check n/no-label | itq.json is damaged: a label is | without =<>|`, got 5
1 | save mine {OF} --dataset own --group pairs | unknown group 'pairs'. Did you mean 'pair-based'?
1 | save mine {OF} --dataset own --label =1 | a label is a string of up to 40 characters without =<>|`, got '=1'
1 | save mine {OF} --dataset own-unseen3 | without a fold; add one, such as own-unseen3-fold0.
1 | save Öurs {OF} --dataset own | letters a to z and A to Z, digits
1 | {LABELLED} --query-codes hexes.npy | query codes are strings, database codes a column for each bit
1 | {LABELLED} --query-labels nameless.csv | for 5 of 6 items | put a line of names above it.
1 | {PREPARED} X.npy --labels nameless-40.csv | for 39 of 40 items | read as names. If that line
1 | results check n/no-parameter | itq.json is damaged: params has '=a', expected names of parameters
1 | {LABELLED} --query-codes masks.npy | from 0 to 255: packed codes, | --bits
1 | {LABELLED} --query-labels y-nan.npy | not whole numbers, first nan for item 3 | Leave such
2 | evaluate codes.h5 --run run.txt qrels.txt | CODES.h5 does not go with --run
1 | evaluate --run run.txt run.txt | run.txt line 1 has 6 columns, expected 4 | those of a run
1 | evaluate --run run-up.txt qrels.txt | run-up.txt has scores that grow with the rank
1 | evaluate --run run.txt qrels-other.txt | no query in common
1 | {RUN} --metric PairwiseError | counts the items below each relevant one
2 | evaluate | give CODES.h5
1 | on tcp://127.0.0.1:1 evaluate {OF} --query-outputs X.npy | workers count Hamming distances of codes
2 | on tcp://127.0.0.1:1 save mine {OF} | No such command 'save'
1 | on 127.0.0.1 evaluate {OF} | '127.0.0.1', expected the address of a scheduler
2 | on tcp://127.0.0.1:1 | Missing command.
1 | on tcp://scheduler.invalid:8786 evaluate {OF} | is another machine, and without TLS anyone there
2 | on tcp://127.0.0.1:1 run --method lsh --bits 4 --jobs 2 | runs one job on each worker
2 | evaluate foreign.h5 --query-codes codes.npy --database-codes codes.npy | --query-codes does not go with CODES.h5
1 | {OWN} | define what is relevant
1 | {LABELLED} --query-labels labels.npy --affinity levels.npy | define what is relevant
1 | {OWN} --affinity levels.npy {COARSE} | superclasses (--coarse) need --query-labels
1 | {OWN} --query-labels other-labels.npy --database-labels blank-labels.npy | such as 'c3'; the nearest there is 'c3 '
1 | {OWN} --affinity levels-5.npy {GROUPS} | groups are found by class labels | Give labels (n,) of queries and
1 | {LABELLED} --junk-label 99 | no database item has the label 99 of junk
1 | {LABELLED} --exclude-self --junk-label 0 | themselves out are the database. Remove junk from
1 | {LABELLED} --exclude-same-id groups.npy other-ids.npy | no id of the queries is an id of the database
1 | {LABELLED} --exclude-self --exclude-same-id groups.npy labels.npy | but their ids differ. Give the same ids
1 | save mine {OF} {GROUPS} --dataset own --keep-codes | what --groups ignores; leave one of the two out
1 | {LABELLED} --distance cosine --bits 8 | have no --bits
1 | {LABELLED} --dataset digits | codes of 6 queries and 6 database items, but digits has 200 and 1,597
1 | {SHARDED} --database-codes 'no-*.npy' | no file matches no-*.npy. Fix the pattern
1 | {SHARDED} --database-codes '[cm]*s.npy' | masks.npy holds uint8 of shape | all shards need one dtype
1 | {LABELLED} --query-codes text.pt | text.pt is damaged, or holds more than tensors | torch.save
1 | {SHARDED} --database-labels hot.npy | give both as class labels
1 | {SHARDED} {OF_LABELS.replace("labels.npy", "word-labels.npy")} {COARSE} | superclasses in shards are
1 | {SHARDED} --coarse crossed.npy crossed.npy | has items of several superclasses; it must lie in one
1 | {SHARDED} --query-codes zero-outputs.npy --distance cosine | all zeros in 6 rows
1 | {LABELLED} --true-distance cosine | is the distance between --vectors; add these
1 | {LABELLED} --metric Recall@10:reranked=100 | give --vectors, or in Python vectors=
1 | {LABELLED} {VECTORS} --metric AP | such as --metric Recall@10:reranked=100, or leave the vectors out
1 | {OWN} {VECTORS} --dataset digits | leave out --vectors
1 | {ITQ} --metric P@r2:dot | ranks by real-valued queries (dot), and P@r2 needs Hamming distances
1 | {LABELLED} --metric AP:dot | give --query-outputs with your own codes
2 | save mine {OF_SHARDS} --dataset own | codes are saved from one file
1 | save mine {OF} --dataset digits | codes of 6 queries and 6 database items, but digits has 200 and 1,597
1 | save mine {OF} --dataset DIGITS | 'digits' is a dataset with its own labels
1 | save mine {OF} --dataset own --distance cosine --keep-codes | --keep-codes keeps binary codes
1 | {LABELLED} --bit-order big | a column for each bit, where the order of bits (big) has no effect
2 | {LABELLED} --per-query scores.xlsx | --per-query writes CSV, got scores.xlsx; name it scores.csv.
1 | candidates {OF} --wanted-recall .9 --metric P@5 | for a recall such as R@10, got metric 'P@5'
1 | compare codes.npy {OF_CODES} --junk-label 3 | got nothing to define what is relevant, expected one of
1 | compare wide.npy {OF} | the query codes have 8 bits and the other ones 16; both must be equally long.
1 | compare codes.npy {OF} --query-codes few.npy | codes.npy would be the other codes of both
2 | compare codes.npy {OF} --format csv | in several tables, which --format csv cannot hold
2 | compare run.txt run.txt | run.txt is a file. Two runs need --qrels. To compare codes, give some as --query-codes
2 | compare itq lsh --encoding base64 | --encoding has no effect where methods are compared
2 | evaluate --run run.txt --metric AP | '--run': it takes two files, RUN QRELS, got run.txt and --metric.
2 | on tcp://127.0.0.1:1 {RUN} | workers count your own codes
2 | compare codes.npy wide.npy {OF} | give OTHER, one name, got 2 names.
1 | {OWN} --query-labels hot.npy --database-labels hot-4.npy | 6 classes | 4
1 | {OWN} --query-labels hot-twos.npy --database-labels hot-twos.npy | neither 0 nor 1
1 | evaluate codes.npy | codes.npy is not a CODES.h5 of hashbench | --query-codes
1 | {EXPLAINED} --query-codes outputs.npy | not -1 or 1, first 0. | binarise with (x > 0)
1 | {EXPLAINED} --database-order sorted | 'sorted', expected given, by-class, shuffled, or shuffled:7 with a seed
1 | {EXPLAINED} --value abc | the value is 'abc', expected a score with two decimals or more, such as 0.731, or
2 | prepare | name datasets to prepare
1 | prepare cifar10-s1:gits | Did you mean 'gist'? Known feature kinds
1 | prepare arrays | hashbench prepare --from features.npy --labels labels.npy --name mydata
2 | {PREPARED} X.npy --features gist --features pixels | Give --features once
1 | {PREPARED} none --features gist | none is not a folder of images
1 | {OF_WORDS} --query-from X.npy --query-labels y.npy | database labels are words and the other labels numbers
1 | {PREPARED} X.npy --labels y.npy --affinity shared-labels | of dataset 'mine' needs multi-hot
1 | {PREPARED} X.npy --queries 40 | of 40 items, 40 queries and 1 training items
1 | {PREPARED} X.npy --labels y.npy --queries-per-label 3 --queries 3 | not both
1 | {PREPARED} X.npy --query-labels y.npy | --query-from
1 | {PREPARED} X.npy --query-from codes.npy | 8 columns | 4
1 | {PREPARED} X-turned.npy --labels y.npy | X-turned.npy has 4 rows and 40 columns, expected 40 rows
1 | {INDEXED} rows-40.npy | rows-40.npy names row 40, and the database has rows 0 to 39
1 | {INDEXED} rows-twice.npy | names row 3 more than once
1 | {INDEXED} rows-half.npy | float64 of shape (2,), expected row numbers of the database
1 | {INDEXED} rows-mask.npy | bool of shape (40,), expected row numbers of the database
1 | {INDEXED} rows.csv | the first line of rows.csv may be a row number or a name
1 | {INDEXED} rows-twice.npy --train 3 | names the training items; leave out --train and --train-per-label
1 | {PREPARED} X.npy --query-from X.npy --train-per-label 3 | training items for each label, give labels
1 | {EXPLAINED_RUN} --metric AP:thresholds | none of trec_eval, | gives AP:thresholds; ask for AP
1 | {PREPARED} X.npy --features hf:r | expected texts of shape (n,) | give a folder of images
1 | info foreign.h5 | not written by hashbench: it lacks record. Repeat the command that wrote it.
2 | run --method lsh --bits 8 --part 0/3 | '0/3' is not a part
2 | run --method lsh --bits 8 --part 4/3 | '4/3' is not a part, expected I/N such as 2/5
1 | tune --method ksh --bits 8 --param preset=paper | starts from the defaults
1 | tune --method itq --bits 8 --output tuning-rows | tuning-rows/digits.json is missing | Restore it
1 | tune --method csq --bits 8 --param 'head="None"' | a value of csq's head is the text 'None', which grid.toml cannot
1 | tune --method itq --bits 8 --output tuning-grid | tuning-grid/grid.toml does not begin with | does not replace it
1 | tune --method itq --bits 8 --output tuning-no-grid | cannot write tuning-no-grid/grid.toml: Is a directory
1 | check method bad.py | is a file, expected the name of a method, whose code hashbench then runs. | methods/bad.py in
1 | {GRID} {OF_LABELS} | there is no file grid_{{bits}}_{{seed}}.npz
1 | {SAVED_GRID} {OF_LABELS} --bits 8 | --bits 8 does not go with {{bits}} in the names of files
1 | {SAVED_GRID} --affinity far.ivecs | Error: far.ivecs lists neighbours 99 to 99, and the database has items 0 to 5
1 | {SAVED} 'none_{{bits}}.npy' | no file matches none_{{bits}}.npy, in which {{bits}} and {{seed}} are numbers
1 | {SAVED} 'far_{{seed}}.npy' --database-codes 'far_{{seed}}.npy' | names seed 4294967296, expected 0 to 4294967295
1 | {SAVED} 'o_{{bits}}.npy' --database-codes 'o_{{bits}}.npy' --distance cosine | 8 columns, and the name says 9 bits
1 | {LABELLED} --query-codes wide.npy | in wide.npy have 16 columns | in codes.npy 8
1 | {LABELLED} --query-codes few.npy | 3 query codes | 6
1 | {LABELLED} --query-codes flat.npy | two dimensions
1 | {LABELLED} --query-codes small-hashes.npy | give integers, and say how many bits it has: --bits
1 | {LABELLED} --query-codes none.npy | query codes are empty: shape (0, 8)
1 | {LABELLED} --query-codes threes.npy | 20 values that are not 0 or 1, first 3 in row 0, column 1
1 | {LABELLED} --query-codes signs-nan.npy | 1 values that are not -1 or 1, first nan in row 3, column 4
1 | {LABELLED} --query-codes words.npy | query codes are <U5 of shape
1 | {LABELLED} --query-codes cut.npy | cannot read cut.npy as .npy: it is cut short, or numpy.save did not write it.
1 | {LABELLED} --query-codes text.npy | cannot read text.npy as .npy: it is cut short, or numpy.save did not write it.
1 | {LABELLED} --query-codes archive.npy | cannot read archive.npy as .npy
1 | {LABELLED} --query-codes two.npz | two.npz holds arrays a, b | two.npz:a
1 | {LABELLED} --query-codes dangling.npy | dangling.npy is a link to
1 | {LABELLED} --query-labels word-labels.npy | query labels are words and the other labels numbers; give both in
1 | {LABELLED} --query-labels latin-labels.npy | holds strings as bytes that are not UTF-8
1 | {LABELLED} --query-labels object-labels.npy | it holds Python objects, and opening them could run code
1 | {LABELLED} --query-labels huge-labels.npy | 9223372036854775808
1 | {LABELLED} --query-labels small-hashes.npy | no class of the queries
1 | candidates {OF_CODES} --affinity levels-half.npy --wanted-recall .5 --metric R@2 | R@2 needs whole
1 | {OWN} --affinity levels-negative.npy | levels 0 to 1000, and -1 to ignore a pair, got 1 other values (-2)
1 | {OWN} --affinity levels-half.npy --metric NDCG --metric P@2 | P@2 needs whole-number levels
1 | {OWN} --affinity levels-half.npy --metric NDCG --curves curves.csv | a curve needs whole-number levels of relevance
1 | explain {OF_CODES} --affinity levels-half.npy | explain needs whole-number levels | a threshold
1 | {OWN} --affinity levels-of-signs.npy | level -1 and no 0 | Write 0 for irrelevant pairs
1 | {OWN} --affinity levels-ignored.npy | query 2 (counted from 0) ignores all items of the database | Remove the query
1 | {OWN} --affinity levels-5.npy | 6 query codes | 5
1 | {OWN} --affinity neighbours.npy | 6 database codes, but labels or affinities for 3
1 | {OWN} --affinity csr-shifted.npz | is damaged: indices must be >= 0
1 | {OWN} --affinity csr-pointer.npz | damaged | non-decreasing
1 | {OWN} --affinity words.npy | an affinity holds levels 0 to 1000, and -1 to ignore a pair, got values of dtype <U5
1 | {PREPARED} X.npy --name ../mine | a dataset's name may contain only letters
1 | {PREPARED} X.npy --name '' | a dataset's name may contain only letters
1 | {PREPARED} X.npy --name mine.h5 | 'mine.h5' reads like a file
1 | {PREPARED} X.npy --name digits-2 | 'digits-2' is, or begins like, the name of a built-in dataset
1 | {PREPARED} X-nan.npy | not finite, first nan in row 1, column 3
1 | {PREPARED} X-huge.npy | too large for float32
1 | {PREPARED} X-flat.npy | shape (40,)
1 | {PREPARED} cell.csv | column 'a' of cell.csv holds numbers, but '1.2.3' in row 20
1 | {PREPARED} mixed.csv | first line of mixed.csv mixes 1 numbers with words
1 | {PREPARED} latin.csv | cannot read latin.csv as .csv: its text is not UTF-8. Save it as UTF-8.
1 | {PREPARED} tabs.tsv | tabs.tsv has an unknown suffix | .feather. Save it as .csv, with commas.
1 | {PREPARED} pickle.pkl | Opening pickles could run code; save arrays with numpy.savez.
1 | {PREPARED} r | r is a folder; choose --features
1 | {PREPARED} X.npy --labels gaps.csv | 20 items of gaps.csv have no label, first item 1 | as NA
1 | {PREPARED} X.npy --labels labels.npy | 40 items | 6
""".strip().splitlines()
COMMANDS += [f"1 | run --bits 8 --grid study-{at}.toml | {words}" for at, words in enumerate(STUDIES.values())]
COMMANDS += [f"1 | tables table1 --results r/{name} | {words}" for name, (_, words) in RESULTS.items()]


@pytest.fixture(scope="module")
def place(prepared, tmp_path_factory):
    """The folder of the files, a data folder in which digits are prepared, and all that is in both."""
    folder, data = tmp_path_factory.mktemp("bad"), tmp_path_factory.mktemp("data")
    shutil.copytree(prepared, data, dirs_exist_ok=True)
    results = {f"r/{name}": (text, NAMED) for name, (text, _) in RESULTS.items()} | {"r/good": (NOW, NAMED)}
    lay_out(folder, STUDIES, results | {f"n/{name}": texts for name, texts in BY_METHOD.items()})
    (folder / "before").mkdir()
    (folder / "before" / "digits.csv").write_text(NOW.replace("settings", "params").replace("44136fa3", "{}"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(data))
        encode = ["encode", "--method", "lsh", "--bits", "4", "--keep-model"]
        made = CliRunner().invoke(cli, encode, catch_exceptions=False).stdout.split()
    for path, name in zip(made, ("codes.h5", "model.h5"), strict=True):
        Path(path).rename(folder / name)
    return folder, data, [all_files(folder, data)]


def all_files(*folders):
    """Names of all there is, but for locks and the folders that these lie in; of files, sizes and times."""
    found, locks = {}, []
    for place, inner, names in chain.from_iterable(map(os.walk, folders)):  # a third of the time of pathlib
        found |= {f"{place}/{name}": () for name in inner}
        for path in (f"{place}/{name}" for name in names):
            if path.endswith((".lock", ".locks/.gitignore")):
                locks.append(path)
            else:
                status = os.lstat(path)
                found[path] = status.st_size, status.st_mtime_ns
    return {path: state for path, state in found.items() if not any(lock.startswith(f"{path}/") for lock in locks)}


def refusal(place, line):
    """Run a command that is to be refused; return its exit code and the last line on stderr."""
    folder, data, _ = place
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(data))
        done = CliRunner().invoke(cli, line, catch_exceptions=False)
    assert done.stdout == "", line
    *usage, last = done.stderr.splitlines()
    assert last.startswith("Error: "), line
    assert usage == [] if done.exit_code == 1 else (done.exit_code, usage[0][:7]) == (2, "Usage: "), line
    return done.exit_code, last


def assert_nothing_written(place):
    folder, data, before = place
    before.append(all_files(folder, data))
    assert before[-1] == before.pop(0)


@pytest.mark.parametrize("line", COMMANDS, ids=lambda line: line[:100])
def test_bad_command(place, line):
    exit_code, command, *words = line.split(" | ")
    code, last = refusal(place, shlex.split(command))
    assert_nothing_written(place)
    assert (code, [word for word in words if word not in last]) == (int(exit_code), []), last


# ---------------------------------------------------------------- what all options of a kind refuse

TAKING_NAMES = "methods|metrics|metric|datasets|dataset|features|scripts|names|name|kind|method|against|old"
REST = {  # of each command
    "candidates": f"{OF} --metric R@2 --wanted-recall .5",
    "check": "method lsh",
    "compare": f"codes.npy {OF}",
    "diff": "r/good r/good",
    "encode": "--method itq --bits 8",
    "evaluate": OF,
    "explain": f"{OF} --metric AP",
    "export": "model.h5 --to npz --output o.npz",
    "info": "itq",
    "list": "methods",
    "plot": "--results r/good --output o",
    "prepare": f"{PREPARED.removeprefix('prepare ')} X.npy --query-from X.npy",
    "report": "--results r/good --output o.html",
    "results check": "r/good",
    "results merge": "r/good --results o",
    "results rerun": "r/good",
    "run": "--method itq --bits 4 --results o",
    "save": f"mine {OF} --dataset own --results o",
    "tables": "--results r/good --output o --significance",
    "thresholds": OF,
    "tune": "--method itq --bits 4 --output o",
}
REST_BESIDE = {  # options that need or exclude others
    **{(name, "--affinity"): OF_CODES for name in ("evaluate", "explain", "thresholds")},
    ("candidates", "codes"): "--metric R@2 --wanted-recall .5",
    ("candidates", "--affinity"): f"{OF_CODES} --metric R@2 --wanted-recall .5",
    ("compare", "--features"): "itq lsh --results r/good",
    ("compare", "--results"): "itq lsh",
    ("compare", "--qrels"): "run.txt run.txt",
    ("compare", "--pairs"): "codes.npy --database-codes codes.npy",
    ("encode", "--model"): "--from X.npy --output o.npy",
    ("evaluate", "--scores"): OF_LABELS,
    ("results check", "--results"): "",
    ("encode", "--from"): "--model model.h5 --output o.npy",
    ("encode", "--output"): "--model model.h5 --from X.npy",
    ("evaluate", "--run"): "",
    ("explain", "--run"): "",
    ("export", "file"): "--to npz --output o.npz",
    ("prepare", "--dataset"): "",
    ("prepare", "--source"): "cifar10-s1",
    ("save", "--affinity"): f"mine {OF_CODES} --dataset own",
    ("tables", "names"): "--results r/good",
    ("thresholds", "--pairs"): "--database-codes codes.npy",
}
NOT_REFUSED = {  # values that are right there, or looked at after something else
    "check": ("--features", "--source", "--weights"),
    "compare": ("--affinity", "--query-codes", "--database-codes"),
    "diff": ("--results",),
    "prepare": ("--name", "--weights"),
    "results rerun": ("--against", "--method"),
    "save": ("name", "--dataset"),
}


def wrong_values(parameter, is_first):
    """Yield values that a parameter refuses; all of them if it is the first of its name and type."""
    kind = getattr(parameter.type, "kind", parameter.type)
    if isinstance(kind, ArrayFile | click.Path):
        yield ""
        yield "codes.npy/x"
        if is_first:
            yield "loop.npy"
        if is_first and isinstance(kind, ArrayFile):
            yield from ("folder.npy", "pipe.npy", "text.npy")
    elif re.fullmatch(TAKING_NAMES, parameter.name):
        yield "nonsense"
    if is_first and isinstance(parameter.type, OneEach):
        yield "a,b"
    if is_first and isinstance(kind, click.Choice):
        yield "nonsense"
    if is_first and isinstance(kind, click.IntRange | click.FloatRange | click.types.IntParamType):
        yield from ("word", "nan", *(["0"] if isinstance(kind, Jobs) else []))
        for bound, beyond in ((getattr(kind, "min", None), -1), (getattr(kind, "max", None), 1)):
            yield from [str(bound + beyond)] if bound is not None else []


def wrong_by_command():
    """Return the parameters of each command, each with a value that it refuses."""
    wrong, seen = {}, set()
    for name, command in commands(cli):
        for parameter in command.params:
            declared = parameter.opts[0], repr(parameter.type), parameter.nargs
            if not getattr(parameter, "is_flag", False) and parameter.opts[0] not in NOT_REFUSED.get(name, ()):
                values = wrong_values(parameter, declared not in seen)
                wrong.setdefault(name, []).extend((parameter, value) for value in values)
            seen.add(declared)
    return wrong


WRONG = wrong_by_command()


@pytest.mark.parametrize("name", WRONG)
def test_every_option_refuses_what_is_none_of_its_values(place, name):
    for parameter, value in WRONG[name]:
        label, values = parameter.opts[0], [value] * max(parameter.nargs, 1)
        if isinstance(parameter, click.Option):
            line = [*name.split(), *shlex.split(REST_BESIDE.get((name, label), REST[name])), label, *values]
        else:
            line = [*name.split(), *values, *shlex.split(REST_BESIDE.get((name, label), ""))]
        _, last = refusal(place, line)
        assert value in last if value else "the path is empty; give " in last, (line, last)
    assert_nothing_written(place)


# ---------------------------------------------------------------- from Python

CODES, LABELS = np.eye(4, 8) > 0, np.arange(4) % 2


def call(codes=CODES, affinity=(LABELS, LABELS), metrics="AP", **options):
    """Score codes against others."""
    return hashbench.evaluate(codes, CODES, affinity, metrics, **options)


def problem(affinity=(LABELS, LABELS)):
    """Codes to score."""
    return hashbench.Problem.of_codes(CODES, CODES, affinity)


def explain(metrics="AP", scripts="csq", **options):
    """Show what a script makes of codes."""
    return hashbench.explain(problem(), metrics, scripts=scripts, **options)


def fit(method, levels):
    """Fit a method to items with these levels to each other."""
    return get_method(method)(4).fit(np.eye(len(levels)), hashbench.Explicit(levels))


def tensor(**options):
    """A tensor of PyTorch, (4, 8)."""
    import torch

    return torch.eye(4, 8, **options)


CALLS = """
call([[0, 1], [1]]) | query codes cannot be read as an array: lists of unequal lengths
call(affinity=([1, [2]], LABELS)) | query labels cannot be read as an array
call(tensor(device="meta")) | query codes cannot be read as an array
call(np.ma.masked_array(CODES, mask=~CODES)) | query codes hide 28 values behind a mask
call(affinity=(np.ma.masked_array(LABELS, mask=[1, 0, 0, 0]), LABELS)) | query labels hide 1 values
call(affinity=2 * (sp.coo_array((2, 1 << 58)),)) | query labels are sparse, of shape (2, 288230376151711744)
call(groups=LABELS) | groups must be a pair, (query_groups, database_groups), got a
call(junk_label=[0, 0.5]) | the label of junk is 0.5, and labels are whole numbers
call(exclude_same_id=(LABELS, LABELS[:2])) | there are 2 database ids for 4 database items
call(CODES.astype(complex), distance="cosine") | expected real numbers
call(CODES.astype(object)) | dtype object
call(None) | two dimensions
call(np.where(CODES, 1e30, -1)) | values that are not -1 or 1, first 1e+30
call(affinity=()) | must be a pair (query_labels, database_labels), got a tuple of 0
call(affinity=(LABELS, np.eye(4))) | both as class
call(affinity=(["a", "b", None, "a"], list("abab"))) | query labels are words, but item 2 (counted from 0) has None
call(affinity=([np.nan, *"bab"], list("abab"))) | query labels are words, but item 0 (counted from 0) has nan
call(affinity=(list("abab"), ["a", 2, "a", 2])) | database labels are words, but item 1 (counted from 0) has 2
call(affinity=(LABELS + 2.0**53, LABELS)) | query labels are float64, exact up to 9007199254740991
call(affinity=((LABELS - 2**24).astype("f4"), LABELS)) | float32, exact up to 16777215, and hold -16777
call(affinity=((LABELS + 2**11).astype("f2"), LABELS)) | are float16, exact up to 2047, and hold 2048
call(affinity=(["xxxxx"] * 4, list("abab"))) | of the database, such as 'xxxxx'. Write the same class as
call(affinity=(["cat"] * 4, ["dog", "Cat"] * 2)) | such as 'cat'; the nearest there is 'Cat'
fit("ksh", np.eye(4) / 2) | ksh needs whole-number levels of relevance, and one is 0.5
fit("talr-ndcg", np.eye(4) * 0.9) | talr-ndcg needs whole-number levels of relevance, and one is 0.9
problem(np.eye(4) / 2).thresholds() | a threshold needs whole-number levels of relevance
call(affinity=np.eye(4) * 1j) | got values of dtype complex128
call(random_orders=2.5) | random_orders is 2.5, expected a whole number from 2 to 1,000,000
problem(np.eye(4, dtype=int)).candidates("R@2", []) | wanted_recall is empty, expected one recall or several
hashbench.compare(call(), call(), names=("a", "a")) | both methods are called 'a'; give each its own name
hashbench.run("lsh", 8, results="") | results is an empty path; give a name, or '.'
hashbench.run("lsh", 8, n_jobs=0) | n_jobs is 0, expected a whole number from 1, or -1
hashbench.run("lsh", 8, n_jobs=2.5) | n_jobs is 2.5, expected a whole number from 1, or -1
hashbench.tune("itq", 8, output="new", n_trials=2.5) | n_trials is 2.5, expected a whole number from 1
explain(value=0.730) | the value is 0.73, expected a string such as '0.730', whose final zeros count
explain(database_order=["given"]) | the database order is ['given'], expected given, by-class
explain(metrics=None) | metrics are names such as AP or NDCG@100, got None
explain().to_text("csv") | form must be one of table, markdown, json, got 'csv'
hashbench.tables(digits=7) | digits is 7, expected a whole number from 1 to 6.
hashbench.tables(rename={"itq": 3}) | rename: the text for 'itq' must be in quotes, got 3.
hashbench.compare_results() | a comparison needs two methods or more, got none
hashbench.compare_results("itq", ["lsh", "sh"]) | methods are names, got ['itq', ['lsh', 'sh']]
hashbench.read_codes("q.npy") | q.npy is not a CODES.h5 of hashbench. Pass your own codes as arrays
call(metrics=[]) | there are no metrics
call(metrics=["AP", ""]) | unknown metric ''
call(metrics=["map@100"]) | unknown metric 'map@100'. Did you mean 'AP@100'? Known metrics: ACG@k, AP,
call(distance="euclidean") | distance must be one of
call(true_distance="manhattan") | true_distance must be one of euclidean
call(distance="cosine", n_bits=8) | which have no n_bits and no bit_order
call(undefined="none") | undefined must be one of
call(n_bits=8.0) | 1 to 4096 bits, got 8.0
call(n_bits=9) | codes of 9 bits have 9. Check the number of bits.
hashbench.evaluate_run({}, {"q": {"a": 1}}) | the run is empty, expected documents for one query or more
hashbench.evaluate_run({"q": {"a": 1.0}}, {}) | the qrels is empty, expected
""".strip().splitlines()
UNCOUNTED = """
hashbench.evaluate(CODES, CODES, of, ["P@r1"], distance="cosine") | P@r1 counts inside a radius of Ham
hashbench.evaluate(CODES, CODES, of, ["AP"], distance="cosine") | AP needs whole-number levels
hashbench.evaluate(CODES, CODES, of, ["AP"]) | AP needs whole-number levels of relevance
hashbench.Problem.of_codes(CODES, CODES, of).candidates("R@2", 0.5) | R@2 needs whole-number levels of relevance
hashbench.Problem.of_codes(CODES, CODES, of).candidates("AP", 0.5) | candidates are counted for a recall such as R@10
hashbench.Problem.of_codes(CODES, CODES, of).thresholds() | a threshold needs whole-number levels of relevance
hashbench.Problem.of_codes(CODES, CODES, of).curves() | a curve needs whole-number levels of relevance
hashbench.evaluate_run({"q": {"a": 1.0}}, {"q": {"a": 1}}, ["P@r1"]) | P@r1 counts inside a radius
hashbench.evaluate_run({"q": {"a": 1.0}}, {"q": {"a": 0.5}}, ["AP"]) | AP needs whole-number levels
hashbench.evaluate_ranking(relevance=[[1, 0]], scores=[[0.5, 0.1]], metrics=["P@r1"]) | P@r1 counts
""".strip().splitlines()  # what a metric cannot score, known before any item is counted and any loop compiled


@pytest.mark.parametrize("row", CALLS)
def test_bad_call(row):
    expression, words = row.split(" | ")
    with pytest.raises(HashbenchError) as caught:
        eval(expression)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


class Uncounted(hashbench.Explicit):
    """An affinity of real levels, which nobody reads."""

    def block(self, query, database):
        raise AssertionError("items are counted")


@pytest.mark.parametrize("row", UNCOUNTED)
def test_a_metric_that_does_not_fit_is_refused_before_anything_is_counted(row, monkeypatch):
    monkeypatch.setattr("hashbench.scoring.ranking.ItemSums", lambda *arguments, **options: pytest.fail("counted"))
    expression, words = row.split(" | ")
    with pytest.raises(HashbenchError, match=f"^{re.escape(words)}"):
        eval(expression, globals(), {"of": Uncounted(np.eye(4) / 2)})


def test_each_row_has_words_that_its_own_command_does_not_say():
    for line in COMMANDS:
        _, command, *words = line.split(" | ")
        assert any(len(word) >= 8 and word not in command for word in words), line
    assert all(len(row.partition(" | ")[2]) >= 7 for row in CALLS)


@pytest.mark.parametrize(
    "change", [lambda one: one.requires_grad_(), lambda one: one.bfloat16(), lambda one: one.bool()]
)
def test_any_tensor_with_values_is_read(change):
    assert call(change(tensor())).summary == call().summary
