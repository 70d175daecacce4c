package funnel

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// opened returns the files of which the answer shows lines, with the bytes of each, for the trace. A line that is
// clipped counts whole.
func (c *call) opened(d *display) []trace.Opened {
	tool := c.request.Tool
	if tool.Opens == tools.OpensNothing || c.output.resolve == nil || d.rejected {
		return nil
	}
	found := map[string]int64{}
	switch shown := c.shownText(d); {
	case len(shown) == 0:
	case tool.Opens == tools.OpensHits:
		addHits(found, shown)
	case tool.Opens == tools.OpensLines:
		c.addLines(found, shown)
	default:
		addSources(found, sourceNames(c.request.Args), shown)
	}
	var all []trace.Opened
	for name, n := range found {
		if file, ok := c.output.resolve(name); ok {
			all = append(all, trace.Opened{File: c.maskForLog(file), Shown: n})
		}
	}
	slices.SortFunc(all, func(a, b trace.Opened) int { return bytes.Compare([]byte(a.File), []byte(b.File)) })
	return all
}

// shownText returns the text of the output that the answer shows: rows of a page, all of a small output, or the first and
// last lines of a large one.
func (c *call) shownText(d *display) []byte {
	switch {
	case c.captured.Bytes == 0:
		return []byte(c.output.page.Rows())
	case d.complete:
		b, _ := c.captured.Beginning()
		return b
	}
	var b bytes.Buffer
	for _, l := range slices.Concat(c.captured.Head, c.captured.Tail) {
		b.Write(l.Left)
		b.Write(l.Right)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// addHits adds the files of the records of a search: those that hold the text of a line.
func addHits(found map[string]int64, shown []byte) {
	for line := range bytes.Lines(shown) {
		var hit struct {
			File string  `json:"file"`
			Text *string `json:"text"`
		}
		if json.Unmarshal(line, &hit) == nil && hit.File != "" && hit.Text != nil {
			found[hit.File] += int64(len(*hit.Text)) + 1
		}
	}
}

// lineNumber matches what grep writes between the name of a file and a line of it.
var lineNumber = regexp.MustCompile(`:\d+:|-\d+-`)

// addLines adds the files that lines name. A name may have numbers too: it is the shortest one of a file.
func (c *call) addLines(found map[string]int64, shown []byte) {
	for line := range bytes.Lines(shown) {
		for _, m := range lineNumber.FindAllIndex(line, -1) {
			name := string(line[:m[0]])
			if _, ok := c.output.resolve(name); ok {
				found[name] += int64(len(line) - m[1])
				break
			}
		}
	}
}

// underHeading matches the line above each of several files that one call of read shows.
var underHeading = regexp.MustCompile(`(?m)^==> (.+) <==$`)

// addSources adds the files that a call names, or those under headings.
func addSources(found map[string]int64, names []string, shown []byte) {
	headings := underHeading.FindAllSubmatchIndex(shown, -1)
	if len(names) == 1 && (len(headings) == 0 || headings[0][0] != 0) {
		found[names[0]] += int64(len(shown))
		return
	}
	for i, h := range headings {
		end := len(shown)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		found[string(shown[h[2]:h[3]])] += int64(end - h[1])
	}
}

// sourceNames returns the sources that a call names; none if it asks for counts and not for lines.
func sourceNames(args json.RawMessage) []string {
	var named struct {
		Source, Path tools.Strings
		Show         string
	}
	if json.Unmarshal(args, &named) != nil || named.Show == "count" {
		return nil
	}
	return append(named.Source, named.Path...)
}
