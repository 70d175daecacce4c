package continuation

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/base/runes"
	"github.com/mcp-funnel/mcp-funnel/text/content"
)

// block is a block of code in Markdown, between two fences.
type block struct {
	start, from int // of the line that opens it, and of the line after that
	to, end     int // of the line that closes it, and of the line after that; both the end of the text if it is open
	line        int // from 1
	language    string
}

var fenceLine = content.Pattern("(?m)^ {0,3}(```+|~~~+)[ \t]*([^\\s`]*)[^\n`]*$\n?")

// blocks returns the blocks of a text. A fence closes a block if it is of the same sort, no shorter and alone.
func blocks(text []byte) []block {
	if !bytes.Contains(text, []byte("```")) && !bytes.Contains(text, []byte("~~~")) {
		return nil
	}
	var list []block
	var opener []byte
	for _, m := range fenceLine().FindAllSubmatchIndex(text, -1) {
		fence, alone := text[m[2]:m[3]], m[4] == m[5]
		switch {
		case opener == nil:
			opener = fence
			list = append(list, block{
				start: m[0], from: m[1], to: len(text), end: len(text),
				line: bytes.Count(text[:m[0]], []byte{'\n'}) + 1, language: string(text[m[4]:m[5]]),
			})
		case alone && bytes.HasPrefix(fence, opener):
			last := &list[len(list)-1]
			last.to, last.end, opener = m[0], m[1], nil
		}
	}
	return list
}

// Normalize returns the text of a part: decoded, without a byte order mark, and of a part with one fenced block only
// the block. preface is the text around the block.
func Normalize(part []byte) (body []byte, preface string, err error) {
	if part, err = Decode(part); err != nil {
		return nil, "", err
	}
	if firstByte(part) == '{' {
		return withoutFence(part), "", nil
	}
	all := blocks(part)
	if len(all) == 0 || !isJSONLanguage(all[0].language) {
		return part, "", nil
	}
	if len(all) > 1 {
		return nil, "", fmt.Errorf("the part has two fenced blocks, at line %d and line %d; send one",
			all[0].line, all[1].line)
	}
	b := all[0]
	before, after := bytes.TrimSpace(part[:b.start]), bytes.TrimSpace(part[b.end:])
	if b.language == "" && len(before) > 0 && b.to == len(part) && !startsJSON(part[b.from:]) {
		// the end of a block that an earlier part began
		return part[:b.start], string(bytes.TrimSpace(part[b.from:])), nil
	}
	return part[b.from:b.to], strings.TrimSpace(string(before) + " " + string(after)), nil
}

// withoutFence returns a text without a line at its end that closes a block which an earlier part began.
func withoutFence(text []byte) []byte {
	i := bytes.LastIndexByte(bytes.TrimRight(text, " \t\r\n"), '\n') + 1
	if last := blocks(text[i:]); i > 0 && len(last) == 1 && last[0].language == "" {
		return text[:i]
	}
	return text
}

// normalize is Normalize for a part of this document. It leaves nothing out of Markdown, nor of a text that is not
// parsed.
func (d *Document) normalize(part []byte) (body []byte, preface string, err error) {
	first := len(bytes.TrimSpace(d.text)) == 0
	if d.plain || d.options.Kind == Text && first {
		body, err = Decode(part)
		return body, "", err
	}
	if body, err = Decode(part); err == nil && first && d.options.Kind == Any && isMarkdown(body) {
		return body, "", nil
	}
	return Normalize(part)
}

// maxPreface is the largest number of lines that an answer may have before its JSON in a fenced block.
const maxPreface = 3

// isMarkdown reports whether a text has fenced blocks that are not all of it: the text around them is more than a
// preface, or they hold something else than JSON.
func isMarkdown(text []byte) bool {
	all := blocks(text)
	if len(all) == 0 || firstByte(text) == '{' {
		return false
	}
	b := all[0]
	inner, before := text[b.from:b.to], filledLines(text[:b.start])
	if b.to == len(text) && before > 0 && len(bytes.TrimSpace(inner)) == 0 { // the end of a block
		return !couldBeJSON(text[:b.start])
	}
	if !isJSONLanguage(b.language) || strings.IndexByte(`{["`, firstByte(inner)) < 0 && !couldBeJSON(inner) {
		return true
	}
	if len(all) == 1 {
		return before > maxPreface || filledLines(text[b.end:]) > 0
	}
	outside := before
	for i, b := range all[1:] {
		outside += filledLines(text[all[i].end:b.start])
	}
	return outside+filledLines(text[all[len(all)-1].end:]) > maxPreface
}

// filledLines counts the lines that are not blank.
func filledLines(text []byte) int {
	n := 0
	for l := range bytes.Lines(text) {
		if len(bytes.TrimSpace(l)) > 0 {
			n++
		}
	}
	return n
}

// couldBeJSON reports whether a text is JSON, or the beginning of it.
func couldBeJSON(text []byte) bool {
	p := newParser()
	p.read(text, int64(len(text)))
	s := p.state()
	return s != Broken && s != Trailing
}

func isJSONLanguage(s string) bool {
	return slices.Contains([]string{"", "json", "jsonl", "ndjson", "json5", "jsonc", "text", "txt"}, strings.ToLower(s))
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
		return nil, fmt.Errorf("byte %d (0x%x) is not UTF-8; save the text as UTF-8", len(part)-len(inner)+n, inner[n])
	}
	return part, nil
}

// seam returns what is wrong with the character between the text and a part that is appended to it; "" if nothing is.
func (d *joined) seam(part []byte) string {
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

// isPlain reports whether a text is kept as it is, without parsing.
func (o Options) isPlain(text []byte) bool {
	return o.Kind == Text || notJSON(text) || o.Kind == Any && isMarkdown(text)
}

// notJSON reports whether a text is Markdown or code, of which nobody can say by parsing whether it is whole. Prose is
// neither: as JSON it is broken.
func notJSON(text []byte) bool {
	head := text[:min(len(text), 4096)]
	switch firstByte(text) {
	case 0, '{', '[', '"':
		return false
	case 't', 'f', 'n', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if couldBeJSON(text) {
			return false
		}
	}
	return markdownLine().Match(head) || codeLine().Match(head)
}
