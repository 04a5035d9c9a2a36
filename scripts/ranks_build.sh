#!/bin/bash
# ranks_build.sh: collects the tool, MPICH and the libraries of both in a folder, to measure ranks on a machine without MPI. That machine needs
# only the C library.
#
#   scripts/ranks_build.sh FOLDER      FOLDER/env, which is sourced there, sets the paths
set -eu
cd "$(dirname "$0")/.."
folder=$1
mkdir -p "$folder/lib"
hydra=$(dirname "$(realpath "$(command -v mpiexec.hydra)")")
cp -L "$hydra/mpiexec.hydra" "$hydra/hydra_pmi_proxy" build/lapse build/liblapse_mpi_mpich.so "$folder/"
ldd "$folder"/mpiexec.hydra "$folder"/*.so "$folder/lapse" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|pthread|rt|resolv))\.so' | while read -r library; do
    cp -L "$library" "$folder/lib/"
done
chmod u+w "$folder"/lib/*
strip --strip-unneeded "$folder/lapse" "$folder"/*.so "$folder"/lib/*
ln -sf mpiexec.hydra "$folder/mpirun"
cat >"$folder/env" <<'ENV'
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PATH=$here:$PATH LD_LIBRARY_PATH=$here/lib:${LD_LIBRARY_PATH:-} HYDRA_LAUNCHER=fork
ENV
