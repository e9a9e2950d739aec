#!/usr/bin/env bash
# A producer that wants three times its quota, and what another client notices of it. Prints each bar and whether it holds; exits 1 when one does
# not. About 6 minutes. Usage: bench/quota.sh [flags of bench/quota], such as
#   bench/quota.sh -pairs 1 -for 15s
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
make -s build
mkdir -p .cache
go build -o .cache/quota ./bench/quota
exec .cache/quota "$@"
