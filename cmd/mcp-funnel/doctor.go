package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/internal/worker"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tokens"
)

type doctor struct{}

func (doctor) Help() string {
	return `Every line is the result of a test: a root is opened, an observation is written, read back and removed, a worker is started.
The exit code is 1 if something does not work.`
}

// finding is one line of the report.
type finding struct {
	what string
	bad  bool
	text string
	weak bool // it works, but not as well as it could
}

func (doctor) Run(ctx context.Context, s *Settings, w *streams) error {
	var all []finding
	for _, check := range []func(
		context.Context, *Settings,
	) []finding{goVersion, rootsFound, storeWorks, tokenizerWorks, workerWorks} {
		all = append(all, check(ctx, s)...)
	}
	sick := false
	for _, f := range all {
		mark := "ok  "
		switch {
		case f.bad:
			mark, sick = "BAD ", true
		case f.weak:
			mark = "weak"
		}
		if _, err := fmt.Fprintf(w.out, "%s %-10s %s\n", mark, f.what, inLine(f.text)); err != nil {
			return err
		}
	}
	if sick {
		return errFailed
	}
	return nil
}

func rootsFound(_ context.Context, s *Settings) []finding {
	dirs := s.roots()
	if len(dirs) == 0 {
		return []finding{
			{what: "root", bad: true, text: "none: the current directory is a home, a system directory or the file system's root; set --root DIR"},
		}
	}
	var all []finding
	src, err := s.sources(nil)
	if err != nil {
		return []finding{{what: "root", bad: true, text: err.Error()}}
	}
	for _, r := range src.Roots {
		text := r.Dir()
		if len(s.Root) == 0 {
			text += " (the current directory; set --root to grant another)"
		}
		if _, err := r.Stat("."); err != nil {
			all = append(all, finding{what: "root", bad: true, text: err.Error()})
		} else {
			all = append(all, finding{what: "root", bad: false, text: text})
		}
		_ = r.Close()
	}
	return all
}

func storeWorks(ctx context.Context, s *Settings) []finding {
	store, err := s.openStore()
	if err != nil {
		return []finding{{what: "store", bad: true, text: err.Error()}}
	}
	defer func() { _ = store.Close() }()
	if err := explainWrite(store, roundTrip(store)); errors.Is(err, errUnwritable) { // the error names the directory
		return []finding{{what: "store", bad: true, text: err.Error()}}
	} else if err != nil {
		return []finding{{what: "store", bad: true, text: store.Dir() + ": " + err.Error()}}
	}
	u, err := store.Usage()
	if err != nil {
		return []finding{{what: "store", bad: true, text: store.Dir() + ": " + err.Error()}}
	}
	all := []finding{{what: "store", bad: u.Free < int64(s.MinFree), text: fmt.Sprintf("%s: %s, %s of %s; %s free on its disk, %s stay free",
		store.Dir(), observationsText(int64(u.Observations)), bytesText(u.Bytes), bytesText(u.Quota), bytesText(u.Free), bytesText(int64(s.MinFree)))}}
	if tmp, err := filepath.EvalSymlinks(os.TempDir()); err == nil &&
		strings.HasPrefix(store.Dir(), tmp+string(filepath.Separator)) {
		all = append(all, finding{what: "store", bad: false, text: "it is below " + tmp + ", which a reboot may empty"})
	}
	return all
}

// roundTrip writes an observation, reads it back and removes it.
func roundTrip(store *observations.Store) error {
	const text = "a line written by mcp-funnel doctor\n"
	r, err := store.Record(observations.Provenance{Owner: observations.Local, Tool: "doctor", Args: json.RawMessage("{}")})
	if err != nil {
		return err
	}
	defer r.Discard() //nolint:errcheck // after Commit it does nothing
	if _, err := io.WriteString(r, text); err != nil {
		return err
	}
	if err := r.Err(); err != nil {
		return err
	}
	o, err := r.Commit(observations.Stats{Kind: "text", Ext: "txt", Lines: 1, Status: "success"})
	if err != nil {
		return err
	}
	defer store.Remove(observations.Local, o.ID) //nolint:errcheck // it would expire by itself
	return store.Verify(observations.Local, o.ID)
}

func tokenizerWorks(_ context.Context, s *Settings) []finding {
	c, err := s.counter()
	if err != nil {
		return []finding{{what: "tokenizer", bad: true, text: err.Error()}}
	}
	start := time.Now()
	// Three tokens in both vocabularies, counted with tiktoken.
	const probe, want = "tokens are counted", 3
	encoding := c.Model().Encoding
	if n := tokens.New(encoding).Count(probe); n != want {
		return []finding{
			{what: "tokenizer", bad: true, text: fmt.Sprintf("%s counts %q as %d tokens, not %d", encoding, probe, n, want)},
		}
	}
	text := fmt.Sprintf("%s, loaded in %s", encoding, shortTime(time.Since(start)))
	if m := c.Model(); m.Estimated() {
		text += fmt.Sprintf("; %s is estimated: ×%v ±%.0f %%", s.Model, m.Factor, 100*m.Error)
	}
	if s.ContextWindow > 0 {
		text += fmt.Sprintf("; window of %d tokens", s.ContextWindow)
	}
	return []finding{{what: "tokenizer", bad: false, text: text}}
}

// workerWorks lists the layers that confine a worker on this machine. A missing one is reported with its cause as
// weak; a worker that cannot start is bad, because the jq tool then fails.
func workerWorks(context.Context, *Settings) []finding {
	var all []finding
	holding := 0
	layers := worker.Layers()
	for _, l := range layers {
		f := finding{
			what: "worker", bad: !l.Holds && l.Name == "worker", weak: !l.Holds,
			text: "does not hold: " + l.Name + " (" + l.Detail + ")",
		}
		if l.Holds {
			holding++
			f.text = "holds: " + l.Name + " (" + l.Detail + ")"
		}
		all = append(all, f)
	}
	return append(all, finding{what: "worker", text: fmt.Sprintf("%d of %d layers hold", holding, len(layers))})
}
