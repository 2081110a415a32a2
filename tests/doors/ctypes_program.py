"""A Python program that is not aware of us."""
import ctypes
import sys

cuda = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else "libcuda.so.1")
assert cuda.cuInit(0) == 0
cuda.cuCtxSetCurrent.argtypes = [ctypes.c_void_p]
assert cuda.cuCtxSetCurrent(1) == 0
cuda.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
cuda.cuMemFree_v2.argtypes = [ctypes.c_uint64]
addresses = [ctypes.c_uint64() for _ in range(3)]
for address in addresses:
    assert cuda.cuMemAlloc_v2(ctypes.byref(address), 4096) == 0 and address.value
for address in addresses[:2]:
    assert cuda.cuMemFree_v2(address) == 0
