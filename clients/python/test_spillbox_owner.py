"""The owner's helpers against a real `spillbox serve`. `SPILLBOX_BINARY` names the program; `cargo test` sets it."""
from __future__ import annotations

import contextlib
import http.server
import json
import threading
import unittest
import urllib.request

from spillbox_owner import (
    KnownTransaction, LeaseError, Leases, OutcomeUnknown, Rejected, publish_reference, remove_reference,
)
from test_spillbox_client import Base

FILES = '[owners.files]\nmode = "commit_first"\n'


class Owners(Base):
    def setUp(self) -> None:
        super().setUp()
        self.service = self.serve(settings=FILES)
        request = urllib.request.Request(f"{self.service.url}/v1/sessions/run%2F7/artifacts", b"what was found")
        with urllib.request.urlopen(request, timeout=30) as reply:
            self.receipt = json.load(reply)
        self.leases = Leases(self.service.url, session="run/7")
        self.asked: list[str] = []

    def claim(self, name: str, owner: str = "memory") -> dict:
        receipt = self.receipt
        return {"transaction_id": name, "source_id": receipt["source_id"], "content_sha256": receipt["digest"],
                "reference_count": 1, "retain_until": None, "owner": owner}

    def publisher(self, state: str, raises: BaseException | None = None):
        def publish(lease: dict) -> str:
            self.asked.append(lease["transaction_id"])
            self.assertEqual(self.leases.get(lease["transaction_id"])["state"], state)
            if raises is not None:
                raise raises
            return "17"
        return publish

    def test_a_reference_is_published_between_prepare_and_commit(self) -> None:
        lease = publish_reference(self.leases, self.claim("t/1 é"), self.publisher("prepared"))
        self.assertEqual((lease["state"], lease["owner_generation"]), ("committed", "17"))
        lease = publish_reference(self.leases, self.claim("t2", "files"), self.publisher("committed"))
        self.assertEqual((lease["state"], self.asked), ("committed", ["t/1 é", "t2"]))

    def test_only_a_rejection_ends_the_lease(self) -> None:
        for name, owner, state, raises, left in (
            ("a", "memory", "prepared", Rejected("no"), "aborted"),
            ("b", "memory", "prepared", TimeoutError("late"), "prepared"),
            ("c", "files", "committed", Rejected("no"), "released"),
            ("d", "files", "committed", KeyboardInterrupt(), "committed"),
        ):
            with self.subTest(name), self.assertRaises(type(raises)) as seen:
                publish_reference(self.leases, self.claim(name, owner), self.publisher(state, raises))
            self.assertIs(seen.exception, raises)
            self.assertEqual(self.leases.get(name)["state"], left)

    def test_a_known_transaction_is_never_published_again(self) -> None:
        with self.assertRaises(TimeoutError):
            publish_reference(self.leases, self.claim("t"), self.publisher("prepared", TimeoutError()))
        with self.assertRaises(KnownTransaction) as known:
            publish_reference(self.leases, self.claim("t"), self.publisher("prepared"))
        self.assertEqual((known.exception.lease["state"], self.asked), ("prepared", ["t"]))
        self.leases.abort("t")
        with self.assertRaises(LeaseError) as ended:
            publish_reference(self.leases, self.claim("t"), self.publisher("prepared"))
        self.assertEqual((ended.exception.code, self.asked), ("transaction_ended", ["t"]))

    def test_a_reference_is_removed_before_its_lease_is_released(self) -> None:
        publish_reference(self.leases, self.claim("t"), self.publisher("prepared"))
        def full(name: str) -> None:
            raise OSError("disk full")
        with self.assertRaises(OSError):
            remove_reference(self.leases, "t", full)
        self.assertEqual(self.leases.get("t")["state"], "committed")
        states: list[str] = []
        lease = remove_reference(self.leases, "t", lambda name: states.append(self.leases.get(name)["state"]))
        self.assertEqual((states, lease["state"]), (["committed"], "released"))

    def test_a_lost_answer_is_no_refusal(self) -> None:
        answers = {"/mess": (200, b"<html>"), "/unknown": (202, b'{"code":"outcome_unknown","seq":4}'),
                   "/down": (503, b'{"code":"store_unavailable"}'), "/away": (302, b"")}

        class Answers(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                status, body = answers["/" + self.path.split("/")[1]]
                self.send_response(status)
                self.send_header("Location", "http://127.0.0.1:1/")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with contextlib.ExitStack() as stack:
            stack.callback(thread.join)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            for path in answers:
                leases = Leases(f"http://127.0.0.1:{server.server_address[1]}{path}")
                with self.subTest(path), self.assertRaises(OutcomeUnknown) as unknown:
                    publish_reference(leases, self.claim("t"), self.publisher("prepared"))
                if path == "/unknown":
                    self.assertEqual(unknown.exception.problem["seq"], 4)
        with self.assertRaises(OutcomeUnknown):
            publish_reference(Leases("http://127.0.0.1:1"), self.claim("t"), self.publisher("prepared"))
        self.assertEqual(self.asked, [])
        for bad in ("", "host", "ftp://h", "http://u@h", "http://h?q"):
            with self.assertRaises(ValueError):
                Leases(bad)


if __name__ == "__main__":
    unittest.main()
