"""What the benchmarks compare is the same number, made in two ways."""

import sys

import pytest
import torch
from places import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import training as benchmark

sys.path.pop(0)


@pytest.mark.parametrize("name", [name for name in benchmark.LOSSES if name not in ("dpsh", "hashnet")])
@pytest.mark.parametrize("n_bits", [5, 16])
def test_direct_form_of_a_loss_is_that_loss(name, n_bits):
    loss, direct, outputs = benchmark.make_losses(name, 24, n_bits)
    gradients = [torch.autograd.grad(form(outputs), outputs)[0] for form in (loss, direct)]
    torch.testing.assert_close(loss(outputs), direct(outputs), rtol=1e-5, atol=1e-6, check_dtype=False)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)
    assert benchmark.saved_mib(direct, outputs) > benchmark.saved_mib(loss, outputs)


def test_matrix_products_have_no_other_form():
    for name in ("dpsh", "hashnet"):
        assert benchmark.make_losses(name, 24, 16)[1] is None
