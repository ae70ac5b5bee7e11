#!/usr/bin/env python3
"""Makes a bucket, or switches its versioning on, with nothing but the standard library (SigV4).

Usage: s3_admin.py ENDPOINT make-bucket|enable-versioning BUCKET
Credentials: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY; region: AWS_REGION or us-east-1.
"""
import datetime
import hashlib
import hmac
import os
import sys
import urllib.error
import urllib.request
from urllib.parse import urlsplit

VERSIONING = (
    b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Status>Enabled</Status></VersioningConfiguration>"
)


def signed_put(endpoint, path, query, body):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    region = os.environ.get("AWS_REGION", "us-east-1")
    digest = hashlib.sha256(body).hexdigest()
    headers = {
        "host": urlsplit(endpoint).netloc,
        "x-amz-content-sha256": digest,
        "x-amz-date": now,
    }
    names = ";".join(sorted(headers))
    canonical_headers = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    request = "\n".join(["PUT", path, query, canonical_headers, names, digest])
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    to_sign = "\n".join(
        ["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(request.encode()).hexdigest()]
    )
    key = ("AWS4" + os.environ["AWS_SECRET_ACCESS_KEY"]).encode()
    for part in (now[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={os.environ['AWS_ACCESS_KEY_ID']}/{scope}, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    url = endpoint + path + (f"?{query}" if query else "")
    call = urllib.request.Request(url, data=body, headers=headers, method="PUT")
    with urllib.request.urlopen(call, timeout=20) as reply:
        return reply.status


def main():
    endpoint, action, bucket = sys.argv[1:4]
    try:
        if action == "make-bucket":
            signed_put(endpoint, f"/{bucket}", "", b"")
        elif action == "enable-versioning":
            signed_put(endpoint, f"/{bucket}", "versioning=", VERSIONING)
        else:
            sys.exit(__doc__)
    except urllib.error.HTTPError as error:
        if action == "make-bucket" and error.code == 409:
            return
        sys.exit(f"{action} {bucket}: {error.code} {error.read(300).decode(errors='replace')}")


if __name__ == "__main__":
    main()
