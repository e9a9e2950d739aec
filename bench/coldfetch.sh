#!/usr/bin/env bash
# First fetches after the page cache has been dropped (needs root): 50 at the start of a log of 1 GiB and 50 in its middle, in turn, each
# on a new connection and at an offset of its own. Prints medians and their ratio.
# Usage: bench/coldfetch.sh [fetches]; WORK is a directory on the disk to be measured.
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0
mkdir -p .cache/bench
go build -trimpath -ldflags "-s -w" -o .cache/bench/strandline ./cmd/strandline
go build -o .cache/bench/coldfetch ./bench/coldfetch
exec .cache/bench/coldfetch -strandline .cache/bench/strandline -work "${WORK:-${TMPDIR:-/tmp}}" -fetches "${1:-50}"
