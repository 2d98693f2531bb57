import shlex
import shutil

import numpy as np
import pytest
from helpers.documents import blocks

PAGE = "docs/models.md"


@pytest.mark.filterwarnings("ignore:builtin type [Ss]wig:DeprecationWarning")
def test_the_commands_of_the_page_do_what_it_says(hashbench, prepared, tmp_path, monkeypatch):
    for library in ("faiss", "onnx", "onnxruntime", "usearch"):
        pytest.importorskip(library)
    shutil.copytree(prepared, tmp_path / "data")
    printed, scope = [], {}
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path)
        patch.setenv("HASHBENCH_DATA", "data")
        for language, block in blocks(PAGE, "(sh|python)"):
            if language == "python":
                exec(block, scope)
                continue
            for line in filter(lambda line: line.startswith("hashbench"), block.splitlines()):
                result = hashbench(*shlex.split(line)[1:])
                assert result.exit_code == 0, result.stderr
                printed += result.stdout.splitlines()
    assert printed[:2] == ["data/codes/digits/itq-32-s0.h5", "data/codes/digits/itq-32-s0.model.h5"]
    assert len(printed) == 2 + 1 + 8
    assert all(", 0 of 32,000 bits differ." in line for line in printed[3:-1])
    codes = np.load(tmp_path / "codes.npy")
    assert codes.shape == (2, 32)
    np.testing.assert_array_equal(scope["codes"], codes)
