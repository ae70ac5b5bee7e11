#!/usr/bin/env python3
"""Writes what attestation saw on real servers into docs/STORES.md, between its two markers.

Usage: stores_table.py [--check]
Reads target/stores/attestations/*.json (or $SPILLBOX_STORES_DIR/attestations), which
scripts/test-real-stores.sh leaves. With --check it writes nothing and fails where a verdict or a fence
of a store and version that the table names has changed.
"""
import json
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "STORES.md"
BEGIN, END = "<!-- attestations: begin -->", "<!-- attestations: end -->"
STATE = pathlib.Path(os.environ.get("SPILLBOX_STORES_DIR", ROOT / "target" / "stores"))
MODES = {"never_enabled": "plain", "enabled": "versioned", "suspended": "suspended"}
COLUMNS = [
    ("create-if-absent", ["create_twice", "create_race", "create_slow_writer"]),
    ("PUT If-Match", ["replace_if_match", "replace_race"]),
    ("DELETE If-Match", ["delete_if_match", "delete_race"]),
    ("DELETE versionId", ["delete_version"]),
    ("304", ["conditional_get"]),
    ("multipart", ["multipart"]),
    ("wrong checksum", ["checksum_verified"]),
]
WORDS = {"passed": "exact", "failed": "**broken**", "skipped": "–"}


def end_of(attestation, names):
    """The worst end of some checks, in a word."""
    ends = {row["check"]: row["outcome"] for row in attestation["checks"]}
    failed = [name for name in names if ends.get(name) == "failed"]
    if failed:
        is_race = all(name.endswith(("_race", "_slow_writer")) for name in failed)
        return "**broken in races**" if is_race else WORDS["failed"]
    tried = [ends[name] for name in names if ends.get(name, "skipped") != "skipped"]
    odd = [end for end in tried if end != "passed"]
    if not tried:
        return WORDS["skipped"]
    return odd[0] if odd else WORDS["passed"]


def cell(name, attestation, names):
    word = end_of(attestation, names)
    if name == "wrong checksum":
        return {"exact": "refused", "**broken**": "taken"}.get(word, word)
    if name in ("304", "multipart"):
        return {"exact": "yes", "**broken**": "no"}.get(word, word)
    return word


def row(kept):
    attestation = kept["attestation"]
    cells = [
        f"{kept['store']} {kept['version'] or ''}".strip(),
        MODES.get(attestation["mode"], attestation["mode"]),
        attestation["measured_at"][:10],
        f"**{attestation['verdict']}**",
        f"`{attestation['delete_fence']}`",
        *(cell(name, attestation, names) for name, names in COLUMNS),
        f"{attestation['rounds']} × {attestation['contenders']}",
    ]
    return "| " + " | ".join(cells) + " |"


def findings(kept):
    attestation = kept["attestation"]
    mode = MODES.get(attestation["mode"], attestation["mode"])
    parts = []
    for finding in attestation["findings"]:
        is_grave = finding["severity"] not in ("note", "warning")
        evidence = f" ({finding['evidence']})" if is_grave and finding["evidence"] else ""
        parts.append(f"`{finding['code']}`{evidence}")
    return f"* **{kept['store']}, {mode}**: {', '.join(parts) or 'nothing'}."


def main():
    order = ["seaweedfs", "ministack", "minio", "rclone", "s3s-fs"]
    kept = [json.loads(path.read_text()) for path in STATE.glob("attestations/*.json")]
    if not kept:
        sys.exit("no attestations: run scripts/test-real-stores.sh first")
    rank = {name: at for at, name in enumerate(order)}
    modes = ["never_enabled", "enabled", "suspended"]
    kept.sort(key=lambda k: (rank.get(k["store"], 99), k["store"], modes.index(k["attestation"]["mode"])))
    head = ["store", "bucket", "measured", "verdict", "delete fence", *(n for n, _ in COLUMNS), "races"]
    table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *map(row, kept)]
    block = "\n".join([*table, "", "What `doctor` found, the gravest first:", "", *map(findings, kept)])
    page = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        for line in table[2:]:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            pattern = rf"\| {re.escape(cells[0])} \| {cells[1]} \| [0-9-]+ \| {re.escape(cells[3])} \| {cells[4]} \|"
            if not re.search(pattern, page):
                sys.exit(f"docs/STORES.md says something else of: {' | '.join(cells[:5])}")
        return
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{block}\n{END}{after}")


if __name__ == "__main__":
    main()
