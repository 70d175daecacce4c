"""Says what edits must make of files, by str.count and str.replace.

It reads one JSON object a line, {"raw": base64, "codec", "bom": base64, "edits": [{"old", "new", "all"}]}, and prints
{"refused": why, "edit": index, "lines": [...]} or {"raw": base64, "places": n, "hash", "plain": [old, new]} for each.

The rule for line ends: LINE stands for \\r\\n, so that \\r\\n is one character that nothing begins or ends in.
- A \\n of old is any line end, the same one all over old: all \\n or all LINE. If old has a \\r, it is taken as it is.
- A line end of new is that of the place: that of old, if old has one; else that of the line in which the place ends;
  else, in the last line, that of most lines. If both old and new have a \\r, new is taken as it is.
old must be in the text once, also if its places overlap. With all, places are replaced from left to right.
"""
import base64
import hashlib
import json
import re
import sys

LINE = "\ue000"


class Refused(Exception):
    pass


def apply(text, old, new, everywhere):
    """Returns the text after one edit, and at how many places it was made."""
    if "\r" not in old:
        new = new.replace("\r\n", "\n")
    for end, other in (("\n", LINE), (LINE, "\n")):
        if other in text or end not in text:
            continue
        if "\r" not in old:  # the ends of all lines are alike
            old = old.replace("\n", end)
        if "\r" not in new:
            new = new.replace("\n", end)
        old, new = old.replace("\r\n", LINE), new.replace("\r\n", LINE)
        once(text, starts(text, old), everywhere)
        return text.replace(old, new), text.count(old)
    forms = [old.replace("\r\n", LINE)]
    if "\n" in old and "\r" not in old:
        forms.append(old.replace("\n", LINE))
    once(text, sorted(i for form in forms for i in starts(text, form)), everywhere)

    def put(match):
        if "\r" in new:
            return new.replace("\r\n", LINE)
        if "\n" in old:
            return new.replace("\n", LINE if LINE in match[0] else "\n")
        if end := re.compile(f"[\n{LINE}]").search(text, match.end()):
            return new.replace("\n", end[0])
        return new.replace("\n", LINE) if text.count(LINE) > text.count("\n") else new

    return re.subn("|".join(re.escape(form) for form in forms), put, text)


def starts(text, old):
    at = text.find(old)
    while at >= 0:
        yield at
        at = text.find(old, at + 1)


def once(text, at, everywhere):
    at = list(at)
    if not at:
        raise Refused("missing", [])
    if len(at) > 1 and not everywhere:
        raise Refused("several", [1 + len(re.findall(f"[\n{LINE}]", text[:i])) for i in at])


def answer(case):
    raw, bom, codec = base64.b64decode(case["raw"]), base64.b64decode(case["bom"]), case["codec"]
    text = raw[len(bom):].decode(codec).replace("\r\n", LINE)
    before, places = text, 0
    for i, edit in enumerate(case["edits"]):
        if edit["old"] in ("", edit["new"]):
            return {"refused": "pointless", "edit": i}
    for i, edit in enumerate(case["edits"]):
        try:
            edit["old"].encode(codec)
            text, n = apply(text, edit["old"], edit["new"], edit.get("all", False))
            edit["new"].encode(codec)
            places += n
        except UnicodeEncodeError:
            return {"refused": "encoding", "edit": i}
        except Refused as refused:
            return {"refused": refused.args[0], "edit": i, "lines": refused.args[1]}
    made = bom + text.replace(LINE, "\r\n").encode(codec)
    alike = all("\n" not in t for t in (before, text)) or all(LINE not in t for t in (before, text))
    return {
        "raw": base64.b64encode(made).decode(), "places": places, "hash": hashlib.sha256(made).hexdigest()[:8],
        "plain": [t.replace(LINE, "\n") for t in (before, text)] if alike else None,
    }


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))))
