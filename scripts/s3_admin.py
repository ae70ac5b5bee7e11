#!/usr/bin/env python3
"""Makes a bucket, or switches its versioning, with nothing but the standard library (SigV4).

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
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

VERSIONING = (
    b'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    b"<Status>Enabled</Status></VersioningConfiguration>"
)


def signed(method, endpoint, path, query, body=b""):
    """`query` as it is signed: names in order, values escaped."""
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
    request = "\n".join([method, path, query, canonical_headers, names, digest])
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
    call = urllib.request.Request(url, data=body, headers=headers, method=method)
    with urllib.request.urlopen(call, timeout=20) as reply:
        return reply.read()


def list_keys(endpoint, bucket, prefix):
    token = ""
    while True:
        values = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
        query = "&".join(f"{name}={quote(values[name], safe='')}" for name in sorted(values))
        page = ElementTree.fromstring(signed("GET", endpoint, f"/{bucket}", query))
        space = page.tag.partition("}")[0] + "}" if page.tag.startswith("{") else ""
        for entry in page.iter(f"{space}Contents"):
            yield entry.findtext(f"{space}Key")
        token = page.findtext(f"{space}NextContinuationToken")
        if page.findtext(f"{space}IsTruncated") != "true" or not token:
            return


def main():
    endpoint, action, bucket = sys.argv[1:4]
    try:
        if action == "make-bucket":
            signed("PUT", endpoint, f"/{bucket}", "", b"")
        elif action == "enable-versioning":
            signed("PUT", endpoint, f"/{bucket}", "versioning=", VERSIONING)
        else:
            sys.exit(__doc__)
    except urllib.error.HTTPError as error:
        if action == "make-bucket" and error.code == 409:
            return
        sys.exit(f"{action} {bucket}: {error.code} {error.read(300).decode(errors='replace')}")


if __name__ == "__main__":
    main()
