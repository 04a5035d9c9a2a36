# Which shared libraries the tool loads: none of the current folder, which is what an empty or relative element of a library search path
# means.
$ folder=$(dirname "$(realpath "$(command -v lapse)")"); for file in "$folder"/lapse "$folder"/liblapse*.so; do readelf -d "$file"; done 2>/dev/null | sed -nE 's/.*R(UN)?PATH.*\[(.*)\]/\2/p' | tr ':' '\n' | grep -v '^/'
= 1
# Libraries that say so when they are loaded, and end the process.
$ printf '#include <unistd.h>\n__attribute__((constructor)) static void load(void) { _exit(write(1, "loaded\\n", 7) + 70); }\n' >fake.c && \
  cc -shared -fPIC -o liblapse_cuda.so fake.c && cp liblapse_cuda.so libz.so.1 && mkdir copy bin lib && cp "$(realpath "$(command -v lapse)")" copy/lapse && cp copy/lapse bin/
$ ./copy/lapse train events.csv -o m.safetensors --device cuda 2>&1 | cut -d . -f 1,2
| lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
| lapse: no GPU can be used: the plugin liblapse_cuda.so was not found beside the library
$ PATH=copy:$PATH lapse train events.csv -o m.safetensors --device cuda 2>&1 | cut -d . -f 1,2
| lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
| lapse: no GPU can be used: the plugin liblapse_cuda.so was not found beside the library
$ cp liblapse_cuda.so lib && copy/lapse train events.csv -o m.safetensors --device cuda 2>&1 | cut -d . -f 1,2
| lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
| lapse: no GPU can be used: the plugin liblapse_cuda.so was not found beside the library
# The plugin of an installed tree, the plugin beside the tool, and the one that the environment names.
$ bin/lapse train events.csv -o m.safetensors --device cuda
| loaded
! lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
= 77
$ cp liblapse_cuda.so copy && copy/lapse train events.csv -o m.safetensors --device cuda
| loaded
! lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
= 77
$ LAPSE_CUDA_PLUGIN=liblapse_cuda.so lapse train events.csv -o m.safetensors --device cuda
| loaded
! lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
= 77
