"""The client against a real `spillbox serve`. `SPILLBOX_BINARY` names the program; `cargo test` sets it."""
from __future__ import annotations

import contextlib
import gc
import hashlib
import http.server
import io
import json
import multiprocessing
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
import weakref

from spillbox_client import Client, SpillboxError, SpoolFull, Spooled, Unavailable

BINARY = os.environ["SPILLBOX_BINARY"]
MIB = 1 << 20
IDS = "0" * 25 + "1." + "0" * 25 + "2"


def bare_environment() -> dict[str, str]:
    """Nothing of the tester's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SPILLBOX", "AWS_", "XDG_"))}


class Service:
    """A running service over a directory."""

    def __init__(self, store: pathlib.Path, listen: str = "127.0.0.1:0", settings: str = ""):
        config = store.with_suffix(".toml")
        config.write_text(settings)
        command = [BINARY, "serve", "--listen", listen, "--store", f"local:{store}", "--config", str(config)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, env=bare_environment())
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(rb"listening on (http://[^\s\"]+)", line):
                self.url = found[1].decode()
                break
        else:
            self.process.wait()
            self.process.stderr.close()
            raise AssertionError("the service ended")
        # A service whose log nobody takes stands still.
        self.log = threading.Thread(target=self.process.stderr.read)
        self.log.start()
        while not self.is_ready():
            pass

    def is_ready(self) -> bool:
        with contextlib.suppress(urllib.error.HTTPError):
            with urllib.request.urlopen(self.url + "/readyz", timeout=30):
                return True
        return False

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.log.join()
        self.process.stderr.close()

    def listed(self, session: str = "default") -> list[dict]:
        with urllib.request.urlopen(f"{self.url}/v1/sessions/{session}/artifacts", timeout=30) as reply:
            return json.load(reply)["artifacts"]


class Base(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = pathlib.Path(directory.name)

    def serve(self, listen: str = "127.0.0.1:0", settings: str = "") -> Service:
        service = Service(self.dir / "store", listen, settings)
        self.addCleanup(service.stop)
        return service

    def client(self, url: str, **more) -> Client:
        client = Client(url, **more)
        self.addCleanup(client.close)
        return client

    def away(self) -> str:
        """The URL of a service that was there and is not any more."""
        service = Service(self.dir / "store")
        service.stop()
        return service.url


def drain_once(url: str, spool: str, start, receipts) -> None:
    start.wait()
    done, refused = Client(url, spool=pathlib.Path(spool)).drain()
    receipts.put((len(done), len(refused)))


class Saves(Base):
    def test_what_is_saved_is_read_back_whole_by_range_by_line_and_by_search(self) -> None:
        client = self.client(self.serve().url, session="run/7 é")
        body = b"".join(b"line %d\n" % n for n in range(1, 50_001))
        receipt = client.save(body, tool="bash", call_id="c1", label="a&b=c")
        self.assertEqual(client.save(body, tool="bash", call_id="c1")["artifact_id"], receipt["artifact_id"])
        locator = receipt["locator"]
        self.assertEqual(client.read(locator), body)
        self.assertEqual(client.read(locator, 5, 7), body[5:7])
        self.assertEqual(client.read(locator, len(body) - 3), body[-3:])
        into = io.BytesIO()
        self.assertEqual((client.read(locator, into=into), into.getvalue()), (b"", body))
        page = client.lines(locator, offset=40_000, limit=1)
        self.assertIn("line 40001", json.dumps(page))
        found = client.grep(locator, "LINE 4999[89]$", mode="regex", ignore_case=True)
        self.assertEqual(len(found["matches"]), 2, found)

    def test_a_small_result_stays_and_a_large_one_is_replaced_and_repeated(self) -> None:
        client = self.client(self.serve().url)
        small = client.replace(b"ok\n", tool="Bash", profile="claude-code")
        self.assertEqual((small["action"], small["text"], small["stored"]), ("inline", "ok\n", False))
        large = client.replace(b"x" * 40_000, tool="Bash", call_id="c", profile="claude-code")
        self.assertEqual((large["action"], large["stored"]), ("spilled", True))
        self.assertLess(len(large["text"]), 5_000)
        again = client.replace(b"x" * 40_000, tool="Bash", call_id="c", profile="default")
        self.assertEqual(again["text"], large["text"])
        self.assertEqual(client.read(large["receipt"]["locator"]), b"x" * 40_000)

    def test_bytes_of_any_kind_and_size_come_back(self) -> None:
        client = self.client(self.serve().url)
        for body in (b"", bytes(range(256)) * 4, os.urandom(MIB)):
            self.assertEqual(client.read(client.save(body)["locator"]), body)

    def test_files_and_pipes_are_streamed(self) -> None:
        client = self.client(self.serve().url)
        path = self.dir / "large"
        digest, block = hashlib.sha256(), bytes(range(256)) * 4096
        with open(path, "wb") as file:
            for n in range(50):
                file.write(bytes([n]) + block[1:])
                digest.update(bytes([n]) + block[1:])
        receipt = client.save(path, tool="build")
        self.assertEqual((receipt["size_bytes"], receipt["digest"]), (50 * MIB, f"sha256:{digest.hexdigest()}"))
        with open(self.dir / "back", "wb") as back:
            client.read(receipt["locator"], into=back)
        self.assertEqual((self.dir / "back").stat().st_size, 50 * MIB)
        with open(path, "rb") as file:
            file.seek(49 * MIB)
            self.assertEqual(client.save(file)["size_bytes"], MIB)
        with subprocess.Popen(["head", "-c", str(3 * MIB), "/dev/zero"], stdout=subprocess.PIPE) as tool:
            self.assertEqual(client.save(tool.stdout)["size_bytes"], 3 * MIB)

    def test_nothing_holds_on_to_a_body_that_was_saved(self) -> None:
        client = self.client(self.serve().url)
        body = io.BytesIO(b"y" * MIB)
        kept = weakref.ref(body)
        future = client.save_later(body)
        del body
        self.assertEqual(future.result(60)["size_bytes"], MIB)
        gc.collect()
        self.assertIsNone(kept())

    def test_nothing_holds_on_to_a_body_that_could_not_be_saved_either(self) -> None:
        url = self.away()
        for spool, kind in ((None, Unavailable), (self.dir / "spool", Spooled)):
            client = self.client(url, spool=spool)
            body = io.BytesIO(b"y" * MIB)
            kept = weakref.ref(body)
            future = client.save_later(body)
            del body
            client.close()
            self.assertIsInstance(future.exception(60), kind)
            gc.collect()
            self.assertIsNone(kept())

    def test_background_saves_are_bounded_and_a_full_queue_delays_the_next(self) -> None:
        client = self.client(self.serve().url, workers=1, waiting=1)
        gate, read = threading.Event(), threading.Event()

        class Slow(io.BytesIO):
            def read(self, *size):
                read.set()
                gate.wait()
                return super().read(*size)

        first = client.save_later(Slow(b"1"))
        second = client.save_later(b"2")
        read.wait()
        self.assertFalse(client._places.acquire(blocking=False), "both places are taken")
        third: list = []
        starter = threading.Thread(target=lambda: third.append(client.save_later(b"3")))
        starter.start()
        gate.set()
        starter.join(60)
        for future in (first, second, third[0]):
            self.assertIn("locator", future.result(60))


class Spool(Base):
    def test_what_was_kept_while_the_service_was_away_is_saved_once_under_its_call_ids(self) -> None:
        spool = self.dir / "spool"
        url = self.away()
        client = self.client(url, spool=spool)
        bodies = {f"call {n}": os.urandom(1000 + n) for n in range(20)}
        for call_id, body in bodies.items():
            with self.assertRaises(Spooled) as raised:
                (client.save if len(body) % 2 else client.replace)(body, call_id=call_id, tool="bash")
            self.assertEqual((raised.exception.call_id, raised.exception.code), (call_id, "unreachable"))
        with subprocess.Popen(["printf", "from a pipe"], stdout=subprocess.PIPE) as tool:
            with self.assertRaises(Spooled) as raised:
                client.save(tool.stdout)
        bodies[raised.exception.call_id] = b"from a pipe"
        self.assertEqual(stat.S_IMODE(spool.stat().st_mode), 0o700)
        self.assertEqual({stat.S_IMODE(file.stat().st_mode) for file in spool.iterdir()}, {0o600})
        with self.assertRaises(Unavailable):
            client.drain()
        self.assertEqual(len(list(spool.glob("*.ready"))), 21)

        service = self.serve(listen=url.removeprefix("http://"))
        context = multiprocessing.get_context("spawn")
        start, receipts = context.Event(), context.Queue()
        drains = [context.Process(target=drain_once, args=(url, str(spool), start, receipts)) for _ in range(3)]
        for process in drains:
            process.start()
        start.set()
        counts = [receipts.get(timeout=60) for _ in drains]
        for process in drains:
            process.join(60)
        self.assertEqual(sum(done for done, _ in counts), 21, counts)
        self.assertEqual(sum(refused for _, refused in counts), 0)
        self.assertEqual(list(spool.iterdir()), [])
        self.assertEqual(len(service.listed()), 21)
        for call_id, body in bodies.items():
            # The same call again meets what the drain saved.
            self.assertEqual(client.read(client.save(body, call_id=call_id)["locator"]), body)
        self.assertEqual(len(service.listed()), 21)
        self.assertEqual(client.drain(), ([], []))

    def test_what_a_process_that_died_left_is_sent_or_overwritten(self) -> None:
        url = self.away()
        client = self.client(url, spool=self.dir / "spool")
        with self.assertRaises(Spooled):
            client.save(b"left", call_id="c")
        # One was killed while it drained, one while it kept.
        killed = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX); os.abort()"
        subprocess.run([sys.executable, "-c", killed, self.dir / "spool"], check=False)
        (self.dir / "spool" / "part").write_bytes(b"x" * 100)
        with self.assertRaises(Spooled):
            client.save(b"more", call_id="d")
        self.serve(listen=url.removeprefix("http://"))
        done, refused = client.drain()
        self.assertEqual(refused, [])
        self.assertEqual([client.read(receipt["locator"]) for receipt in done], [b"left", b"more"], "the oldest first")
        self.assertEqual(list((self.dir / "spool").iterdir()), [])

    def test_the_cap_is_an_error_and_loses_nothing(self) -> None:
        spool = self.dir / "spool"
        client = self.client(self.away(), spool=spool, spool_bytes=10_000)
        with self.assertRaises(Spooled):
            client.save(b"a" * 6_000)
        body = io.BytesIO(b"-" + b"b" * 6_000)
        body.seek(1)
        with self.assertRaises(SpoolFull) as raised:
            client.save(body)
        self.assertEqual(raised.exception.code, "spool_full")
        self.assertIn("spool_bytes", raised.exception.hint)
        body.seek(1)
        self.assertEqual(len(body.read()), 6_000, "the body is still the caller's")
        self.assertEqual(len(list(spool.glob("*.ready"))), 1)
        self.assertLessEqual(sum(file.stat().st_size for file in spool.iterdir()), 10_000)

    def test_what_is_refused_stays_on_the_spool_and_does_not_stop_the_rest(self) -> None:
        url = self.away()
        client = self.client(url, spool=self.dir / "spool")
        for size in (3_000, 10):
            with self.assertRaises(Spooled):
                client.save(b"z" * size)
        self.serve(url.removeprefix("http://"), "[limits]\nmax_body_bytes = 2000\n")
        done, refused = client.drain()
        self.assertEqual(([receipt["size_bytes"] for receipt in done], [e.code for e in refused]), ([10], ["body_too_large"]))
        self.assertEqual(len(list((self.dir / "spool").glob("*.ready"))), 1)


class Recorder(http.server.BaseHTTPRequestHandler):
    """A foreign origin that records what it is asked."""

    seen: list[tuple[str, str]] = []

    def do_GET(self) -> None:
        self.seen.append((self.path, str(self.headers)))
        self.send_response(200)
        self.end_headers()

    do_POST = do_GET

    def log_message(self, *_) -> None:
        """Tests print nothing."""


class Redirecting(Recorder):
    """A service that sends its callers elsewhere."""

    target = ""

    def do_GET(self) -> None:
        self.send_response(307)
        self.send_header("Location", self.target)
        self.end_headers()

    do_POST = do_GET


class Trust(Base):
    def listen(self, handler: type) -> str:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def test_a_forged_locator_brings_the_foreign_origin_neither_request_nor_token(self) -> None:
        Recorder.seen = []
        foreign = self.listen(Recorder)
        with urllib.request.urlopen(foreign + "/canary", timeout=30):
            self.assertEqual(len(Recorder.seen), 1, "the origin would have noticed")
        client = self.client(self.serve().url, token="sbx_secret")
        for locator in (f"{foreign}/a/{IDS}", f"{foreign}/x?y=/a/{IDS}", f"{foreign}/a/{IDS}/lines?offset=3"):
            for ask in (client.read, client.lines, lambda locator: client.grep(locator, "x")):
                with self.assertRaises(SpillboxError) as raised:
                    ask(locator)
                self.assertIn(raised.exception.status, (401, 404))
        for locator in ("", foreign, f"{foreign}/a/../{IDS}x", "spillbox:" + IDS[:-1], f"\n/a/{IDS}\r\nHost: x"):
            with self.assertRaises(SpillboxError) as raised:
                client.read(locator)
            self.assertEqual((raised.exception.code, raised.exception.status), ("invalid_locator", 0))
        self.assertEqual(len(Recorder.seen), 1)

    def test_a_redirect_is_not_followed(self) -> None:
        Recorder.seen = []
        Redirecting.target = self.listen(Recorder)
        client = self.client(self.listen(Redirecting), token="sbx_secret")
        for ask in (lambda: client.save(b"x"), lambda: client.read(IDS)):
            with self.assertRaises(SpillboxError) as raised:
                ask()
            self.assertEqual((raised.exception.code, raised.exception.status), ("unexpected_reply", 307))
        self.assertEqual(Recorder.seen, [])

    def test_refusals_have_the_services_code_and_hint(self) -> None:
        made = subprocess.run([BINARY, "token", "hash", "--generate"], capture_output=True, text=True,
                              env=bare_environment(), check=True)
        token = made.stderr.split()[-1]
        settings = made.stdout + "\n[limits]\nmax_body_bytes = 2097152\nsession_bytes = 1000\n"
        url = self.serve(settings=settings).url
        cases = [(None, b"x", 401, "unauthenticated"), ("sbx_wrong", b"x", 401, "unauthenticated"),
                 (token, b"x" * (3 * MIB), 413, "body_too_large"), (token, b"x" * 2000, 507, "quota_exceeded")]
        for sent, body, status, code in cases:
            with self.subTest(code=code, token=sent), self.assertRaises(SpillboxError) as raised:
                self.client(url, token=sent).save(body)
            self.assertEqual((raised.exception.status, raised.exception.code), (status, code))
            self.assertTrue(raised.exception.hint)
        self.assertEqual(self.client(url, token=token).save(b"x")["size_bytes"], 1)
        with self.assertRaises(ValueError):
            Client("ftp://host")


if __name__ == "__main__":
    unittest.main()
