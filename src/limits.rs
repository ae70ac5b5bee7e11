//! Every bound of the product, with its reason. All sizes are bytes unless the name says otherwise.

use std::time::Duration;

/// 8 MiB: above S3's 5 MiB minimum, 10,000 parts reach 78 GiB, and three of them stay under 40 MiB.
/// A body of at most this size is *known in full* before anything is sent (one PutObject); the choice
/// depends on the size alone, so that equal bytes never mix the two protocols.
pub const PART_BYTES: usize = 8 << 20;

/// Parts of one upload that may be on the wire at once. With the part being collected that is 24 MiB,
/// which leaves room under the 40 MiB budget of one upload for what the allocator keeps of the uploads
/// before (with three it was seen to keep 8 MiB more, and the budget was missed in one run of three).
pub const PARTS_IN_FLIGHT: usize = 2;

/// S3's own limit of parts per upload.
pub const MAX_PARTS: u64 = 10_000;

/// Default cap of one body: 5 GiB, an ordinary object's size limit on several stores and far above any
/// tool output seen; the hard ceiling is [`PART_BYTES`] × [`MAX_PARTS`].
pub const DEFAULT_MAX_BODY_BYTES: u64 = 5 << 30;

/// One digest per 256 KiB of body in the manifest: a page of 200 ordinary lines touches one or two
/// chunks, and 1 GiB costs 4,096 entries.
pub const CHUNK_BYTES: usize = 256 << 10;

/// A multipart upload is given up after this long; the collector aborts what is older than 24 h.
pub const UPLOAD_DEADLINE: Duration = Duration::from_secs(6 * 3600);

/// Tool results up to this size stay in the prompt (profile `default`).
pub const DEFAULT_INLINE_BYTES: u64 = 30_000;

/// Cap of a whole replacement, notice included (profile `default`).
pub const DEFAULT_REPLACEMENT_BYTES: usize = 10_000;

/// Summaries are clipped here; never an error.
pub const SUMMARY_CHARS: usize = 240;

/// Replies of line pages and searches unless the caller asks for more.
pub const DEFAULT_REPLY_BYTES: u64 = 24_000;

/// The most that a caller may ask for with `max_bytes`.
pub const MAX_REPLY_BYTES: u64 = 1 << 20;

/// Lines of a page unless the caller says otherwise.
pub const DEFAULT_PAGE_LINES: u64 = 2_000;

/// Upper bound of `limit` on a page of lines; the byte cap usually ends a page long before.
pub const MAX_PAGE_LINES: u64 = 1_000_000;

/// Artifacts of a list page unless the caller says otherwise, and at most.
pub const DEFAULT_LIST_LIMIT: usize = 100;
/// See [`DEFAULT_LIST_LIMIT`].
pub const MAX_LIST_LIMIT: usize = 1_000;

/// Session ids are data, up to this many bytes of UTF-8.
pub const MAX_SESSION_ID_BYTES: usize = 512;

/// Call ids are data; providers have sent ids of 1.5 KB.
pub const MAX_CALL_ID_BYTES: usize = 4_096;

/// Tool names, labels, file names, titles.
pub const MAX_DESCRIPTION_BYTES: usize = 1_024;

/// A summary may arrive long; it is clipped to [`SUMMARY_CHARS`] characters.
pub const MAX_SUMMARY_INPUT_BYTES: usize = 65_536;

/// The public URL of the service, so that a locator stays under 120 bytes.
pub const MAX_PUBLIC_URL_BYTES: usize = 64;

/// Levels of parent sessions that a read or a replay climbs.
pub const MAX_PARENT_LEVELS: usize = 8;

/// Incarnations of one call record (`.0` to `.32`); past it a save answers `incarnations_exhausted`.
pub const MAX_INCARNATION: u32 = 32;

/// Attempts at one conditional request whose outcome stays undecided, before the caller is told so.
pub const MAX_UNDECIDED_ATTEMPTS: u32 = 6;

/// Manifest bytes that are read at most: 5 GiB of body make 20,480 chunk entries of about 75 bytes.
pub const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Bytes of a list page's ranged manifest read: the head of a manifest without its chunk table.
pub const MANIFEST_HEAD_BYTES: u64 = 32 << 10;

/// Weight of the manifest cache.
pub const MANIFEST_CACHE_BYTES: u64 = 64 << 20;

/// Default orphan TTL of a new store: what a receipt promises without a lease.
pub const DEFAULT_ORPHAN_TTL: Duration = Duration::from_secs(24 * 3600);

/// Floor of the orphan TTL unless short times are allowed explicitly (tests, demos).
pub const MIN_ORPHAN_TTL: Duration = Duration::from_secs(3600);

/// A request's head must arrive within this time.
pub const REQUEST_HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that running requests have after SIGTERM.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections served at once; more wait in the listener's backlog.
pub const MAX_CONNECTIONS: usize = 1_024;

/// A body that brings no byte for this long ends its request.
pub const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// A save waits this long for its turn before it is answered `saturated`: a burst of small outputs passes
/// in a moment, and a client that is turned away has to send everything again.
pub const UPLOAD_QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Uploads at once, whatever their size; their memory is bounded by [`DEFAULT_UPLOAD_MEMORY_BYTES`].
pub const MAX_CONCURRENT_UPLOADS: usize = 64;

/// What one upload of more than a part may hold: the parts on the wire and the one being collected.
pub const STREAMED_UPLOAD_BYTES: u64 = (PARTS_IN_FLIGHT as u64 + 1) * PART_BYTES as u64;

/// Memory for the bodies of all uploads. 21 large uploads side by side are more than a link or a store
/// of 10 Gbit/s takes, and a replica with 1 GiB keeps half of it for everything else; a small body takes
/// little of it, so that this is no bound on those before [`MAX_CONCURRENT_UPLOADS`] is.
pub const DEFAULT_UPLOAD_MEMORY_BYTES: u64 = 512 << 20;

/// A body of unknown size that has outgrown a small one's memory waits this long for a large one's. Longer
/// than at the start, since what was sent would have to be sent again; shorter than clients wait for
/// a write.
pub const UPLOAD_GROWTH_TIMEOUT: Duration = Duration::from_secs(30);

/// A budget above this is no budget.
pub const MAX_UPLOAD_MEMORY_BYTES: u64 = 1 << 40;

/// The unit in which upload memory is handed out; what a save keeps of a body beside its bytes (two
/// preview windows) is less.
pub const UPLOAD_MEMORY_UNIT_BYTES: u64 = 64 << 10;

/// Pause after an accept error that concerns the machine (no file descriptor left): long enough not
/// to spin, short enough that clients in the backlog wait hardly longer than a retry.
pub const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(500);

/// An idle HTTP/2 connection is pinged this often, so that a peer that vanished frees its place.
pub const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(30);

/// Orphan TTLs above ten years would overflow dates before they mean anything.
pub const MAX_ORPHAN_TTL: Duration = Duration::from_secs(3_650 * 24 * 3600);

/// Head and tail that a save keeps of a body for its preview. Above the default replacement with room
/// for larger configured ones; two of them cost each upload 64 KiB at most.
pub const PREVIEW_WINDOW_BYTES: usize = 16 << 10;

/// What is kept of the first non-blank line: a summary shows at most [`SUMMARY_CHARS`] characters of up
/// to 4 bytes, after runs of white space have been collapsed.
pub const FIRST_LINE_BYTES: usize = 2 << 10;

/// A word in the last bytes of the head window may go on beyond it, and so may the text that takes it
/// back (`failed: 0`); the search that streams takes over this much earlier.
pub const ERROR_SEARCH_MARGIN_BYTES: usize = 64;

/// A tool's name as the notice shows it; the manifest keeps all of it.
pub const NOTICE_TOOL_CHARS: usize = 80;

/// What a description of a binary body shows of its start in hexadecimal.
pub const HEX_PREVIEW_BYTES: usize = 256;

/// A suggested file name after encoding: file systems take 255 bytes, and a temporary name beside it
/// needs a few more.
pub const MAX_FILE_NAME_BYTES: usize = 200;

/// A media type is two names of at most 127 bytes each and few parameters (RFC 6838 §4.2).
pub const MAX_MEDIA_TYPE_BYTES: usize = 512;

/// What is read on of a body whose request was refused: many clients look at the reply only after
/// they have sent everything, and a connection closed on unread bytes would show them a reset instead.
pub const REFUSED_BODY_DRAIN_BYTES: u64 = 64 << 20;

/// Time for [`REFUSED_BODY_DRAIN_BYTES`].
pub const REFUSED_BODY_DRAIN_TIME: Duration = Duration::from_secs(10);

/// Temporary files of the local store are swept when they are older: far above
/// [`UPLOAD_DEADLINE`], so that nobody can still be writing one.
pub const STALE_TEMPORARY: Duration = Duration::from_secs(24 * 3600);

/// The local store reads files in pieces of this size: one chunk of a manifest's table.
pub const LOCAL_PIECE_BYTES: usize = 256 << 10;

/// The local store's ETag covers this much at each end of a file and its size; files of at most twice
/// this much are covered whole. A page of a listing reads at most 128 KiB a key.
pub const LOCAL_ETAG_END_BYTES: usize = 64 << 10;

/// Lock files of the local store: enough that unrelated keys rarely wait for each other.
pub const LOCAL_LOCK_STRIPES: u8 = 255;

/// A search pattern: longer ones are lists, for which an agent asks more than once; compiling stays
/// under a millisecond for a literal.
pub const MAX_PATTERN_BYTES: usize = 1 << 10;

/// A compiled pattern: a few dozen Unicode classes fit. The slowest pattern of this size was measured at
/// 50 microseconds a byte, so that even a line of [`LONG_LINE_BYTES`] takes no longer than the deadline.
pub const PATTERN_PROGRAM_BYTES: usize = 256 << 10;

/// The cache of a pattern's lazily built automaton, for each running search. With a tenth of it the
/// same slow patterns were 30 times slower.
pub const PATTERN_CACHE_BYTES: usize = 10 << 20;

/// A search looks at the clock between blocks of this size (or single longer lines).
pub const SEARCH_BLOCK_BYTES: usize = 16 << 10;

/// Context lines on each side of a hit: more is a page of lines.
pub const MAX_CONTEXT_LINES: usize = 100;

/// Context is looked for this far on each side of a hit's line: what the search holds of the body.
pub const CONTEXT_REACH_BYTES: usize = 64 << 10;

/// Hits of a reply unless the caller says otherwise.
pub const DEFAULT_SEARCH_HITS: usize = 100;

/// Upper bound of `limit` on hits; [`MAX_REPLY_BYTES`] holds hardly more of the shortest ones.
pub const MAX_SEARCH_HITS: usize = 10_000;

/// What a hit shows of its line, around the match, and of each context line.
pub const HIT_TEXT_BYTES: usize = 512;

/// A search ends after this time and says where to go on: a hostile pattern holds its place no longer.
pub const SEARCH_DEADLINE: Duration = Duration::from_secs(5);

/// A shorter deadline finds nothing in a store that answers in 50 ms.
pub const MIN_SEARCH_DEADLINE: Duration = Duration::from_millis(100);

/// A longer one lets a few hostile patterns hold every place for searches.
pub const MAX_SEARCH_DEADLINE: Duration = Duration::from_secs(60);

/// A search that is inside one slow line at its deadline is waited for this much longer, once it has
/// something to answer.
pub const SEARCH_GRACE: Duration = Duration::from_millis(500);

/// A search waits this long for a place before it is refused: as long as the one that holds it.
pub const SEARCH_QUEUE_TIMEOUT: Duration = SEARCH_DEADLINE;

/// Longer lines are searched in windows, so that no line decides how much memory a search takes.
pub const LONG_LINE_BYTES: usize = 64 << 10;

/// How far windows of a long line overlap. A literal pattern is far shorter; a regex match longer than
/// this is out of reach in a long line.
pub const WINDOW_OVERLAP_BYTES: usize = 16 << 10;

/// A search reads the body in ranges of this size, the next one opened while one is searched.
pub const SEARCH_PART_BYTES: u64 = 8 << 20;

/// What of a part is still to come when a search opens the next one: hides a round trip of 100 ms at
/// 40 MB/s.
pub const SEARCH_AHEAD_BYTES: u64 = 4 << 20;

/// What an outline shows of a line that looks like an error or a warning.
pub const OUTLINE_TEXT_BYTES: usize = 200;

/// Sections of an outline: what an agent takes in at once.
pub const OUTLINE_SECTIONS: usize = 64;

/// What an outline shows of a section's line; 64 of them leave room in [`MANIFEST_HEAD_BYTES`].
pub const OUTLINE_SECTION_TEXT_BYTES: usize = 96;

/// Gaps of an outline.
pub const OUTLINE_GAPS: usize = 3;

/// A shorter time without a line says nothing.
pub const OUTLINE_LEAST_GAP_MS: u64 = 1_000;
/// Writers that race for one key while a store is attested, unless the settings say otherwise. 32 shows
/// every fault that was measured; some servers serialise writers of one key so slowly that they need fewer.
pub const ATTEST_CONTENDERS: usize = 32;

/// Keys that are raced for; a server that is right by luck is right once.
pub const ATTEST_ROUNDS: usize = 20;

/// Raced keys below which nothing is concluded.
pub const ATTEST_MIN_ROUNDS: usize = 3;

/// Time for the races of one attestation: a local server runs all rounds in it, a far one enough of them.
pub const ATTEST_RACE_BUDGET: Duration = Duration::from_secs(2);

/// A whole attestation: a dead endpoint is told within ten seconds, a process's start included.
pub const ATTEST_DEADLINE: Duration = Duration::from_secs(9);

/// What is kept of [`ATTEST_DEADLINE`] to remove the probes.
pub const ATTEST_CLEANUP_RESERVE: Duration = Duration::from_secs(2);

/// An attestation older than this is made again: servers are upgraded.
pub const ATTEST_MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// Clocks that differ by more are told as a restriction: ages are compared on the store's clock, and
/// signatures are refused from 15 minutes on.
pub const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(5 * 60);

/// Requests of one principal at once, where a rate is set: an agent's parallel tools.
pub const DEFAULT_REQUESTS_BURST: u32 = 100;

/// A higher rate is none: it is above what one replica answers.
pub const MAX_REQUESTS_PER_SECOND: u32 = 1_000_000;

/// Principals whose pace has recovered are forgotten this often.
pub const RATE_UPKEEP_INTERVAL: Duration = Duration::from_secs(60);

/// Requests without a valid token that one address may send in the long run, and at once: a client with an
/// old token tries again, a scanner does not stop.
pub const FAILED_ACCESS_PER_SECOND: u32 = 10;
/// See [`FAILED_ACCESS_PER_SECOND`].
pub const FAILED_ACCESS_BURST: u32 = 100;

/// Addresses whose failed requests are counted apart; beyond that all others share one pace.
pub const FAILED_ACCESS_ADDRESSES: usize = 10_000;

/// Sessions whose stored bytes this replica counts: 100 bytes each. A session that falls out is counted
/// anew from zero, so its soft quota is overshot by what was forgotten.
pub const COUNTED_SESSIONS: u64 = 100_000;

/// How often a replica looks for a newer plan of the collector, which says what quotas are used up.
pub const USAGE_LOOK_INTERVAL: Duration = Duration::from_secs(600);

/// Sessions in one part of what a plan saw of the use of quotas: some 100 bytes each.
pub const GC_USAGE_PART_SESSIONS: usize = 10_000;

/// How often the store is looked at for `/readyz`: one small request, and a balancer that asks every ten
/// seconds is not told much older news.
pub const READY_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A shorter interval is load without use.
pub const MIN_READY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A longer one tells of an outage when it is over.
pub const MAX_READY_CHECK_INTERVAL: Duration = Duration::from_secs(600);

/// A look at the store that takes longer has failed.
pub const READY_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// Failed looks in a row until the service is not ready: one lost packet takes no replica out.
pub const READY_FAILURES: u32 = 3;

/// Good looks in a row until it is ready again: a store that answers every other request is not back.
pub const READY_SUCCESSES: u32 = 2;

/// Path and query of a request. A summary of tens of kilobytes is clipped and no error, so this lies
/// under what the protocol library can hold (65,534), which answers without a reason.
pub const MAX_URI_BYTES: usize = 60 << 10;

/// Bytes of one request's head in memory. The library's own bound is 400 KiB, which [`MAX_CONNECTIONS`]
/// slow heads would make 400 MiB.
pub const MAX_HEAD_BYTES: usize = 128 << 10;

/// Connections of the admin listener: a few scrapers.
pub const ADMIN_CONNECTIONS: usize = 16;

/// How often what was measured is folded into the histograms: without it they grow until a scrape.
pub const METRICS_UPKEEP_INTERVAL: Duration = Duration::from_secs(5);

/// A lease's transaction id; the systems that hold references make ids of up to this many characters.
pub const MAX_TRANSACTION_ID_BYTES: usize = 200;

/// An owner's name.
pub const MAX_OWNER_NAME_BYTES: usize = 64;

/// An owner's own name of a state; entity tags of databases stay far below.
pub const MAX_OWNER_GENERATION_BYTES: usize = 256;

/// What a person says about a hold or about an operator's action.
pub const MAX_REASON_BYTES: usize = 800;

/// Entries of one journal record: one batch of callers that met while a write was in flight.
pub const MAX_RECORD_ENTRIES: usize = 256;

/// Bytes of one journal record: 256 ordinary entries take about half of it.
pub const MAX_RECORD_BYTES: usize = 256 << 10;

/// Bytes of a checkpoint that are read at most: 100,000 leases of ordinary size.
pub const MAX_CHECKPOINT_BYTES: u64 = 64 << 20;

/// A committed lease is released this long after its end by the store's date, not before: dates of
/// replicas of a store may differ, and signatures are refused beyond this difference anyway.
pub const EXPIRY_MARGIN: Duration = Duration::from_secs(15 * 60);

/// A lease of an owner that publishes after its commit is aborted when it was not committed for this long.
/// Its own writers commit within seconds; the time only spares a slow one a refusal.
pub const COMMIT_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Time for one answer of an owner, all of it included: it looks up one row.
pub const OWNER_DEADLINE: Duration = Duration::from_secs(10);

/// Time to reach an owner.
pub const OWNER_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of an owner's answer: a state, a name of up to 1 KiB and a digest, with room for more members.
pub const MAX_OWNER_REPLY_BYTES: usize = 64 << 10;

/// Questions to owners that one process has on the way at once.
pub const OWNER_QUESTIONS: usize = 32;

/// Leases of one session that a reconciliation works on at once: owners are other people's services.
pub const RECONCILE_PARALLEL: usize = 8;

/// Time of a reconciliation unless asked otherwise.
pub const RECONCILE_DEADLINE: Duration = Duration::from_secs(10 * 60);

/// How often a replica that is scraped looks at what the last reconciliation left: one GET.
pub const RECONCILIATION_WATCH_INTERVAL: Duration = Duration::from_secs(60);

/// Leases of a reconciliation unless asked otherwise.
pub const RECONCILE_LIMIT: usize = 10_000;

/// Committed leases of one session whose owner is asked in one reconciliation unless asked otherwise: a
/// release that was lost is found within some runs, and no run asks for all.
pub const RECONCILE_AUDITS: usize = 20;

/// Records between two checkpoints of a small journal, and the longest tail that an open folds without
/// writing a checkpoint for the next one: 64 parallel reads are four round trips.
pub const CHECKPOINT_INTERVAL_RECORDS: u64 = 64;

/// Records between two checkpoints of any journal.
pub const CHECKPOINT_MAX_INTERVAL_RECORDS: u64 = 512;

/// The name of a hold: with a UUID beside it, it stands in a transaction id of 200 bytes.
pub const MAX_HOLD_NAME_BYTES: usize = 128;

/// Records of one page of a journal: 64 of 256 KiB are 16 MiB.
pub const MAX_SHOWN_RECORDS: usize = 64;

/// Verifications that one replica runs at once; each keeps 16 reads in flight.
pub const MAX_CONCURRENT_WALKS: usize = 2;

/// A message of the Model Context Protocol: 1 MiB of text, escaped as JSON. A message is in memory whole.
pub const MAX_MCP_REQUEST_BYTES: usize = 4 << 20;

/// Messages that one replica answers at once.
pub const MAX_CONCURRENT_MCP_CALLS: usize = 64;

/// Findings that one verification lists; it counts them all.
pub const MAX_FINDINGS: usize = 1_000;

/// Receipts that one verification takes: an owner's whole store of them goes in several calls.
pub const MAX_RECEIPTS: usize = 100_000;

/// Bytes of a JSON request about leases: names, digests and times are a few KiB.
pub const MAX_LEASE_REQUEST_BYTES: usize = 16 << 10;

/// Bytes of the receipts that one verification takes over HTTP.
pub const MAX_RECEIPTS_BYTES: usize = 16 << 20;

/// Leases of one page of a list, unless asked otherwise.
pub const DEFAULT_LEASE_LIMIT: usize = 100;

/// Leases of one page of a list at most.
pub const MAX_LEASE_LIMIT: usize = 1_000;

/// Sessions whose read-back bytes a replica counts; some hundred bytes each.
pub const MAX_COUNTED_SESSIONS: usize = 10_000;

/// Bytes of one result's line on the standard input of `clear`: the largest text that may stay in a prompt,
/// with every byte of it escaped, is far below.
pub const MAX_CLEAR_LINE_BYTES: usize = 16 << 20;

/// Bytes of a whole conversation on the standard input of `clear`, all of which is held.
pub const MAX_CLEAR_BYTES: usize = 256 << 20;

/// Bytes of one line of another system's journal.
pub const MAX_JOURNAL_LINE_BYTES: usize = 1 << 20;

/// A bearer token's text. Random tokens have 32 to 64 characters; signed ones of other systems, which an
/// operator may reuse as opaque words, stay under this.
pub const MAX_TOKEN_BYTES: usize = 512;

/// A token that an operator chose: 16 bytes of a random alphabet are beyond guessing over a network.
pub const MIN_TOKEN_BYTES: usize = 16;

/// A principal's name: it stands in every log line and metric label of its requests.
pub const MAX_PRINCIPAL_NAME_BYTES: usize = 64;

/// Tokens of a configuration: every presented token is compared with all of them, 32 bytes each, which
/// takes microseconds.
pub const MAX_TOKENS: usize = 1_024;

/// Audit lines that are waiting or whose requests are running: 8,192 of about 400 bytes. A second of a busy
/// replica, so that the pauses of an ordinary disk are not felt.
pub const AUDIT_QUEUE_LINES: usize = 8 << 10;

/// A request waits this long for a place in the audit stream, then it is refused: nothing runs unrecorded.
pub const AUDIT_WAIT: Duration = Duration::from_secs(5);

/// Audit lines of one write: a few hundred KiB.
pub const AUDIT_BATCH_LINES: usize = 1 << 10;

/// Pause between two tries to write the audit stream.
pub const AUDIT_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Time that the last audit lines have when the service ends.
pub const AUDIT_END_TIME: Duration = Duration::from_secs(5);

/// All results of one turn together (profile `default`): a tenth of a window of a million tokens, and what
/// the systems that have such a budget allow.
pub const DEFAULT_TURN_BYTES: u64 = 200_000;

/// Results up to this size are left alone by the turn's pass (profile `default`): a body that fits the cap of
/// a replacement stays as it is, so nothing smaller can stand for it.
pub const TURN_RESULT_FLOOR_BYTES: u64 = DEFAULT_REPLACEMENT_BYTES as u64;

/// Results of one turn. Models call some dozens of tools at once; each fresh one costs a few requests.
pub const MAX_TURN_RESULTS: usize = 1_000;

/// A turn's JSON document. It is in memory twice, as text and parsed; larger results are saved first and
/// named by their artifact id.
pub const MAX_TURN_BODY_BYTES: usize = 24 << 20;

/// Text that a decision repeats to the caller, who has it: a harness replaces what it sent by what it gets.
pub const MAX_INLINE_TEXT_BYTES: u64 = 1 << 20;

/// Records of one turn: results that are added later make one more each.
pub const MAX_TURN_RECORDS: u32 = 256;

/// Saves of one turn at once: each takes an upload's place.
pub const TURN_SAVES_AT_ONCE: usize = 4;

/// Reads of one turn's earlier decisions at once.
pub const TURN_READS_AT_ONCE: usize = 16;

/// Turns whose documents are in memory at once, each twice [`MAX_TURN_BODY_BYTES`] at most: 768 MiB.
pub const TURNS_AT_ONCE: usize = 16;

/// A turn waits this long for its place: turns take round trips, not uploads.
pub const TURN_QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// Operations that wait for one journal; an HTTP client is told to come back rather than queued further.
pub const JOURNAL_QUEUE: usize = 1_024;

/// Journals that a replica keeps folded.
pub const OPEN_JOURNALS: u64 = 1_000;

/// A journal that nobody asked for this long is folded again when somebody does.
pub const JOURNAL_IDLE: Duration = Duration::from_secs(15 * 60);

/// How long one slot of a journal may stay undecided before its callers are told that the outcome is
/// unknown. Several retries of an ordinary store fit.
pub const JOURNAL_SLOT_DEADLINE: Duration = Duration::from_secs(5);

/// How long an operation is aimed at further slots after it lost one.
pub const JOURNAL_REQUEST_DEADLINE: Duration = Duration::from_secs(15);

/// A view that was proven this long ago is folded again before it is trusted, so that `as_of` is never
/// older.
pub const JOURNAL_PROOF_AGE: Duration = Duration::from_secs(10 * 60);

/// Records that are read at once when a journal is opened.
pub const JOURNAL_PARALLEL_READS: usize = 16;

/// A view this many records behind is opened anew: a checkpoint is nearer.
pub const JOURNAL_FAR_BEHIND: u64 = 64;

/// Plans younger than this are not applied, unless short times are allowed: an artifact is seen twice
/// before it goes.
pub const GC_MIN_PLAN_AGE: Duration = Duration::from_secs(3600);

/// Time between `condemned` and the first delete, unless short times are allowed: a broken chain is found
/// and a person can stop the collector before anything is gone.
pub const GC_SETTLE: Duration = Duration::from_secs(60);

/// Older plans are not applied: the world they saw is gone.
pub const GC_PLAN_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// At most this share of the live artifacts goes in one plan unless the operator says otherwise: a wrong
/// clock or a wrong setting then costs half.
/// In ten-thousandths.
pub const DEFAULT_GC_SHARE: u16 = 5_000;

/// From so many live artifacts on the share counts; of a few, half is no useful limit.
pub const GC_SHARE_FROM: u64 = 100;

/// Candidates of one plan: the oldest ones. What a collector holds of them stays near 40 MiB, and the
/// next plan takes the rest.
pub const GC_PLAN_CANDIDATES: usize = 100_000;

/// Candidates of one part of a plan: a part stays near 2 MiB.
pub const GC_PART_CANDIDATES: usize = 5_000;

/// Artifacts over which short times are refused: a demo does not grow so large.
pub const GC_SHORT_TIMES_ARTIFACTS: u64 = 10_000;

/// A body without a manifest, and a multipart upload, are given up after this long by the store's clock.
/// An upload ends itself after [`UPLOAD_DEADLINE`].
pub const GC_ABANDONED_UPLOAD: Duration = Duration::from_secs(24 * 3600);

/// Stale multipart uploads of one plan; the next plan names the rest.
pub const GC_PLAN_UPLOADS: usize = 1_000;

/// A journal entry's `as_of` is at most this much older than the entry.
pub const AS_OF_MARGIN: Duration = Duration::from_secs(10 * 60);

/// The most that a harness's hook reads of one event: the output of a tool as a JSON string, of up to 64 MiB
/// even where each of its bytes is escaped by another. It is held as it came and parsed, one after the other.
pub const MAX_HOOK_INPUT_BYTES: usize = 160 << 20;

/// What a command keeps for a service that is away, unless told otherwise: the outputs of hours, on a disk
/// that has other uses.
pub const DEFAULT_SPOOL_BYTES: u64 = 256 << 20;

/// Entries of a spool, and time, that a command spends on sending them after its own work was done: somebody
/// waits for it.
pub const SPOOL_DRAIN_ENTRIES: usize = 16;
/// See [`SPOOL_DRAIN_ENTRIES`].
pub const SPOOL_DRAIN_TIME: Duration = Duration::from_secs(5);
/// Sessions that a sweep works on at once.
pub const GC_PARALLEL_SESSIONS: usize = 8;

/// Sessions that a sweep knows at once: names of 16 bytes.
pub const GC_SESSION_BATCH: usize = 256;

/// Plans stay this long by the store's clock: a week in which they may be applied, and another in which
/// their reports can be compared with them.
pub const GC_PLAN_KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// Reports stay this long by the store's clock.
pub const GC_REPORT_KEPT: Duration = Duration::from_secs(90 * 24 * 3600);

/// Scratch objects that their writer left behind stay this long; none is in use for more than minutes.
pub const PROBE_KEPT: Duration = Duration::from_secs(24 * 3600);

/// Objects that one run expires; the next one takes the rest.
pub const GC_EXPIRED_MOST: u64 = 10_000;

/// Collections of one replica that callers have under way: each holds a plan in memory.
pub const MAX_GC_JOBS: usize = 2;

/// Ends of collections that one replica remembers for those who ask later; the store remembers the rest.
pub const GC_JOBS_REMEMBERED: usize = 32;

/// How long a request waits for its collection before it is answered 202: below what proxies allow.
pub const GC_JOB_WAIT: Duration = Duration::from_secs(10);

/// The longest that a caller may have it wait.
pub const MAX_GC_JOB_WAIT: Duration = Duration::from_secs(50);

/// What a request about a plan is at most.
pub const MAX_GC_REQUEST_BYTES: usize = 64 << 10;

/// Artifacts of one page of a report.
pub const MAX_REPORTED: u64 = 1_000;

/// Erasures of one replica at once; each sends a request at a time.
pub const MAX_CONCURRENT_ERASURES: usize = 16;

/// Artifacts that a scrub reads unless it is told otherwise.
pub const SCRUB_SAMPLE: usize = 1_000;

/// Bytes per second that a scrub reads unless it is told otherwise: a fraction of one connection.
pub const SCRUB_BYTES_PER_SECOND: u64 = 32 << 20;

/// Findings of a scrub that are named one by one; all of them are counted.
pub const SCRUB_FINDINGS: usize = 10_000;

/// Examples of each reason that an explanation names.
pub const GC_EXAMPLES: usize = 5;
