// Package receipt writes the text that is shown for an output: its receipt, or the whole output.
//
// It turns [Facts] into text.
package receipt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/funnel/capture"
	"github.com/mcp-funnel/mcp-funnel/funnel/text"
	"github.com/mcp-funnel/mcp-funnel/kinds"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// Facts are all that a receipt says of an output.
type Facts struct {
	Captured *capture.Captured
	Count    func(string) int // of tokens

	Source  string // the output is the text of this source, and needs no recording
	NotKept string // why the output is not kept; "" if it is, or has a source
	Kept    Kept
	Asked   bool // the caller asked for it to be stored

	Notes    string             // in one line; "" for none
	Images   int                // shown together with the text
	Counts   map[string]float64 // what the tool counted
	OwnTool  bool               // a tool of this server wrote it: NDJSON is laid out compactly
	Findings []string           // lines that the tool found worth showing first
	Terminal bool               // it is shown as a terminal would
	ReadOnly bool               // the call can be repeated without harm
	Offered  []string           // the tools that the next step may name; nil: jq, grep and slice
	Hint     string             // another use of the stored output, for the next step; "": none
	Command  string             // runs these tools, if the caller has only a shell; else ""
	Quoted   bool               // see [tools.Output.Quoted]
	News     bool               // an earlier answer has shown all but its News
	Replaces string             // the observation of that answer; "": it stays
}

// Kept is an output in the store.
type Kept struct {
	Name string // obs:ID
	Size int64  // bytes kept
	Seen int64  // bytes of the output, kept or not
	Part bool   // only a part of the output is kept
}

// Subject returns the first line without its first words.
func (f Facts) Subject() string {
	switch {
	case f.Source != "":
		return "read from " + f.Source
	case f.NotKept != "":
		return "not kept (" + f.NotKept + ")"
	case f.saved() && f.Kept.Part:
		return fmt.Sprintf("SAVED in part as %s (first %d bytes)", f.Kept.Name, f.Kept.Size)
	case f.saved():
		if f.Replaces != "" {
			return "SAVED as " + f.Kept.Name + ", which replaces " + f.Replaces
		}
		return "SAVED as " + f.Kept.Name
	case f.Kept.Part:
		return fmt.Sprintf("kept in part as %s (first %d bytes)", f.Kept.Name, f.Kept.Size)
	}
	return "kept whole as " + f.Kept.Name
}

// lead returns the first words of the first line: none if the caller asked for the output to be stored.
func (f Facts) lead() string {
	if f.saved() {
		return ""
	}
	return text.LargeOutput
}

// saved reports whether the output is stored because the caller asked for that.
func (f Facts) saved() bool { return f.Asked && f.Source == "" && f.NotKept == "" }

// keptPart says how many bytes of the output are kept if some were dropped; else "".
func (f Facts) keptPart() string {
	if k := f.Kept; k.Seen > k.Size && f.name() == k.Name {
		return fmt.Sprintf("%d of %d bytes seen are kept", k.Size, k.Seen)
	}
	return ""
}

// AboveWhole returns the line above an output that is kept and shown whole.
func (f Facts) AboveWhole() string {
	below := "all of them below"
	if f.Captured.Lines == 1 {
		below = "all of it below"
	}
	if part := f.keptPart(); part != "" {
		below = part + "; what came before the cut is below"
	}
	return text.LineOf(f.Subject()).Clip(300, false) + ": " + lines(f.Captured.Lines) + ", " + below
}

// AboveNews returns the lines above what an earlier answer has not shown.
func (f Facts) AboveNews() string {
	below := "nothing new"
	if n := f.Captured.News; n.Size > 0 {
		below = fmt.Sprintf("new below: from line %d", n.Line+1)
	}
	total := []string{f.sizes()}
	if code := f.Counts["exit_code"]; code != 0 {
		total = append([]string{fmt.Sprintf("exit code %g", code)}, total...)
	}
	if part := f.keptPart(); part != "" {
		total = append(total, part)
	}
	return text.LineOf(f.Subject()).Clip(300, false) + "\ntotal: " + strings.Join(total, "; ") + "; " + below
}

// records reports whether the output is laid out as records.
func (f Facts) records() bool { return f.OwnTool && f.Captured.Kind() == content.NDJSON }

// name returns the name that the next call can use, "" for none.
func (f Facts) name() string {
	switch {
	case f.Source != "":
		return f.Source
	case f.NotKept != "":
		return ""
	}
	return f.Kept.Name
}

// sizes formats the size of the output.
func (f Facts) sizes() string {
	c := f.Captured
	if c.Kind() == content.Binary { // it has neither lines nor chars nor tokens
		return content.Plural(c.Bytes, "byte", "bytes")
	}
	return fmt.Sprintf("%s, %s, %s", lines(c.Lines), content.Plural(c.Chars, "char", "chars"), tokenTotal(c.Tokens))
}

func lines(n int64) string { return content.Plural(n, "line", "lines") }

// tokenTotal formats a token count: exact, or with its margin.
func tokenTotal(t tokens.Total) string {
	if t.Margin <= 0 {
		return content.Plural(t.N, "token", "tokens")
	}
	return t.String() + " tokens"
}

// matchTotal matches the part of a total line that counts matches.
var matchTotal = content.Pattern(`^\d+ match(es)?( in \d+ files?)?$`)

// errorTotal matches the part of a total line that counts lines of errors.
var errorTotal = content.Pattern(`^\d+ errors?$`)

// saysOf returns what the summary says, without the errors if the tool found which tests failed, because passing tests
// print errors too, or if they are quoted.
func (f Facts) saysOf(says []string) []string {
	if f.Counts["failed_tests"] == 0 && !f.Quoted {
		return says
	}
	return slices.DeleteFunc(slices.Clone(says), func(s string) bool {
		return strings.HasPrefix(s, "first error, ") || strings.HasPrefix(s, "last error, ")
	})
}

// totals returns the further parts of the total line. The tool's counts replace those of the digest.
func (f Facts) totals() []string {
	out := f.Captured.Summary().Total
	if _, ok := f.Counts["total_matches"]; ok {
		out = slices.DeleteFunc(slices.Clone(out), matchTotal().MatchString)
		out = append([]string{f.matchCounts()}, out...)
	}
	if n := f.Counts["failed_tests"]; n > 0 {
		out = slices.DeleteFunc(slices.Clone(out), errorTotal().MatchString)
		out = append([]string{content.Plural(int64(n), "failed test", "failed tests")}, out...)
	}
	switch s := &f.Captured.Streams; {
	case s.Mixed():
		out = append(
			out,
			lines(s.Lines())+" of standard error, marked "+strings.TrimSpace(text.StderrMark)+"; jq reads the others",
		)
	case s.Only():
		out = append(out, "all standard error")
	}
	if code, ok := f.Counts["exit_code"]; ok && code != 0 {
		out = append([]string{fmt.Sprintf("exit code %g", code)}, out...)
	}
	if part := f.keptPart(); part != "" {
		out = append([]string{part}, out...)
	}
	return append([]string{string(f.Captured.Kind())}, out...)
}

// matchCounts formats the tool's counts of matches. Those of groups say that a group's count is of occurrences, because
// a line may have several.
func (f Facts) matchCounts() string {
	matches, files := f.Matches()
	occurrences, ofGroups := f.Counts["occurrences"]
	word, in := content.Plural(*matches, "match", "matches"), " in "
	if ofGroups {
		word = fmt.Sprintf("counts are occurrences: %.0f in ", occurrences) +
			content.Plural(*matches, "matching line", "matching lines")
		in = " of "
	}
	if files != nil {
		word += in + content.Plural(*files, "file", "files")
	}
	if n, ok := f.Counts["dirs_with_matches"]; ok {
		word += ", " + content.Plural(int64(n), "directory", "directories")
	}
	if n, ok := f.Counts["groups"]; ok {
		word += ", " + content.Plural(int64(n), "group", "groups")
	}
	return word
}

// Matches returns the matches and the files with matches, nil if unknown. The tool's counts take precedence.
func (f Facts) Matches() (matches, files *int64) {
	m, n := f.Captured.Counts()
	return counted(f.Counts, "total_matches", m, f.Captured.Bytes), counted(
		f.Counts, "files_with_matches", n, f.Captured.Bytes,
	)
}

func counted(counts map[string]float64, name string, found, size int64) *int64 {
	if n, ok := counts[name]; ok {
		found = int64(n)
		return &found
	}
	if found < 0 || size == 0 {
		return nil
	}
	return &found
}

// nextSteps returns the wordings of the next step, longest first.
func (f Facts) nextSteps() []string {
	name := f.name()
	if name == "" {
		if !f.ReadOnly { // repeating it might do harm
			return []string{"only what is shown here is left of it"}
		}
		return []string{"repeat the call so that it gives less: this output is gone"}
	}
	ways := []string{"jq", "grep", "slice"}
	if f.Captured.Kind() == content.Binary {
		ways = []string{"slice"}
	}
	if f.Offered != nil {
		ways = slices.DeleteFunc(ways, func(w string) bool { return !slices.Contains(f.Offered, w) })
	}
	if len(ways) == 0 {
		return []string{"do not read it whole"}
	}
	list := ways[len(ways)-1]
	if len(ways) > 1 {
		list = strings.Join(ways[:len(ways)-1], ", ") + " or " + list
	}
	if f.Command != "" {
		list = strings.NewReplacer("jq", "jq filter=EXPR", "grep", "grep pattern=X", "slice", "slice lines=1-9").Replace(list)
		return []string{fmt.Sprintf("run %s TOOL source=%s (%s); do not read it whole", f.Command, name, list)}
	}
	at, rest := fmt.Sprintf("direct %s at source %s", list, name), "; do not read it whole"
	if f.Hint != "" && f.Kept.Name == name && slices.Contains(ways, "jq") { // not of binary data
		rest += "; " + f.Hint
	}
	long := at + rest
	steps := []string{long, long, fmt.Sprintf("direct %s at that source; do not read it whole", list)}
	if record := f.record(); record != "" && slices.Contains(ways, "jq") {
		steps[0] = at + " (" + record + ")" + rest
	}
	return steps
}

// record says what jq takes for a record, or which filter gives the records of one JSON value; "" if there are none.
func (f Facts) record() string {
	s := f.Captured.Summary()
	switch {
	case s.Filter != "":
		return "for jq, " + text.VisibleLine(s.Filter, true) + " gives the records"
	case s.Kind == content.JSON || s.Kind == content.Binary:
		return ""
	}
	return "for jq, a record is " + kinds.Of(s.Kind).RecordIs
}
