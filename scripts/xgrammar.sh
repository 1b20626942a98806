#!/usr/bin/env bash
# Fetches xgrammar's pinned source package from PyPI, unpacks its C++ core and applies xgrammar*.patch. CMake builds it as a target
# of its own (cmake/PorticoXgrammar.cmake), which also calls this script.
#   scripts/xgrammar.sh PREFIX
# PREFIX gets cpp/, include/ and 3rdparty/.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:?usage: scripts/xgrammar.sh PREFIX}

version=0.2.8
sha256=8305646fd2b319d6c3003f51a1665e54cbbe9cba1fb636bc41d0b46434ccbb80
patches=("$here"/scripts/xgrammar.patch "$here"/scripts/xgrammar_*.patch)
stamp="$version $sha256 $(cat "${patches[@]}" | sha256sum | cut -c 1-64) recipe=3"
[ "$(cat "$prefix/stamp" 2>/dev/null)" = "$stamp" ] && exit 0

say() { printf '[xgrammar] %s\n' "$*"; }
cache=${PORTICO_DOWNLOADS:-$here/build/downloads}
mkdir -p "$cache" "$(dirname "$prefix")"
archive=$cache/xgrammar-$version.tar.gz
if ! echo "$sha256  $archive" | sha256sum -c --status - 2>/dev/null; then
  say "fetching xgrammar $version (source package)"
  [ -x "$cache/venv/bin/pip" ] || python3 -m venv "$cache/venv"
  "$cache/venv/bin/pip" download -q --no-deps --no-binary xgrammar -d "$cache" "xgrammar==$version"
  echo "$sha256  $archive" | sha256sum -c --quiet - || { say "checksum of $archive is wrong"; exit 1; }
fi
rm -rf "$prefix" "$prefix.new"
mkdir -p "$prefix.new"
# -m: a file that an older patch changed and this one does not must look changed to ninja.
tar xzmf "$archive" -C "$prefix.new" --strip-components=1 "xgrammar-$version/cpp" "xgrammar-$version/include" \
  "xgrammar-$version/3rdparty/picojson" "xgrammar-$version/3rdparty/dlpack/include" "xgrammar-$version/LICENSE"
# Above the folder there may be a repository, whose paths the patch's would be taken for.
(cd "$prefix.new" && GIT_CEILING_DIRECTORIES=$(dirname "$(pwd -P)") git apply "${patches[@]}")
echo "$stamp" >"$prefix.new/stamp"
mv "$prefix.new" "$prefix"
say "unpacked in $prefix"
