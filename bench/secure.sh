#!/usr/bin/env bash
# What being locked down costs a publisher: one node with TLS, SCRAM, rules of access, the audit trail and encryption at rest, beside one with none of
# these, both by `serve` (acks=all, on the disk), in turns. Prints each run, then the medians and their ratio. Exits 1 below 0.6.
# Usage: bench/secure.sh [rounds] [records a run]
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} records=${2:-300000}
make -s build
bin=$PWD/bin/strandline
dir=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null; wait; rm -rf "$dir"' EXIT
echo "$(git rev-parse --short HEAD); $(nproc) cores; $(uname -sr); $records records of 1 KiB a run, acks=all, fdatasync"

# node NAME CONFIG: starts one and waits until it is ready.
node() {
  mkfifo "$dir/$1.out"
  "$bin" serve --config "$2" >"$dir/$1.out" 2>"$dir/$1.log" &
  pids+=($!)
  read -r _ <"$dir/$1.out" || { tail -3 "$dir/$1.log" >&2; exit 1; }
}

cat >"$dir/open.yaml" <<END
node: {id: 1}
data: {dir: $dir/open}
cluster: {address: 127.0.0.1:24191, controllers: ["1@127.0.0.1:24191"]}
listeners:
  - {name: open, address: 127.0.0.1:24092, advertise: 127.0.0.1:24092}
http: {address: none}
END
"$bin" init --secure "$dir/secure" --hosts 127.0.0.1 --kafka-port 24292 --cluster-port 24391 --http-port 24380 >/dev/null 2>&1
"$bin" keyring create "$dir/ring" first >/dev/null
echo "encryption: {keyring: $dir/ring}" >>"$dir/secure/n1/strandline.yaml"
node open "$dir/open.yaml"
node secured "$dir/secure/n1/strandline.yaml"
admin=(--profile "$dir/secure/admin.yaml")
password=$("$bin" user create bench "${admin[@]}" -o json | sed 's/.*"password":"\([^"]*\)".*/\1/')
"$bin" acl create --user bench --op all --resource 'topic:*' "${admin[@]}" >/dev/null

# run NAME FLAGS: records a second, kept in NAME.runs.
run() {
  local name=$1 rate; shift
  rate=$("$bin" bench produce --records "$records" -r 1 -o json "$@" | sed 's/.*"recordsPerSecond":\([0-9]*\).*/\1/')
  echo "$rate" >>"$dir/$name.runs"
  echo "$name: $rate records/s"
}
median() { sort -n "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

secured=(--profile "$dir/secure/admin.yaml" -X user=bench)
for _ in $(seq "$rounds"); do
  run open --brokers 127.0.0.1:24092
  STRANDLINE_CLIENT_PASSWORD=$password run secured "${secured[@]}"
done
open=$(median "$dir/open.runs") locked=$(median "$dir/secured.runs")
awk -v o="$open" -v s="$locked" 'BEGIN {printf "open %d, locked down %d records/s: ratio %.2f\n", o, s, s / o; exit s < 0.6 * o}'
