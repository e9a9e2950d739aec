#!/usr/bin/env bash
# Walks Debian's kcat through the steps of ../../steps/doc.go. One partition throughout: the broker makes the topics on first use.
set -uo pipefail
address=$1
dir=$(mktemp -d)
live=
trap 'rm -rf "$dir"; [ -z "$live" ] || kill $live 2>/dev/null' EXIT
failed=0
show='%o|%K|%k|%S|%s|%h\n'

# report NAME FUNCTION ARGS...: FUNCTION says on its last line of stdout why it failed.
report() {
  local name=$1 why; shift
  if why=$("$@"); then echo "step $name ok"; else
    failed=1
    echo "step $name FAIL $(tail -n 1 <<<"$why" | cut -c1-300)"
  fi
}
lacks() { echo "step $1 not-offered $2"; }
# A secured broker. Debian's librdkafka has a fault in SCRAM (docs/operating/security.md), so it logs in by PLAIN.
secured=()
if [ -n "${WALK_CA:-}" ]; then
  secured=(-X security.protocol=SASL_SSL -X sasl.mechanism=PLAIN -X "ssl.ca.location=$WALK_CA" -X "sasl.username=$WALK_USER" -X "sasl.password=$WALK_PASSWORD")
fi
kc() { timeout 60 kcat -b "$address" "${secured[@]}" "$@"; }
produce() { kc -P -t "$@"; }                             # produce TOPIC OPTIONS: records from stdin
# A short session: a member that ends while its coordinator is away does not say that it leaves.
group=(-q -G workers -X auto.offset.reset=earliest -X session.timeout.ms=6000 -X heartbeat.interval.ms=1000)
same() { cmp -s "$1" "$2" || { echo "got $(head -c 200 "$2" | tr '\n\0' '; '), want $(head -c 200 "$1" | tr '\n\0' '; ')"; return 1; }; }

large=$(printf '0123456789abcdef%.0s' $(seq 4096))

# The records of steps.Samples.
codec() {
  local t=codec-$1 p=(-p 0 -z "$1")
  [ "$1" != none ] || p=(-p 0)
  produce "$t" "${p[@]}" -K: <<<"k:v" &&
    produce "$t" "${p[@]}" <<<"v" &&
    printf ':v^' | produce "$t" "${p[@]}" -K: -D^ &&
    printf 'k:^' | produce "$t" "${p[@]}" -K: -D^ -Z &&
    printf 'k:^' | produce "$t" "${p[@]}" -K: -D^ &&
    produce "$t" "${p[@]}" -K: -H a=1 -H null -H empty= -H a=2 <<<"k:v" &&
    printf '\0\xff\n|\xff\xfe\0\n:^' | produce "$t" "${p[@]}" -K'|' -D^ -H "b=$(printf '\001\002\xff')" &&
    produce "$t" "${p[@]}" -K: <<<"k:$large" || { echo "kcat -P failed"; return 1; }
  kc -C -t "$t" -p 0 -o beginning -e -q -f "$show" >"$dir/$t"
  {
    printf '0|1|k|1|v|\n1|-1||1|v|\n2|0||1|v|\n3|1|k|-1||\n4|1|k|0||\n5|1|k|1|v|a=1,null=NULL,empty=,a=2\n'
    printf '6|3|\0\xff\n|5|\xff\xfe\0\n:|b=\001\002\xff\n7|1|k|65536|%s|\n' "$large"
  } >"$dir/want"
  same "$dir/want" "$dir/$t"
}

orders() { seq "$1" "$2" | produce orders -p 0; }

# begins FIRST LAST: a new member reads these records of orders, commits as it ends, and they are those.
begins() {
  kc "${group[@]}" -c $(($2 - $1 + 1)) -f '%o:%s\n' orders >"$dir/read" || { echo "kcat -G failed"; return 1; }
  seq "$1" "$2" | sed 's/.*/&:&/' >"$dir/want"
  same "$dir/want" "$dir/read"
}

# until_read LAST: waits until the member in the background has read that record.
until_read() {
  for _ in $(seq 300); do
    if grep -qx "$1" "$dir/live"; then return 0; fi
    sleep 0.2
  done
  echo "not read: $1; read: $(tr '\n' ' ' <"$dir/live")"
  return 1
}

# lived: every record from 8 on was read by the member that saw the restart, none below.
lived() {
  until_read 14 || return 1
  kill -9 "$live" # kcat commits when it ends in order
  wait "$live" 2>/dev/null
  sort -n -u "$dir/live" >"$dir/read"
  seq 8 14 >"$dir/want"
  same "$dir/want" "$dir/read" && begins 8 14
}

by_time() {
  local t
  echo one | produce times -p 0 && sleep 0.05 && t=$(date +%s%3N) && sleep 0.05 && echo two | produce times -p 0 || { echo "kcat -P failed"; return 1; }
  { kc -Q -t "times:0:$((t - 3600000))" && kc -Q -t "times:0:$t"; } >"$dir/read"
  printf 'times [0] offset 0\ntimes [0] offset 1\n' >"$dir/want"
  same "$dir/want" "$dir/read"
}

seek() {
  { kc -C -t orders -p 0 -o 6 -c 1 -q -f '%o\n' && kc -C -t orders -p 0 -o 3 -c 1 -q -f '%o\n'; } >"$dir/read"
  printf '6\n3\n' >"$dir/want"
  same "$dir/want" "$dir/read"
}

echo "version $(kcat -V | sed -n 's/^Version \([0-9.]*\).*/\1/p')"
lacks create "kcat has no administration"
for c in none gzip snappy lz4 zstd; do report $c codec $c; done
# codec compared every byte, and lengths that tell null from empty.
for s in keys values headers null-headers; do report $s test $failed = 0; done
orders 0 9
report group begins 0 4
report commit begins 5 7   # kcat commits what it read when it ends
# kcat takes enable.auto.commit=false and commits all the same, every 5 s; what is not stored it cannot commit.
kcat -b "$address" "${secured[@]}" "${group[@]}" -E -X enable.auto.offset.store=false -u -f '%o\n' orders >"$dir/live" &
live=$!
report restart-consumer until_read 9
echo RESTART
read -r answer
[ "$answer" = DONE ] || echo "the driver answered $answer" >&2
orders 10 14
report kill-9 lived
live=
report by-time by_time
report seek seek
for s in describe-group reset-group delete-group delete-topic; do lacks $s "kcat has no administration"; done
exit $failed
