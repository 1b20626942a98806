#!/usr/bin/env bash
# Builds libllama from the pinned PyPI source package and installs it as static libraries.
#   scripts/llama.sh PREFIX [plain|thread|address] [--server]
# PREFIX gets include/, lib/ and lib/cmake/llama. "thread" and "address" build it with that sanitizer, so
# that its own synchronization is visible to the checker. --server also builds llama-server (for benches).
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:?usage: scripts/llama.sh PREFIX [plain|thread|address] [--server]}
flavour=${2:-plain}
server=${3:-}

version=0.3.36
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
native=${PORTICO_NATIVE:-ON}  # OFF: a binary for other machines too
stamp="$version $sha256 $flavour native=$native server=${server:-no} recipe=3"
[ "$(cat "$prefix/stamp" 2>/dev/null)" = "$stamp" ] && exit 0

say() { printf '[llama] %s\n' "$*"; }
cache=${PORTICO_DOWNLOADS:-$here/build/downloads}
mkdir -p "$cache" "$(dirname "$prefix")"
archive=$cache/llama_cpp_python-$version.tar.gz
if ! echo "$sha256  $archive" | sha256sum -c --status - 2>/dev/null; then
  say "fetching llama-cpp-python $version (its source package carries llama.cpp)"
  python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" download -q --no-deps --no-binary llama-cpp-python -d "$cache" "llama-cpp-python==$version"
  echo "$sha256  $archive" | sha256sum -c --quiet - || { say "checksum of $archive is wrong"; exit 1; }
fi

source_dir=$cache/llama_cpp_python-$version
[ -d "$source_dir" ] || tar xzf "$archive" -C "$cache"
build=$prefix/build
# No AMX kernels: GCC 12 takes _tile_loadconfig() for a read of eight bytes and drops the rest of the configuration, so that
# the first quantized matrix ends the process.
no_amx=-U__AMX_INT8__
flags=(-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DGGML_OPENMP=OFF "-DGGML_NATIVE=$native"
       -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_CURL=OFF
       -DLLAMA_OPENSSL=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_BUILD_IS_DEV=OFF
       -DCMAKE_POSITION_INDEPENDENT_CODE=ON)
if [ "$server" = --server ]; then
  flags+=(-DLLAMA_BUILD_COMMON=ON -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON)
else
  flags+=(-DLLAMA_BUILD_COMMON=OFF -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_SERVER=OFF)
fi
case $flavour in
  plain) flags+=("-DCMAKE_C_FLAGS=$no_amx" "-DCMAKE_CXX_FLAGS=$no_amx") ;;
  thread|address)
    sanitizer="-fsanitize=$flavour -g1 $no_amx"
    flags+=(-DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 "-DCMAKE_C_FLAGS=$sanitizer"
            "-DCMAKE_CXX_FLAGS=$sanitizer" "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG"
            "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG") ;;
  *) say "unknown flavour $flavour"; exit 2 ;;
esac
say "building libllama $version ($flavour) on $(nproc) cores: four to five minutes without a cache"
CCACHE_BASEDIR=$here CCACHE_NOHASHDIR=1 cmake -G Ninja -S "$source_dir/vendor/llama.cpp" -B "$build" --log-level=WARNING "${flags[@]}" >"$prefix.log" 2>&1 ||
  { tail -20 "$prefix.log"; exit 1; }
targets=(llama)
[ "$server" = --server ] && targets+=(llama-server)
CCACHE_BASEDIR=$here CCACHE_NOHASHDIR=1 ninja -C "$build" "${targets[@]}" >>"$prefix.log" 2>&1 || { tail -40 "$prefix.log"; exit 1; }
if [ "$server" = --server ]; then  # installing would ask for every tool
  mkdir -p "$prefix/bin" && cp "$build/bin/llama-server" "$prefix/bin/"
else
  cmake --install "$build" --prefix "$prefix" >>"$prefix.log" 2>&1 || { tail -20 "$prefix.log"; exit 1; }
fi
rm -rf "$build"
echo "$stamp" >"$prefix/stamp"
say "installed in $prefix"
