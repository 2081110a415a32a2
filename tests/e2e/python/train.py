"""A small training loop by ctypes, not aware of us. argv: library, "held" (the interpreter's lock is kept in calls) or
"given up", and perhaps how long files may get once the device is open."""
import ctypes
import resource
import signal
import sys

PTX = b"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry grow(.param .u64 where, .param .u32 count)
{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .f32 %f<3>;
    ld.param.u64 %rd1, [where];
    ld.param.u32 %r1, [count];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r5, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    add.f32 %f2, %f1, 0f3F800000;
    st.global.f32 [%rd3], %f2;
DONE:
    ret;
}
"""
COUNT = 65536


def must(result):
    assert result == 0, result


def open_device(name, kind):
    cuda = (ctypes.PyDLL if kind == "held" else ctypes.CDLL)(name)
    cuda.cuMemFree_v2.argtypes = [ctypes.c_uint64]
    context = ctypes.c_void_p()
    must(cuda.cuInit(0))
    must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    must(cuda.cuCtxSetCurrent(context))
    return cuda


class Network:
    def __init__(self, cuda):
        self.cuda = cuda
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        must(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
        must(cuda.cuModuleGetFunction(ctypes.byref(self.kernel), module, b"grow"))

    def make_activation(self):
        address = ctypes.c_uint64()
        must(self.cuda.cuMemAlloc_v2(ctypes.byref(address), COUNT * 4))
        must(self.cuda.cuMemsetD8_v2(address, 0, COUNT * 4))
        return address

    def launch_grow(self, address):
        count = ctypes.c_uint32(COUNT)
        parameters = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(count))
        must(self.cuda.cuLaunchKernel(self.kernel, COUNT // 256, 1, 1, 256, 1, 1, 0, None, parameters, None))

    def iterate(self):
        kept = [self.make_activation() for _ in range(6)]
        for address in kept:
            self.launch_grow(address)
        for address in reversed(kept):
            self.launch_grow(address)
        values = (ctypes.c_float * 4)()
        must(self.cuda.cuMemcpyDtoH_v2(values, kept[0], 16))
        for address in kept:
            must(self.cuda.cuMemFree_v2(address))
        return list(values)


def main():
    network = Network(open_device(sys.argv[1], sys.argv[2]))
    for number in range(5):
        if number == 1 and len(sys.argv) > 3:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
        print(network.iterate())


main()
