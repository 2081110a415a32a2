#!/bin/sh
# shellcheck disable=SC2016,SC2317 # functions and inner shells run by check
# The launcher: what stops a start, and what passes through.
cd "$(dirname "$0")/../.." || exit 1
build=$(cd "${BUILD:-build}" && pwd) || exit 1
export REPRISE_LIBRARY="${REPRISE_LIBRARY:-$build/libreprise.so}"
export REPRISE_DEVICE="${REPRISE_DEVICE:-$PWD/build/device}"
reprise=$PWD/scripts/reprise
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

check() { # NAME CONDITION...
    name=$1
    shift
    if "$@"; then
        echo "ok launcher/$name"
    else
        echo "not ok launcher/$name ($(head -n 1 "$work/errors" 2>/dev/null))"
        failed=1
    fi
}

# Exit status 2, one line that names $1, and the program did not start.
refuses() {
    word=$1
    shift
    rm -f "$work/started"
    "$@" >"$work/output" 2>"$work/errors"
    [ $? -eq 2 ] && [ "$(wc -l <"$work/errors")" -eq 1 ] && grep -qF -e "$word" "$work/errors" &&
        [ ! -e "$work/started" ] && [ ! -s "$work/output" ]
}
start="touch $work/started"

# shellcheck disable=SC2086 # $start is two words
{
    for size in 7XB 7. .5GiB -1 0 '' 1e9 99999999TiB '7 GiB' GiB; do
        check "malformed cap '$size'" refuses REPRISE_CAP "$reprise" run --device cpu --cap "$size" -- $start
    done
    check "malformed verify" refuses REPRISE_VERIFY "$reprise" run --device cpu --verify often -- $start
    check "malformed log" refuses REPRISE_LOG "$reprise" run --device cpu --log loud -- $start
    check "malformed device" refuses --device "$reprise" run --device tpu -- $start
    check "unknown option" refuses --fast "$reprise" run --fast -- $start
    check "option without a value" refuses --cap "$reprise" run --cap
    check "no command" refuses command "$reprise" run --cap 1GiB --
    check "a command that is not there" refuses no-such-program "$reprise" run --device cpu -- no-such-program
    check "record without a file" refuses -o "$reprise" record -- $start
    check "no verb" refuses fly "$reprise" fly
    check "an unreadable library" refuses /nonexistent env REPRISE_LIBRARY=/nonexistent "$reprise" run -- $start
    check "a library that is none" refuses Makefile env REPRISE_LIBRARY="$PWD/Makefile" "$reprise" run -- $start
    check "no CPU device" refuses /nonexistent env REPRISE_DEVICE=/nonexistent "$reprise" run --device cpu -- $start
    for variable in CAP=x SWAP=2 STRICT=yes VERIFY= STATS= TRACE= SEED=a MARKER=; do
        check "malformed REPRISE_$variable without the launcher" refuses "REPRISE_${variable%%=*}" \
            env "REPRISE_$variable" LD_PRELOAD="$REPRISE_LIBRARY" "$(command -v touch)" "$work/started"
    done
}

status_is() {
    wanted=$1
    shift
    "$@" >"$work/output" 2>"$work/errors"
    [ $? -eq "$wanted" ]
}
check "exit status passes" status_is 41 "$reprise" run --device cpu --cap 1GiB -- sh -c 'exit 41'
check "a signal passes" status_is 143 sh -c '"$@"; exit $?' - "$reprise" run --device cpu -- sh -c 'kill -TERM $$'
check "the command may follow without --" status_is 0 "$reprise" run --device cpu --cap=1GiB true

"$reprise" run --device cpu --cap 1.5GiB --no-swap --strict --verify=sample --stats "$work/s" --trace "$work/t" \
    --log error -- env >"$work/output" 2>"$work/errors"
for setting in REPRISE_CAP=1.5GiB REPRISE_SWAP=0 REPRISE_STRICT=1 REPRISE_VERIFY=sample "REPRISE_STATS=$work/s" \
    "REPRISE_TRACE=$work/t" REPRISE_LOG=error PYTORCH_NO_CUDA_MEMORY_CACHING=1 TF_GPU_ALLOCATOR=cuda_malloc_async; do
    check "sets $setting" grep -qxF "$setting" "$work/output"
done
check "is silent at --log error" test ! -s "$work/errors"

TF_GPU_ALLOCATOR=mine PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync "$reprise" run --device cpu -- env \
    >"$work/output" 2>"$work/errors"
check "keeps the user's setting" grep -qxF TF_GPU_ALLOCATOR=mine "$work/output"
check "leaves the user's allocator alone" sh -c '! grep -q PYTORCH_NO_CUDA "$1"' - "$work/output"
check "says what it set, in one line" test "$(grep -c XLA_PYTHON_CLIENT_PREALLOCATE=false "$work/errors")" -eq 1
LD_PRELOAD=/nonexistent.so "$reprise" run --device cpu -- env 2>/dev/null >"$work/output"
check "keeps other preloads" grep -qx "LD_PRELOAD=$REPRISE_LIBRARY:/nonexistent.so" "$work/output"
check "words with blanks pass" sh -c '[ "$("$1" run --device cpu --log error -- printf "%s|" "a b" "" c)" = "a b||c|" ]' \
    - "$reprise"
check "doctor is content" status_is 0 "$reprise" doctor -- "$(command -v touch)"
exit $failed
