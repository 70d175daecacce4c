package values

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Files of settings are one record, an object of strings. A key that occurs twice is written twice, and a key without
// a value is null.
var (
	// INI reads sections and their keys, as Python's configparser does: "key = value" or "key: value", comments by
	// lines that begin with # or ;, and values that lines with more indentation than their key continue. Sections are
	// objects, and two of one name are one; keys before the first section are members of the record.
	INI = guarded("INI", iniReader)
	// Properties reads the format of java.util.Properties.
	Properties = guarded("properties", propertiesReader)
	// Env reads assignments of a shell, as dotenv does: quotes are removed, escapes in double quotes and comments after
	// a blank too; variables are not replaced.
	Env = guarded("assignments", envReader)
)

// eachLine calls visit with the lines of a text that is one record. A CR alone ends a line too, but is not counted.
func eachLine(r io.Reader, visit func(line int64, text string) error) error {
	text, err := readAll(r, map[string]int{"\n": 1})
	if err != nil {
		return err
	}
	n := int64(0)
	for line := range strings.Lines(string(text)) {
		n++
		for part := range strings.SplitSeq(strings.TrimRight(line, "\r\n"), "\r") {
			if err := visit(n, part); err != nil {
				return err
			}
		}
	}
	return nil
}

var iniKey = content.Pattern(`^([^=:\s][^=:]*?)\s*[=:]\s*(.*)$`)

func iniReader(_ context.Context, r io.Reader, sink Sink) error {
	s := settings{sink: sink, byName: map[string]*section{}}
	in := s.section("")
	depth := 0 // indentation of the last key
	err := eachLine(r, func(n int64, line string) error {
		text := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		key := iniKey().FindStringSubmatch(text)
		switch last, end := len(in.keys)-1, strings.LastIndexByte(text, ']'); {
		case text == "" || text[0] == '#' || text[0] == ';':
			return nil
		case indent > depth && last >= 0:
			k := &in.keys[last]
			if len(k.value) > 0 {
				text = "\n" + text
			}
			k.value, k.null = append(k.value, text...), false
			s.mark(n, in, k.key)
			return nil
		case text[0] == '[' && end > 1:
			in, depth = s.section(strings.TrimSpace(text[1:end])), math.MaxInt // no key that a line could continue
			s.mark(n, in, "")
			return nil
		case strings.IndexByte("[=:", text[0]) >= 0:
			return fmt.Errorf("line %d: neither a section, a key nor a comment: %q", n, content.Clip(text, 60))
		case key == nil:
			key = []string{"", text, ""}
			in.keys = append(in.keys, setting{key: text, null: true})
		default:
			in.keys = append(in.keys, setting{key: key[1], value: []byte(key[2])})
		}
		s.mark(n, in, key[1])
		depth = indent
		return nil
	})
	if err != nil {
		return err
	}
	return s.send()
}

func propertiesReader(_ context.Context, r io.Reader, sink Sink) error {
	s := settings{sink: sink, byName: map[string]*section{}}
	in := s.section("")
	var held []byte // a line that the next one continues
	first := int64(0)
	add := func(line string) error {
		end, escaped := 0, false
		for end < len(line) && (escaped || !strings.ContainsRune(" \t\f=:", rune(line[end]))) {
			escaped = !escaped && line[end] == '\\'
			end++
		}
		value := strings.TrimLeft(line[end:], " \t\f")
		if value != "" && (value[0] == '=' || value[0] == ':') {
			value = strings.TrimLeft(value[1:], " \t\f")
		}
		k, err := unescapeProperty(line[:end])
		if err == nil {
			value, err = unescapeProperty(value)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", first, err)
		}
		in.keys = append(in.keys, setting{key: k, value: []byte(value)})
		s.mark(first, in, k)
		return nil
	}
	err := eachLine(r, func(n int64, line string) error {
		line = strings.TrimLeft(line, " \t\f")
		if first == 0 {
			if line == "" || line[0] == '#' || line[0] == '!' {
				return nil
			}
			first = n
		}
		held = append(held, line...)
		if slashes := len(line) - len(strings.TrimRight(line, `\`)); slashes%2 == 1 {
			held = held[:len(held)-1]
			return nil
		}
		err := add(string(held))
		held, first = held[:0], 0
		return err
	})
	if err == nil && first > 0 {
		err = add(string(held))
	}
	if err != nil {
		return err
	}
	return s.send()
}

// unescapeProperty decodes the escapes of a key or value: \t, \n, \r, \f and \uXXXX; other characters stay.
func unescapeProperty(s string) (string, error) {
	var b strings.Builder
	var units []uint16 // of \u escapes in a row
	flush := func() {
		b.WriteString(string(utf16.Decode(units)))
		units = units[:0]
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			flush()
			b.WriteByte(s[i])
			continue
		}
		if i++; s[i] == 'u' {
			if i+5 > len(s) {
				return "", fmt.Errorf(`\u needs four digits`)
			}
			u, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`\u needs four digits, not %q`, s[i+1:i+5])
			}
			units = append(units, uint16(u))
			i += 4
			continue
		}
		flush()
		if n := strings.IndexByte("tnrf", s[i]); n >= 0 {
			b.WriteByte("\t\n\r\f"[n])
		} else {
			b.WriteByte(s[i])
		}
	}
	flush()
	return b.String(), nil
}

var envKey = content.Pattern(`^(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$`)

func envReader(_ context.Context, r io.Reader, sink Sink) error {
	s := settings{sink: sink, byName: map[string]*section{}}
	in := s.section("")
	var open *setting // with a quoted value that goes on
	quote := byte(0)
	from := int64(0)
	err := eachLine(r, func(n int64, line string) error {
		if open != nil {
			line = "\n" + line
		} else {
			text := strings.TrimSpace(line)
			if text == "" || text[0] == '#' {
				return nil
			}
			key := envKey().FindStringSubmatch(text)
			if key == nil {
				return fmt.Errorf("line %d: not an assignment, as in NAME=value: %q", n, content.Clip(text, 60))
			}
			s.mark(n, in, key[1])
			in.keys = append(in.keys, setting{key: key[1]})
			k, value := &in.keys[len(in.keys)-1], key[2]
			if value == "" || !strings.ContainsRune("\"'`", rune(value[0])) {
				if i := strings.Index(" "+value, " #"); i >= 0 {
					value = value[:max(i-1, 0)]
				}
				k.value = []byte(strings.TrimSpace(value))
				return nil
			}
			open, quote, from, line = k, value[0], n, value[1:]
		}
		if open.quoted(line, quote) {
			open = nil
		}
		return nil
	})
	if err == nil && open != nil {
		err = fmt.Errorf("line %d: the quote %c does not end", from, quote)
	}
	if err != nil {
		return err
	}
	return s.send()
}

// quoted adds what stands before the end of a quote, and reports whether it ends.
func (k *setting) quoted(s string, quote byte) bool {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return true
		case s[i] == '\\' && quote == '"' && i+1 < len(s):
			i++
			if n := strings.IndexByte("nrt", s[i]); n >= 0 {
				k.value = append(k.value, "\n\r\t"[n])
			} else {
				k.value = append(k.value, s[i])
			}
		default:
			k.value = append(k.value, s[i])
		}
	}
	return false
}
