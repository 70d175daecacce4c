package entries

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/evidence"
)

// Investigation is one directory of entries. Its methods are safe for concurrent use; several that belong together run
// between Lock and its unlock.
type Investigation struct {
	store *Store
	root  *os.Root

	mu sync.Mutex // lets one goroutine at a time wait for the file lock
}

// Lock keeps other callers and processes from changing the investigation until unlock is called.
func (i *Investigation) Lock() (unlock func(), err error) {
	i.mu.Lock()
	if i.store.readOnly { // nobody changes it; each entry is replaced as a whole
		return i.mu.Unlock, nil
	}
	f, err := osfile.LockIn(i.root, lockName, lockWait)
	if err != nil {
		i.mu.Unlock()
		if errors.Is(err, osfile.ErrBusy) {
			return nil, errors.New("another call works on this investigation for over 20 s; call again")
		}
		return nil, explain(err)
	}
	return func() {
		osfile.Unlock(f)
		_ = f.Close()
		i.mu.Unlock()
	}, nil
}

// Meta returns what the investigation is about.
func (i *Investigation) Meta() (Meta, error) { return readMeta(i.root, ".") }

// SetMeta writes the description again.
func (i *Investigation) SetMeta(m Meta) error { return i.Write(metaName, m) }

// Read reads one of the JSON files, such as plan.json. ok is false if it is missing or damaged: what it held is made
// again.
func (i *Investigation) Read(name string, v any) (ok bool, err error) {
	return readJSON(i.root, name, v)
}

func readJSON(root *os.Root, name string, v any) (ok bool, err error) {
	b, err := osfile.ReadIn(root, name, limitOf(name))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, osfile.ErrNotRegular), errors.Is(err, osfile.ErrTooLong):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s of the investigation: %w", name, err)
	}
	return json.Unmarshal(b, v) == nil, nil
}

// Write writes one of the JSON files; nothing if the store is open for reading only.
func (i *Investigation) Write(name string, v any) error {
	if i.store.readOnly {
		return nil
	}
	return explain(writeJSON(i.root, name, "tmp", v))
}

func writeJSON(root *os.Root, name, temporary string, v any) error {
	b, err := content.PlainJSON(v) // an escape would take six bytes for one
	if err != nil {
		return err
	}
	if b = append(b, '\n'); int64(len(b)) > limitOf(name) {
		return fmt.Errorf("%s would have %d bytes, at most %d can be read again: hand in less", name, len(b), limitOf(name))
	}
	return osfile.ReplaceIn(root, name, temporary, b)
}

// limitOf returns how many bytes one of the JSON files may have.
func limitOf(name string) int64 {
	if name == ScanName || name == ShownName {
		return maxScan
	}
	return maxEntry
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
	return i.appendTo(flagsName, b)
}

// Flags returns all flags. Torn and foreign lines are left out.
func (i *Investigation) Flags() ([]Flag, error) {
	b, err := osfile.ReadIn(i.root, flagsName, maxLog)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the flags: %w", err)
	}
	var all []Flag
	for line := range strings.Lines(string(b)) {
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
	_ = i.appendTo(logName, []byte(line))
}

// appendTo appends whole lines in one write; a line that a dead process left torn is ended first.
func (i *Investigation) appendTo(name string, b []byte) error {
	f, err := i.root.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|osfile.Nonblock, 0o600)
	if err != nil {
		return explain(err)
	}
	last := []byte{'\n'}
	if fi, err := f.Stat(); err == nil && fi.Size() > 0 {
		_, _ = f.ReadAt(last, fi.Size()-1)
		if fi.Size()+int64(len(b)) > maxLog {
			_ = f.Close()
			return fmt.Errorf("%s has over %d MiB: no more is added to it", name, maxLog>>20)
		}
	}
	if last[0] != '\n' {
		b = append([]byte{'\n'}, b...)
	}
	_, err = f.Write(b)
	return explain(errors.Join(err, f.Close()))
}
