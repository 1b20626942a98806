#!/usr/bin/env bash
# Installs the Python module into the tests' environment (build/test-env), where its sources have changed.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/test_environment.sh
env=build/test-env
stamp=$(cat CMakeLists.txt cmake/*.cmake $(git ls-files -co --exclude-standard python proto src/base src/text src/tokenizer src/template |
  grep -v -e '^python/tests/' -e '_test\.cc$' -e '_bench\.cc$' -e '\.md$') $env/stamp | sha256sum)
[ "$(cat $env/module-stamp 2>/dev/null)" = "$stamp" ] && exit 0
scripts/packages.sh build
echo "[dev] building the Python module (build/python)"
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
PATH=$PWD/$env/bin:$PATH $env/bin/pip install -q --no-build-isolation --no-deps --force-reinstall ./python 2>build/python-module.log ||
  { tail -40 build/python-module.log; exit 1; }
echo "$stamp" >$env/module-stamp
