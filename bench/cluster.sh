#!/usr/bin/env bash
# Three serve processes, 64 partitions with three replicas and min ISR 2, clients on the same machine: throughput under both flush policies, and
# latency at 10,000 records/s of 1 KiB with two groups reading everything.
# Usage: bench/cluster.sh [-duration 10m] [-fault-every 30s] [-rate N] ... [throughput] [latency]; without a part: both. Flags come first.
# A short form: bench/cluster.sh -duration 30s -runs 1. Throughput needs the load generator kbench: KBENCH_DIR names its source (default:
# ../shared/bench/kbench). Nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
make -s build
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
go build -o "$tools/cluster" ./bench/cluster
kbench=()
source=${KBENCH_DIR:-../shared/bench/kbench}
if [ -d "$source" ]; then
  cp -r "$source" "$tools/source" && chmod -R u+w "$tools/source"
  (cd "$tools/source" && go build -o "$tools/kbench" .)
  kbench=(-kbench "$tools/kbench")
fi
[[ "$*" =~ (^|\ )(throughput|latency) ]] || set -- "$@" throughput latency
echo "$(git rev-parse --short HEAD); $(nproc) cores; $(uname -sr)"
"$tools/cluster" -binary bin/strandline "${kbench[@]}" "$@"
