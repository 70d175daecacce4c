package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/trace"
)

// house is everything a command stands on, wired.
type house struct {
	store   *observations.Store // nil: it could not be opened; answers say "not kept"
	trace   *trace.Log
	counter *tokens.Counter
	catalog []tools.Tool
	funnel  *funnel.Funnel
	sources tools.Sources
	log     *slog.Logger
}

// open wires the house. A store that cannot be opened is a warning, not an
// error: tools still answer, and every receipt says that nothing was kept.
func (s *Settings) open(w *streams) (*house, error) { return s.openFor(w, true) }

// openFor is open for callers on this machine, whose receipts name the data file, or for others.
func (s *Settings) openFor(w *streams, here bool) (*house, error) {
	if err := safeToolchain(runtime.Version()); err != nil {
		return nil, err
	}
	h := &house{log: s.logger(w)}
	var err error
	if h.counter, err = s.counter(); err != nil {
		return nil, err
	}
	var noStore error
	if h.store, noStore = observations.OpenStore(s.storeOptions()); noStore != nil {
		h.log.Warn("nothing will be kept", "cause", noStore)
		h.store = nil
	} else if cause := h.store.Unwritable(); cause != nil {
		h.log.Warn("nothing can be kept or traced now; what was kept can be read; make the store writable, or choose another with --store",
			"store", h.store.Dir(), "cause", cause)
	}
	traceDir := ""
	if h.store != nil && !forbids(h.store.Unwritable()) {
		traceDir = trace.Dir(h.store.Dir())
	}
	if h.trace, err = trace.Open(traceDir); err != nil {
		h.log.Warn("calls will not be traced", "cause", err)
		h.trace = nil
	}
	h.catalog = server.Catalog(jq.Options{Memory: int64(s.JqMemory)})
	if h.sources, err = s.sources(h.store); err != nil {
		h.close()
		return nil, err
	}
	h.funnel, err = funnel.New(funnel.Options{
		Store: h.store, NoStore: noStore, Trace: h.trace, Counter: h.counter, Policy: s.policy(), Limits: s.limits(),
		SavedTo: here, Offered: h.offered, Log: h.log, Mask: s.masker().Telling(h.unsearched), Redact: s.RedactStore,
	})
	if err != nil {
		h.close()
		return nil, usageError{err}
	}
	return h, nil
}

// unsearched tells what went wrong where a text could not be searched for secrets, so that none of it was shown.
func (h *house) unsearched(why any, stack []byte) {
	h.log.Error("a text could not be searched for secrets", "why", why, "stack", string(stack))
}

// forbids says that a store cannot be written to for a cause that will not pass by itself, as that of a full disk may:
// each call's trace would fail for it, and say so.
func forbids(unwritable error) bool {
	return errors.Is(unwritable, fs.ErrPermission) || errors.Is(unwritable, syscall.EROFS)
}

// sources opens the roots; what the store and the configuration hold is denied to tools.
func (s *Settings) sources(store *observations.Store) (tools.Sources, error) {
	src := tools.Sources{Store: store, Owner: observations.Local}
	var denied []string
	dir := s.Store // one that could not be opened is no more theirs
	if store != nil {
		dir = store.Dir()
	} else if dir == "" {
		dir, _ = observations.DefaultDir() // where there is none there is no store either
	}
	if dir != "" {
		// Its token is a file of its own: a hard link to it is below the store by neither name nor directory.
		denied = append(denied, dir, server.TokenPath(dir))
	}
	for _, file := range []string{s.Config, s.TokenFile} {
		if file != "" {
			denied = append(denied, file)
		}
	}
	for _, dir := range s.roots() {
		r, err := tree.Open(dir, denied...)
		if err != nil {
			return src, usagef("--root %s: %v", content.ClipBytes(dir, 200), err)
		}
		if slices.ContainsFunc(src.Roots, func(other *tree.Root) bool { return other.Dir() == r.Dir() }) {
			_ = r.Close() // named twice, it would be searched twice
			continue
		}
		src.Roots = append(src.Roots, r)
	}
	return src, nil
}

func (h *house) offered() []string {
	names := make([]string, len(h.catalog))
	for i, t := range h.catalog {
		names[i] = t.Name
	}
	return names
}

func (h *house) tool(name string) (tools.Tool, error) {
	for _, t := range h.catalog {
		if t.Name == name {
			return t, nil
		}
	}
	return tools.Tool{}, usagef("no tool %.60q; there are %s", name, strings.Join(h.offered(), ", "))
}

func (h *house) close() {
	for _, r := range h.sources.Roots {
		_ = r.Close()
	}
	if h.trace != nil {
		_ = h.trace.Close()
	}
	if h.store != nil {
		_ = h.store.Close()
	}
}

// who is the session of the command line and of stdio.
func who() funnel.Session { return funnel.Session{ID: "local", Owner: observations.Local} }

// print writes an answer's text as the model would be shown it, each block ended by one line end.
func print(w *streams, a funnel.Answer) error {
	for _, b := range a.Blocks {
		text := b.Text
		if b.MIME != "" {
			text = fmt.Sprintf("[%s, %d bytes]", b.MIME, len(b.Data))
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(w.out, text); err != nil {
			return err
		}
	}
	if a.Failed {
		return errFailed
	}
	return nil
}
