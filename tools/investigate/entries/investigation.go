package entries

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
)

// Investigation is the entries of one target. Its methods are safe for concurrent use; several that belong together run
// between Lock and its unlock.
type Investigation struct {
	store        *Store
	identity, id string
}

func (i *Investigation) key(name string) records.Key { return key(i.identity, i.id+"/"+name) }

// Lock keeps other callers and processes from changing the investigation until unlock is called.
func (i *Investigation) Lock() (unlock func(), err error) {
	if i.store.readOnly { // nobody changes it; each entry is replaced as a whole
		return func() {}, nil
	}
	unlock, err = i.store.records.Lock(i.key(metaName))
	if errors.Is(err, records.ErrBusy) {
		return nil, errors.New("another call works on this investigation for over 20 s; call again")
	}
	return unlock, explain(err)
}

// Meta returns what the investigation is about.
func (i *Investigation) Meta() (Meta, error) {
	r, err := i.store.records.Get(i.key(metaName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, records.ErrDamaged) {
		return Meta{}, fmt.Errorf("read the investigation: %w", err)
	}
	if m, ok := parseMeta(r); ok {
		return m, nil
	}
	return Meta{}, ErrUnknown
}

// SetMeta writes the description again.
func (i *Investigation) SetMeta(m Meta) error { return i.Write(metaName, m) }

// Read reads one of the JSON files, such as plan.json. ok is false if it is missing or damaged: what it held is made
// again.
func (i *Investigation) Read(name string, v any) (ok bool, err error) {
	return i.store.read(i.key(name), v)
}

// Write writes one of the JSON files; nothing if the store is open for reading only.
func (i *Investigation) Write(name string, v any) error {
	if i.store.readOnly {
		return nil
	}
	return explain(i.store.write(i.key(name), v))
}

// list returns the entries of a directory, such as orders.
func (i *Investigation) list(dir string) ([]records.Record, error) {
	all, err := i.store.records.List(i.key(""), i.id+"/"+dir+"/*.json", true)
	if err != nil {
		return nil, fmt.Errorf("read the %s: %w", dir, err)
	}
	return all, nil
}

// The JSON files of an investigation besides its entries.
const (
	SurveyName     = "survey.json"
	PlanName       = "plan.json"
	EvaluationName = "plan_evaluation.json"
	ReportName     = "report.json"
	ScanName       = "scan.json"
	ShownName      = "shown_report.json" // the report as it was shown last
)

// Flag is a finding that somebody should look at.
type Flag struct {
	Path     string    `json:"path"` // below the target; "general" for none
	Severity string    `json:"severity"`
	Finding  string    `json:"finding"`
	At       time.Time `json:"at"`
	Order    string    `json:"order,omitempty"`

	Evidence []evidence.Citation `json:"evidence,omitempty"` // that the finding cites
}

// AddFlags appends flags; each is one line, written at once.
func (i *Investigation) AddFlags(flags ...Flag) error {
	var b []byte
	for _, f := range flags {
		line, err := json.Marshal(f)
		if err != nil {
			return explain(err)
		}
		b = append(append(b, line...), '\n')
	}
	return explain(i.store.records.Append(i.key(flagsName), b))
}

// Flags returns all flags. Torn and foreign lines are left out.
func (i *Investigation) Flags() ([]Flag, error) {
	r, err := i.store.records.Get(i.key(flagsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the flags: %w", err)
	}
	var all []Flag
	for line := range strings.Lines(string(r.Body)) {
		var f Flag
		if json.Unmarshal([]byte(line), &f) == nil && f.Finding != "" {
			all = append(all, f)
		}
	}
	return all, nil
}

// Log appends a line to investigation.log. It reports no error: nothing depends on the log.
func (i *Investigation) Log(format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	line := i.store.now().UTC().Format(time.RFC3339) + " " + text + "\n"
	_ = i.store.records.Append(i.key(logName), []byte(line))
}
