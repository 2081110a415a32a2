#!/bin/bash
# `make install` into a folder of its own, what is there works, `make uninstall` leaves nothing; the man page and the
# completions are well-formed. Prints ok, not ok and skip lines.
cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-build}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/said" 2>&1; then
        echo "ok install: $name"
    else
        echo "not ok install: $name: $(tail -n 2 "$work/said" | tr '\n' ' ')"
    fi
}

stage="$work/a stage" # with a blank
prefix=/opt/reprise
place=$stage$prefix

install_it() { make -s --no-print-directory install BUILD="$BUILD" DESTDIR="$stage" PREFIX=$prefix; }

has_all() {
    for file in bin/reprise lib/reprise/libreprise.so lib/reprise/reprise-trace lib/reprise/reprise-policy \
        lib/reprise/device/libcuda.so.1 lib/reprise/device/libcudart.so.13 share/man/man1/reprise.1 \
        share/bash-completion/completions/reprise share/zsh/site-functions/_reprise \
        share/fish/vendor_completions.d/reprise.fish; do
        [ -e "$place/$file" ] || { echo "missing: $file" && return 1; }
    done
    # Whoever installs as root makes it for everybody.
    find "$place" ! -perm -o+r -print | grep . && return 1
    return 0
}

reports() {
    "$BUILD/bench/make_trace" "$work/run.trace" 5000 >/dev/null &&
        "$place/bin/reprise" report "$work/run.trace" --sqlite "$work/run.db" | grep -q '^Peak ' && [ -s "$work/run.db" ]
}

# A library whose path holds a blank cannot be preloaded: from a plain folder.
doctors() {
    cp -a "$place" "$work/plain" && "$work/plain/bin/reprise" doctor | grep 'ok .*libreprise.so loads'
}

runs() {
    CPUDEV_MEMORY=1073741824 "$work/plain/bin/reprise" record -o "$work/mlp.trace" --device cpu -- build/apps/mlp --iters 3 &&
        "$work/plain/bin/reprise" report "$work/mlp.trace" | grep -q '^Peak '
}

uninstall_it() {
    make -s --no-print-directory uninstall BUILD="$BUILD" DESTDIR="$stage" PREFIX=$prefix &&
        ! find "$stage" -type f -o -type l | grep . && [ ! -e "$place/lib/reprise" ]
}

# What bash offers for a line; the cursor stands behind its last word.
offers() {
    bash --norc -c '
        . scripts/completion/reprise.bash
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _reprise
        printf "%s\n" "${COMPREPLY[@]}"' -- "$@" | LC_ALL=C sort | tr '\n' ' '
}

expect_offer() { # EXPECTED WORD...
    expected=$1
    shift
    got=$(offers "$@")
    [ "$got" = "$expected " ] || {
        echo "$* offers $got instead of $expected"
        return 1
    }
}

completes_in_fish() {
    got=$(fish -N -c 'source scripts/completion/reprise.fish; complete -C "reprise re"; complete -C "reprise run --dev"' |
        cut -f 1 | LC_ALL=C sort | tr '\n' ' ')
    [ "$got" = "--device record report " ] || { echo "fish offers $got" && return 1; }
}

completes() {
    touch "$work/one.trace" "$work/one.txt"
    expect_offer "curve doctor help plan record report run" reprise "" &&
        expect_offer "record report" reprise re &&
        expect_offer "--cap" reprise run --c &&
        expect_offer "auto cpu gpu" reprise run --device "" &&
        expect_offer "--html --perfetto --sqlite" reprise report x --  &&
        expect_offer "$work/one.trace $work/one.txt" reprise report "$work/one" &&
        expect_offer "$work/one.trace $work/one.txt" reprise record -o "$work/one" &&
        expect_offer "quiet" reprise run --log q
}

# Every option that the completions offer is one that the verb knows, and the other way round.
agrees() {
    for verb in run report plan curve; do
        told=$(scripts/reprise help | awk -v verb="$verb" '$1 == "reprise" { on = $2 == verb } on' | grep -o -- '--[a-z][a-z-]*' | LC_ALL=C sort -u | tr '\n' ' ')
        got=$(offers reprise "$verb" -- | tr ' ' '\n' | grep -- '--[a-z]' | tr '\n' ' ')
        [ "$told" = "$got" ] || { echo "$verb: help tells $told, bash completes $got" && return 1; }
        for option in $told; do
            grep -q -- "Fl Fl ${option#--}" scripts/reprise.1 || { echo "the man page lacks $verb $option" && return 1; }
        done
    done
}

manual() { [ -z "$(mandoc -Tlint -W style scripts/reprise.1 2>&1)" ] || { mandoc -Tlint scripts/reprise.1 && false; }; }

check "into a folder" install_it
check "everything is there" has_all
check "reprise report from there" reports
check "reprise doctor from there" doctors
if [ -x build/apps/mlp ]; then
    check "reprise record from there" runs
else
    echo "skip install: reprise record from there: the programs are not built"
fi
check "uninstall leaves nothing" uninstall_it
check "completion in bash" completes
if command -v fish >/dev/null 2>&1; then
    check "completion in fish" completes_in_fish
else
    echo "skip install: completion in fish: there is no fish here"
fi
check "completion, help and man page agree" agrees
for shell in zsh fish; do
    if command -v $shell >/dev/null 2>&1; then
        file=scripts/completion/_reprise
        [ $shell = zsh ] || file=scripts/completion/reprise.fish
        check "completion parses in $shell" $shell -n $file
    else
        echo "skip install: completion parses in $shell: there is no $shell here"
    fi
done
if command -v mandoc >/dev/null 2>&1; then
    check "man page without findings" manual
else
    echo "skip install: man page without findings: there is no mandoc here"
fi
