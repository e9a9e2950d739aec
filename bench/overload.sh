#!/usr/bin/env bash
# Ten times the load that the broker can take, for two minutes: goodput, memory, the latency of others, and how soon it is itself again.
# Prints each bar and whether it holds; exits 1 when one does not. Usage: bench/overload.sh [flags of bench/overload], such as
#   bench/overload.sh -flush replicated -for 30s
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
make -s build
mkdir -p .cache
go build -o .cache/overload ./bench/overload
exec .cache/overload "$@"
