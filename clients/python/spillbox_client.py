"""Spillbox from any Python harness: save a tool's output, decide what stands in the prompt, read it back.

Standard library only; Unix; Python 3.9 or later. Sizes are bytes. Bodies travel in request bodies, files are streamed.
The token goes to the configured origin alone: of a locator only `{skey}.{aid}` is used (tool output may hold a forged
one), and a redirect is an error. No body is kept once it is sent: what comes back is the service's reply, as a dict.
"""
from __future__ import annotations

import base64, fcntl, hashlib, http.client, io, json, os, re, shutil, tempfile, threading, uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Callable, Iterator, Optional, Union
from urllib.parse import quote, urlencode, urlsplit

Body = Union[bytes, BinaryIO, "os.PathLike[str]"]  # whoever has text knows its encoding
Reply = dict[str, Any]
MAX_REPLY_BYTES = 8 << 20  # a receipt, a page, or a decision with 1 MiB of text, escaped as JSON
_BLOCK = 256 << 10
_private = lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o600)
_ID = "[0-7][0-9a-hjkmnp-tv-z]{25}"
_LOCATOR = re.compile(rf"(?:spillbox:|.*/a/)?({_ID}\.{_ID})(?:[/?#].*)?")

class SpillboxError(Exception):
    """A refusal. `code` is of the service's closed list, `hint` is what to do; `status` is 0 where no reply came."""
    def __init__(self, code: str, detail: str, hint: str = "", status: int = 0):
        super().__init__(f"{code}: {detail}" + (f" (hint: {hint})" if hint else ""))
        self.code, self.detail, self.hint, self.status = code, detail, hint, status

class Unavailable(SpillboxError):
    """The service is away, or says that trying again is useful. Whether a save took place is unknown."""

class Spooled(Unavailable):
    """As `Unavailable`; the body is on the spool under `call_id`, and has no locator before `drain`."""
    call_id: str

class SpoolFull(SpillboxError):
    """The service is away and the spool at its cap: nothing was kept, the body is still the caller's."""

class Client:
    """One service. Safe to share between threads; each request has a connection of its own."""

    def __init__(self, url: str, token: Optional[str] = None, session: str = "default", timeout: float = 60.0,
                 spool: Optional[os.PathLike[str]] = None, spool_bytes: int = 256 << 20, workers: int = 2, waiting: int = 8):
        """`timeout`: seconds of each wait on the network. `spool`: a directory of ours for bodies while the service is
        away, at most `spool_bytes` in all. `workers` background saves run at once, and `waiting` more may wait."""
        at = urlsplit(url)
        if at.scheme not in ("http", "https") or not at.hostname or at.username is not None or at.query or at.fragment:
            raise ValueError("the URL of a service is http or https, a host, perhaps a port and a path")
        self._link = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
        self._host, self._port, self._base, self._timeout = at.hostname, at.port, at.path.rstrip("/"), timeout
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.session, self._spool, self._spool_bytes = session, Path(spool) if spool is not None else None, spool_bytes
        self._pool, self._places = ThreadPoolExecutor(workers), threading.BoundedSemaphore(workers + waiting)

    def save(self, body: Body, *, session: Optional[str] = None, **about: str) -> Reply:
        """Stores a body whatever its size; returns the receipt (`locator`, `replacement`, ...). The same bytes under the
        same call id are stored once. `about`: tool, call_id, label, name, title, summary, completeness, parent, means,
        profile. Raises `SpillboxError`; where the service is away and there is a spool, `Spooled` or `SpoolFull`."""
        return self._put("artifacts", body, session, about)

    def replace(self, body: Body, *, session: Optional[str] = None, **about: str) -> Reply:
        """Decides one result: `text` stands in the prompt; without it, what was sent. `about`: tool, call_id, profile,
        parent, means, server_max_chars, context_tokens. Raises as `save` does; the prompt keeps the original then, and
        what is spooled will be saved, not decided: a prompt that was sent must not change."""
        return self._put("results", body, session, about)

    def save_later(self, body: Body, **about: Any) -> Future[Reply]:
        """Saves in the background; blocks while all places are taken, so that a slow service delays the next tool."""
        self._places.acquire()
        future = self._pool.submit(self.save, body, **about)
        future.add_done_callback(self._settle)
        return future

    def _settle(self, done: Future[Reply]) -> None:
        self._places.release()
        error = None if done.cancelled() else done.exception()
        while error is not None:  # the frames of a traceback would keep the body as long as the future lives
            error.__traceback__, error = None, error.__cause__ or error.__context__

    def read(self, locator: str, start: int = 0, end: Optional[int] = None, into: Optional[BinaryIO] = None) -> bytes:
        """Returns the bytes from `start` up to and without `end`, or writes them to `into` and returns none."""
        span = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}
        out, seen, count = io.BytesIO() if into is None else into, hashlib.sha256(), 0
        with self._asked("GET", _at(locator), headers=span) as reply:
            while block := _network(self._host, reply.read, _BLOCK):
                out.write(block)
                seen.update(block)
                count += len(block)
            digest = (reply.getheader("Repr-Digest") or "") if reply.status == 200 else ""
            is_other = digest and base64.b64encode(seen.digest()).decode() not in digest
            if is_other or count != int(reply.getheader("Content-Length") or count):
                raise Unavailable("read_cut", f"not what is stored: {count} bytes", "read again")
        return b"" if into is not None else out.getvalue()  # type: ignore[attr-defined]

    def lines(self, locator: str, **query: Any) -> Reply:
        """Returns a page of lines. `query`: offset, limit, from_end, byte_offset, max_bytes."""
        return self._json("GET", _at(locator) + "/lines" + _query(query))

    def grep(self, locator: str, pattern: str, **query: Any) -> Reply:
        """Returns a page of matches. `query`: mode (literal, regex), ignore_case, context, limit, cursor, max_bytes."""
        return self._json("GET", _at(locator) + "/grep" + _query({"pattern": pattern, **query}))

    def drain(self) -> tuple[list[Reply], list[SpillboxError]]:
        """Saves what is on the spool under the call ids that it was kept with; returns receipts and refusals (those stay).
        Several processes may drain at once. Raises `Unavailable` where the service is still away."""
        done: list[Reply] = []
        refused: list[SpillboxError] = []
        entries = sorted(self._spool.iterdir()) if self._spool is not None and self._spool.is_dir() else []
        for path in (path for path in entries if path.suffix in (".ready", ".claim")):
            name = path.name.split(".")[0]
            claim, ready = path.with_name(f"{name}.{uuid.uuid4().hex}.claim"), path.with_name(f"{name}.ready")
            # The rename decides who sends; the lock tells a claim at work from one whose process died.
            with suppress(FileNotFoundError, BlockingIOError), open(path, "rb") as entry:
                fcntl.flock(entry, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rename(path, claim)
                try:
                    done.append(self._json("POST", json.loads(entry.readline())["path"], entry))
                    os.unlink(claim)
                except BaseException as error:
                    os.rename(claim, ready)
                    if not isinstance(error, SpillboxError) or isinstance(error, Unavailable) or error.status in (401, 403):
                        raise
                    refused.append(error)
        return done, refused

    def close(self) -> None:
        """Waits for the background saves."""
        self._pool.shutdown(wait=True)

    def _put(self, what: str, body: Body, session: Optional[str], about: dict[str, str]) -> Reply:
        path = f"/v1/sessions/{quote(session or self.session, safe='')}/"
        if self._spool is not None:
            about.setdefault("call_id", f"spool-{uuid.uuid4()}")  # a save whose reply was lost is not made twice
        with ExitStack() as stack:
            source = _opened(stack, body, self._spool is not None)
            start = source.tell() if source.seekable() else 0
            try:
                return self._json("POST", path + what + _query(about), source)
            except Unavailable as away:
                if self._spool is None:
                    raise
                source.seek(start)
                about = {key: about[key] for key in about if key not in ("server_max_chars", "context_tokens")}
                self._keep(self._spool, path + "artifacts" + _query(about), source, away)
                kept = Spooled(away.code, away.detail, "call drain() when the service is back", away.status)
                kept.call_id = about["call_id"]
                raise kept from away

    def _keep(self, spool: Path, path: str, source: BinaryIO, cause: SpillboxError) -> None:
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        spool.chmod(0o700)  # fails where it is somebody else's
        head = json.dumps({"path": path}).encode() + b"\n"
        with open(spool / "lock", "wb", opener=_private) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the sum and the new file are one step, whoever else keeps
            for orphan in spool.glob("*.part"):
                orphan.unlink()  # whoever wrote it died
            used = sum(_size(file) for file in spool.iterdir())
            if used + len(head) + _left(source) > self._spool_bytes:
                hint = "drain() when the service is back, or allow more spool_bytes; the body was not kept"
                raise SpoolFull("spool_full", f"{used} of {self._spool_bytes} bytes are taken", hint) from cause
            part = spool / f"{uuid.uuid4().hex}.part"
            with open(part, "wb", opener=_private) as file:
                file.write(head)
                shutil.copyfileobj(source, file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())
            os.rename(part, part.with_suffix(".ready"))

    def _json(self, method: str, path: str, body: Optional[BinaryIO] = None) -> Reply:
        with self._asked(method, path, body) as reply, suppress(ValueError):
            return json.loads(_network(self._host, reply.read, MAX_REPLY_BYTES))
        raise Unavailable("reply_cut", "the reply is not whole", "try again with the same call id")

    @contextmanager
    def _asked(self, method: str, path: str, body: Optional[BinaryIO] = None, headers: dict[str, str] = {}) -> Iterator[Any]:
        size = {"Content-Length": str(_left(body))} if body is not None and body.seekable() else {}  # else in chunks
        link = self._link(self._host, self._port, timeout=self._timeout, blocksize=_BLOCK)
        def answer() -> http.client.HTTPResponse:
            with suppress(BrokenPipeError, ConnectionResetError):  # a refusal may come before all is sent
                link.request(method, self._base + path, body, {**self._headers, **headers, **size})
            return link.getresponse()
        try:
            reply = _network(self._host, answer)
            if reply.status not in (200, 201, 206):
                raise _problem(reply.status, _network(self._host, reply.read, 64 << 10))
            yield reply
        finally:
            link.close()

def _network(host: str, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except (OSError, http.client.HTTPException) as error:
        raise Unavailable("unreachable", f"{host}: {error!r}", "check that the service runs") from error

def _problem(status: int, body: bytes) -> SpillboxError:
    problem: Reply = {"code": "unexpected_reply", "detail": f"status {status}", "hint": "check the URL"}
    with suppress(ValueError, TypeError):  # a proxy answers anything
        problem |= {"retryable": status >= 500} | json.loads(body)
    kind = Unavailable if problem.get("retryable", status >= 500) else SpillboxError
    return kind(problem["code"], problem["detail"], problem["hint"], status)

def _at(locator: str) -> str:
    if found := _LOCATOR.fullmatch(locator.strip()):
        return f"/a/{found[1]}"
    raise SpillboxError("invalid_locator", repr(locator[:120]), "a locator ends in {26 characters}.{26 characters}")

def _query(values: dict[str, Any]) -> str:
    words = {key: json.dumps(value) if isinstance(value, bool) else value for key, value in values.items() if value is not None}
    return f"?{urlencode(words, quote_via=quote, safe='')}" if words else ""

def _size(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.stat().st_size
    return 0

def _left(source: BinaryIO) -> int:
    here = source.tell()
    size = source.seek(0, os.SEEK_END) - here
    source.seek(here)
    return size

def _opened(stack: ExitStack, body: Body, twice: bool) -> BinaryIO:
    if isinstance(body, bytes):
        return io.BytesIO(body)
    if isinstance(body, os.PathLike):
        return stack.enter_context(open(body, "rb"))
    if not twice or body.seekable():
        return body
    copy = stack.enter_context(tempfile.TemporaryFile())  # a pipe cannot be read again when the service is away
    shutil.copyfileobj(body, copy, _BLOCK)
    copy.seek(0)
    return copy
