package values

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/kinds/record"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// Files of settings are one record, an object of strings. A key that occurs twice is written twice, and a key without
// a value is null.
var (
	// INI reads sections and their keys, as Python's configparser does: "key = value" or "key: value", comments by
	// lines that begin with # or ;, and values that lines with more indentation than their key continue, with the empty
	// lines between. Sections are objects, and two of one name are one; keys before the first section are members of
	// the record.
	INI = settingsReader("INI", (*settings).readINI)
	// Properties reads the format of java.util.Properties.
	Properties = settingsReader("properties", (*settings).readProperties)
	// Env reads assignments of a shell, as dotenv does: quotes are removed, escapes in double quotes and comments after
	// a blank too; variables are not replaced.
	Env = settingsReader("assignments", (*settings).readEnv)
)

// settings is one object of strings, in order: keys of its own, and sections of keys.
type settings struct {
	pointer  func(line int64, pointer string) // may be nil
	sections []string                         // the first has no name
	numbers  map[string]int                   // of the sections
	in       int                              // number of the current section
	keys     []setting
}

type setting struct {
	section int
	key     string
	value   []byte // nil: null
}

func settingsReader(name string, parse func(*settings, iter.Seq2[int64, string]) error) Reader {
	return guarded(name, func(_ context.Context, r io.Reader, sink Sink) error {
		text, err := readAll(r, map[string]int{"\n": 1})
		if err != nil {
			return err
		}
		s := settings{pointer: sink.Pointer, sections: []string{""}, numbers: map[string]int{"": 0}}
		if err := parse(&s, lines(text)); err != nil {
			return err
		}
		return sink.Value(1, s.json())
	})
}

// lines returns the lines of a text with their numbers. A CR alone ends a line too, but is not counted.
func lines(text []byte) iter.Seq2[int64, string] {
	return func(yield func(int64, string) bool) {
		n := int64(0)
		for line := range strings.Lines(string(text)) {
			n++
			for part := range strings.SplitSeq(strings.TrimRight(line, "\r\n"), "\r") {
				if !yield(n, part) {
					return
				}
			}
		}
	}
}

// add adds a key to the current section.
func (s *settings) add(line int64, key string, value []byte) {
	s.keys = append(s.keys, setting{s.in, key, value})
	s.mark(line, key)
}

// mark reports the line of a key in the current section, or of the section.
func (s *settings) mark(line int64, key string) {
	if s.pointer == nil {
		return
	}
	at := ""
	for _, name := range []string{s.sections[s.in], key} {
		if name != "" {
			at = member(at, name)
		}
	}
	s.pointer(line, at)
}

func (s *settings) json() []byte {
	objects := make([]record.Object, len(s.sections))
	for _, k := range s.keys {
		if k.value == nil {
			objects[k.section].Raw(k.key, "null")
		} else {
			objects[k.section].String(k.key, string(k.value))
		}
	}
	for i, name := range s.sections[1:] {
		objects[0].Raw(name, objects[i+1].Text())
	}
	return []byte(objects[0].Text())
}

var iniKey = content.Pattern(`^([^=:\s][^=:]*?)\s*[=:]\s*(.*)$`)

func (s *settings) readINI(lines iter.Seq2[int64, string]) error {
	depth, empty := 0, 0 // indentation of the last key; empty lines since, which are of its value if that goes on
	for n, line := range lines {
		text := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		switch last, end := len(s.keys)-1, strings.LastIndexByte(text, ']'); {
		case text == "":
			empty++
		case text[0] == '#' || text[0] == ';':
		case indent > depth && last >= 0:
			k := &s.keys[last]
			if len(k.value) > 0 {
				text = strings.Repeat("\n", empty+1) + text
			}
			empty, k.value = 0, append(k.value, text...)
			s.mark(n, k.key)
		case text[0] == '[' && end > 1:
			name := strings.TrimSpace(text[1:end])
			if _, known := s.numbers[name]; !known {
				s.numbers[name] = len(s.sections)
				s.sections = append(s.sections, name)
			}
			s.in, depth = s.numbers[name], math.MaxInt // no key that a line could continue
			s.mark(n, "")
		case strings.IndexByte("[=:", text[0]) >= 0:
			return fmt.Errorf("line %d: neither a section, a key nor a comment: %q", n, content.Clip(text, 60))
		default:
			depth, empty = indent, 0
			if key := iniKey().FindStringSubmatch(text); key != nil {
				s.add(n, key[1], []byte(key[2]))
			} else {
				s.add(n, text, nil)
			}
		}
	}
	return nil
}

var (
	property       = content.Pattern(`(?s)^((?:\\.|[^\\ \t\f=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)$`)
	propertyEscape = content.Pattern(`(?s)(?:\\u[0-9a-fA-F]{4})+|\\.`)
)

func (s *settings) readProperties(lines iter.Seq2[int64, string]) (err error) {
	var held []byte // a line that the next one continues
	first := int64(0)
	add := func() {
		parts := property().FindStringSubmatch(string(held))
		for i, part := range parts {
			parts[i] = propertyEscape().ReplaceAllStringFunc(part, func(escape string) string {
				switch {
				case len(escape) > len(`\u000`) || strings.Contains("tnrf", escape[1:]):
					_ = json.Unmarshal([]byte(`"`+escape+`"`), &escape) // they are escapes of JSON
					return escape
				case escape[1] == 'u':
					err = fmt.Errorf(`line %d: \u needs four digits`, first)
				}
				return escape[1:]
			})
		}
		s.add(first, parts[1], []byte(parts[2]))
		held, first = held[:0], 0
	}
	for n, line := range lines {
		line = strings.TrimLeft(line, " \t\f")
		if first == 0 {
			if line == "" || line[0] == '#' || line[0] == '!' {
				continue
			}
			first = n
		}
		held = append(held, line...)
		if slashes := len(line) - len(strings.TrimRight(line, `\`)); slashes%2 == 1 {
			held = held[:len(held)-1]
			continue
		}
		if add(); err != nil {
			return err
		}
	}
	if first > 0 {
		add()
	}
	return err
}

var (
	envKey    = content.Pattern(`^(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$`)
	envQuoted = content.Pattern(`(?s)^(?:[^"\\]|\\.)*\\?`) // as far as the quote
	envEscape = content.Pattern(`(?s)\\.`)
)

func (s *settings) readEnv(lines iter.Seq2[int64, string]) error {
	quote, from := "", int64(0) // of a value that goes on, and its line
	for n, line := range lines {
		if line = "\n" + line; quote == "" {
			text := strings.TrimSpace(line)
			if text == "" || text[0] == '#' {
				continue
			}
			key := envKey().FindStringSubmatch(text)
			if key == nil {
				return fmt.Errorf("line %d: not an assignment, as in NAME=value: %q", n, content.Clip(text, 60))
			}
			if key[2] == "" || !strings.Contains("\"'`", key[2][:1]) {
				value, _, _ := strings.Cut(" "+key[2], " #")
				s.add(n, key[1], []byte(strings.TrimSpace(value)))
				continue
			}
			s.add(n, key[1], []byte{})
			quote, from, line = key[2][:1], n, key[2][1:]
		}
		text, _, ended := strings.Cut(line, quote)
		if quote == `"` {
			text = envQuoted().FindString(line)
			ended = len(text) < len(line)
			text = envEscape().ReplaceAllStringFunc(text, func(escape string) string {
				if n := strings.IndexByte("nrt", escape[1]); n >= 0 {
					return "\n\r\t"[n : n+1]
				}
				return escape[1:]
			})
		}
		k := &s.keys[len(s.keys)-1]
		if k.value = append(k.value, text...); ended {
			quote = ""
		}
	}
	if quote != "" {
		return fmt.Errorf("line %d: the quote %s does not end", from, quote)
	}
	return nil
}
