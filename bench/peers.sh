#!/bin/bash
# peers.sh: PyTorch on the work of `lapse bench`, in the same run: ratios of step times. Debian has it as python3-torch; another
# Python with PyTorch may be named in PYTHON. PRESETS, THREADS, ROUNDS and DEVICE choose the work.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-}
for candidate in "$python" python3 /usr/bin/python3; do
    [ -n "$candidate" ] && "$candidate" -c 'import torch' 2>/dev/null && python=$candidate && break
    python=
done
if [ -z "$python" ]; then
    echo "skipped: no Python here has PyTorch; install python3-torch, or name one in PYTHON"
    exit 0
fi
for preset in ${PRESETS:-ml-1m ml-1m-softmax so}; do
    "$python" "$here/peers/torch_step.py" --preset "$preset" --device "${DEVICE:-cpu}" \
        --threads "${THREADS:-$(nproc)}" --rounds "${ROUNDS:-5}" --lapse "$LAPSE"
    echo
done
