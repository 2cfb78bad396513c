#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An embedding of PyTorch with a gradient of the same bits in every run.

A batch has many equal words, so the gradient adds many rows into the row of a word. On a GPU the
gradient of torch.nn.functional.embedding adds floats in an order that can differ from run to run.
The exact sum of scatter_add is rounded once. So the order does not matter, not even that of the
batch.
"""

import sys

try:
    import torch
except ImportError:
    print("embedding_gradient: skipped, PyTorch is missing")
    sys.exit(77)

import cuatomic


class Embedding(torch.autograd.Function):
    """weight[index], with an exact gradient."""

    @staticmethod
    def forward(ctx, index, weight):
        ctx.save_for_backward(index)
        ctx.words = weight.shape[0]
        return weight[index]

    @staticmethod
    def backward(ctx, gradient):
        (index,) = ctx.saved_tensors
        return None, cuatomic.scatter_add(ctx.words, index, gradient.detach())


def gradient_of(embed, index, weight, factor):
    """The gradient of the weights for the loss sum(factor * embed(index, weight))."""
    weight = weight.clone().requires_grad_()
    (factor * embed(index, weight)).sum().backward()
    return weight.grad


def main():
    device = "cuda" if torch.cuda.is_available() and cuatomic.info().devices else "cpu"
    torch.manual_seed(1)
    words, width, batch = 1000, 64, 200000
    index = (words * torch.rand(batch, device=device) ** 3).long()
    weight = torch.randn(words, width, device=device)
    factor = torch.randn(batch, width, device=device)

    exact = gradient_of(Embedding.apply, index, weight, factor)
    again = gradient_of(Embedding.apply, index, weight, factor)
    order = torch.randperm(batch, device=device)
    shuffled = gradient_of(Embedding.apply, index[order], weight, factor[order])
    print("device:", device)
    print("two runs have equal bits:", torch.equal(exact, again))
    print("a shuffled batch has equal bits:", torch.equal(exact, shuffled))

    double = torch.zeros(words, width, dtype=torch.float64, device=device)
    double.index_add_(0, index, factor.double())
    plain = torch.zeros_like(weight).index_add_(0, index, factor)
    embedded = gradient_of(torch.nn.functional.embedding, index, weight, factor)
    for name, gradient in (
        ("scatter_add", exact),
        ("index_add_", plain),
        ("torch.nn.functional.embedding", embedded),
    ):
        print("largest error of %s: %.1e" % (name, (gradient - double).abs().max()))
    return not (torch.equal(exact, again) and torch.equal(exact, shuffled))


if __name__ == "__main__":
    sys.exit(main())
