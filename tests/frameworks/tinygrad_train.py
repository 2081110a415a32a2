"""A convolutional network and a small transformer in tinygrad, on data made here. Knows nothing of Reprise.

usage: tinygrad_train.py conv|transformer [STEPS] [jit]     prints one line per step: the loss, exactly
"""
import sys

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context


class Conv:
    def __init__(self):
        self.layers = [nn.Conv2d(1 if i == 0 else 8, 8, 3, padding=1) for i in range(16)]
        self.head = nn.Linear(8 * 16 * 16, 10)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x).relu().contiguous()
        return self.head(x.flatten(1))


class Block:
    def __init__(self, width):
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = [nn.LayerNorm(width), nn.LayerNorm(width)]

    def __call__(self, x):
        q, k, v = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1).contiguous()
        x = (x + self.out(weights @ v)).contiguous()
        return (x + self.down(self.up(self.norms[1](x)).gelu())).contiguous()


class Transformer:
    def __init__(self):
        self.embed = nn.Linear(16, 64)
        self.blocks = [Block(64) for _ in range(6)]
        self.head = nn.Linear(64, 10)

    def __call__(self, x):
        x = self.embed(x.reshape(x.shape[0], 16, 16))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def main():
    kind, steps, use_jit = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10, "jit" in sys.argv[3:]
    generator = np.random.default_rng(0)
    Tensor.manual_seed(3)
    images = generator.random((64, 1, 16, 16), dtype=np.float32)
    labels = generator.integers(0, 10, 64)
    net = Conv() if kind == "conv" else Transformer()
    for parameter in nn.state.get_parameters(net):  # the same start on every backend
        parameter.assign(Tensor((generator.random(parameter.shape, dtype=np.float32) - 0.5) * 0.2)).realize()
    optimiser = nn.optim.SGD(nn.state.get_parameters(net), lr=0.05, momentum=0.9)

    def step(x, y):
        with Context(TRAINING=1):
            optimiser.zero_grad()
            loss = net(x).sparse_categorical_crossentropy(y)
            loss.backward()
            optimiser.step()
            return loss.realize()

    run = TinyJit(step) if use_jit else step
    for i in range(steps):
        part = slice(i % 2 * 32, i % 2 * 32 + 32)
        print("step", i, float(run(Tensor(images[part]).realize(), Tensor(labels[part]).realize()).numpy()).hex(),
              flush=True)


if __name__ == "__main__":
    main()
