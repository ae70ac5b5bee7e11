#!/usr/bin/env bash
# Brings docker-compose.yml up with images made here, uses it as a sandbox and an operator do, and takes it down.
#
#   scripts/test-compose.sh        says "skipped" where no container engine answers
#
# Needs docker, and what scripts/local-images.sh needs. Everything that it makes is called spillbox-test-…
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/compose.sh

if ! has_engine; then
  echo 'compose skipped: no container engine answers'
  exit 0
fi

readonly project=spillbox-test volume=spillbox-test-local operator=sbx_try-it-out-operator_known-to-everybody
export SPILLBOX_PORT=18788
# What is collected shall be seen to be collected.
export SPILLBOX_ORPHAN_TTL=1s SPILLBOX_MIN_PLAN_AGE=1s SPILLBOX_SETTLE=1s SPILLBOX_ALLOW_SHORT_TIMES=true
export SPILLBOX_COLLECT_EVERY=3s
began=$SECONDS
checks=0

here() { compose --progress quiet -p $project -f docker-compose.yml -f deploy/compose.local.yml "$@"; }
down() {
  here down --volumes --remove-orphans --timeout 20 2>/dev/null || true
  docker volume rm --force $volume >/dev/null 2>&1 || true
}
ended() {
  local status=$?
  [ $status = 0 ] || here logs --no-color --tail 30 >&2 || true
  down
  exit $status
}
passed() { checks=$((checks + 1)); echo "compose: $*"; }
fail() { echo "compose failed: $*" >&2; exit 1; }

# Runs a line in the sandbox.
sandbox() { here exec -T sandbox /bin/sh -c "$1"; }
# One member of a JSON object on standard input.
member() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }
# A request of the operator, through the published port; prints the body.
operate() { curl -sS --fail-with-body -H "Authorization: Bearer $operator" "$@"; }
status_of() { curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $operator" "$1"; }
# The container's address, by which no name needs to resolve.
address_of() { docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}' "$project-$1-1" | cut -d' ' -f1; }

trap ended EXIT
trap 'exit 130' INT TERM
down
scripts/local-images.sh
images=$((SECONDS - began))

# The image alone, with its defaults: a volume of its own, whose owner is the image's user.
kept=$(echo 'on a volume' | docker run --rm -i -v $volume:/var/lib/spillbox spillbox-local:dev put - --json | member locator)
[ "$(docker run --rm -v $volume:/var/lib/spillbox spillbox-local:dev cat "$kept")" = 'on a volume' ] ||
  fail 'the volume does not keep what is put'
passed 'the image keeps its store on a volume'
if refused=$(docker run --rm spillbox-local:dev 2>&1); then fail 'a service without tokens listens to everybody'; fi
grep -q tokens <<<"$refused" || fail "refused for another reason: $refused"
passed 'the image refuses to listen to everybody without tokens'

here up --detach --wait --wait-timeout 180
passed 'everything is up, both replicas ready'
# Between a save and its lease nothing shall be collected, however slow this machine is.
here stop --timeout 20 collect

for place in store:8333 spillbox-1:8787 "$(address_of store):8333" "$(address_of spillbox-1):8787"; do
  if sandbox "curl -sS -o /dev/null --max-time 2 http://$place/" 2>/dev/null; then fail "the sandbox reaches $place"; fi
done
passed 'the sandbox reaches the proxy and nothing else'

save() { # SESSION: prints the receipt and keeps the reply's head in the sandbox
  sandbox "seq 1 100000 | curl -sS --fail-with-body -D /tmp/$1.head -T - \
    -H \"Authorization: Bearer \$SPILLBOX_TOKEN\" \"\$SPILLBOX_URL/v1/sessions/$1/artifacts?tool=seq\""
}
orphan=$(save orphan)
leased=$(save leased)
saved_by=$(sandbox "grep -i '^spillbox-replica' /tmp/leased.head" | tr -d '\r')
locator=$(member locator <<<"$leased")
digest=$(member digest <<<"$leased")
other=
for _ in 1 2 3 4 5 6 7 8; do
  read_back=$(sandbox "curl -sS --fail -D /tmp/read.head -H \"Authorization: Bearer \$SPILLBOX_TOKEN\" '$locator' | sha256sum" | cut -d' ' -f1)
  [ "sha256:$read_back" = "$digest" ] || fail "other bytes than were saved: $read_back"
  other=$(sandbox "grep -i '^spillbox-replica' /tmp/read.head" | tr -d '\r')
  [ "$other" = "$saved_by" ] || break
done
[ -n "$other" ] && [ "$other" != "$saved_by" ] || fail "no other replica than $saved_by answers"
passed "saved in the sandbox ($saved_by), read byte for byte ($other)"
hint=$(member retrieval_hint <<<"$leased")
[ "$(sandbox "$hint" | wc -l)" = 200 ] || fail "the hint does not run as printed: $hint"
passed 'the hint runs as printed'

api=http://127.0.0.1:$SPILLBOX_PORT
path_of() { member locator | sed 's,^http://[^/]*,,'; }
claim=$(python3 -c '
import json, sys
receipt = json.load(sys.stdin)
print(json.dumps({"transaction_id": "tx-1", "source_id": receipt["source_id"], "content_sha256": receipt["digest"].split(":")[1],
                  "reference_count": 1, "retain_until": None, "owner": "memory"}))' <<<"$leased")
operate "$api/v1/sessions/leased/leases" -d "$claim" >/dev/null
operate "$api/v1/sessions/leased/leases/tx-1/commit" -d '{"owner_generation":"1"}' >/dev/null
passed 'the memory system has its lease'

here start collect
orphan_url=$api$(path_of <<<"$orphan") leased_url=$api$(path_of <<<"$leased")
for _ in $(seq 120); do
  # Looking at the bytes would be a use, which keeps them.
  status=$(status_of "$orphan_url/stat")
  [ "$status" != 410 ] || break
  sleep 1
done
[ "$status" = 410 ] || fail "the orphan is not collected: $status"
[ "$(status_of "$leased_url")" = 200 ] || fail 'what has a lease is gone'
passed 'the scheduled job collected the orphan and kept what has a lease'

here stop --timeout 40 spillbox-1
exit_code=$(docker inspect -f '{{.State.ExitCode}}' $project-spillbox-1-1)
[ "$exit_code" = 0 ] || fail "the replica did not drain: exit status $exit_code"
for _ in 1 2 3 4; do
  [ "$(status_of "$leased_url")" = 200 ] || fail 'a stopped replica is noticed by readers'
done
passed 'one replica stopped in order, the other reads on'

down
[ -z "$(docker ps -aq --filter "label=com.docker.compose.project=$project")" ] || fail 'containers are left'
trap - EXIT
echo "compose: $checks checks passed in $((SECONDS - began)) s, $images of them for images"
