#!/usr/bin/env bash
# Tries a bucket of your own: prints what `spillbox doctor` would say of it, then runs the conformance
# suite and the suite of saves and reads in it.
#
#   scripts/attest-my-bucket.sh ENDPOINT BUCKET [PREFIX]
#   scripts/attest-my-bucket.sh https://s3.eu-central-1.amazonaws.com my-bucket scratch
#
# Credentials and region: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, or a profile. Works under
# PREFIX and removes what it made, old versions and uploads too; moves about half a gigabyte. Use a bucket
# without object lock, of the kind (versioned or not) that the service will use. Where writers of one key
# are slow, set SPILLBOX_TEST_CONTENDERS to fewer than 32.
set -euo pipefail
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
fi
cd "$(dirname "$0")/.."
export SPILLBOX_TEST_STORE=${SPILLBOX_TEST_STORE:-my-bucket}
export SPILLBOX_TEST_ENDPOINT=$1 SPILLBOX_TEST_BUCKET=$2 SPILLBOX_TEST_PREFIX=${3:-}
# What is not known of the bucket is found out by attestation.
export SPILLBOX_TEST_LACKS=${SPILLBOX_TEST_LACKS:-unknown}
unset SPILLBOX_TEST_EXPECT SPILLBOX_TEST_VERSIONED_BUCKET
exec cargo test --quiet --locked --test integration real_store:: -- --nocapture --test-threads=1
