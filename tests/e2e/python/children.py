"""Uses the device, forks a child that calls the driver and ends in every way a child can, and starts a program that uses
the device itself. argv: library, that program's command."""
import ctypes
import os
import subprocess
import sys

cuda = ctypes.CDLL(sys.argv[1])
context, address = ctypes.c_void_p(), ctypes.c_uint64()
cuda.cuMemFree_v2.argtypes = [ctypes.c_uint64]
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
assert cuda.cuMemAlloc_v2(ctypes.byref(address), 1 << 20) == 0
for _ in range(2):
    child = os.fork()
    if child == 0:
        other = ctypes.c_uint64()
        for _ in range(50):
            cuda.cuMemAlloc_v2(ctypes.byref(other), 4096)
        sys.exit(0)
    os.waitpid(child, 0)
subprocess.run(sys.argv[2:], check=True, stdout=subprocess.DEVNULL)
assert cuda.cuMemFree_v2(address) == 0
print("done")
