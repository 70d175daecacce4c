package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Objects writes each line of a log as an object:
//
//	{"line": 1, "time": "2026-11-20T14:30:22Z", "level": "error", "source": "scheduler", "text": "…", key: value, …}
//
// line counts from 1, and text is the whole line. time is as the log writes it, but a 12-hour clock is written as a
// 24-hour one, so that times can be compared. time and level are null in a line without them, such as one of a stack
// trace. source is the program or logger named after time and level, and service the container before the line, such as
// "web-1" or "pod/container"; both are absent if none is named. A line of an access log has the fields of [addRequest].
// Each key=value pair of the line follows, numbers as numbers; the first of several pairs with one key counts, and none
// replaces the fields above. Then come the numbers of values with a unit, as [twinOf] says. If most lines have no time or
// no level, the error is a [*content.Remarks].
func Objects(ctx context.Context, r io.Reader, w io.Writer) error {
	lines := record.NewLines(ctx, r, record.MaxLine)
	var o record.Object
	var timeless, levelless int64
	for {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return record.Without(lines.Number, map[string]int64{"time": timeless, "level": levelless})
		}
		if err == nil {
			err = lines.Check()
		}
		if err != nil {
			return err
		}
		hasTime, hasLevel := addLine(&o, lines.Number, text)
		if !hasTime {
			timeless++
		}
		if !hasLevel {
			levelless++
		}
		if err := o.WriteLine(w); err != nil {
			return err
		}
	}
}

// fixedFields are the fields that no pair of any line replaces.
var fixedFields = []string{"line", "time", "level", "source", "text"}

func addLine(o *record.Object, number int64, text []byte) (hasTime, hasLevel bool) {
	plain := text
	if bytes.IndexByte(plain, 0x1b) >= 0 {
		plain = content.WithoutEscapes(nil, plain)
	}
	var e entry
	e.parse(plain, true)
	line := string(plain)
	request, isRequest := requestOf(line, &e)
	if e.level == noLevel && !isRequest {
		e.level = levelOf(plain[e.rest:], e.to > 0)
	}
	o.Int("line", number)
	o.StringOrNull("time", in24Hours(line[e.from:e.to]))
	name := ""
	if e.level != noLevel {
		name = levelNames[e.level]
	}
	o.StringOrNull("level", name)
	if source := sourceOf(line, &e); source != "" && !isRequest {
		o.String("source", source)
	}
	fixed, pairs := fixedFields, line
	if e.service.to > 0 {
		fixed = append(fixed[:len(fixed):len(fixed)], "service")
		o.String("service", strings.ReplaceAll(line[e.service.from:e.service.to], " ", "/"))
	}
	if isRequest {
		pairs = addRequest(o, request)
		fixed = append(fixed[:len(fixed):len(fixed)], requestFields...)
	}
	o.String("text", string(text))
	addPairs(o, pairs, fixed, isRequest)
	return e.to > 0, name != ""
}

// halfDays matches a time of day on a 12-hour clock.
var halfDays = content.Pattern(`(?:^|\D)(\d{1,2})(:[\d:.,]*\d)[ \x{a0}\x{202f}]?([AaPp])\.?[Mm]\b\.?`)

// in24Hours writes a time on a 12-hour clock on a 24-hour one: "5/18/2026 4:39 PM" is "5/18/2026 16:39".
func in24Hours(time string) string {
	if i := strings.IndexByte(time, ':'); i < 0 || !strings.ContainsAny(time[i:], "Mm") {
		return time
	}
	m := halfDays().FindStringSubmatchIndex(time)
	if m == nil {
		return time
	}
	hour, _ := strconv.Atoi(time[m[2]:m[3]])
	if hour <= 12 {
		if hour %= 12; time[m[6]]|0x20 == 'p' {
			hour += 12
		}
	}
	return fmt.Sprintf("%s%02d%s%s", time[:m[2]], hour, time[m[4]:m[5]], time[m[1]:])
}

var (
	// leadingLevel matches the level that stands before the source.
	leadingLevel = content.Pattern(`^[\[(<| ]*(?i:trace|debug|info|notice|warn|warning|error|err|crit|critical|fatal|panic|alert|emerg|emergency|severe)\b[\])>|: \t]*`)
	// named matches a source: [name], name: or "name - ". A program may have its process ID in brackets.
	named = content.Pattern(`^(?:\[([A-Za-z][\w./@$:-]*)\](?:[\s:]|$)|([A-Za-z][\w./@$-]*)(?:\[\d+\])?:\s|([A-Za-z][\w.$]*) - )`)
	// syslogged matches the host and the program of a line of syslog.
	syslogged = content.Pattern(`^[\w.-]+ ([A-Za-z][\w./-]*)\[\d+\]: `)
)

// sourceOf returns the program or logger named at the beginning of a line, "" if none is.
func sourceOf(line string, e *entry) string {
	rest := line[e.rest:min(len(line), e.rest+256)]
	switch {
	case e.form == android:
		return line[e.tag.from:e.tag.to]
	case e.form == syslog: // host, program
		if words := strings.Fields(strings.TrimPrefix(rest, "- ")); len(words) > 1 && words[1] != "-" {
			return words[1]
		}
		return ""
	case e.to == 0:
		return ""
	case e.form == priority && line[e.from-1] == '>': // host, program
		_, rest, _ = strings.Cut(rest, " ")
	}
	if strings.Contains(rest, "]: ") {
		if m := syslogged().FindStringSubmatch(rest); m != nil {
			return m[1]
		}
	}
	if at := leadingLevel().FindStringIndex(rest); at != nil {
		rest = rest[at[1]:]
	}
	m := named().FindStringSubmatch(rest)
	if m == nil || m[0] == rest && m[1] == "" {
		return ""
	}
	name := m[1] + m[2] + m[3]
	if module, level, ok := strings.Cut(m[1], ":"); ok && isLevel(level) {
		return module // [core:error]
	}
	if isLevel(name) {
		return ""
	}
	return name
}

func isLevel(name string) bool {
	if len(name) > levelLong {
		return false
	}
	l, _ := levelNamed([]byte(name))
	return l != noLevel
}

// addPairs adds the key=value pairs of a line, but none of a fixed field. In the line of a request, quoted numbers are
// numbers too, and "-" is null.
func addPairs(o *record.Object, line string, fixed []string, request bool) {
	var seen map[string]bool
	var twins []string // a name and a number each
	for p := range Pairs(line) {
		key, value := line[p.From:p.Value-1], line[p.Value:p.To]
		switch {
		case seen[key], slices.Contains(fixed, key):
			continue
		case seen == nil:
			seen = map[string]bool{}
		}
		seen[key] = true
		unquoted, err := strconv.Unquote(value)
		quoted := err == nil && value[0] == '"'
		if quoted {
			value = unquoted
		}
		if name, number := twinOf(key, value); name != "" {
			twins = append(twins, name, number)
		}
		switch {
		case request && value == "-":
			o.Raw(key, "null")
		case quoted && !request:
			o.String(key, value)
		default:
			o.Scalar(key, value)
		}
	}
	for i := 0; i < len(twins); i += 2 {
		if name := twins[i]; !seen[name] && !slices.Contains(fixed, name) {
			seen[name] = true
			o.Raw(name, twins[i+1])
		}
	}
}

// Pair is a key=value pair of a line: the offsets of its key, of its value, and of its end.
type Pair struct{ From, Value, To int }

// Pairs returns the key=value pairs of a line. A value is quoted, or goes to the next white space without a comma, a
// semicolon or an unmatched bracket at its end.
func Pairs(line string) iter.Seq[Pair] {
	return func(yield func(Pair) bool) {
		for at := 0; strings.IndexByte(line[at:], '=') >= 0; {
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
