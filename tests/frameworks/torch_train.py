"""A deep perceptron in PyTorch, compiled by torch.compile (Triton's kernels), on data made here. Knows nothing of Reprise.

The wheel's own kernels carry no PTX, so all work on the device is in compiled functions: forward and backward pass, and
the update. Products are written as a sum over a product, since cuBLAS does not run here.

usage: torch_train.py cuda|cpu [STEPS]     prints one line per step: the loss, exactly
"""
import sys

import torch

DEPTH, WIDTH, BATCH = 16, 32, 1024
RATE = 0.02


def layer(x, weights):
    return torch.tanh((x.unsqueeze(2) * weights).sum(1))


def lose(x, wanted, layers):
    for weights in layers:
        x = layer(x, weights)
    return ((x - wanted) ** 2).mean(1).sum() / 32


def update(weights, gradient):
    return weights - RATE * gradient


def main():
    device, steps = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8
    generator = torch.Generator().manual_seed(7)
    start = [torch.randn(WIDTH, WIDTH, generator=generator) * 0.25 for _ in range(DEPTH)]
    x = torch.randn(BATCH, WIDTH, generator=generator).to(device)
    wanted = torch.tanh(torch.randn(BATCH, WIDTH, generator=generator)).to(device)
    layers = [weights.to(device).requires_grad_() for weights in start]
    one = torch.ones(()).to(device)
    compiled = torch.compile(lose) if device == "cuda" else lose
    compiled_update = torch.compile(update) if device == "cuda" else update
    for step in range(steps):
        loss = compiled(x, wanted, layers)
        loss.backward(gradient=one)
        print("step", step, float(loss.detach().cpu()).hex(), flush=True)
        with torch.no_grad():
            layers = [compiled_update(weights, weights.grad).requires_grad_() for weights in layers]


if __name__ == "__main__":
    main()
