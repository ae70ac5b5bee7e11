"""Takes from random valid requests what cannot be right by chance.

A digest is the one of the body, a cursor is one that the service gave, a profile is one that there is,
and a page of lines begins in one way: random requests of the right form are refused, rightly, and would leave hardly any save, search
or page to be tried. Invalid requests stay as they are.
"""

import schemathesis

GIVEN_CURSORS = set()
PROFILES = {"default", "workbuddy", "claude-code", "tiny-claw", "dsh", "hermes"}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    for name in [name for name in case.headers if name.lower() in ("repr-digest", "content-digest")]:
        del case.headers[name]
    # Only one of these may be given.
    for name in [name for name in ("offset", "from_end", "byte_offset") if name in case.query][1:]:
        del case.query[name]
    if case.query.get("profile", "default") not in PROFILES:
        del case.query["profile"]
    cursor = case.query.get("cursor")
    if not isinstance(cursor, str) or cursor not in GIVEN_CURSORS:
        case.query.pop("cursor", None)


@schemathesis.hook
def after_call(context, case, response):
    is_json = response.headers.get("content-type", [""])[0].startswith("application/json")
    if is_json and response.content and case.method == "GET" and not case.path.endswith("{locator}"):
        page = response.json()
        if isinstance(page, dict) and isinstance(page.get("next_cursor"), str):
            GIVEN_CURSORS.add(page["next_cursor"])
