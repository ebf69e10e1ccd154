"""What is written out for a CPU against what torch makes of the formula."""

import pytest
import torch

from trainer.norm import RMSNorm


@pytest.mark.parametrize("shape", [(3, 5, 8), (1, 4), (2, 3, 4, 6)])
def test_the_norm_and_its_gradient_are_torchs(shape):
    rng = torch.Generator().manual_seed(0)
    x, upstream = (torch.randn(shape, generator=rng, dtype=torch.float64) for _ in range(2))
    results = []
    for kind in (torch.nn.RMSNorm, RMSNorm):
        norm = kind(shape[-1], eps=1e-5, dtype=torch.float64)
        torch.nn.init.uniform_(norm.weight, 0.5, 2.0, generator=torch.Generator().manual_seed(1))
        row = x.clone().requires_grad_()
        out = norm(row)
        out.backward(upstream)
        results.append((out.detach(), row.grad, norm.weight.grad))
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-13)


def test_a_row_of_zeros_stays_finite():
    norm, x = RMSNorm(4, eps=1e-6), torch.zeros(2, 4, requires_grad=True)
    norm(x).sum().backward()
    assert x.grad is not None and x.grad.isfinite().all()
