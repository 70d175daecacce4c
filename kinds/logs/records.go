package logs

import (
	"bytes"
	"context"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Objects writes each line of a log as an object:
//
//	{"line": 1, "time": "2026-11-20T14:30:22Z", "level": "error", "source": "scheduler", "text": "…", key: value, …}
//
// line counts from 1, and text is the whole line. time is as the log writes it; time and level are null in a line
// without them, such as one of a stack trace. source is the program or logger named after time and level, and absent
// if none is. Each key=value pair of the line follows, numbers as numbers; the first of several pairs with one key
// counts, and none replaces the five fields above.
func Objects(ctx context.Context, r io.Reader, w io.Writer) error {
	lines := record.NewLines(ctx, r, record.MaxLine)
	var o record.Object
	for {
		text, err := lines.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = lines.Check()
		}
		if err != nil {
			return err
		}
		addLine(&o, lines.Number, text)
		if err := o.WriteLine(w); err != nil {
			return err
		}
	}
}

func addLine(o *record.Object, number int64, text []byte) {
	line := text
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = withoutEscapes(nil, line)
	}
	from, to, rest := stamp(line)
	if to == 0 {
		from, to = midStamp(line)
	}
	lv := levelOf(line[rest:], to > 0)
	if from == 1 && rest == 0 { // glog: the letter before the time
		lv = map[byte]level{'I': info, 'W': warn, 'E': failure, 'F': fatal}[line[0]]
	}
	o.Int("line", number)
	o.StringOrNull("time", string(line[from:to]))
	name := ""
	if lv != noLevel {
		name = levelNames[lv]
	}
	o.StringOrNull("level", name)
	if source := sourceOf(string(line[rest:min(len(line), rest+256)])); to > 0 && source != "" {
		o.String("source", source)
	}
	o.String("text", string(text))
	addPairs(o, string(line))
}

var (
	// leadingLevel matches the level that stands before the source.
	leadingLevel = content.Pattern(`^[\[(<| ]*(?i:trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|panic|alert|emerg|emergency|severe)\b[\])>|: \t]*`)
	// named matches a source: [name], name: or "name - ". A program may have its process ID in brackets.
	named = content.Pattern(`^(?:\[([A-Za-z][\w./@$:-]*)\](?:[\s:]|$)|([A-Za-z][\w./@$-]*)(?:\[\d+\])?:\s|([A-Za-z][\w.$]*) - )`)
	// syslogged matches the host and the program of a line of syslog.
	syslogged = content.Pattern(`^[\w.-]+ ([A-Za-z][\w./-]*)\[\d+\]: `)
)

// sourceOf returns the program or logger named at the beginning of a line, which is passed without its time; "" if none
// is.
func sourceOf(line string) string {
	if m := syslogged().FindStringSubmatch(line); m != nil {
		return m[1]
	}
	if at := leadingLevel().FindStringIndex(line); at != nil {
		line = line[at[1]:]
	}
	m := named().FindStringSubmatch(line)
	if m == nil || m[0] == line && m[1] == "" {
		return ""
	}
	name := m[1] + m[2] + m[3]
	if l, _ := levelNamed([]byte(name[:min(len(name), levelLong)])); l != noLevel && len(name) <= levelLong {
		return ""
	}
	return name
}

// addPairs adds the key=value pairs of a line.
func addPairs(o *record.Object, line string) {
	var seen map[string]bool
	for p := range Pairs(line) {
		key, value := line[p.From:p.Value-1], line[p.Value:p.To]
		switch {
		case key == "line", key == "time", key == "level", key == "source", key == "text", seen[key]:
			continue
		case seen == nil:
			seen = map[string]bool{}
		}
		seen[key] = true
		if unquoted, err := strconv.Unquote(value); err == nil && value[0] == '"' {
			o.String(key, unquoted)
			continue
		}
		o.Scalar(key, value)
	}
}

// Pair is a key=value pair of a line: the offsets of its key, of its value, and of its end.
type Pair struct{ From, Value, To int }

// Pairs returns the key=value pairs of a line. A value is quoted, or goes to the next white space without a comma, a
// semicolon or an unmatched bracket at its end.
func Pairs(line string) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		for at := 0; ; {
			m := pair().FindStringSubmatchIndex(line[at:])
			if m == nil {
				return
			}
			p := Pair{From: at + m[2], Value: at + m[3] + 1}
			value := line[p.Value:]
			if prefix, err := strconv.QuotedPrefix(value); err == nil && value[0] != '`' && value[0] != '\'' {
				p.To = p.Value + len(prefix)
				at = p.To
			} else {
				end := strings.IndexAny(value, " \t")
				if end < 0 {
					end = len(value)
				}
				p.To = p.Value + len(trimValue(value[:end]))
				at = p.Value + end
			}
			if !yield(p) {
				return
			}
		}
	}
}

// pair matches the beginning of a key=value pair.
var pair = content.Pattern(`(?:^|[\s({\[,;])([A-Za-z_][\w.@/-]*)=`)

// trimValue removes what follows a value: commas, semicolons, and a closing bracket that the value does not open.
func trimValue(value string) string {
	for value != "" {
		last := value[len(value)-1]
		i := strings.IndexByte(")]}", last)
		switch {
		case last == ',' || last == ';':
		case i >= 0 && strings.IndexByte(value, "([{"[i]) < 0:
		default:
			return value
		}
		value = value[:len(value)-1]
	}
	return value
}
