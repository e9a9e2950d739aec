#!/usr/bin/env bash
# Cases made from /openapi.json against a broker: none may be answered 500, with a status that the description does not name, or with a body that is
# not as described.
#   test/e2e/schemathesis.sh [examples for each operation: 8, about 1,500 cases; 120, about 4,900; 140 for more than 5,000]
# Installs schemathesis of the pinned version under .cache once. STRANDLINE_BIN is the binary: bin/strandline.
set -euo pipefail
cd "$(dirname "$0")/../.."
version=4.32.5
examples=${1:-8}
bin=${STRANDLINE_BIN:-bin/strandline}
venv=.cache/schemathesis-$version
work=$(mktemp -d)
broker=
stop() { [ -z "$broker" ] || { kill "$broker" && wait "$broker"; } || true; rm -rf "$work"; }
trap stop EXIT

if [ ! -e "$venv/done" ]; then
  rm -rf "$venv" && python3 -m venv "$venv" && "$venv/bin/pip" install -q "schemathesis==$version" && touch "$venv/done"
fi
"$bin" dev --kafka 127.0.0.1:0 --http 127.0.0.1:0 --log-level error >"$work/ready" 2>"$work/log" &
broker=$!
for _ in $(seq 300); do
  url=$(sed -n 's/^ready .*http=//p' "$work/ready")
  [ -z "$url" ] || break
  sleep 0.1
done
[ -n "$url" ] || { cat "$work/log" >&2; exit 1; }
send() { curl -fsS -o /dev/null -H 'Content-Type: application/json' "$@"; }
send -d '{"name":"story","partitionCount":2}' "$url/v1/topics"
send -d '{"records":[{"routingKey":"a","recordId":"r1","value":{"json":{"a":1}}},{"value":null}]}' "$url/v1/topics/story/records"
send -X PUT -d '{"nextOffset":1}' "$url/v1/groups/readers/offsets/story/0"
"$venv/bin/st" --config-file test/e2e/schemathesis.toml run "$url/openapi.json" --max-examples "$examples" --seed "${SEED:-1}" --no-color --warnings off \
  --request-timeout 60 --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method
if grep -q 'has no status\|broke' "$work/log"; then cat "$work/log" >&2; exit 1; fi
