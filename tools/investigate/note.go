package investigate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/plan"
)

// Note is what a thinker hands in.
type Note struct {
	Dirs             []NoteDir   `json:"dirs,omitempty"`
	Files            []NoteFile  `json:"files,omitempty"`
	Flags            []NoteFlag  `json:"flags,omitempty"`
	Completeness     *float64    `json:"completeness,omitempty"`
	Confidence       *float64    `json:"confidence,omitempty"`
	ConfidenceReason string      `json:"confidence_reason,omitempty"`
	StillUnknown     string      `json:"still_unknown,omitempty"`
	Done             *bool       `json:"done,omitempty"`     // false: flags and files now, more to come
	Thoughts         string      `json:"thoughts,omitempty"` // go to the log
	Survey           *Survey     `json:"survey,omitempty"`
	Plan             *plan.Plan  `json:"plan,omitempty"`
	Report           *NoteReport `json:"report,omitempty"`

	partial string // why the note is not whole; set by a driver
	by      string // who wrote it; "": an agent
	turns   int    // completions it took; 0: calls are counted
}

// NoteDir is what a note says of a directory.
type NoteDir struct {
	Path             string   `json:"path"`
	Summary          string   `json:"summary"`
	DominantCategory string   `json:"dominant_category,omitempty"`
	NotableFiles     []string `json:"notable_files,omitempty"`
	Unchanged        bool     `json:"unchanged,omitempty"` // the summary of before still holds
	Completeness     *float64 `json:"completeness,omitempty"`
	Confidence       *float64 `json:"confidence,omitempty"`
	ConfidenceReason string   `json:"confidence_reason,omitempty"`
	StillUnknown     string   `json:"still_unknown,omitempty"`
}

// NoteFile is what a note says of a file.
type NoteFile struct {
	Path             string   `json:"path"`
	Summary          string   `json:"summary"`
	Category         string   `json:"category,omitempty"`
	Notable          bool     `json:"notable,omitempty"`
	NotableReason    string   `json:"notable_reason,omitempty"`
	Completeness     *float64 `json:"completeness,omitempty"`
	Confidence       *float64 `json:"confidence,omitempty"`
	ConfidenceReason string   `json:"confidence_reason,omitempty"`
}

// NoteFlag is a finding that a note hands in.
type NoteFlag struct {
	Path     string `json:"path"`
	Severity string `json:"severity"`
	Finding  string `json:"finding"`
}

// NoteReport is the report that a note hands in.
type NoteReport struct {
	Brief    string `json:"brief"`
	Detailed string `json:"detailed"`
}

// Survey says what a tree is.
type Survey struct {
	Description   string   `json:"description"`
	Approach      string   `json:"approach,omitempty"`
	RelevantTools []string `json:"relevant_tools,omitempty"`
	SkipTools     []string `json:"skip_tools,omitempty"`
	DomainNotes   string   `json:"domain_notes,omitempty"`
	Confidence    float64  `json:"confidence"`
}

// texts returns the texts of a survey that may cite.
func (s *Survey) texts() []*string { return []*string{&s.Description, &s.Approach, &s.DomainNotes} }

func (s *Survey) valid() bool {
	size := len(s.Description) + len(s.Approach) + len(s.DomainNotes) + len(strings.Join(s.RelevantTools, "")) +
		len(strings.Join(s.SkipTools, ""))
	return strings.TrimSpace(s.Description) != "" && size <= maxSurvey && s.Confidence >= 0 && s.Confidence <= 1
}

func (r *NoteReport) valid() bool {
	return strings.TrimSpace(r.Brief) != "" && utf8.RuneCountInString(r.Brief) <= maxBrief &&
		utf8.RuneCountInString(r.Detailed) <= maxDetailed
}

// filterFrom is the confidence of a survey from which its choice of tools counts.
const filterFrom = 0.5

// Limits of a note.
const (
	maxNote     = 256 << 10 // bytes
	maxFinding  = 600       // characters
	maxBrief    = 1200
	maxDetailed = 40_000
	maxFlags    = 100
	maxFiles    = 500
	maxShort    = 600      // characters of reasons and categories
	maxNotable  = 8 << 10  // bytes of the names of notable files, or of all reasons
	maxSurvey   = 16 << 10 // bytes of a survey's texts
)

// severities of flags, the worst last.
var severities = []string{"info", "concern", "critical"}

// isPlanOnly reports whether a note holds a plan and nothing else.
func isPlanOnly(raw tools.Object) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal([]byte(raw), &members) == nil && len(members) == 1 &&
		members["plan"] != nil && string(members["plan"]) != "null"
}

// parseNote reads a note and checks the form of its fields. Errors name the field and say what is expected.
func parseNote(raw tools.Object) (n Note, err error) {
	if len(raw) > maxNote {
		return n, fmt.Errorf("note has %d bytes; at most %d: summaries only", len(raw), maxNote)
	}
	if err := refuseContents([]byte(raw)); err != nil {
		return n, err
	}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		return n, noteError(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return n, errors.New("the note: text follows its JSON object")
	}
	return n, n.check()
}

// noteError words an error of decoding.
func noteError(err error) error {
	var wrong *json.UnmarshalTypeError
	switch text := err.Error(); {
	case errors.As(err, &wrong):
		return fmt.Errorf("note.%s must be %s, not %s", wrong.Field, content.Article(wrong.Type.String()), wrong.Value)
	case strings.HasPrefix(text, "json: unknown field "):
		return fmt.Errorf("the note: unknown field %s; valid: dirs, files, flags, completeness, confidence, confidence_reason, "+
			"still_unknown, done, thoughts, survey, plan, report; of dirs: path, summary, dominant_category, notable_files, unchanged; "+
			"of files: path, summary, category, notable, notable_reason; of flags: path, severity, finding",
			content.ClipBytes(strings.TrimPrefix(text, "json: unknown field "), 60))
	}
	return fmt.Errorf("the note: %w", err)
}

// refuseContents refuses members that hold the content of files.
func refuseContents(raw []byte) error {
	var members struct {
		Dirs, Files []map[string]json.RawMessage
	}
	if json.Unmarshal(raw, &members) != nil {
		return nil //nolint:nilerr // another error says what is wrong
	}
	for _, m := range append(members.Dirs, members.Files...) {
		for _, name := range []string{"content", "contents", "raw"} {
			if _, has := m[name]; has {
				return fmt.Errorf("the note: %q is refused: summaries only, never the content of files", name)
			}
		}
	}
	return nil
}

func (n *Note) check() error {
	type rating struct {
		name  string
		value *float64
	}
	ratings := []rating{{"completeness", n.Completeness}, {"confidence", n.Confidence}}
	check := func(at, name, summary string, unchanged bool, completeness, confidence *float64) error {
		ratings = append(ratings, rating{at + ".completeness", completeness}, rating{at + ".confidence", confidence})
		switch length := utf8.RuneCountInString(summary); {
		case name == "":
			return fmt.Errorf("note.%s.path is missing", at)
		case strings.TrimSpace(summary) == "" && !unchanged:
			return fmt.Errorf("note.%s.summary is empty: say what %s is", at, content.ClipBytes(name, 80))
		case length > maxSummary:
			return fmt.Errorf("note.%s.summary has %d characters; at most %d", at, length, maxSummary)
		}
		return nil
	}
	for i, d := range n.Dirs {
		at := fmt.Sprintf("dirs[%d]", i)
		if err := check(at, d.Path, d.Summary, d.Unchanged, d.Completeness, d.Confidence); err != nil {
			return err
		}
		if len(strings.Join(d.NotableFiles, "")+d.DominantCategory+d.ConfidenceReason+d.StillUnknown) > maxNotable {
			return fmt.Errorf("note.%s is too long: its summary is the place for words", at)
		}
	}
	for i, f := range n.Files {
		err := check(fmt.Sprintf("files[%d]", i), f.Path, f.Summary, false, f.Completeness, f.Confidence)
		if err != nil {
			return err
		}
	}
	for i, f := range n.Flags {
		switch {
		case !slices.Contains(severities, f.Severity):
			return fmt.Errorf("note.flags[%d].severity must be one of %s, not %q", i, strings.Join(severities, ", "),
				content.ClipBytes(f.Severity, 40))
		case f.Path == "":
			return fmt.Errorf("note.flags[%d].path is missing: name a file or directory, or general", i)
		case strings.TrimSpace(f.Finding) == "" || utf8.RuneCountInString(f.Finding) > maxFinding:
			return fmt.Errorf("note.flags[%d].finding must have 1 to %d characters", i, maxFinding)
		}
	}
	switch {
	case len(n.Flags) > maxFlags || len(n.Files) > maxFiles:
		return fmt.Errorf("the note: at most %d flags and %d files", maxFlags, maxFiles)
	case n.Survey != nil && !n.Survey.valid():
		return errors.New("note.survey: a description is required, all texts have at most 16 KiB, and confidence is from 0 to 1")
	case n.Report != nil && !n.Report.valid():
		return fmt.Errorf("note.report: brief must have 1 to %d characters, detailed at most %d", maxBrief, maxDetailed)
	}
	for _, r := range ratings {
		if v := r.value; v != nil && (*v < 0 || *v > 1 || *v != *v) {
			return fmt.Errorf("note.%s must be from 0 to 1, not %v", r.name, *v)
		}
	}
	if n.Plan != nil {
		return n.Plan.Check()
	}
	return nil
}

// resolvePath returns the path of the tree that a note or a plan means: below the target, or below the first directory
// of the order.
func (w *work) resolvePath(p, base string) (string, bool) {
	files, name := w.reader(), path.Base(w.target)
	tries := []string{p} // as it is, before blanks and separators are repaired
	if plain, err := strconv.Unquote(strings.TrimSpace(p)); err == nil {
		p = plain
		tries = append(tries, p)
	}
	clean := path.Clean(strings.TrimSpace(strings.ReplaceAll(p, `\`, "/")))
	if rest, ok := strings.CutPrefix(clean, strings.TrimSuffix(w.target, "/")+"/"); ok {
		clean = rest
	} else if clean == w.target || clean == "/" || clean == name && !files.Exists(clean) {
		clean = "."
	}
	below := strings.TrimPrefix(clean, "/")
	tries = append(tries, clean, path.Join(base, clean), below, strings.TrimPrefix(below, name+"/"))
	if clean == w.start {
		tries = append(tries, ".")
	}
	if i := slices.IndexFunc(tries, files.Exists); i >= 0 {
		return files.below(tries[i]), true
	}
	for _, p := range w.paths { // as it was shown
		if shown := content.VisibleLine(p); shown != p && shown == clean {
			return p, true
		}
	}
	return clean, false
}
