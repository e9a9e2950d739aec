#!/usr/bin/env bash
# Strandline beside other brokers on this machine; bench/README.md says what is measured. Results are gathered in .cache/bench/results.jsonl
# since the last build, the report goes to bench/RESULTS.md.
# Usage: bench/run.sh [build|SUITE|report]...   without arguments: build throughput linger5 linger0 start report
#   KBENCH_DIR  directory of kbench's source (default ../shared/bench/kbench)
#   WORK        scratch on the disk to be measured (default $TMPDIR or /tmp); ROUNDS runs of each (default 5)
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
root=$PWD bin=$PWD/.cache/bench kafka=$PWD/.cache/bench/kafka
kbench=${KBENCH_DIR:-$root/../shared/bench/kbench}

build() {
  mkdir -p "$bin"
  rm -f "$bin/results.jsonl"
  go build -trimpath -ldflags "-s -w" -o "$bin/strandline" ./cmd/strandline
  go build -o "$bin/compare" ./bench/compare
  (cd bench/peers && go build -o "$bin/" ./kfakesrv ./natsbench github.com/nats-io/nats-server/v2)
  (cd "$kbench" && go build -o "$bin/kbench" .)
  # Apache Kafka from its Maven artifacts; without Java or Maven it is left out.
  if command -v mvn >/dev/null && command -v java >/dev/null; then
    [ -d "$kafka" ] || mvn -q -B -f bench/peers/kafka/pom.xml dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$kafka"
  fi
}

compare() {
  [ -d "$kafka" ] && set -- -kafka "$kafka" "$@"
  "$bin/compare" -bin "$bin" -work "${WORK:-${TMPDIR:-/tmp}}" -out "$bin/results.jsonl" "$@"
}

[ $# -gt 0 ] || set -- build throughput linger5 linger0 start report
for step; do
  case $step in
    build) build ;;
    report) compare -report >bench/RESULTS.md ;;
    *) compare -suites "$step" -rounds "${ROUNDS:-5}" ;;
  esac
done
