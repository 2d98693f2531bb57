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
from helpers.thoroughness import ALL, slow

from hashbench import registry

# docs/explanation/numbers.md names them, too
DEPEND_ON_THE_PROCESSOR = {"adsh", "cibhash", "mihash", "structhash", "talr-ap", "talr-ndcg"}
QUICK = ("itq", "dpn")
OLDER = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "avx2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
}


def command_of(method, datasets, lengths):
    words = ["encode", "--method", method, "--seed", "1"]
    words += [word for name in datasets for word in ("--dataset", name)]
    words += [word for n_bits in lengths for word in ("--bits", str(n_bits))]
    return words + ([] if ALL or method != "dpn" else ["--param", "epochs=1"])


ENCODE = """
import json, sys
from click.testing import CliRunner
from hashbench.cli.main import cli
for command in json.loads(sys.argv[1]):
    CliRunner().invoke(cli, command)
"""


def run(commands, folder, **environment):
    """Encode in a process of its own; some methods refuse a dataset."""
    settings = {**os.environ, "HASHBENCH_DATA": str(folder), **environment}
    subprocess.run([sys.executable, "-c", ENCODE, json.dumps(commands)], env=settings, check=True, capture_output=True)


def codes_in(folder):
    """Return the codes of each dataset and length."""
    codes = {}
    for path in sorted((folder / "codes").rglob("*.h5")):
        with h5py.File(path) as file:
            codes[str(path.relative_to(folder))] = np.concatenate([file["query/codes"][:], file["database/codes"][:]])
    return codes


def threads(number):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    return dict.fromkeys(names, str(number))


OTHERS = [((name,),) for name in registry.method_names() if name not in QUICK]


@pytest.mark.parametrize("names", [QUICK, *slow(*OTHERS)], ids=",".join)
def test_codes_are_the_same_with_any_threads_and_on_an_older_processor(names, hashbench, data, tmp_path):
    older = {} if {*names} & DEPEND_ON_THE_PROCESSOR else OLDER
    if ALL:
        commands = [command_of(name, ("digits", "digits-pairs", "digits-unlabelled"), (12, 64)) for name in names]
        settings = {"2": threads(2), "4": threads(4)} | ({"older": threads(1) | older} if older else {})
        run(commands, data, **threads(1))
    else:  # more threads and the older processor at once, against codes of this process
        commands = [command_of(name, ("digits",), (12,)) for name in names]
        settings = {"4, older": threads(4) | older}
        for command in commands:
            hashbench(*command)
    expected = codes_in(data)
    assert expected
    for label, environment in settings.items():
        run(commands, tmp_path / label, **environment)
        others = codes_in(tmp_path / label)
        assert others.keys() == expected.keys()
        for key, codes in expected.items():
            np.testing.assert_array_equal(others[key], codes, err_msg=f"{key}, {label}")


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
    printed = set()
    for kernel in ("Haswell", "Nehalem", "Prescott"):
        settings = {**os.environ, "OPENBLAS_CORETYPE": kernel}
        printed.add(subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, check=True).stdout)
    assert len(printed) == 1
