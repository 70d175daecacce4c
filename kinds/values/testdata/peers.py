"""Reads TOML, INI and XML by the parsers of Python, in the form that this package documents.

Input: a JSON array of [format, text]; output: an array of arrays of records, or of errors as strings.
"""

import configparser
import datetime
import json
import math
import sys
import tomllib
from xml.parsers import expat

BLANK = " \t\r\n"


def plain(v):
    if isinstance(v, dict):
        return {k: plain(e) for k, e in v.items()}
    if isinstance(v, list):
        return [plain(e) for e in v]
    if isinstance(v, (datetime.datetime, datetime.date, datetime.time)):
        return v.isoformat()
    if isinstance(v, float) and not math.isfinite(v):
        return str(v)
    return v


def read_toml(text):
    return [plain(tomllib.loads(text))]


def read_ini(text):
    c = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True, default_section="\0")
    c.optionxform = str
    c.read_string(text)
    return [{s: dict(c[s]) for s in c.sections()}]


def read_xml(text):
    stack, root, outside = [], None, []
    p = expat.ParserCreate()

    def start(name, attributes):
        e = [name, attributes, [], []]  # name, attributes, texts, children
        if stack:
            stack[-1][3].append(e)
        else:
            outside.append(e)
        stack.append(e)

    p.StartElementHandler = start
    p.EndElementHandler = lambda name: stack.pop()
    p.CharacterDataHandler = lambda data: stack[-1][2].append(data)
    p.Parse(text.encode(), True)
    (root,) = outside

    def element(e):
        o = {"@" + k: v for k, v in e[1].items()}
        text = "".join(e[2])
        if e[3]:
            text = text.strip(BLANK)
        if text:
            o["#text"] = text
        for child in e[3]:
            o.setdefault(child[0], []).append(element(child))
        return o

    level, path = [([], root)], []  # names around, element
    while level:  # by depth: the first element with two children of one name
        below = []
        for names, e in level:
            seen = set()
            for child in e[3]:
                if child[0] in seen:
                    path = [*names, e[0]]
                    break
                seen.add(child[0])
                below.append(([*names, e[0]], child))
            if path:
                break
        if path:
            break
        level = below
    records = []

    def walk(names, e):
        here = [*names, e[0]]
        if here != path[: len(here)]:
            records.append({e[0]: element(e)})
            return
        if e[1]:
            records.append({e[0]: element([e[0], e[1], [], []])})
        for child in e[3]:
            walk(here, child)

    walk([], root)
    return records


def read(form, text):
    try:
        return {"toml": read_toml, "ini": read_ini, "xml": read_xml}[form](text)
    except Exception as e:
        return str(e)


json.dump([read(*case) for case in json.load(sys.stdin)], sys.stdout)
