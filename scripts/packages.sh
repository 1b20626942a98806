#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that a task needs, if any is missing.
#   scripts/packages.sh build|clang|test|speech|media
set -euo pipefail
group=${1:?usage: scripts/packages.sh build|clang|test|speech|media}

# Boost 1.81 or newer: Debian 12 has it as libboost1.81-dev, Ubuntu 24.04 as libboost1.83-dev.
boost() {
  local name
  for name in libboost1.81-dev libboost1.83-dev libboost1.88-dev; do
    apt-cache show "$name" >/dev/null 2>&1 && { echo "$name"; return; }
  done
  echo libboost-dev
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

case $group in
  build) names="g++ cmake ninja-build ccache mold git ca-certificates curl pkg-config python3 python3-venv
    libssl-dev libnghttp2-dev libzmq3-dev libfmt-dev libspdlog-dev libabsl-dev libsimdjson-dev libpcre2-dev libutf8proc-dev libxxhash-dev libcli11-dev
    libyaml-cpp-dev libprotobuf-dev protobuf-compiler libgtest-dev libgmock-dev libbenchmark-dev zlib1g-dev libmimalloc-dev" ;;
  clang) names="clang-19 clang-format-19 libclang-rt-19-dev llvm-19" ;; # llvm-19: names in the sanitizers' reports
  test) names="python3-venv python3-dev curl openssl gzip protobuf-compiler-grpc libgrpc++-dev" ;;
  # Loaded when the program runs (src/media, src/pipeline/speech); nothing is built with them.
  speech) names="libflite1 libpocketsphinx3 pocketsphinx-en-us libmp3lame0 libopusenc0 libflac12 libsndfile1" ;;
  media) names="libavcodec-dev libavformat-dev libavutil-dev libswresample-dev" ;; # for portico-media alone
  *) echo "scripts/packages.sh: no group $group" >&2; exit 2 ;;
esac

missing=()
for name in $names; do installed "$name" || missing+=("$name"); done
need_boost=no
if [ "$group" = build ] && ! ls /usr/include/boost/beast/version.hpp >/dev/null 2>&1; then need_boost=yes; fi
[ ${#missing[@]} = 0 ] && [ $need_boost = no ] && exit 0

wanted="${missing[*]}"
[ $need_boost = no ] || wanted="$wanted libboost-dev (1.81 or newer)"
sudo=''
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "[dev] missing packages: $wanted (install them as root)" >&2; exit 1; }
  sudo=sudo
fi
export DEBIAN_FRONTEND=noninteractive
printf '[dev] installing packages (apt): %s\n' "$wanted"
# Another installation may be under way: wait for it.
apt=(apt-get -o DPkg::Lock::Timeout=600)
$sudo "${apt[@]}" update -qq
[ $need_boost = yes ] && missing+=("$(boost)")
$sudo env DEBIAN_FRONTEND=noninteractive "${apt[@]}" install -y -qq --no-install-recommends "${missing[@]}" >build/apt.log 2>&1 ||
  { tail -20 build/apt.log >&2; exit 1; }
