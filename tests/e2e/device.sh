#!/bin/sh
# nvcc's programs on the CPU device, in the natural order and in adversarial ones, with compressed and plain
# fatbins, with legacy and with per-thread default streams.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
export LD_LIBRARY_PATH="$PWD/$build/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"


run() { # LABEL PROGRAM
    timeout 120 "$2" | sed "s/\$/ ($1)/"
}

for form in zstd lz4 plain per_thread; do
    program=$build/device/programs/runtime_$form
    make -s "$program" >&2 || exit 1
    run "$form" "$program"
done
for seed in 1 2 3; do
    CPUDEV_JITTER=$seed run "seed $seed" "$build/device/programs/runtime_zstd"
    CPUDEV_JITTER=$seed run "per thread, seed $seed" "$build/device/programs/runtime_per_thread"
done
CPUDEV_THREADS=1 run "one thread" "$build/device/programs/runtime_zstd"
exit 0
