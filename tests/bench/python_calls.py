"""Nanoseconds per launch through ctypes from DEPTH nested Python functions: python_calls.py DEPTH held|given-up"""
import ctypes
import sys
import time

ROUNDS, LAUNCHES = 10, 3000


def measure(cuda, depth):
    if depth > 0:
        return measure(cuda, depth - 1)
    memory, number = ctypes.c_uint64(), ctypes.c_uint32(1)
    assert cuda.cuMemAlloc_v2(ctypes.byref(memory), 1 << 20) == 0
    parameters = (ctypes.c_void_p * 6)(*[ctypes.addressof(memory)] * 3, *[ctypes.addressof(number)] * 3)
    function, best = ctypes.cast(parameters, ctypes.c_void_p), None
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(LAUNCHES):
            cuda.cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, None, parameters, None)
        taken = (time.perf_counter() - begun) / LAUNCHES
        best = taken if best is None else min(best, taken)
    return best * 1e9


cuda = (ctypes.PyDLL if sys.argv[2] == "held" else ctypes.CDLL)("libcuda.so.1")
assert cuda.cuInit(0) == 0
print(round(measure(cuda, int(sys.argv[1]))))
