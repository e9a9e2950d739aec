#!/usr/bin/env bash
# How long partitions take no write when one node of three is killed, paused, stopped or cut off: three serve processes, 64 partitions with
# three replicas, 2,000 records/s of 1 KiB with acks=all, a raw probe and franz-go. Prints each round, then median and worst beside the bars.
# Usage: bench/failover.sh [flags of bench/failover, such as -rounds 5 -only kill,term -client raw]
# 20 rounds of everything take about 40 minutes; nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s build
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
CGO_ENABLED=0 go build -o "$tools/failover" ./bench/failover
echo "$(git rev-parse --short HEAD); $(nproc) cores; $(uname -sr)"
"$tools/failover" -binary bin/strandline "$@"
