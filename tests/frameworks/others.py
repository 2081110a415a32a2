"""Frameworks that are too large to install for a check, or that stop somewhere on the CPU device: where they stop.

Each is asked only where it is installed (build/frameworks/bin/pip install cupy-cuda13x torch warp-lang "jax[cuda13]"
pycuda). Prints `ok NAME: finding`, `not ok NAME: what it said` where the finding no longer holds, or `skip NAME`.
"""
import importlib.util
import os
import subprocess
import sys

CUPY = """
import cupy
print("imported", cupy.__version__)
print((cupy.arange(4, dtype="float32") * 2).get())
"""

TORCH = """
import torch
print("imported", torch.__version__, torch.cuda.is_available(), torch.cuda.get_device_name(0))
x = torch.arange(10, dtype=torch.float32)
assert (x.to("cuda").cpu() == x).all() and torch.zeros(7, device="cuda").cpu().sum() == 0
print("memory, copies and sets work")
print((x.to("cuda") * 2).cpu())
"""

WARP = """
import warp
warp.init()
print("devices", warp.get_devices())
warp.zeros(10, dtype=float, device="cuda:0")
"""

JAX = """
import jax
print("imported", jax.__version__)
print(jax.devices("gpu"))
"""

PYCUDA = """
import numpy, pycuda.autoinit, pycuda.driver as driver
print("imported")
module = driver.module_from_buffer(TEXT)
values = driver.to_device(numpy.arange(32, dtype=numpy.float32))
module.get_function("nothing")(values, block=(32, 1, 1))
pycuda.autoinit.context.synchronize()
print("launched")
import pycuda.gpuarray
print((pycuda.gpuarray.to_gpu(numpy.arange(32, dtype=numpy.float32)) * 2).get())
""".replace("TEXT", repr(b".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing(.param .u64 a) { ret; }\0"))

STATIC = "a static CUDA runtime, which asks for the undocumented driver table"
FINDINGS = [
    # module, program, what its output must hold, the finding
    ("cupy", CUPY, ("imported", "undocumented driver table", "cudaErrorSymbolNotFound"),
     f"imports; the first array needs the runtime, and its wheel holds {STATIC}"),
    ("torch", TORCH, ("memory, copies and sets work", "carries no PTX", "invalid device function"),
     "imports, finds the device, copies and sets with libcudart.so.13 of the device preloaded; no kernel of the wheel's "
     "carries PTX (what torch.compile makes runs: run.py torch)"),
    ("warp", WARP, ("cuda:0", "undocumented driver table", "Failed to allocate"),
     f"imports and lists the device; allocation fails: its library holds {STATIC}"),
    ("jax", JAX, ("imported", "undocumented driver table"), f"imports; its plugin holds {STATIC}"),
    ("pycuda", PYCUDA, ("imported", "launched", "a cubin cannot run on the CPU device"),
     "loads and launches PTX; its arrays and SourceModule have nvcc make a cubin"),
]


def tell(module, program, expected, finding):
    if importlib.util.find_spec(module) is None:
        print(f"skip {module}: not installed", flush=True)
        return True
    environment = dict(os.environ)
    if module == "torch":
        environment["LD_PRELOAD"] = "libcudart.so.13"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    missing = [words for words in expected if words not in said]
    last = said.strip().splitlines()[-1] if said.strip() else "nothing"
    print(f"not ok {module}: nothing about {missing[0]!r}, but: {last}" if missing else f"ok {module}: {finding}", flush=True)
    return not missing


def main():
    return 0 if all([tell(*row) for row in FINDINGS]) else 1


if __name__ == "__main__":
    sys.exit(main())
