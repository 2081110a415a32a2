"""Numba-CUDA on data made here, checked against NumPy. Knows nothing of Reprise.

usage: numba_programs.py kernels          reduction in shared memory, tiled product, atomics, shuffles, streams
       numba_programs.py train [STEPS]    a deep perceptron, every layer's output in an array of its own
Prints one line per result, exactly; exit status 1 where one is not NumPy's.
"""
import math
import sys

import numpy as np
from numba import cuda, float32, int32

TILE = 16
BLOCK = 256
DEPTH, WIDTH, BATCH = 20, 32, 1024
RATE = 0.02


@cuda.jit
def reduce_blocks(values, sums):
    part = cuda.shared.array(BLOCK, dtype=float32)
    thread = cuda.threadIdx.x
    total = float32(0)
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        total += values[i]
    part[thread] = total
    cuda.syncthreads()
    half = BLOCK // 2
    while half > 0:
        if thread < half:
            part[thread] += part[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        sums[cuda.blockIdx.x] = part[0]


@cuda.jit
def multiply(a, b, out):
    """out = a @ b, any sizes"""
    left = cuda.shared.array((TILE, TILE), dtype=float32)
    right = cuda.shared.array((TILE, TILE), dtype=float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, a.shape[1], TILE):
        left[y, x] = a[row, start + x] if row < a.shape[0] and start + x < a.shape[1] else float32(0)
        right[y, x] = b[start + y, column] if start + y < b.shape[0] and column < b.shape[1] else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = total


@cuda.jit
def histogram(keys, counts, largest, total):
    local = cuda.shared.array(0, dtype=int32)  # dynamic: a counter per key
    for i in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
        local[i] = 0
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < keys.size:
        cuda.atomic.add(local, keys[i], 1)
        cuda.atomic.max(largest, 0, keys[i])
        cuda.atomic.add(total, 0, np.float64(keys[i]))
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, counts.size, cuda.blockDim.x):
        cuda.atomic.add(counts, k, local[k])


@cuda.jit
def warp_sums(values, sums):
    value = values[cuda.grid(1)]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    if cuda.laneid == 0:
        sums[cuda.grid(1) // 32] = value


@cuda.jit
def scale(values, factor):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= factor


@cuda.jit
def special(values, out):
    i = cuda.grid(1)
    if i < values.size:
        x = values[i]
        out[i] = math.sin(x) * math.exp(-x * x) + math.log1p(abs(x)) + math.erf(x) + math.pow(abs(x), 0.3)


def blocks(count):
    return (count + BLOCK - 1) // BLOCK


def tiles(rows, columns):
    return ((columns + TILE - 1) // TILE, (rows + TILE - 1) // TILE), (TILE, TILE)


def tell(name, got, expected, tolerance=0.0):
    got, expected = np.asarray(got), np.asarray(expected)
    error = float(np.max(np.abs(got.astype(np.float64) - expected) / np.maximum(np.abs(expected), 1e-3)))
    is_right = got.shape == expected.shape and error <= tolerance
    print(name, "right" if is_right else f"wrong by {error:.2e}", got.tobytes()[:16].hex(), flush=True)
    return is_right


def run_streams(generator):
    """Four streams, each copies in, scales twice and copies out; an event orders a fifth behind them."""
    streams = [cuda.stream() for _ in range(4)]
    hosts = [cuda.pinned_array(50000, dtype=np.float32) for _ in streams]
    originals = [generator.random(50000, dtype=np.float32) for _ in streams]
    arrays, events = [], [cuda.event() for _ in streams]
    for stream, host, original, event in zip(streams, hosts, originals, events):
        host[:] = original
        array = cuda.to_device(host, stream=stream)
        scale[blocks(array.size), BLOCK, stream](array, np.float32(3))
        scale[blocks(array.size), BLOCK, stream](array, np.float32(0.5))
        array.copy_to_host(host, stream=stream)
        event.record(stream)
        arrays.append(array)
    last = cuda.stream()
    for event in events:
        event.wait(last)
    for array in arrays:
        scale[blocks(array.size), BLOCK, last](array, np.float32(2))
    last.synchronize()
    for stream in streams:
        stream.synchronize()
    return (np.stack(hosts), np.stack([array.copy_to_host() for array in arrays]),
            np.stack(originals) * np.float32(3) * np.float32(0.5))


def check_kernels():
    generator = np.random.default_rng(1)
    values = generator.random(1 << 20, dtype=np.float32)
    sums = cuda.device_array(64, dtype=np.float32)
    reduce_blocks[64, BLOCK](cuda.to_device(values), sums)
    results = [tell("reduction", sums.copy_to_host().sum(), values.astype(np.float64).sum(), 1e-5)]
    a, b = generator.random((203, 157), dtype=np.float32), generator.random((157, 91), dtype=np.float32)
    out = cuda.device_array((203, 91), dtype=np.float32)
    multiply[tiles(203, 91)](cuda.to_device(a), cuda.to_device(b), out)
    results.append(tell("product", out.copy_to_host(), a.astype(np.float64) @ b, 1e-5))
    keys = generator.integers(0, 100, 100000).astype(np.int32)
    counts, largest = cuda.to_device(np.zeros(100, np.int32)), cuda.to_device(np.zeros(1, np.int32))
    total = cuda.to_device(np.zeros(1, np.float64))
    histogram[blocks(keys.size), BLOCK, 0, 400](cuda.to_device(keys), counts, largest, total)
    results.append(tell("atomic counts", counts.copy_to_host(), np.bincount(keys, minlength=100)))
    results.append(tell("atomic maximum", largest.copy_to_host(), [keys.max()]))
    results.append(tell("atomic sum", total.copy_to_host(), [keys.sum()]))
    warps = cuda.device_array(2048, dtype=np.int64)
    longs = generator.integers(-1000, 1000, 65536)
    warp_sums[65536 // BLOCK, BLOCK](cuda.to_device(longs), warps)
    results.append(tell("shuffles", warps.copy_to_host(), longs.reshape(-1, 32).sum(1)))
    copied, later, expected = run_streams(generator)
    results += [tell("streams", copied, expected), tell("events", later, expected * 2)]
    points = generator.standard_normal(20000)
    answer = cuda.device_array(points.size, dtype=np.float64)
    special[blocks(points.size), BLOCK](cuda.to_device(points), answer)
    expected = (np.sin(points) * np.exp(-points * points) + np.log1p(abs(points)) +
                np.array([math.erf(x) for x in points]) + abs(points) ** 0.3)
    results.append(tell("libdevice", answer.copy_to_host(), expected, 1e-12))
    return 0 if all(results) else 1


@cuda.jit
def activate(values, out):
    i, j = cuda.grid(2)
    if i < values.shape[0] and j < values.shape[1]:
        out[i, j] = math.tanh(values[i, j])


@cuda.jit
def activate_back(out, gradient):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        gradient[i, j] *= float32(1) - out[i, j] * out[i, j]


@cuda.jit
def transpose(values, out):
    i, j = cuda.grid(2)
    if i < values.shape[0] and j < values.shape[1]:
        out[j, i] = values[i, j]


@cuda.jit
def compare(out, wanted, gradient, squares):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        difference = out[i, j] - wanted[i, j]
        gradient[i, j] = difference / out.shape[0]
        squares[i, j] = difference * difference


@cuda.jit
def descend(weights, gradient, rate):
    i, j = cuda.grid(2)
    if i < weights.shape[0] and j < weights.shape[1]:
        weights[i, j] -= rate * gradient[i, j]


def product(a, b):
    out = cuda.device_array((a.shape[0], b.shape[1]), dtype=np.float32)
    multiply[tiles(*out.shape)](a, b, out)
    return out


def each(kernel, shape, *arguments):
    kernel[((shape[0] + TILE - 1) // TILE, (shape[1] + TILE - 1) // TILE), (TILE, TILE)](*arguments)


def transposed(values):
    out = cuda.device_array((values.shape[1], values.shape[0]), dtype=np.float32)
    each(transpose, values.shape, values, out)
    return out


def step(layers, x, wanted):
    kept = [x]
    for weights in layers:
        mixed = product(kept[-1], weights)
        out = cuda.device_array(mixed.shape, dtype=np.float32)
        each(activate, mixed.shape, mixed, out)
        kept.append(out)
    gradient, squares = (cuda.device_array(wanted.shape, dtype=np.float32) for _ in range(2))
    each(compare, wanted.shape, kept[-1], wanted, gradient, squares)
    for i in reversed(range(len(layers))):
        each(activate_back, gradient.shape, kept.pop(), gradient)
        change = product(transposed(kept[-1]), gradient)
        gradient = product(gradient, transposed(layers[i]))
        each(descend, layers[i].shape, layers[i], change, np.float32(RATE))
    sums = cuda.device_array(1, dtype=np.float32)
    reduce_blocks[1, BLOCK](squares.reshape(squares.size), sums)
    return sums.copy_to_host()[0]


def step_numpy(layers, x, wanted):
    kept = [x]
    for weights in layers:
        kept.append(np.tanh(kept[-1] @ weights))
    difference = kept[-1] - wanted
    gradient = difference / len(x)
    for i in reversed(range(len(layers))):
        gradient = gradient * (1 - kept[i + 1] ** 2)
        change = kept[i].T @ gradient
        gradient = gradient @ layers[i].T
        layers[i] = layers[i] - RATE * change
    return float((difference * difference).sum())


def train(steps):
    generator = np.random.default_rng(2)
    scale_of_start = np.float32(1.5 / math.sqrt(WIDTH))
    start = [generator.standard_normal((WIDTH, WIDTH), dtype=np.float32) * scale_of_start for _ in range(DEPTH)]
    x = generator.standard_normal((BATCH, WIDTH), dtype=np.float32)
    wanted = np.tanh(generator.standard_normal((BATCH, WIDTH), dtype=np.float32))
    layers, reference = [cuda.to_device(weights) for weights in start], [w.astype(np.float64) for w in start]
    wanted_here = cuda.to_device(wanted)
    worst = 0.0
    for i in range(steps):
        loss = step(layers, cuda.to_device(x), wanted_here)
        expected = step_numpy(reference, x.astype(np.float64), wanted)
        worst = max(worst, abs(float(loss) - expected) / expected)
        print("step", i, float(loss).hex(), flush=True)
    print("losses", "right" if worst < 1e-3 else f"wrong by {worst:.2e}")
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    if sys.argv[1] == "kernels":
        sys.exit(check_kernels())
    sys.exit(train(int(sys.argv[2]) if len(sys.argv) > 2 else 12))
