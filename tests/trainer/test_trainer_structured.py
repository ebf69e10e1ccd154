import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.blocks import draw_anchors, visible
from trainer.model import attend_dense
from trainer.structured import attend_structured


def both(lengths, count, block_size, heads, kv_heads, seed, window=None):
    """Outputs and gradients of the two attentions, in float64, on random queries, keys and values."""
    rng = torch.Generator().manual_seed(seed)
    longest = max(lengths)
    response = torch.arange(longest) < torch.tensor(lengths)[:, None]
    anchors = draw_anchors(response, count, rng)
    sequences, blocks = anchors.positions.shape
    slots, width = blocks * block_size, 6

    def random(h, n):
        return torch.randn(sequences, h, n, width, generator=rng, dtype=torch.float64)

    tensors = [random(heads, slots)] + [random(kv_heads, n) for n in (longest, longest, slots, slots)]
    upstream = random(heads, slots)
    results = []
    dense = attend_dense(visible(anchors, longest, block_size, window))
    for attend in (dense, attend_structured(anchors, block_size, window)):
        q, ck, cv, bk, bv = leaves = [t.clone().requires_grad_() for t in tensors]
        out = attend(q, (ck, cv), (bk, bv))
        out.backward(upstream)
        results.append([out.detach(), *(leaf.grad for leaf in leaves)])
    return results


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 25), min_size=1, max_size=3),
    st.integers(1, 9),
    st.integers(2, 5),
    st.sampled_from([(2, 2), (4, 2), (3, 1)]),
    st.integers(0, 10**6),
    st.sampled_from([None, 1, 2, 5, 30]),
)
def test_it_is_the_dense_attention_to_the_last_digits(lengths, count, block_size, heads, seed, window):
    dense, structured = both(lengths, count, block_size, *heads, seed, window)
    for a, b in zip(dense, structured, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 40])
def test_any_number_of_blocks_falls_into_groups(count):
    dense, structured = both([60, 31], count, 4, 4, 2, seed=1)
    for a, b in zip(dense, structured, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)
