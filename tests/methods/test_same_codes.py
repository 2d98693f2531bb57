"""The same seed gives the same codes with any number of threads and, but for a few methods, on another processor.

Another processor is imitated: OpenBLAS, MKL, PyTorch and NumPy leave out the instructions that newer ones have.
"""

import json
import os
import platform
import subprocess
import sys

import h5py
import numpy as np
import pytest

from hashbench import registry

# docs/explanation/numbers.md names them, too
DEPEND_ON_THE_PROCESSOR = {"adsh", "cibhash", "mihash", "structhash", "talr-ap", "talr-ndcg"}
OLDER = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
}


FIT = """
import sys
from hashlib import sha256
from hashbench import registry, testing
from hashbench.datasets.digits import Digits
digits = Digits().prepare()
for name in sys.argv[1:]:
    method, X, y = testing.example(registry.get_method(name), 12, digits)
    X, y = X[:400], None if y is None else y[:400]
    print(name, sha256(method.fit(X, y).transform(X).tobytes()).hexdigest())
"""
ENCODE = """
import json, sys
from click.testing import CliRunner
from hashbench.cli.main import cli
for command in json.loads(sys.argv[1]):
    CliRunner().invoke(cli, command)
"""


def run(code, *arguments, **environment):
    """Run Python code in a process of its own, and return what it prints."""
    settings = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], env=settings, check=True, capture_output=True
    ).stdout


def threads(number):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    return dict.fromkeys(names, str(number))


def test_codes_are_those_of_an_older_processor_with_more_threads(capsys, monkeypatch):
    names = ["itq", "dpn"]
    monkeypatch.setattr(sys, "argv", ["", *names])
    exec(FIT, {})
    assert run(FIT, *names, **threads(4), **OLDER).decode() == capsys.readouterr().out


def codes_in(folder):
    """Return the codes of each dataset and length."""
    codes = {}
    for path in sorted((folder / "codes").rglob("*.h5")):
        with h5py.File(path) as file:
            codes[str(path.relative_to(folder))] = np.concatenate([file["query/codes"][:], file["database/codes"][:]])
    return codes


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.method_names())
def test_codes_are_the_same_with_any_threads_and_on_an_older_processor(name, tmp_path):
    datasets, lengths = ("digits", "digits-pairs", "digits-unlabelled"), (12, 64)  # of which some methods refuse some
    words = [word for dataset in datasets for word in ("--dataset", dataset)]
    words += [word for n_bits in lengths for word in ("--bits", str(n_bits))]
    commands = json.dumps([["encode", "--method", name, "--seed", "1", *words]])
    settings = {"1": threads(1), "2": threads(2), "4": threads(4)}
    if name not in DEPEND_ON_THE_PROCESSOR:
        settings["older"] = threads(1) | OLDER
    for label, environment in settings.items():
        run(ENCODE, commands, HASHBENCH_DATA=str(tmp_path / label), **environment)
    expected, *others = (codes_in(tmp_path / label) for label in settings)
    assert expected
    for other in others:
        assert other.keys() == expected.keys()
        for key, codes in expected.items():
            np.testing.assert_array_equal(other[key], codes, err_msg=key)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64", reason="names kernels of that processor")
@pytest.mark.parametrize(
    "method",
    ["agh.AGH(12)", "structhash.StructHash(12, n_anchors=50, n_queries=50, n_items=400, n_steps=5)"],
)
def test_codes_do_not_depend_on_the_kernels_of_linear_algebra(method):
    code = f"""
from hashbench.datasets.digits import Digits
from hashbench.methods import agh, structhash
digits = Digits().prepare()
X, y = digits.features[digits.train], digits.labels[digits.train]
print({method}.fit(X, y).transform(X).nonzero()[0].sum())
"""
    assert len({run(code, OPENBLAS_CORETYPE=kernel) for kernel in ("Haswell", "Nehalem", "Prescott")}) == 1
