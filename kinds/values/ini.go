package values

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Files of settings are one record, an object of strings. A key that occurs twice is written twice, and a key without
// a value is null.
var (
	// INI reads sections and their keys, as Python's configparser does: "key = value" or "key: value", comments by
	// lines that begin with # or ;, and values that indented lines continue. Sections are objects, and two of one name
	// are one; keys before the first section are members of the record.
	INI = guarded("INI", iniReader)
	// Properties reads the format of java.util.Properties.
	Properties = guarded("properties", propertiesReader)
	// Env reads assignments of a shell, as dotenv does: quotes are removed, escapes in double quotes and comments after
	// a blank too; variables are not replaced.
	Env = guarded("assignments", envReader)
)

// eachLine calls visit with the lines of a text that is one record.
func eachLine(r io.Reader, visit func(line int64, text string) error) error {
	text, err := readAll(r)
	if err != nil {
		return err
	}
	n := int64(0)
	for line := range strings.Lines(string(text)) {
		n++
		if err := visit(n, strings.TrimRight(line, "\r\n")); err != nil {
			return err
		}
	}
	return nil
}

var iniKey = content.Pattern(`^([^=:\s][^=:]*?)\s*[=:]\s*(.*)$`)

func iniReader(_ context.Context, r io.Reader, sink Sink) error {
	s := settings{sink: sink}
	in := s.section("")
	err := eachLine(r, func(n int64, line string) error {
		text := strings.TrimSpace(line)
		indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
		key := iniKey().FindStringSubmatch(text)
		switch last := len(in.keys) - 1; {
		case text == "" || text[0] == '#' || text[0] == ';':
		case text[0] == '[' && strings.HasSuffix(text, "]"):
			in = s.section(strings.TrimSpace(text[1 : len(text)-1]))
			s.mark(n, in, "")
		case indented && last >= 0 && (key == nil || strings.ContainsAny(key[1], " \t") || in.keys[last].value == ""):
			in.keys[last].value, in.keys[last].null = joined(in.keys[last].value, text, "\n"), false
			s.mark(n, in, in.keys[last].key)
		case key == nil:
			in.keys = append(in.keys, setting{key: text, null: true})
			s.mark(n, in, text)
		default:
			in.keys = append(in.keys, setting{key: key[1], value: key[2]})
			s.mark(n, in, key[1])
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.send()
}

func propertiesReader(_ context.Context, r io.Reader, sink Sink) error {
	s := settings{sink: sink}
	in := s.section("")
	held, first := "", int64(0) // a line that the next one continues
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
		in.keys = append(in.keys, setting{key: k, value: value})
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
		held += line
		if slashes := len(line) - len(strings.TrimRight(line, `\`)); slashes%2 == 1 {
			held = held[:len(held)-1]
			return nil
		}
		err := add(held)
		held, first = "", 0
		return err
	})
	if err == nil && first > 0 {
		err = add(held)
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
	s := settings{sink: sink}
	in := s.section("")
	var open *setting // with a quoted value that goes on
	quote := byte(0)
	from := int64(0)
	err := eachLine(r, func(n int64, line string) error {
		if open != nil {
			open.value += "\n" + line
		} else {
			text := strings.TrimSpace(line)
			if text == "" || text[0] == '#' {
				return nil
			}
			key := envKey().FindStringSubmatch(text)
			if key == nil {
				return fmt.Errorf("line %d: not an assignment, as in NAME=value: %s", n, content.Clip(text, 60))
			}
			s.mark(n, in, key[1])
			in.keys = append(in.keys, setting{key: key[1], value: key[2]})
			k := &in.keys[len(in.keys)-1]
			if k.value == "" || !strings.ContainsRune("\"'`", rune(k.value[0])) {
				if i := strings.Index(" "+k.value, " #"); i >= 0 {
					k.value = k.value[:max(i-1, 0)]
				}
				k.value = strings.TrimSpace(k.value)
				return nil
			}
			open, quote, from = k, k.value[0], n
			open.value = k.value[1:]
		}
		if value, ok := quoted(open.value, quote); ok {
			open.value, open = value, nil
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

// quoted returns the value before the end of its quote; ok is false if it does not end.
func quoted(s string, quote byte) (value string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return b.String(), true
		case s[i] == '\\' && quote == '"' && i+1 < len(s):
			i++
			if n := strings.IndexByte("nrt", s[i]); n >= 0 {
				b.WriteByte("\n\r\t"[n])
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", false
}
