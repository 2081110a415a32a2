#!/bin/sh
# The CPU device's cache of compiled kernels: a program's second start compiles nothing; starts at the same time share
# what they compile; what in the cache is broken is compiled anew; a folder that others may write to is not used.
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
export LD_LIBRARY_PATH="$PWD/$build/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CPUDEV_MEMORY=256MiB
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

claim() { # NAME COMMAND...
    name=$1
    shift
    if "$@"; then echo "ok $name"; else echo "not ok $name"; fi
}

start() { # NAME: output and counters under that name
    CPUDEV_CACHE=$work/cache CPUDEV_STATS=$work/$1.stats timeout 120 "$build/apps/mlp" --layers 8 --iters 3 >"$work/$1.out" 2>"$work/$1.err"
}

compiled() { sed 's/.*"kernels_compiled": *\([0-9]*\).*/\1/' "$work/$1.stats"; }

start first || cat "$work/first.err" >&2
start second
count=$(compiled first)
claim "the first start compiles" test "$count" -gt 3
claim "the second start compiles nothing" test "$(compiled second)" -eq 0
claim "and prints the same" cmp -s "$work/first.out" "$work/second.out"

under_reprise() { # NAME
    scripts/reprise run --device cpu --cap 512KiB --log error -- env CPUDEV_CACHE="$work/cache" \
        CPUDEV_STATS="$work/$1.stats" "$build/apps/mlp" --layers 8 --iters 3 >"$work/$1.out"
}
under_reprise third
under_reprise fourth
claim "under Reprise its own kernels are compiled, once" test "$(compiled third)" -gt 0 -a "$(compiled fourth)" -eq 0
claim "and the program prints the same" cmp -s "$work/first.out" "$work/fourth.out"

rm -rf "$work/cache"
start left &
left=$!
start right
wait "$left"
claim "two first starts at once print the same" cmp -s "$work/left.out" "$work/right.out"
claim "and the first one's output" cmp -s "$work/left.out" "$work/first.out"
start after
claim "after them nothing is compiled" test "$(compiled after)" -eq 0

for file in "$work"/cache/*; do
    : >"$file"
done
start broken
claim "what is broken in the cache is compiled anew" test "$(compiled broken)" -eq "$count"
claim "and the output is right" cmp -s "$work/broken.out" "$work/first.out"

chmod 777 "$work/cache"
start open
claim "a cache that others may write to is refused by name" grep -q "$work/cache" "$work/open.err"
