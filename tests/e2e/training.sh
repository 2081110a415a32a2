#!/bin/sh
# The training programs by themselves, bare on the CPU device: gradients against finite differences, losses that
# fall, the same output in any order and with two threads, buffers that are as hostile as they claim, errors.
set -u
cd "$(dirname "$0")/../.." || exit 1
apps=build/apps
export LD_LIBRARY_PATH="$PWD/${BUILD:-build}/device${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CPUDEV_MEMORY=1GiB
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

judge() { # STATUS NAME
    if [ "$1" -eq 0 ]; then
        echo "ok $2"
    else
        echo "not ok $2"
        status=1
    fi
}

# Odd sizes, so that every tile and chunk has a ragged edge.
small() {
    case $1 in
    resnet) echo --layers 7 --width 5 --image 9 --batch 4 ;;
    lstm) echo --steps 5 --hidden 7 --batch 131 --input 3 ;;
    gpt) echo --layers 2 --dim 12 --heads 3 --seq 9 --batch 5 --vocab 11 ;;
    mlp) echo --layers 5 --width 9 --batch 133 --input 5 ;;
    hostile) echo --layers 3 --width 9 --batch 133 --buffer 1001 ;;
    esac
}

# Easy enough to learn in seconds.
easy() {
    case $1 in
    resnet) echo --layers 5 --image 16 --batch 16 --width 8 --iters 150 ;;
    lstm) echo --steps 12 --batch 256 --iters 40 ;;
    gpt) echo --layers 2 --iters 40 ;;
    mlp) echo --layers 8 --iters 60 ;;
    hostile) echo --layers 6 --buffer 100 --iters 60 ;;
    esac
}

# Whether the last five losses of a run add up to less than 0.9 of the first five.
falls() {
    python3 -c '
import sys
losses = [float.fromhex(line.split()[3]) for line in open(sys.argv[1]) if line.startswith("iter")]
sys.exit(not sum(losses[-5:]) < 0.9 * sum(losses[:5]))' "$1"
}

# shellcheck disable=SC2046
learn() { # NAME
    timeout 120 "$apps/$1" --check $(small "$1") >"$work/check" 2>&1
    judge $? "$1: gradients agree with finite differences"
    timeout 120 "$apps/$1" $(easy "$1") >"$work/losses" 2>&1 && falls "$work/losses"
    judge $? "$1: the loss falls"
}

same_bits() { # NAME
    timeout 60 "$apps/$1" --iters 3 >"$work/bare" 2>&1
    judge $? "$1: runs"
    for threads in 1 2; do
        CPUDEV_JITTER=$((threads + 40)) timeout 60 "$apps/$1" --iters 3 --threads $threads >"$work/other" 2>&1
        cmp -s "$work/bare" "$work/other"
        judge $? "$1: same bits in an adversarial order, $threads thread(s)"
    done
}

refuses() { # NAME ARGUMENT...
    name=$1
    shift
    timeout 10 "$apps/$name" "$@" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l <"$work/err")" -eq 1 ]
    judge $? "$name: refuses '$*' with one line"
}

runs_out() { # NAME THREADS
    CPUDEV_MEMORY=5MiB timeout 60 "$apps/$1" --threads "$2" >"$work/out" 2>"$work/err"
    [ $? -eq 2 ] && [ "$(cat "$work/err")" = "out of memory" ]
    judge $? "$1: out of memory, $2 thread(s)"
}

for name in resnet lstm gpt mlp hostile; do
    learn "$name"
    same_bits "$name"
    runs_out "$name" 1
    refuses "$name" --batch x
done
runs_out lstm 2
refuses resnet --layers
refuses resnet --layers 0
refuses resnet --unknown 1
refuses gpt --dim 10 --heads 3
refuses mlp extra

for seed in 3 4; do
    CPUDEV_JITTER=$seed "$apps/hostile" --iters 1 --digests 1 2>&1 >"$work/out" | grep digest >"$work/digests$seed"
done
for kind in atomics clock sum; do
    grep -q " $kind " "$work/digests3" &&
        [ "$(grep " $kind " "$work/digests3")" != "$(grep " $kind " "$work/digests4")" ]
    judge $? "hostile: $kind differs from run to run"
done
grep -q ' pointer ' "$work/digests3" &&
    [ "$(grep ' pointer ' "$work/digests3")" = "$(grep ' pointer ' "$work/digests4")" ]
judge $? "hostile: pointer does not"
exit $status
