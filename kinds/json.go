package kinds

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-funnel/mcp-funnel/kinds/digest"
	"github.com/mcp-funnel/mcp-funnel/kinds/shape"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// JSON is one JSON value, possibly broken.
var JSON = &Kind{
	Name:       content.JSON,
	Ext:        "json",
	MIME:       fixed("application/json"),
	Sniff:      func(s *Sample) bool { return s.json() == content.JSON },
	Summarizer: func(string, []byte) digest.Summarizer { return shape.NewDocument(content.JSON) },
	Records:    content.Values,
	RecordIs:   "the value",
	RecordNote: "an array is one value for jq, .[] gives the elements that slice counts",
	Shares:     Shares{Says: 0.3, Shape: 0.45, Body: 0.6},
}

// muchRight is the number of valid keys and values that make an invalid text count as broken JSON.
const muchRight = 8

// sniffJSON returns JSON, NDJSON, or "" for neither. Bare numbers and literals are text, and so are lists of
// numbers.
func sniffJSON(text []byte, whole bool, ext string) content.Kind {
	if text[0] != '{' && text[0] != '[' && (text[0] != '"' || ext == ".csv" || ext == ".tsv") {
		return ""
	}
	var s content.Scanner
	values, inner, started, bare := 0, 0, 0, 0
	firstEnd := int64(0)
	for p := text; len(p) > 0 && s.Err() == nil; {
		n, e := s.Scan(p)
		p = p[n:]
		switch {
		case e.Starts() && (s.Depth() == 0 || s.Depth() == 1 && e.Opens()):
			started++
			if e == content.NumberStart || e == content.LiteralStart {
				bare++
			}
		case e == content.KeyEnd, e.Ends() && s.Depth() > 0:
			if inner++; inner >= muchRight {
				s.Quiet = 1 // further keys and values do not change the decision
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
	case values == 0 && scalar && whole:
		return "" // a string without closing quote; one that is longer than the sample is JSON
	case values == 0 && inner == 0 && s.Offset() < 2:
		return "" // a single bracket is not JSON
	case started >= 2 && (values >= 2 || bare == 0):
		return content.NDJSON
	}
	return content.JSON
}

// sniffBroken returns the kind of a text that begins like JSON and has a syntax error. It returns JSON or NDJSON if
// enough of the text is valid, because callers want the position of the error; otherwise "".
func sniffBroken(
	text []byte, whole bool, ext string, s content.Scanner, values, inner int, firstEnd int64,
) content.Kind {
	if text[0] == '"' {
		return ""
	}
	if values == 0 {
		if inner >= muchRight || inner >= 2 && ext == ".json" {
			return content.JSON
		}
		return ""
	}
	// If at least 90 % of the lines are JSON objects, the text is NDJSON with other lines in between.
	right, all := 0, 0
	for _, l := range splitLines(text, whole) {
		if l = bytes.TrimSpace(l); len(l) == 0 {
			continue
		}
		all++
		if l[0] == '{' && json.Valid(l) {
			right++
		}
	}
	switch {
	case right >= 2 && right*10 >= all*9, right >= 1 && right*2 >= all && (ext == ".ndjson" || ext == ".jsonl"):
		return content.NDJSON
	case values == 1 && inner >= muchRight && s.Offset()-firstEnd < firstEnd/4 && int64(len(text))-firstEnd < firstEnd/4:
		return content.JSON
	}
	return ""
}
