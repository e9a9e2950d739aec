#!/usr/bin/env bash
# What many partitions, connections, consumers and members of one group cost one node; each figure is printed beside the bar it is judged by.
# Usage: bench/scale.sh [flags of bench/scale, such as -runs 1 -only partitions,connections]
# The part "produce" needs the load generator kbench: KBENCH_DIR names its source (default: ../shared/bench/kbench); without it that part
# is left out. About 6 minutes a run; nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
make -s build
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
CGO_ENABLED=0 go build -o "$tools/scale" ./bench/scale
kbench=()
source=${KBENCH_DIR:-../shared/bench/kbench}
if [ -d "$source" ]; then
  cp -r "$source" "$tools/source" && chmod -R u+w "$tools/source"
  (cd "$tools/source" && CGO_ENABLED=0 go build -o "$tools/kbench" .)
  kbench=(-kbench "$tools/kbench")
fi
echo "$(git rev-parse --short HEAD); $(nproc) cores; $(uname -sr); open files: $(ulimit -n)"
"$tools/scale" -binary bin/strandline "${kbench[@]}" "$@"
