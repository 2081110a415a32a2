#!/bin/sh
# What the library shows and what it needs, against driver.def.
build=${BUILD:-build}
cd "$(dirname "$0")/../.." || exit 1
library=$build/libreprise.so
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

verdict() { # NAME: $work/wrong holds what is wrong
    if [ -s "$work/wrong" ]; then
        echo "not ok doors/$1 ($(tr '\n' ' ' <"$work/wrong" | cut -c 1-300))"
        failed=1
    else
        echo "ok doors/$1"
    fi
}

{
    sed -n 's/^FN(\(cu[A-Za-z0-9_]*\), [0-9]*, HOOK).*/\1/p' shim/driver.def
    printf 'dlsym\ndlvsym\n'
} | LC_ALL=C sort >"$work/wanted"
nm -D --defined-only "$library" | awk '{print $3}' | LC_ALL=C sort >"$work/shown"
[ "$(wc -l <"$work/wanted")" -gt 200 ] || echo "driver.def was not read" >"$work/none"
comm -3 "$work/wanted" "$work/shown" | cat - "$work/none" 2>/dev/null >"$work/wrong"
verdict exported-names

readelf -V "$library" | grep -A 3 "'.gnu.version_d'" >"$work/wrong"
verdict exported-unversioned

# A child that cannot find one of our libraries would not start; a driver must not come in through us.
readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vE '^(libc|libm|libdl|libpthread)\.so\.|^ld-linux|^lib[a-z]*san\.so' >"$work/wrong"
verdict needed-libraries

readelf -d "$library" | grep -q 'FLAGS_1.*NODELETE' || echo "not -z nodelete" >"$work/wrong"
verdict stays-loaded

nm -D --undefined-only "$library" | awk '$2 ~ /^cu/ || $3 ~ /^cu/' >"$work/wrong"
verdict no-undefined-driver-names
exit $failed
