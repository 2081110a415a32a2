"""The management library by way of nvidia-ml-py, while this process and another use the device.

usage: nvml_query.py [pooled]      pooled: what is freed stays with the process, as under Reprise
Prints `ok NAME` or `not ok NAME: why` per question.
"""
import ctypes
import os
import select
import subprocess
import sys

import pynvml

HOLD = 24 << 20
failures = 0


def say(name, is_right, seen=None):
    global failures
    failures += not is_right
    print(f"ok {name}" if is_right else f"not ok {name}: {seen}", flush=True)


class Driver:
    """Memory on the device, without a framework."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 0, 0)

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def hold(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", address, 1, ctypes.c_size_t(size))
        return address

    def free(self, address):
        self.call("cuMemFree_v2", address)

    def memory(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def uuid(self):
        text = ctypes.create_string_buffer(16)
        self.call("cuDeviceGetUuid_v2", text, 0)
        digits = text.raw.hex()
        return "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def name(self):
        text = ctypes.create_string_buffer(64)
        self.call("cuDeviceGetName", text, 64, 0)
        return text.value.decode()


def refusal(function, *arguments):
    try:
        function(*arguments)
    except pynvml.NVMLError as error:
        return error.value
    return 0


def processes(handle):
    return {process.pid: process.usedGpuMemory for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)}


def hold_until_told():
    driver = Driver()
    address = driver.hold(HOLD)
    print("held", flush=True)
    for line in sys.stdin:
        if line.strip() == "work":  # sets without end, until there is something else to read
            while not is_told_more():
                for _ in range(50):
                    driver.call("cuMemsetD8_v2", address, 1, ctypes.c_size_t(HOLD))
                driver.call("cuCtxSynchronize")
        elif line.strip() == "die":
            os.kill(os.getpid(), 9)


def is_told_more():
    return bool(select.select([sys.stdin], [], [], 0)[0])


def check_identity(driver, handle):
    say("name", pynvml.nvmlDeviceGetName(handle) == driver.name(), pynvml.nvmlDeviceGetName(handle))
    uuid = pynvml.nvmlDeviceGetUUID(handle)
    say("UUID is the driver's", uuid == driver.uuid(), uuid)
    say("found by its UUID", pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(uuid)) == uuid)
    pci = pynvml.nvmlDeviceGetPciInfo(handle)
    bus = pci.busId if isinstance(pci.busId, str) else pci.busId.decode()
    say("found by its place on the bus", pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByPciBusId(bus)) == uuid,
        bus)
    say("an unknown UUID is not found", refusal(pynvml.nvmlDeviceGetHandleByUUID, "GPU-0") ==
        pynvml.NVML_ERROR_NOT_FOUND)
    say("an index too large is refused", refusal(pynvml.nvmlDeviceGetHandleByIndex, 99) ==
        pynvml.NVML_ERROR_INVALID_ARGUMENT)
    say("CUDA version", pynvml.nvmlSystemGetCudaDriverVersion() // 1000 == 13)
    say("driver version", int(pynvml.nvmlSystemGetDriverVersion().split(".")[0]) >= 580)
    say("capability", pynvml.nvmlDeviceGetCudaComputeCapability(handle)[0] >= 7)


def check_memory(driver, handle):
    before = pynvml.nvmlDeviceGetMemoryInfo(handle)
    own = processes(handle).get(os.getpid(), 0)
    address = driver.hold(HOLD)
    after = pynvml.nvmlDeviceGetMemoryInfo(handle)
    say("an allocation counts as used", after.used - before.used >= HOLD and after.free + after.used == after.total,
        (before.used, after.used))
    say("and by this process", processes(handle).get(os.getpid(), 0) - own >= HOLD, processes(handle))
    second = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    say("the second version says the same", (second.used, second.total) == (after.used, after.total))
    say("a version that does not exist is refused", refusal(pynvml.nvmlDeviceGetMemoryInfo, handle, 0x7F000001) ==
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
    driver.free(address)
    if "pooled" not in sys.argv[1:]:
        say("and is given back", pynvml.nvmlDeviceGetMemoryInfo(handle).used == before.used)


def tell(process, word):
    process.stdin.write(word + "\n")
    process.stdin.flush()


def check_others(handle):
    process = subprocess.Popen([sys.executable, __file__, "hold"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    process.stdout.readline()
    seen = processes(handle)
    say("another process is seen with what it holds", seen.get(process.pid, 0) >= HOLD, seen)
    say("and its name", "python" in pynvml.nvmlSystemGetProcessName(process.pid))
    used = pynvml.nvmlDeviceGetMemoryInfo(handle).used
    say("its memory counts as used", used >= HOLD, used)
    pynvml.nvmlDeviceGetUtilizationRates(handle)  # what was before
    idle = pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
    tell(process, "work")
    rates = [pynvml.nvmlDeviceGetUtilizationRates(handle).gpu for _ in range(5)]
    say("its work shows as utilisation", idle < 20 <= max(rates) <= 100, (idle, rates))
    tell(process, "die")
    process.wait()
    say("killed, it is gone", process.pid not in processes(handle), processes(handle))


def are_counted():
    pynvml.nvmlInit()
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    count = pynvml.nvmlDeviceGetCount()
    pynvml.nvmlShutdown()
    return count >= 1 and refusal(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED


def main():
    if "hold" in sys.argv[1:]:
        return hold_until_told()
    say("two nvmlInit need two nvmlShutdown", are_counted())
    pynvml.nvmlInit()
    driver = Driver()
    say("one device or more", pynvml.nvmlDeviceGetCount() >= 1)
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    check_identity(driver, handle)
    check_memory(driver, handle)
    check_others(handle)
    pynvml.nvmlShutdown()
    say("after nvmlShutdown a question is refused", refusal(pynvml.nvmlDeviceGetCount) ==
        pynvml.NVML_ERROR_UNINITIALIZED)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
