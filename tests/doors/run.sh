#!/bin/sh
# Runs the door tests: each program bare, then under the preload with an engine that only counts. Prints one line per
# case: ok NAME, not ok NAME (why), skip NAME (why).
# Usage: run.sh [BUILD]
build=$(cd "${1:-${BUILD:-build}}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
doors=$build/doors
device=${REPRISE_DEVICE:-$here/../../build/device}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0
# A sanitizer's library must come first in every process.
case ${SAN:-} in
*address*) first=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 && export ASAN_OPTIONS ;;
*thread*) first=$(gcc -print-file-name=libtsan.so) ;;
*) first= ;;
esac

ok() { echo "ok $1"; }
not_ok() {
    echo "not ok $1 ($2)"
    failed=1
}

# Number that the counting engine wrote for a name.
counted() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$work/stats" 2>/dev/null; }

# run NAME EXPECTATION... -- PRELOADS COMMAND...: the command must exit 0 bare and preloaded; each expectation is
# WHAT=NUMBER or WHAT>NUMBER of the counts.
run() {
    name=$1
    shift
    expectations=
    while [ "$1" != -- ]; do
        expectations="$expectations $1"
        shift
    done
    shift
    preloads=$1
    shift
    driver=${driver:-$doors/driver}
    rm -f "$work/stats"
    if [ -z "$only_preloaded" ] &&
        ! LD_LIBRARY_PATH=$driver:$doors LD_PRELOAD=$bare_preloads timeout 60 "$@" 2>"$work/errors"; then
        not_ok "$name" "the bare program fails: $(head -1 "$work/errors")"
        return
    fi
    if ! LD_LIBRARY_PATH=$driver:$doors LD_PRELOAD="$first $preloads" REPRISE_STATS=$work/stats timeout 60 "$@" \
        2>"$work/errors"; then
        not_ok "$name" "fails under the preload: $(head -1 "$work/errors")"
        return
    fi
    for expectation in $expectations; do
        what=${expectation%%[=>]*}
        number=${expectation##*[=>]}
        count=$(counted "$what")
        case $expectation in
        *=*) [ "${count:-none}" = "$number" ] ;;
        *) [ "${count:-0}" -gt "$number" ] ;;
        esac || {
            not_ok "$name" "$what is ${count:-missing}, expected $expectation"
            return
        }
    done
    ok "$name"
}

for library in libreprise_idle libreprise_idle_O0; do
    idle=$doors/$library.so
    suffix=$(echo "$library" | sed -n 's/libreprise_idle//p')
    bare_preloads="" only_preloaded="" driver=""
    run "doors/direct$suffix" allocate=3 free=2 'direct>4' -- "$idle" "$doors/direct"
    run "doors/dlopen-soname$suffix" allocate=3 free=2 dlsym=5 -- "$idle" "$doors/program" dlsym libcuda.so.1
    run "doors/dlopen-plain$suffix" allocate=3 free=2 dlsym=5 -- "$idle" "$doors/program" dlsym libcuda.so
    run "doors/dlopen-absolute$suffix" allocate=3 free=2 dlsym=5 -- "$idle" "$doors/program" dlsym \
        "$doors/driver/libcuda.so.1"
    run "doors/dlvsym$suffix" allocate=3 free=2 dlvsym=5 -- "$idle" "$doors/program" dlvsym
    run "doors/rtld-default$suffix" allocate=3 free=2 dlsym=5 -- "$idle" "$doors/program" default
    run "doors/cuGetProcAddress$suffix" allocate=3 free=2 cuGetProcAddress=5 -- "$idle" "$doors/program" get_proc
    run "doors/cuGetProcAddress_v2$suffix" allocate=3 free=2 cuGetProcAddress_v2=5 -- "$idle" "$doors/program" \
        get_proc_v2
    run "doors/null-status$suffix" allocate=3 free=2 cuGetProcAddress_v2=5 -- "$idle" "$doors/program" \
        get_proc_null_status
    run "doors/per-thread-flag$suffix" allocate=3 free=2 cuGetProcAddress_v2=5 -- "$idle" "$doors/program" \
        get_proc_per_thread
    only_preloaded=yes
    run "doors/versions$suffix" allocate=3 free=2 sync=2 -- "$idle" "$doors/program" versions
    bare_preloads="$doors/libchain.so $doors/libneighbour.so" only_preloaded=""
    run "doors/other-names$suffix" allocate=3 free=2 -- "$idle $doors/libchain.so $doors/libneighbour.so" \
        "$doors/program" other_names
    run "doors/other-names-behind$suffix" allocate=3 free=2 -- \
        "$doors/libchain.so $doors/libneighbour.so $idle" "$doors/program" other_names
    bare_preloads=
    driver=/nonexistent
    run "doors/no-driver$suffix" -- "$idle" "$doors/program" no_driver
    driver=
    run "doors/fork$suffix" allocate=3 free=2 -- "$idle" "$doors/program" fork
    run "doors/thread-without-context$suffix" allocate=3 -- "$idle" "$doors/program" thread
    run "doors/first-calls-race$suffix" allocate=48 free=32 -- "$idle" "$doors/program" race
    driver=$doors/driver_calls_back
    run "doors/driver-calls-back$suffix" allocate=3 free=2 -- "$idle" "$doors/program" dlsym
    driver="" only_preloaded=yes
    REPRISE_CAP=1MiB && export REPRISE_CAP
    run "doors/calls$suffix" allocate=4 submit=7 captured=1 opaque=0 charge=2 refund=1 scan=1 -- "$idle" \
        "$doors/program" calls
    run "doors/memory-information$suffix" allocate=3 -- "$idle" "$doors/program" information
    unset REPRISE_CAP
    only_preloaded=""
    run "doors/python-ctypes$suffix" allocate=3 free=2 dlsym=5 -- "$idle" python3 "$here/ctypes_program.py"
    driver=$device
    run "doors/runtime$suffix" allocate=4 free=2 'submit>1' 'cuGetProcAddress_v2>5' -- "$idle" "$doors/runtime"
    driver=""
    for other in libother libother_dlsym; do
        other_library=$doors/$other.so
        OTHER_SHIM_REPORT=$work/seen && export OTHER_SHIM_REPORT
        rm -f "$work/seen"
        run "doors/behind-$other-direct$suffix" allocate=3 free=2 -- "$other_library $idle" "$doors/direct"
        if [ "$(cat "$work/seen")" = 3 ]; then
            ok "doors/behind-$other-sees$suffix"
        else
            not_ok "doors/behind-$other-sees$suffix" "the other library saw $(cat "$work/seen") calls, not 3"
        fi
        run "doors/before-$other-direct$suffix" allocate=3 free=2 -- "$idle $other_library" "$doors/direct"
        run "doors/behind-$other-dlsym$suffix" allocate=3 free=2 -- "$other_library $idle" "$doors/program" dlsym
        run "doors/before-$other-dlsym$suffix" allocate=3 free=2 -- "$idle $other_library" "$doors/program" dlsym
        run "doors/behind-$other-default$suffix" allocate=3 free=2 -- "$other_library $idle" "$doors/program" default
        run "doors/before-$other-default$suffix" allocate=3 free=2 -- "$idle $other_library" "$doors/program" default
        unset OTHER_SHIM_REPORT
    done
done
exit $failed
