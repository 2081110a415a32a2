#!/bin/sh
# nvcc's programs on the CPU device: in the natural order and in adversarial ones, with compressed and plain fatbins,
# with legacy and with per-thread default streams; what the adversarial order finds; the device's own counters.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
programs=$build/device/programs
export LD_LIBRARY_PATH="$PWD/$build/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

run() { # LABEL PROGRAM
    timeout 120 "$2" >"$work/out"
    status=$?
    sed "s/\$/ ($1)/" "$work/out"
    [ "$status" -le 1 ] || echo "not ok $2 ended with status $status ($1)"
}

claim() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then echo "ok $name"; else echo "not ok $name"; fi
}

make -s "$programs/runtime_zstd" "$programs/runtime_lz4" "$programs/runtime_plain" "$programs/runtime_per_thread" \
    "$programs/race" >&2 || exit 1
for form in zstd lz4 plain per_thread; do
    run "$form" "$programs/runtime_$form"
done
for seed in 1 2 3; do
    CPUDEV_JITTER=$seed run "seed $seed" "$programs/runtime_zstd"
    CPUDEV_JITTER=$seed run "per thread, seed $seed" "$programs/runtime_per_thread"
done
CPUDEV_THREADS=1 run "one thread" "$programs/runtime_zstd"

# A missing wait shows under some seed, a right one under none; blocks run in an order of the seed's choosing.
seeds="1 2 3 4 5 6"
stale=0 false_alarms=0
: >"$work/orders"
for seed in $seeds; do
    [ "$(CPUDEV_JITTER=$seed "$programs/race" nowait)" = 0 ] || stale=$((stale + 1))
    [ "$(CPUDEV_JITTER=$seed "$programs/race" wait)" = 0 ] || false_alarms=$((false_alarms + 1))
    CPUDEV_JITTER=$seed "$programs/race" blocks >>"$work/orders"
done
claim "a missing wait is found" test "$stale" -ge 3
claim "a right wait is not blamed" test "$false_alarms" -eq 0
claim "blocks run in other orders" test "$(sort -u "$work/orders" | wc -l)" -ge 4

# The counters are there however the process ends.
CPUDEV_STATS=$work/stats CPUDEV_MEMORY=64MiB "$programs/race" wait >"$work/out"
python3 - "$work/stats" <<'END'
import json, sys
stats = json.load(open(sys.argv[1]))
is_right = stats["launches"] == 200 and 0 < stats["peak_bytes"] <= 64 << 20 and stats["kernels_compiled"] >= 0
print("ok counters" if is_right else f"not ok counters {stats}")
END
# The assembler whose code is PTX, as Triton runs it.
printf '.version 7.0\n.target sm_75\n' >"$work/in.ptx"
{ cat "$work/in.ptx" && printf '\0'; } >"$work/wanted"
tests/device/ptxas -lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_121a "$work/in.ptx" -o "$work/out.o"
claim "ptxas gives PTX that ends in a zero byte" cmp -s "$work/out.o" "$work/wanted"
echo nonsense >"$work/wrong.ptx"
tests/device/ptxas "$work/wrong.ptx" -o "$work/out.o" 2>"$work/err"
claim "ptxas refuses what is no PTX" test "$?" -eq 1
claim "ptxas says why" grep -q "holds no PTX" "$work/err"
tests/device/ptxas --version >"$work/out"
claim "ptxas tells a version" grep -q 'release 13\.0' "$work/out"
CPUDEV_MEMORY=nonsense "$programs/race" wait >"$work/out" 2>"$work/err"
claim "a malformed setting is named" grep -q 'CPUDEV_MEMORY=nonsense' "$work/err"
