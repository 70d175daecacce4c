package continuation

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// fence is a line that begins or ends a block of code in Markdown.
type fence struct {
	from, to int // of the line
	line     int // from 1
	language string
}

var fenceLine = content.Pattern("(?m)^ {0,3}(?:```+|~~~+)[ \t]*([^\\s`]*)[^\n`]*$\n?")

// Normalize returns the text of a part: decoded, without a byte order mark, and of a part with one fenced block only
// the block. preface is the text around the block.
func Normalize(part []byte) (body []byte, preface string, err error) {
	part, err = Decode(part)
	if err != nil {
		return nil, "", err
	}
	if f := firstByte(part); f == '{' || f == '[' && !bytes.Contains(part, []byte("\n```")) {
		return part, "", nil
	}
	var fences []fence
	for _, m := range fenceLine().FindAllSubmatchIndex(part, -1) {
		fences = append(fences, fence{
			from: m[0], to: m[1], line: bytes.Count(part[:m[0]], []byte{'\n'}) + 1, language: string(part[m[2]:m[3]]),
		})
	}
	if len(fences) == 0 || !isJSONLanguage(fences[0].language) {
		return part, "", nil
	}
	if len(fences) > 2 {
		return nil, "", fmt.Errorf("the part has two fenced blocks, at line %d and line %d; send one",
			fences[0].line, fences[2].line)
	}
	from, to := fences[0].to, len(part)
	if len(fences) == 2 {
		to = fences[1].from
	} else if f := fences[0]; f.language == "" && len(bytes.TrimSpace(part[:f.from])) > 0 && !startsJSON(part[f.to:]) {
		from, to = 0, f.from // the end of a block that an earlier part began
	}
	around := strings.TrimSpace(string(part[:max(0, min(from, fences[0].from))])) + " " +
		strings.TrimSpace(string(part[min(len(part), max(to, fences[len(fences)-1].to)):]))
	return part[from:to], strings.TrimSpace(around), nil
}

func isJSONLanguage(s string) bool {
	switch strings.ToLower(s) {
	case "", "json", "jsonl", "ndjson", "json5", "jsonc", "text", "txt":
		return true
	}
	return false
}

// Decode returns a text in UTF-8 without a byte order mark, or an error that names the byte at which it is not UTF-8. A
// part may begin and end inside of a character.
func Decode(part []byte) ([]byte, error) {
	e := content.Detect(part[:min(len(part), content.SniffSize)], len(part) <= content.SniffSize)
	switch e {
	case content.UTF8BOM, content.UTF16LE, content.UTF16BE, content.UTF32LE, content.UTF32BE:
		return io.ReadAll(e.Reader(bytes.NewReader(part)))
	}
	inner := runes.TrimStart(part)
	if n := runes.Invalid(inner[:runes.Complete(inner)]); n >= 0 {
		return nil, fmt.Errorf(
			"byte %d (0x%x) is not UTF-8; save the text as UTF-8",
			len(part)-len(inner)+n,
			inner[n],
		)
	}
	return part, nil
}

// seam returns what is wrong with the character between the text and a part that is appended to it; "" if nothing is.
func (d *Document) seam(part []byte) string {
	begun := d.text[runes.Complete(d.text):]
	rest := part[:len(part)-len(runes.TrimStart(part))]
	if len(begun)+len(rest) > 0 && utf8.RuneCount(append(bytes.Clone(begun), rest...)) != 1 ||
		len(begun)+len(rest) == 1 {
		return "the text ends, or the part begins, inside of a character that both do not complete"
	}
	return ""
}

func firstByte(b []byte) byte {
	if b = bytes.TrimLeft(b, " \t\r\n"); len(b) > 0 {
		return b[0]
	}
	return 0
}

func startsJSON(b []byte) bool { return strings.IndexByte(`{["-0123456789tfn`, firstByte(b)) >= 0 }

var (
	markdownLine = content.Pattern(`(?m)^(#{1,6} |[-*+] |\d+[.)] |> |\|.*\||` + "```" + `|~~~)`)
	codeLine     = content.Pattern(`(?m)^\s*(package|import|from|func|def|class|#include|const|let|var|public|` +
		`use|fn|<[!?a-zA-Z/]|#!|//|/\*|SELECT|CREATE)\b?`)
)

// notJSON reports whether a text is Markdown or code, of which nobody can say by parsing whether it is whole. Prose is
// neither: as JSON it is broken.
func notJSON(text []byte) bool {
	head := text[:min(len(text), 4096)]
	switch firstByte(text) {
	case 0, '{', '[', '"':
		return false
	case 't', 'f', 'n', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		p := newParser()
		if p.readAll(text); p.state() != Broken && p.state() != Trailing {
			return false
		}
	}
	return markdownLine().Match(head) || codeLine().Match(head)
}
