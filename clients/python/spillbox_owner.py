"""An owner's side of Spillbox's leases in the safe order: what to publish when, and what an error means.

Standard library only; Python 3.9 or later. `publish_reference` prepares, publishes, commits (an owner that publishes
after its commit: prepares, commits, publishes). Only an explicit `Rejected` ends the lease. Any other exception may have
been a success: the lease stays and protects on, the exception goes to the caller unchanged, and reconciliation finds
out. A transaction that is known already is never published again. `remove_reference` removes first and releases then.
The contract of an owner's endpoint is told in docs/OWNERS.md.
"""
from __future__ import annotations

import http.client
import json
from typing import Any, Callable, Optional
from urllib.parse import quote, urlsplit

Lease = dict[str, Any]
MAX_REPLY_BYTES = 1 << 20  # a lease is below 10 KiB


class LeaseError(Exception):
    """A refusal, or no usable reply. `code` is of the service's closed list (`unreachable` where none came), `status` is
    0 where no reply came, and `problem` is the reply's document."""

    def __init__(self, code: str, detail: str, status: int = 0, problem: Optional[dict[str, Any]] = None):
        super().__init__(f"{code}: {detail}")
        self.code, self.detail, self.status, self.problem = code, detail, status, problem or {}


class OutcomeUnknown(LeaseError):
    """The journal's write may stand or not (202, or a reply that was lost). Repeat the operation, or resolve it with the
    `seq` and `sha256` of `problem`."""


class KnownTransaction(LeaseError):
    """The transaction was prepared before, so nothing was published now; `lease` is how it stands. Reconcile it."""

    lease: Lease


class Rejected(Exception):
    """For publishers to raise: the owner said no, and nothing is in flight. Its lease ends; where that failed, `ending`
    says why, and the lease protects on."""

    ending: Optional[LeaseError] = None


class Leases:
    """The leases of one session. Safe to share between threads; each request has a connection of its own."""

    def __init__(self, url: str, token: Optional[str] = None, session: str = "default", timeout: float = 30.0):
        at = urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname or at.username is not None or at.query or at.fragment:
            raise ValueError("the URL of a service is http or https, a host, perhaps a port and a path")
        self._link = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._timeout = at.hostname, at.port, timeout
        self._path = f"{at.path.rstrip('/')}/v1/sessions/{quote(session, safe='')}/leases"
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def prepare(self, claim: dict[str, Any]) -> tuple[bool, Lease]:
        """Claims an artifact: `transaction_id`, `source_id`, `content_sha256`, `reference_count`, `retain_until` (None: no
        end), `owner`. Returns whether this call prepared it, else it was so already, and the lease."""
        status, lease = self._ask("POST", "", claim)
        return status == 201, lease

    def get(self, transaction_id: str) -> Lease:
        """Returns a lease as of now."""
        return self._ask("GET", self._of(transaction_id))[1]

    def commit(self, transaction_id: str, generation: Optional[str] = None) -> Lease:
        """Says that the owner holds its references; `generation` is its name of that state, its ETag without quotes."""
        return self._ask("POST", self._of(transaction_id, "commit"), {"owner_generation": generation})[1]

    def abort(self, transaction_id: str) -> Lease:
        """Says that the owner refused the reference, with nothing in flight."""
        return self._ask("POST", self._of(transaction_id, "abort"), {"reason": "rejected"})[1]

    def release(self, transaction_id: str) -> Lease:
        """Says that the owner has removed its references, durably."""
        return self._ask("POST", self._of(transaction_id, "release"), {"reason": "removed"})[1]

    @staticmethod
    def _of(transaction_id: str, verb: str = "") -> str:
        return f"/{quote(transaction_id, safe='')}" + (f"/{verb}" if verb else "")

    def _ask(self, method: str, rest: str, document: Optional[dict[str, Any]] = None) -> tuple[int, dict[str, Any]]:
        body = None if document is None else json.dumps(document).encode()
        link = self._link(self._host, self._port, timeout=self._timeout)
        try:
            link.request(method, self._path + rest, body, self._headers)
            reply = link.getresponse()
            status, text = reply.status, reply.read(MAX_REPLY_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise OutcomeUnknown("unreachable", f"{self._host}: {error!r}") from error
        finally:
            link.close()
        try:
            answer = json.loads(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise OutcomeUnknown("unexpected_reply", f"status {status}, and no document", status)
        if status in (200, 201):
            return status, answer
        kind = OutcomeUnknown if status == 202 or status >= 500 else LeaseError
        raise kind(str(answer.get("code", "unexpected_reply")), str(answer.get("detail", f"status {status}")), status, answer)


def publish_reference(leases: Leases, claim: dict[str, Any], publish: Callable[[Lease], Optional[str]]) -> Lease:
    """Publishes a reference under a lease; returns the committed lease. `publish` makes it visible under the lease's
    `transaction_id` and returns the owner's generation, or raises: `Rejected` where the owner said no and nothing is in
    flight, anything else where nobody knows. A `LeaseError` of the commit leaves a prepared lease that protects on."""
    is_new, lease = leases.prepare(claim)
    name = claim["transaction_id"]
    if not is_new:
        known = KnownTransaction("known_transaction", f"{name} is {lease['state']}: reconcile it", 200)
        known.lease = lease
        raise known
    commits_first = lease["mode"] == "commit_first"
    if commits_first:
        lease = leases.commit(name)
    try:
        generation = publish(lease)
    except Rejected as rejected:
        try:
            leases.release(name) if commits_first else leases.abort(name)
        except LeaseError as error:
            rejected.ending = error
        raise
    return lease if commits_first else leases.commit(name, generation)


def remove_reference(leases: Leases, transaction_id: str, remove: Callable[[str], None]) -> Lease:
    """Removes a reference, durably, and releases its lease then; returns it. Where `remove` raises, nothing is released;
    where the release fails, call again or let reconciliation find out."""
    remove(transaction_id)
    return leases.release(transaction_id)
