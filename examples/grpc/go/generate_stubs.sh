#!/usr/bin/env bash
# Generates ./sglang from the .proto file. Needs Go and protoc (Debian and Ubuntu: protobuf-compiler).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
bin=${GOBIN:-$PWD/bin}
export GOBIN=$bin
[ -x "$bin/protoc-gen-go" ] || go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.11
[ -x "$bin/protoc-gen-go-grpc" ] || go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
proto=sglang/runtime/v1/sglang.proto
package=portico.example/generate/sglang
mkdir -p sglang
PATH=$bin:$PATH protoc -I ../../../proto --go_out=sglang --go_opt=M$proto=$package --go_opt=module=$package \
  --go-grpc_out=sglang --go-grpc_opt=M$proto=$package --go-grpc_opt=module=$package $proto
