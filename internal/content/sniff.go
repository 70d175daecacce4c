package content

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// SniffSize is how many bytes Sniff wants to see at most.
const SniffSize = 64 << 10

// Sniff names the kind of a text from its first bytes. whole says that
// prefix is all of it; name is a file name or "" (its extension is a hint only: it settles what the
// bytes leave open, and never makes JSON of what is none).
//
// Asked in this order, the first that fits: binary, JSON and NDJSON (by parsing), diff, log, table,
// Markdown; text is the rest, and so are lines that begin with "file:line:", which is how searches show what they found. Source
// ([IsSource], also by the [FileHeader] it begins with) is text, whatever it quotes, where it is not JSON.
func Sniff(prefix []byte, whole bool, name string) Kind {
	if len(prefix) > SniffSize {
		prefix, whole = prefix[:SniffSize], false
	}
	e := Detect(prefix, whole)
	if e == NoText {
		return Binary
	}
	if e != UTF8 {
		// What a cut at the end of the prefix leaves of a character does not matter here.
		prefix, _ = io.ReadAll(io.LimitReader(e.Reader(bytes.NewReader(prefix)), 2*SniffSize))
	}
	text := bytes.TrimLeft(prefix, " \t\r\n")
	if len(text) == 0 {
		return Text
	}
	ext := strings.ToLower(path.Ext(name))
	if k := sniffJSON(text, whole, ext); k != "" {
		return k
	}
	all := splitLines(prefix, whole)
	if name == "" {
		name, _ = FileHeader(all[0])
	}
	switch {
	case IsSource(name):
		return Text
	case isDiff(all, ext):
		return Diff
	case isLog(all, ext):
		return Log
	case ext != ".md" && isTable(prefix, whole, ext):
		return Table
	case isMarkdown(all, ext):
		return Markdown
	}
	return Text
}

// splitLines splits a text into lines without their ends. A last line that the end of the prefix cuts is left out.
func splitLines(p []byte, whole bool) [][]byte {
	all := bytes.Split(p, []byte{'\n'})
	if last := len(all) - 1; last > 0 && (!whole || len(all[last]) == 0) {
		all = all[:last]
	}
	for i, l := range all {
		all[i] = bytes.TrimSuffix(l, []byte{'\r'})
	}
	return all
}

// muchRight is how many keys and values of a text that is none in the end make it broken JSON.
const muchRight = 8

// sniffJSON names JSON or NDJSON; "" where it is neither. Numbers and literals alone are text: so are lists of numbers.
func sniffJSON(text []byte, whole bool, ext string) Kind {
	if text[0] != '{' && text[0] != '[' && (text[0] != '"' || ext == ".csv" || ext == ".tsv") {
		return ""
	}
	var s Scanner
	values, inner, started, bare := 0, 0, 0, 0
	firstEnd := int64(0)
	for p := text; len(p) > 0 && s.Err() == nil; {
		n, e := s.Scan(p)
		p = p[n:]
		switch {
		case e.Starts() && (s.Depth() == 0 || s.Depth() == 1 && (e == ObjectStart || e == ArrayStart)):
			started++
			if e == NumberStart || e == LiteralStart {
				bare++
			}
		case e == KeyEnd, e.Ends() && s.Depth() > 0:
			if inner++; inner >= muchRight {
				s.Quiet = 1 // more of them say no more
			}
		case e.Ends():
			if values++; values == 1 {
				firstEnd = s.Offset()
			}
		}
	}
	scalar := text[0] == '"'
	if s.Err() != nil {
		return sniffBroken(text, whole, ext, s, values, inner, firstEnd)
	}
	switch {
	case values == 0 && scalar:
		return "" // a quotation that does not end
	case values == 0 && inner == 0 && s.Offset() < 2:
		return "" // one bracket is no JSON yet
	case started >= 2 && (values >= 2 || bare == 0):
		return NDJSON
	}
	return JSON
}

// sniffBroken decides on a text that begins as JSON does, and then is none. It is JSON that is broken where
// much of it was right: people want to know where it breaks.
func sniffBroken(text []byte, whole bool, ext string, s Scanner, values, inner int, firstEnd int64) Kind {
	if text[0] == '"' {
		return ""
	}
	if values == 0 {
		if inner >= muchRight || inner >= 2 && ext == ".json" {
			return JSON
		}
		return ""
	}
	// Lines, nearly all of them JSON objects: NDJSON with something in between.
	right, all := 0, 0
	for _, l := range splitLines(text, whole) {
		if l = bytes.TrimSpace(l); len(l) == 0 {
			continue
		}
		all++
		if l[0] == '{' && wholeValue(l) {
			right++
		}
	}
	switch {
	case right >= 2 && right*10 >= all*9, right >= 1 && right*2 >= all && (ext == ".ndjson" || ext == ".jsonl"):
		return NDJSON
	case values == 1 && inner >= muchRight && s.Offset()-firstEnd < firstEnd/4 && int64(len(text))-firstEnd < firstEnd/4:
		return JSON
	}
	return ""
}

func wholeValue(p []byte) bool {
	s := Scanner{Quiet: 1}
	values := 0
	for len(p) > 0 && s.Err() == nil {
		n, e := s.Scan(p)
		p = p[n:]
		if e.Ends() {
			values++
		}
	}
	_, err := s.End()
	return err == nil && values == 1
}

// Media is the MIME type of a prefix, by its bytes; without parameters.
func Media(prefix []byte, name string) string {
	if len(prefix) > SniffSize {
		prefix = prefix[:SniffSize]
	}
	switch Sniff(prefix, len(prefix) < SniffSize, name) {
	case JSON:
		return "application/json"
	case NDJSON:
		return "application/x-ndjson"
	case Diff:
		return "text/x-diff"
	case Table:
		if delimiter(prefix) == '\t' {
			return "text/tab-separated-values"
		}
		return "text/csv"
	case Markdown:
		return "text/markdown"
	case Log:
		return "text/plain"
	}
	m, _, _ := strings.Cut(mimetype.Detect(prefix).String(), ";")
	return m
}
