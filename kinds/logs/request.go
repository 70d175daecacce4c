package logs

import (
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// request is a line of an access log in the common or combined format, in parts as the line has them.
type request struct {
	host, address, user string
	line                string // "GET / HTTP/1.1"
	status, bytes       string
	combined            bool // referrer and agent follow
	referrer, agent     string
	tail                string // what else follows
}

// requestFields are the fields that [addRequest] adds. request is there only if method and path cannot be read, and
// host only if the line begins with it.
var requestFields = strings.Fields("address user method path status bytes referrer agent request host")

// requestOf divides a line of an access log; ok is false for another line.
func requestOf(line string, e *entry) (r request, ok bool) {
	if e.form != access {
		return r, false
	}
	words := strings.Fields(line[e.rest : e.from-1])
	_, rest, closed := strings.Cut(line[e.to:], "] ")
	if len(words) < 3 || !closed || !strings.HasPrefix(rest, `"`) {
		return r, false
	}
	if i := strings.LastIndexByte(words[0], ':'); len(words) > 3 && i > 0 && record.IsNumber(words[0][i+1:]) {
		r.host, words = words[0], words[1:]
	}
	r.address, r.user = words[0], strings.Join(words[2:], " ")
	r.line, rest = cutQuoted(rest)
	r.status, rest, _ = strings.Cut(rest, " ")
	r.bytes, r.tail, _ = strings.Cut(rest, " ")
	if strings.HasPrefix(r.tail, `"`) {
		r.combined = true
		r.referrer, r.tail = cutQuoted(r.tail)
		if strings.HasPrefix(r.tail, `"`) {
			r.agent, r.tail = cutQuoted(r.tail)
		}
	}
	return r, true
}

// cutQuoted returns the content of a quoted string at the beginning of s, and what follows it. The quote is closed by
// one at the end of a word; if none is, the string is all of s.
func cutQuoted(s string) (text, rest string) {
	end := len(s)
	for i := 1; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if s[i] == '"' && (i+1 == len(s) || s[i+1] == ' ') {
			end = i
			break
		}
	}
	text, rest = s[1:end], strings.TrimLeft(s[min(len(s), end+1):], " ")
	if strings.IndexByte(text, '\\') >= 0 {
		if unquoted, err := strconv.Unquote(`"` + text + `"`); err == nil {
			text = unquoted
		}
	}
	return text, rest
}

// requestLine matches the request of a client that speaks HTTP.
var requestLine = content.Pattern(`^([A-Z][A-Z-]*) (?:(\S.*?) HTTP/[\d.]+|([/*]\S*|\w+://\S*))$`)

// addRequest adds the fields of a request: address, user, method, path, status and bytes, in the combined format
// referrer and agent too. "-" is null. If the request is not HTTP, method and path are null, and request is its text.
// addRequest returns the rest of the line.
func addRequest(o *record.Object, r request) (tail string) {
	text := func(name, value string) {
		if value == "-" {
			value = ""
		}
		o.StringOrNull(name, value)
	}
	number := func(name, value string) {
		if record.IsNumber(value) {
			o.Raw(name, value)
		} else {
			text(name, value)
		}
	}
	if r.host != "" {
		o.String("host", r.host)
	}
	text("address", r.address)
	text("user", r.user)
	if m := requestLine().FindStringSubmatch(r.line); m != nil {
		text("method", m[1])
		text("path", m[2]+m[3])
	} else {
		text("method", "")
		text("path", "")
		text("request", r.line)
	}
	number("status", r.status)
	number("bytes", r.bytes)
	if r.combined {
		text("referrer", r.referrer)
		text("agent", r.agent)
	}
	return r.tail
}
