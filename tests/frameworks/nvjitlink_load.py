"""What NVRTC and nvJitLink make is loaded and run: PTX of both; a cubin is refused with the manual's code.

Prints `ok NAME` or `not ok NAME` per form. NVIDIA's nvJitLink is used where the packages hold it; the CPU device's own,
where that one is in front, takes PTX and gives PTX.
"""
import sys

import numpy as np
from cuda.bindings import driver, nvjitlink, nvrtc

SOURCE = b"""
extern "C" __device__ float twice(float x);
extern "C" __global__ void run(float *values, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] = twice(values[i]) + 1.0f;
}
"""
DEVICE_SOURCE = b'extern "C" __device__ float twice(float x) { return x + x; }'
failures = 0


def say(name, is_right):
    global failures
    failures += not is_right
    print(("ok " if is_right else "not ok ") + name, flush=True)


def check(answer):
    if int(answer[0]) != 0:
        raise RuntimeError(answer[0])
    return answer[1] if len(answer) == 2 else answer[1:]


def compile_source(source, *options):
    program = check(nvrtc.nvrtcCreateProgram(source, b"source.cu", 0, [], []))
    check(nvrtc.nvrtcCompileProgram(program, len(options), list(options)))
    size_of, get = ((nvrtc.nvrtcGetLTOIRSize, nvrtc.nvrtcGetLTOIR) if b"-dlto" in options else
                    (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN) if options[0].startswith(b"-arch=sm") else
                    (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX))
    image = b" " * check(size_of(program))
    check(get(program, image))
    return image


def link(kind, inputs, *options):
    handle = nvjitlink.create(len(options), list(options))
    for image in inputs:
        nvjitlink.add_data(handle, kind, image, len(image), "input")
    nvjitlink.complete(handle)
    if "-ptx" in options:
        image = bytearray(nvjitlink.get_linked_ptx_size(handle))
        nvjitlink.get_linked_ptx(handle, image)
    else:
        image = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, image)
    nvjitlink.destroy(handle)
    return bytes(image)


def loads_and_runs(image):
    code, module = driver.cuModuleLoadData(image)
    if int(code) != 0:
        return int(code)
    function = check(driver.cuModuleGetFunction(module, b"run"))
    values = np.arange(1000, dtype=np.float32)
    address = check(driver.cuMemAlloc(values.nbytes))
    driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes)
    pointer, count = np.array([int(address)], dtype=np.uint64), np.array([1000], dtype=np.int32)
    arguments = np.array([pointer.ctypes.data, count.ctypes.data], dtype=np.uint64)
    driver.cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, 0, arguments.ctypes.data, 0)
    out = np.zeros_like(values)
    driver.cuMemcpyDtoH(out.ctypes.data, address, out.nbytes)
    driver.cuModuleUnload(module)
    return 0 if (out == values * 2 + 1).all() else -1


def main():
    driver.cuInit(0)
    context = check(driver.cuDevicePrimaryCtxRetain(0))
    driver.cuCtxSetCurrent(context)
    whole = DEVICE_SOURCE + SOURCE
    say("NVRTC's PTX runs", loads_and_runs(compile_source(whole, b"-arch=compute_120")) == 0)
    say("NVRTC's cubin is refused with 209", loads_and_runs(compile_source(whole, b"-arch=sm_120")) == 209)
    parts = [compile_source(source, b"-arch=compute_120", b"-rdc=true") for source in (SOURCE, DEVICE_SOURCE)]
    is_own = nvjitlink.version() < (12, 3)
    linked = link(nvjitlink.InputType.PTX, parts, "-arch=sm_120")
    if is_own:
        say("the device's nvJitLink: linked PTX runs", loads_and_runs(linked) == 0)
        try:
            link(nvjitlink.InputType.LTOIR, [b"\\xed\\x43\\x4e\\x7f" * 8], "-arch=sm_120")
            say("the device's nvJitLink refuses LTO-IR", False)
        except nvjitlink.nvJitLinkError:
            say("the device's nvJitLink refuses LTO-IR", True)
        return
    say("nvJitLink's cubin is refused with 209", loads_and_runs(linked) == 209)
    parts = [compile_source(source, b"-arch=compute_120", b"-dlto") for source in (SOURCE, DEVICE_SOURCE)]
    linked = link(nvjitlink.InputType.LTOIR, parts, "-arch=sm_120", "-lto", "-ptx")
    say("nvJitLink's PTX from LTO-IR runs", loads_and_runs(linked) == 0)


if __name__ == "__main__":
    main()
    sys.exit(1 if failures else 0)
