#!/usr/bin/env python3
"""Kills processes at random while they save, lease, publish, collect and erase on one store, and then
looks at every object of it.

Usage: soak.py BINARY MINUTES local|s3 SEED

`s3` takes the endpoint, the bucket and the credentials from what `scripts/stores.sh up NAME` prints.
Two services, two savers, three owners, two collectors and two erasers work on six sessions; one of them
gets SIGKILL about twice a second and is started again. An owner publishes a reference by writing a whole
line to its ledger, after its lease was granted and never otherwise. In the end nothing may contradict the
ledgers: what was published is there byte for byte, what was erased is not, everything else is collected.
"""
import hashlib
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid
from pathlib import Path

SESSIONS = [f"session-{n}" for n in range(6)]
WORKERS = ["saver", "saver", "owner", "owner", "owner", "collector", "collector", "eraser", "eraser"]
LEDGERS = ["saved", "published", "erased"]
ORPHAN_TTL = 4
SETTINGS = {
    "SPILLBOX_GC__ORPHAN_TTL": f"{ORPHAN_TTL}s",
    "SPILLBOX_GC__MIN_PLAN_AGE": "1s",
    "SPILLBOX_GC__SETTLE": "1s",
    "SPILLBOX_GC__ALLOW_SHORT_TIMES": "true",
    "RUST_LOG": "warn",
}
# Above it a body is streamed in parts.
STREAMED = 8 * 1024 * 1024 + 5


def ask(url, method, path, body=b"", headers=()):
    """One request; (0, {}) where there was no answer."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=20)
    try:
        connection.request(method, path, body=body, headers=dict(headers))
        reply = connection.getresponse()
        return reply.status, reply.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def ask_json(url, method, path, document):
    body = json.dumps(document).encode()
    status, answer = ask(url, method, path, body, {"content-type": "application/json"})
    try:
        return status, json.loads(answer)
    except ValueError:
        return status, {}


class Ledger:
    """Whole lines, each on disk before anything rests on it."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, **entry):
        os.write(self.file, (json.dumps(entry) + "\n").encode())
        os.fsync(self.file)


def entries(directory, kind):
    for path in sorted(directory.glob(f"{kind}-*.jsonl")):
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


def save(urls, session, body, call=None):
    query = urllib.parse.urlencode({"tool": "soak", **({"call_id": call} if call else {})})
    status, answer = ask(random.choice(urls), "POST", f"/v1/sessions/{session}/artifacts?{query}", body)
    return json.loads(answer) if status in (200, 201) else None


def new_body():
    text = f"{uuid.uuid4()} {uuid.uuid4()}\n".encode()
    if random.random() < 0.02:
        return (text * (STREAMED // len(text) + 1))[:STREAMED]
    return text * random.randint(1, 400)


def path_of(receipt):
    return "/a/" + receipt["locator"].rsplit("/a/", 1)[1]


def saver(place):
    ledger = Ledger(place.ledger("saved"))
    while True:
        body, session, call = new_body(), random.choice(SESSIONS), f"call-{uuid.uuid4()}"
        receipts = [save(place.urls, session, body, call) for _ in range(random.choice([1, 2]))]
        found = {path_of(receipt) for receipt in receipts if receipt}
        if len(found) > 1:
            ledger.write(fault=f"one call became {sorted(found)}")
        for path in found:
            ledger.write(path=path, sha256=hashlib.sha256(body).hexdigest())
        time.sleep(random.uniform(0.1, 0.6))


def owner(place):
    ledger = Ledger(place.ledger("published"))
    while True:
        body, session, txn = new_body(), random.choice(SESSIONS), str(uuid.uuid4())
        receipt = save(place.urls, session, body)
        if receipt is None:
            time.sleep(0.3)
            continue
        # Around the TTL the collectors are after it.
        time.sleep(random.choice([0, 0, random.uniform(ORPHAN_TTL, ORPHAN_TTL + 4)]))
        sha256 = hashlib.sha256(body).hexdigest()
        leases = f"/v1/sessions/{session}/leases"
        claim = {
            "transaction_id": txn,
            "source_id": receipt["source_id"],
            "content_sha256": sha256,
            "reference_count": 1,
            "retain_until": None,
        }
        status, _ = ask_json(random.choice(place.urls), "POST", leases, claim)
        if status not in (200, 201):
            continue
        path = path_of(receipt)
        ledger.write(state="published", txn=txn, path=path, sha256=sha256)
        ask_json(random.choice(place.urls), "POST", f"{leases}/{txn}/commit", {})
        if random.random() < 0.2:
            time.sleep(random.uniform(0, 2))
            ledger.write(state="removed", txn=txn, path=path)
            ask_json(random.choice(place.urls), "POST", f"{leases}/{txn}/release", {"reason": "removed"})


def collector(place):
    while True:
        time.sleep(random.uniform(0, 1))
        if random.random() < 0.5:
            place.spillbox("gc", "run", "--max-share", "1")
            continue
        _, plan = place.spillbox("gc", "plan", "--max-share", "1")
        if "plan_id" in plan:
            # Late is as good: leases have come in between.
            time.sleep(random.uniform(1, 6))
            place.spillbox("gc", "apply", plan["plan_id"], "--sha256", plan["sha256"])


def eraser(place):
    ledger = Ledger(place.ledger("erased"))
    while True:
        time.sleep(random.uniform(0.5, 2))
        known = [one["path"] for kind in ("saved", "published") for one in entries(place.dir, kind) if "path" in one]
        if not known:
            continue
        path = random.choice(known[-200:])
        if random.random() < 0.7:
            status, _ = ask(random.choice(place.urls), "DELETE", path)
            is_erased = status == 200
        else:
            exit_status, _ = place.spillbox("rm", "spillbox:" + path.removeprefix("/a/"))
            is_erased = exit_status == 0
        if is_erased:
            ledger.write(path=path)


class Place:
    def __init__(self, binary, directory, store, urls):
        self.binary, self.dir, self.store, self.urls = binary, Path(directory), store, urls

    def ledger(self, kind):
        return self.dir / f"{kind}-{os.getpid()}.jsonl"

    def spillbox(self, *arguments):
        command = [self.binary, *arguments, "--store", self.store, "--json"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=120, check=False)
        except subprocess.TimeoutExpired:
            return 1, {}
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            return done.returncode, {"said": done.stderr.decode(errors="replace")[-400:]}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Herd:
    """Processes, each in a group of its own, so that a kill takes what it has started as well."""

    def __init__(self, commands):
        self.commands = commands
        self.running = {}
        self.kills = {}

    def start(self, name):
        log = open(os.devnull, "wb")
        self.running[name] = subprocess.Popen(
            self.commands[name], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )

    def kill(self, name):
        process = self.running[name]
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        kind = name.split("-")[0]
        self.kills[kind] = self.kills.get(kind, 0) + 1

    def end(self):
        for name in self.running:
            self.kill(name)


def wait_ready(url):
    for _ in range(300):
        if ask(url, "GET", "/readyz")[0] == 200:
            return
        time.sleep(0.1)
    sys.exit(f"soak: {url} does not become ready")


def keys_of_bodies(place):
    """Every body in the store, as (session key, artifact id), from the bare listing."""
    body = re.compile(r"/b/([0-9a-z]{26})/([0-9a-z]{26})")
    if place.store.startswith("local:"):
        root = Path(place.store.removeprefix("local:"))
        names = (str(path) for path in root.rglob("*") if path.is_file())
    else:
        import s3_admin

        bucket, prefix = place.store.removeprefix("s3://").split("/", 1)
        names = s3_admin.list_keys(os.environ["AWS_ENDPOINT_URL"], bucket, prefix)
    return [found.groups() for found in map(body.search, names) if found]


def audit(place, url):
    faults, facts = [], {}
    published, removed = {}, set()
    for one in entries(place.dir, "published"):
        if one["state"] == "published":
            published[one["txn"]] = one
        else:
            removed.add(one["txn"])
    kept = {txn: one for txn, one in published.items() if txn not in removed}
    # First what is published: no collection comes before it.
    for one in kept.values():
        status, body = ask(url, "GET", one["path"])
        if status != 200 or hashlib.sha256(body).hexdigest() != one["sha256"]:
            faults.append(f"published and not there: {one['path']} answers {status}")
    facts["published"] = len(published)
    facts["removed"] = len(removed)
    erased = {one["path"] for one in entries(place.dir, "erased")}
    for path in erased:
        status, _ = ask(url, "GET", path)
        if status != 410:
            faults.append(f"erased and not gone: {path} answers {status}")
    facts["erased"] = len(erased)
    for session in SESSIONS:
        exit_status, verified = place.spillbox("journal", "verify", "--session", session)
        if exit_status != 0 or verified.get("status") != "ok":
            faults.append(f"journal of {session}: {exit_status} {verified}")
    counts = {}
    for _ in range(20):
        time.sleep(ORPHAN_TTL / 2)
        _, ran = place.spillbox("gc", "run", "--max-share", "1")
        counts = (ran.get("plan") or {}).get("counts", {"said": ran})
        if counts.get("planned_delete") == 0 and counts.get("pending_delete", 0) == 0:
            break
    else:
        faults.append(f"collections do not come to an end: {counts}")
    for alarm in ("retained_corrupt", "missing_referenced", "denied", "retained_unknown"):
        if counts.get(alarm, 0):
            faults.append(f"{alarm}: {counts[alarm]}")
    for one in kept.values():
        status, body = ask(url, "GET", one["path"])
        if status != 200 or hashlib.sha256(body).hexdigest() != one["sha256"]:
            faults.append(f"published and collected: {one['path']} answers {status}")
    saved = list(entries(place.dir, "saved"))
    faults += [one["fault"] for one in saved if "fault" in one]
    tally = {"collected or erased": 0, "still there": 0}
    for one in (one for one in saved if "path" in one):
        status, body = ask(url, "GET", one["path"])
        if status == 410:
            tally["collected or erased"] += 1
        elif status == 200 and hashlib.sha256(body).hexdigest() == one["sha256"]:
            tally["still there"] += 1
        else:
            faults.append(f"saved and neither there nor gone: {one['path']} answers {status}")
    facts["saved and never leased"] = tally
    bodies = {"live": 0, "of an upload that died": 0}
    for session_key, artifact in keys_of_bodies(place):
        status, _ = ask(url, "HEAD", f"/a/{session_key}.{artifact}")
        if status == 200:
            bodies["live"] += 1
        elif status == 404:
            # Kept for a day, whatever the TTL.
            bodies["of an upload that died"] += 1
        else:
            faults.append(f"a body is left: {session_key}.{artifact} answers {status}")
    facts["bodies"] = bodies
    facts["last plan"] = counts
    return faults, facts


def main():
    if sys.argv[1:2] == ["worker"]:
        kind, binary, directory, store, *urls = sys.argv[2:]
        random.seed()
        return globals()[kind](Place(binary, directory, store, urls))
    binary, minutes, backend, seed = sys.argv[1:5]
    random.seed(int(seed))
    os.environ.update(SETTINGS)
    with tempfile.TemporaryDirectory() as directory:
        if backend == "local":
            store = f"local:{directory}/store"
        else:
            os.environ["AWS_ENDPOINT_URL"] = os.environ["SPILLBOX_TEST_ENDPOINT"]
            os.environ["SPILLBOX_STORE__CONTENDERS"] = os.environ["SPILLBOX_TEST_CONTENDERS"]
            store = f"s3://{os.environ['SPILLBOX_TEST_BUCKET']}/soak-{uuid.uuid4()}"
        ports = [free_port(), free_port()]
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        place = Place(binary, directory, store, urls)
        commands = {
            f"serve-{n}": [binary, "serve", "--listen", f"127.0.0.1:{port}", "--store", store]
            for n, port in enumerate(ports)
        }
        for n, kind in enumerate(WORKERS):
            worker = [sys.executable, __file__, "worker", kind, binary, directory, store, *urls]
            commands[f"{kind}-{n}"] = worker
        herd = Herd(commands)
        try:
            for name in commands:
                herd.start(name)
            for url in urls:
                wait_ready(url)
            began, length = time.monotonic(), float(minutes) * 60
            # A short run on a busy machine goes on until there is something to look at.
            while (past := time.monotonic() - began) < length or (
                past < length + 120 and not all(any(entries(place.dir, kind)) for kind in LEDGERS)
            ):
                time.sleep(random.uniform(0.1, 0.9))
                name = random.choice(list(commands))
                herd.kill(name)
                herd.start(name)
            kills = dict(herd.kills)
            herd.end()
            herd.start("serve-0")
            wait_ready(urls[0])
            faults, facts = audit(place, urls[0])
        finally:
            herd.end()
        print(f"soak {backend}: {minutes} minutes, seed {seed}, kills {json.dumps(kills)}")
        print(f"  {json.dumps(facts)}")
        for fault in faults[:20]:
            print(f"  FAULT {fault}")
        idle = facts["published"] == 0 or facts["erased"] == 0
        if faults or idle:
            sys.exit(f"soak {backend}: {len(faults)} faults" + (", and nothing was done" if idle else ""))


if __name__ == "__main__":
    main()
