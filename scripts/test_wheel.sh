#!/bin/bash
# test_wheel.sh: tries a wheel in roots of Debian releases without a compiler: pip install, the lines of the README, `lapse demo`.
#
#   scripts/test_wheel.sh WHEEL [bullseye|bookworm|trixie ...]        as root; needs debootstrap
#
# pip of this machine fetches what the wheel depends on. LAPSE_ROOTS is the folder of the roots, which are kept (default: build-roots),
# LAPSE_DEBIAN the address of the archive (default: debootstrap's).
set -eu
wheel=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- bullseye bookworm trixie
cd "$(dirname "$0")/.."
roots=${LAPSE_ROOTS:-build-roots}
mkdir -p "$roots"
failed=0
for release in "$@"; do
    root=$roots/$release
    [ -x "$root/usr/bin/python3" ] || debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates \
        "$release" "$root" ${LAPSE_DEBIAN:+"$LAPSE_DEBIAN"} >"$root.log" 2>&1 || { tail -n 5 "$root.log"; exit 1; }
    work=$root/tmp/wheel
    rm -rf "$work" && mkdir -p "$work"
    cp "$wheel" "$work/"
    version=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    python3 -m pip download -q --disable-pip-version-check --only-binary :all: --python-version "$version" --implementation cp \
        --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 -d "$work" numpy cffi pandas
    cat >"$work/try.py" <<'END'
import pandas as pd
import lapse

lapse.simulate("shop.csv", sequences=60)
df = pd.read_csv("shop.csv")
data = lapse.Dataset.from_pandas(df, sequence="user", time="time", event="item", fields=["category"])
model = lapse.train(data, task="classify", epochs=3, progress=False)
assert 0 < model.scores["accuracy"] < 1 and len(model.history.to_pandas()) == 3
assert len(model.predict(df, at=["+1h", "+7d"], top=3).to_pandas()) == 6 * df.user.nunique()
END
    # The loader finds libraries beside a program through /proc.
    mountpoint -q "$root/proc" || mount -t proc proc "$root/proc" || mount --bind /proc "$root/proc"
    if chroot "$root" /usr/bin/env -u PIP_FIND_LINKS -u PIP_CERT /bin/bash -c 'set -e; cd /tmp/wheel; ! command -v cc; python3 -m venv v
        v/bin/pip install -q --disable-pip-version-check --no-index --find-links . pandas lapse-*.whl
        v/bin/python try.py; v/bin/lapse --version >/dev/null; v/bin/lapse demo >demo 2>&1; grep -q "lapse predict" demo' >"$work/log" 2>&1; then
        echo "ok      $release, Python $version"
    else
        tail -n 10 "$work/log" | sed 's/^/   | /'
        echo "FAILED  $release, Python $version"
        failed=1
    fi
    umount "$root/proc"
done
exit $failed
