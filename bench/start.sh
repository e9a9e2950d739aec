#!/usr/bin/env bash
# How fast a node starts and what it costs idle: time from exec to the ready line, time to the first acknowledged record (with a
# client process of its own), resident memory after 5 s of idleness, size of the binary. Prints one line a run.
# Usage: bench/start.sh [runs]; builds bin/strandline first.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-5}
make -s build
bin=bin/strandline
echo "binary $(stat -c %s $bin) bytes; $(nproc) cores; $(uname -sr)"
for i in $(seq "$runs"); do
  dir=$(mktemp -d)
  mkfifo "$dir/out"
  t0=$(date +%s%N)
  "$bin" dev --data-dir "$dir/data" --kafka 127.0.0.1:0 --http 127.0.0.1:0 >"$dir/out" 2>/dev/null &
  pid=$!
  read -r line <"$dir/out"
  t1=$(date +%s%N)
  addr=$(sed -n 's/^ready kafka=\([^ ]*\).*/\1/p' <<<"$line")
  echo first | "$bin" produce t --brokers "$addr" --allow-auto-topic-creation >/dev/null
  t2=$(date +%s%N)
  sleep 5
  rss=$(awk '/VmRSS/ {print $2}' "/proc/$pid/status")
  kill "$pid"; wait "$pid" || true
  rm -rf "$dir"
  echo "run $i: ready $(((t1 - t0) / 1000000)) ms, first record acknowledged $(((t2 - t0) / 1000000)) ms, idle RSS $((rss / 1024)) MiB"
done
