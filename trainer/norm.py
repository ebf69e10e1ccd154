"""RMSNorm, with its gradient written out for a CPU, where torch makes it of a dozen passes over the tensor."""

from typing import Any

import torch
from torch import Tensor, nn


class RMSNorm(nn.RMSNorm):
    """In the number format of its weight, whatever comes in: bfloat16 is for products."""

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.weight.dtype)
        if x.device.type != "cpu":
            return super().forward(x)
        out: Tensor = _RMSNorm.apply(x, self.weight, self.eps)  # type: ignore[no-untyped-call]
        return out


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = length.square_().div_(x.shape[-1]).add_(eps).rsqrt_()
        ctx.save_for_backward(x, weight, scale)
        return torch.mul(x, scale).mul_(weight)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale = ctx.saved_tensors
        normed = x * scale
        by_place = (upstream[0] * normed).flatten(0, -2)
        # How much of what comes back would only make the row longer, which the norm undoes.
        along = (by_place @ weight).view(scale.shape) / x.shape[-1]
        to_x = (upstream[0] * weight).addcmul_(normed, along, value=-1).mul_(scale)
        return to_x, by_place.sum(0), None
