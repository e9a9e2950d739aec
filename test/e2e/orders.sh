#!/bin/sh
# The story of an order over REST, with nothing but curl.
#   sh test/e2e/orders.sh http://127.0.0.1:8080 [the HTTP doors of the other nodes]
#   CURL="curl --cacert secure/ca.pem -u admin:PASSWORD" sh test/e2e/orders.sh https://127.0.0.1:8080 https://127.0.0.1:8090 https://127.0.0.1:8100
# With three nodes the leader changes in the middle: its node is drained for a moment.
# Every step names what it expects; the first that does not hold ends the script with 1. It wants a topic named order-story to be absent.
set -eu
base=${1:?the URL of the HTTP door}
all="$*"
curl=${CURL:-curl}
topic=/v1/topics/order-story

fail() { echo "FAILED: $step: wanted $want, got $status $body" >&2; exit 1; }

# call WHAT STATUS METHOD PATH [JSON]: sends a request; its answer is in $body.
call() {
	step=$1 want=$2
	if [ $# -gt 4 ]; then
		body=$($curl -sS -X "$3" -H 'Content-Type: application/json' -d "$5" -w ' %{http_code}' "$base$4")
	else
		body=$($curl -sS -X "$3" -w ' %{http_code}' "$base$4")
	fi
	status=${body##* } body=${body% *}
	if [ "$status" != "$2" ] && [ "${again:-0}" -gt 0 ]; then return 1; fi
	[ "$status" = "$2" ] || fail
	echo "ok  $step: $status"
}

# soon is call for what becomes true a moment later.
soon() {
	again=50
	until call "$@"; do again=$((again - 1)); done
	again=0
}

# lead is call at the leader of the partition, which alone serves its records; others name it, and it may change.
lead() {
	try=0
	while :; do
		for base in $all; do
			again=1
			if call "$@"; then again=0 && return; fi
		done
		try=$((try + 1)) && [ $try -lt 50 ] || fail
	done
}

# says TEXT: the answer must have it.
says() { case $body in *"$1"*) ;; *) want="$1" && fail ;; esac; }

# number NAME: the number of that name in the answer.
number() { printf %s "$body" | sed -n "s/.*\"$1\":\\([0-9-]*\\).*/\\1/p"; }

replicas=1
[ $# -lt 3 ] || replicas=3
call "create the topic" 201 POST /v1/topics '{"name":"order-story","partitionCount":1,"replicationFactor":'$replicas',"configs":{"strandline.delete.recovery.ms":"3600000"}}'
call "create it again" 409 POST /v1/topics '{"name":"order-story"}'
says TOPIC_ALREADY_EXISTS

records=$(i=0; while [ $i -lt 81 ]; do printf '{"routingKey":"order-%d","recordId":"r-%d","value":{"json":{"order":%d}}},' $i $i $i; i=$((i + 1)); done)
soon "publish records 0 to 80" 201 POST $topic/records "{\"records\":[${records%,}]}"
order='{"routingKey":"order-42","recordId":"order-42-created","value":{"json":{"order":42,"state":"created"}}}'
step="publish order-42, and give up before the answer" && echo "ok  $step"
$curl -sS -m 0.001 -X POST -H 'Content-Type: application/json' -d "$order" "$base$topic/records" >/dev/null 2>&1 || true
call "publish it again with the same record id" 201 POST $topic/records "$order"
says '"offset":81,'
call "and again" 201 POST $topic/records "$order"
says '"offset":81,' && says '"duplicate":true'
if [ $replicas = 3 ]; then
	soon "describe the topic" 200 GET $topic
	leader=$(number leader)
	call "take node $leader, which leads, out of service" 200 PUT /v1/nodes/$leader/drain
	now=$leader try=0
	until [ "$now" != "$leader" ] && [ "$now" -gt 0 ]; do
		try=$((try + 1)) want="another leader" && [ $try -lt 100 ] || fail
		call "who leads now?" 200 GET $topic
		now=$(number leader)
	done
	soon "publish it once more, to another leader" 201 POST $topic/records "$order"
	says '"offset":81,' && says '"duplicate":true'
	call "put node $leader back" 200 DELETE /v1/nodes/$leader/drain
fi
call "other bytes under that id" 422 POST $topic/records '{"routingKey":"order-42","recordId":"order-42-created","value":{"text":"other"}}'
says RECORD_ID_REUSED

for group in fulfillment analytics; do
	soon "$group joins" 200 POST /v1/groups/$group/members '{"topics":["order-story"],"memberId":"'$group'-1"}'
	try=0
	until [ "$(number generation)" -gt 0 ] && case $body in *'"partitions":[0]'*) true ;; *) false ;; esac; do
		try=$((try + 1)) && [ $try -lt 50 ] || fail
		call "$group hears of its partition" 200 PUT /v1/groups/$group/members/$group-1 "{\"generation\":$(number generation)}"
	done
	eval "generation_$group=$(number generation)"
done
call "fulfillment commits 82" 200 PUT /v1/groups/fulfillment/offsets/order-story/0 "{\"generation\":$generation_fulfillment,\"memberId\":\"fulfillment-1\",\"nextOffset\":82}"
says '"committed":true'
call "its place is 82" 200 GET /v1/groups/fulfillment/offsets/order-story/0
says '"nextOffset":82'
call "analytics has a place of its own: none yet" 200 GET /v1/groups/analytics/offsets/order-story/0
says '"nextOffset":null'
call "a stale generation is refused" 409 PUT /v1/groups/fulfillment/offsets/order-story/0 '{"generation":9999,"memberId":"fulfillment-1","nextOffset":0}'
call "and changes nothing" 200 GET /v1/groups/fulfillment/offsets/order-story/0
says '"nextOffset":82'
call "fulfillment leaves" 204 DELETE /v1/groups/fulfillment/members/fulfillment-1

call "describe the topic" 200 GET $topic
version=$(number topicVersion)
says '"highWatermark":82'
lead "analytics reads record 81" 200 GET "$topic/partitions/0/records?fromOffset=81&waitMs=1000"
says '"recordId":"order-42-created"' && says '"nextOffset":82'
lead "out of range" 416 GET "$topic/partitions/0/records?fromOffset=100000"
says OFFSET_OUT_OF_RANGE && says '"validRange":{"logStart":0,"highWatermark":82}'
call "delete another version of it" 409 DELETE "$topic?expectedVersion=$((version + 1))"
says VERSION_CONFLICT
call "delete it" 202 DELETE "$topic?expectedVersion=$version"
says '"deletionPending":true'
call "no records go there" 404 POST $topic/records "$order"
call "restore it" 200 POST $topic/restore '{}'
lead "its records are back" 200 GET "$topic/partitions/0/records?fromOffset=81"
says '"recordId":"order-42-created"'
call "delete it for good" 202 DELETE $topic
echo "the story holds"
