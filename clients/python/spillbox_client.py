"""Spillbox from any Python harness: save a tool's output, decide what stands in the prompt, read it back.

Standard library only; Unix; Python 3.9 or later. Sizes are bytes. Bodies travel in request bodies, files are streamed.
The token goes to the configured origin alone: of a locator only `{skey}.{aid}` is used (tool output may hold a forged
one), and a redirect is an error. No body is kept once it is sent: what comes back is the service's reply, as a dict.
"""
import fcntl, http.client, io, json, os, re, shutil, tempfile, threading, time, uuid
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, ContextManager, Iterator, Optional, Union
from urllib.parse import quote, urlencode, urlsplit

Body = Union[bytes, BinaryIO, os.PathLike[str]]  # whoever has text knows its encoding
Reply = dict[str, Any]
_LOCATOR = re.compile(r"(?:spillbox:|.*/a/)?([0-7][0-9a-hjkmnp-tv-z]{25}\.[0-7][0-9a-hjkmnp-tv-z]{25})(?:[/?#].*)?")

class SpillboxError(Exception):
    """A refusal. `code` is of the service's closed list, `hint` is what to do; `status` is 0 where no reply came."""
    def __init__(self, code: str, detail: str, hint: str = "", status: int = 0, call_id: str = ""):
        super().__init__(f"{code}: {detail}" + (f" (hint: {hint})" if hint else ""))
        self.code, self.detail, self.hint, self.status, self.call_id = code, detail, hint, status, call_id

class Unavailable(SpillboxError):
    """The service is away, or says that trying again is useful. Whether a save took place is unknown."""

class Spooled(Unavailable):
    """As `Unavailable`; the body is on the spool under `call_id`, and has no locator before `drain`."""

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
        parent, means, server_max_chars, context_tokens. Raises as `save` does: the prompt keeps the original then, must
        not change any more, and what is spooled is saved later, not decided."""
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

    def close(self) -> None:
        """Waits for the background saves."""
        self._pool.shutdown(wait=True)

    def read(self, locator: str, start: int = 0, end: Optional[int] = None, into: Optional[BinaryIO] = None) -> bytes:
        """Returns the bytes from `start` up to and without `end`, or writes them to `into` and returns none."""
        span = {"Range": f"bytes={start}-{'' if end is None else end - 1}"} if start or end is not None else {}
        out = io.BytesIO() if into is None else into
        with self._asked("GET", _at(locator), headers=span) as reply:
            shutil.copyfileobj(reply, out)
            if reply.length:
                raise Unavailable("read_cut", f"{reply.length} bytes did not come", "read again")
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
        done, refused = [], []
        for path in sorted(self._spool.glob("*.ready")) if self._spool else ():
            with suppress(FileNotFoundError), _locked(path), open(path, "rb") as entry:  # not there: another drained it
                try:
                    done.append(self._json("POST", json.loads(entry.readline())["path"], entry))
                    with _locked(path.parent):
                        path.unlink()
                except SpillboxError as error:
                    if isinstance(error, Unavailable) or error.status in (401, 403):
                        raise
                    refused.append(error)
        return done, refused

    def _put(self, what: str, body: Body, session: Optional[str], about: dict[str, str]) -> Reply:
        path = f"/v1/sessions/{quote(session or self.session, safe='')}/"
        if self._spool:
            about.setdefault("call_id", f"spool-{uuid.uuid4()}")  # a save whose reply was lost is not made twice
        with _opened(body, twice=self._spool is not None) as source:
            start = source.tell() if self._spool else 0
            try:
                return self._json("POST", path + what + _query(about), source)
            except Unavailable as away:
                if not self._spool:
                    raise
                source.seek(start)
                about = {key: about[key] for key in about if key not in ("server_max_chars", "context_tokens")}
                self._keep(self._spool, path + "artifacts" + _query(about), source)
                raise Spooled(away.code, away.detail, "call drain() later", away.status, about["call_id"]) from away

    def _keep(self, spool: Path, path: str, source: BinaryIO) -> None:
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        spool.chmod(0o700)  # fails where it is somebody else's
        head = json.dumps({"path": path}).encode() + b"\n"
        with _locked(spool):  # sum and new file are one step; a `part` is of a process that died, and overwritten
            if sum(file.stat().st_size for file in spool.glob("*.ready")) + len(head) + _left(source) > self._spool_bytes:
                raise SpoolFull("spool_full", f"over {self._spool_bytes} bytes", "call drain(), or allow more spool_bytes")
            with open(spool / "part", "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600)) as file:
                file.write(head)
                shutil.copyfileobj(source, file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(spool / "part", spool / f"{time.time_ns():020}-{uuid.uuid4().hex}.ready")

    def _json(self, method: str, path: str, body: Optional[BinaryIO] = None) -> Reply:
        with self._asked(method, path, body) as reply:
            return json.loads(reply.read(8 << 20))  # a decision with 1 MiB of text, escaped, is not larger

    @contextmanager
    def _asked(self, method: str, path: str, body: Optional[BinaryIO] = None, headers: dict[str, str] = {}) -> Iterator[Any]:
        size = {"Content-Length": str(_left(body))} if body is not None and body.seekable() else {}  # else in chunks
        link = self._link(self._host, self._port, timeout=self._timeout, blocksize=256 << 10)
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # a refusal may come before all is sent
                link.request(method, self._base + path, body, {**self._headers, **headers, **size})
            reply = link.getresponse()
            if reply.status not in (200, 201, 206):
                raise _problem(reply.status, reply.read(64 << 10))
            yield reply
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a reply that is no whole JSON
            raise Unavailable("unreachable", f"{self._host}: {error!r}", "check that the service runs") from error
        finally:
            link.close()

def _problem(status: int, body: bytes) -> SpillboxError:
    problem = {"code": "unexpected_reply", "detail": f"status {status}", "hint": "check the URL", "retryable": status >= 500}
    with suppress(ValueError, TypeError):  # a proxy answers anything
        problem |= json.loads(body)
    kind = Unavailable if problem["retryable"] else SpillboxError
    return kind(problem["code"], problem["detail"], problem["hint"], status)

def _at(locator: str) -> str:
    if found := _LOCATOR.fullmatch(locator.strip()):
        return f"/a/{found[1]}"
    raise SpillboxError("invalid_locator", repr(locator[:120]), "a locator ends in {26 characters}.{26 characters}")

def _query(values: dict[str, Any]) -> str:
    words = {key: json.dumps(it) if isinstance(it, bool) else it for key, it in values.items() if it is not None}
    return f"?{urlencode(words, quote_via=quote, safe='')}" if words else ""

def _left(source: BinaryIO) -> int:
    here = source.tell()
    return source.seek(0, os.SEEK_END) - source.seek(here)

@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process, whatever becomes of it
        yield
    finally:
        os.close(lock)

def _opened(body: Body, twice: bool) -> ContextManager[BinaryIO]:
    if isinstance(body, bytes):
        return io.BytesIO(body)
    if isinstance(body, os.PathLike):
        return open(body, "rb")
    if body.seekable() or not twice:
        return nullcontext(body)
    copy = tempfile.TemporaryFile()  # a pipe cannot be read again when the service is away
    shutil.copyfileobj(body, copy)
    copy.seek(0)
    return copy
