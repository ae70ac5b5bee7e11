"""The tools of Spillbox, driven by the official client of the protocol, over both transports.

Run by scripts/test-mcp.sh, which starts the service and says in the environment where things are.
"""

import json
import os
import unittest

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

BINARY = os.environ["SPILLBOX_BINARY"]
URL = os.environ["SPILLBOX_URL"]
TOKEN = os.environ["SPILLBOX_TOKEN"]
LINES = 4000
REPLY_BYTES = 24000
LOG = "".join(f"line {n} of the log\n" if n != 2500 else "error: the disk is full\n" for n in range(LINES))


def over_http(token):
    headers = {"authorization": f"Bearer {token}"}
    client = httpx2.AsyncClient(headers=headers, timeout=30)
    return streamable_http_client(f"{URL}/mcp", http_client=client)


def over_stdio(token):
    environment = {"SPILLBOX_URL": URL, "SPILLBOX_TOKEN": token, "PATH": ""}
    return StdioServerParameters(command=BINARY, args=["mcp", "--session", "from-stdio"], env=environment)


def texts(result):
    return [block.text for block in result.content if block.type == "text"]


def links(result):
    return [block for block in result.content if block.type == "resource_link"]


class Tools:
    """Every case runs over each transport, and by each way to begin that the client knows."""

    server = None
    mode = "auto"

    def client(self, token=TOKEN):
        return Client(type(self).server(token), mode=self.mode)

    async def save(self, client, call_id="c-1"):
        stored = await client.call_tool(
            "artifact_save", {"content": LOG, "tool": "make", "call_id": call_id, "session": "mcp"}
        )
        self.assertFalse(stored.is_error, stored)
        (link,) = links(stored)
        return stored, str(link.uri)

    async def test_the_tools_are_listed_with_what_they_do(self):
        async with self.client() as client:
            listed = (await client.list_tools()).tools
        names = {tool.name for tool in listed}
        wanted = {"read", "grep", "stat", "outline", "list", "save"}
        self.assertEqual(names, {f"artifact_{name}" for name in wanted})
        for tool in listed:
            self.assertEqual(tool.annotations.read_only_hint, tool.name != "artifact_save")

    async def test_a_text_is_stored_and_read_back(self):
        async with self.client() as client:
            stored, locator = await self.save(client)
            told, preview = texts(stored)
            self.assertIn(locator, told)
            self.assertIn("EXCERPT", preview)
            self.assertLess(len(preview), len(LOG))
            self.assertEqual(links(stored)[0].size, len(LOG))

            page = await client.call_tool("artifact_read", {"locator": locator, "offset": 2500, "limit": 1})
            self.assertEqual(texts(page)[0], "error: the disk is full\n")
            self.assertIn("offset=2501", texts(page)[1])

            found = await client.call_tool("artifact_grep", {"locator": locator, "pattern": "disk"})
            self.assertEqual(texts(found)[0], "2501:error: the disk is full\n")

            known = await client.call_tool("artifact_stat", {"locator": locator})
            self.assertEqual(json.loads(texts(known)[0])["line_count"], LINES)
            self.assertEqual(len(links(known)), 1)

            outline = await client.call_tool("artifact_outline", {"locator": locator})
            self.assertIn("2501", texts(outline)[0])

            listed = await client.call_tool("artifact_list", {"session": "mcp", "tool": "make"})
            self.assertIn(locator, texts(listed)[0])

    async def test_pages_follow_one_another_to_the_end(self):
        async with self.client() as client:
            _, locator = await self.save(client)
            read, offset = "", 0
            while offset is not None:
                page = await client.call_tool("artifact_read", {"locator": locator, "offset": offset})
                self.assertLessEqual(sum(len(text) for text in texts(page)), REPLY_BYTES)
                read += texts(page)[0]
                offset = page.structured_content["next_offset"]
            self.assertEqual(read, LOG)

    async def test_hits_follow_one_another_to_the_end(self):
        async with self.client() as client:
            _, locator = await self.save(client)
            arguments, hits = {"locator": locator, "pattern": "LOG", "ignore_case": True, "limit": 1000}, 0
            while True:
                found = await client.call_tool("artifact_grep", arguments)
                self.assertLessEqual(sum(len(text) for text in texts(found)), REPLY_BYTES)
                hits += found.structured_content["matches"]
                arguments["cursor"] = found.structured_content["next_cursor"]
                if arguments["cursor"] is None:
                    break
            self.assertEqual(hits, LINES - 1)

    async def test_what_goes_wrong_is_a_result_with_a_code(self):
        gone = "http://elsewhere.example/a/00000000000000000000000001.00000000000000000000000002"
        wrong = [
            ("artifact_read", {"locator": gone}, "artifact_not_found"),
            ("artifact_read", {"locator": "no locator"}, "artifact_not_found"),
            ("artifact_read", {}, "invalid_parameter"),
            ("artifact_read", {"locator": gone, "ofset": 1}, "invalid_parameter"),
            ("artifact_read", {"locator": gone, "max_bytes": 1}, "invalid_parameter"),
            ("artifact_grep", {"locator": gone, "pattern": "(", "mode": "regex"}, None),
            ("artifact_list", {"limit": 51}, "invalid_parameter"),
            ("artifact_save", {"content": "x", "session": ".."}, "invalid_parameter"),
        ]
        async with self.client() as client:
            for tool, arguments, code in wrong:
                result = await client.call_tool(tool, arguments)
                self.assertTrue(result.is_error, (tool, arguments))
                if code:
                    self.assertEqual(result.structured_content["code"], code, (tool, arguments))

    async def test_a_scope_that_is_missing_is_told(self):
        async with self.client(os.environ["SPILLBOX_READER_TOKEN"]) as client:
            refused = await client.call_tool("artifact_save", {"content": "x"})
        self.assertEqual(refused.structured_content["code"], "insufficient_scope")


class OverHttp(Tools, unittest.IsolatedAsyncioTestCase):
    server = staticmethod(over_http)


class OverHttpWithHandshake(OverHttp):
    mode = "legacy"


class OverStdio(Tools, unittest.IsolatedAsyncioTestCase):
    server = staticmethod(over_stdio)


class OverStdioWithHandshake(OverStdio):
    mode = "legacy"


if __name__ == "__main__":
    unittest.main()
