package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/internal/account"
	"github.com/mcp-funnel/mcp-funnel/internal/content"
	"github.com/mcp-funnel/mcp-funnel/internal/source"
	"github.com/mcp-funnel/mcp-funnel/internal/tree"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/documents"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
	"github.com/mcp-funnel/mcp-funnel/trace"
)

// app holds the wired parts that commands use.
type app struct {
	store   *observations.Store // nil if it could not be opened: answers then say "not kept"
	trace   *trace.Log
	counter *tokens.Counter
	catalog []tools.Tool
	funnel  *funnel.Funnel
	sources source.Set
	shell   *shell.Shell
	log     *slog.Logger
}

// open wires an app. If local is true its callers are on this machine, and receipts may name the data file. If the
// store cannot be opened, open logs a warning instead of failing: tools still answer, and every receipt says that
// nothing was kept.
func (s *Settings) open(w *streams, local bool) (*app, error) {
	if err := checkToolchain(runtime.Version()); err != nil {
		return nil, err
	}
	o := s.options()
	a := &app{log: s.logger(w)}
	var err error
	if a.counter, err = s.counter(); err != nil {
		return nil, err
	}
	var noStore error
	if a.store, noStore = observations.OpenStore(o.Store); noStore != nil {
		a.log.Warn("nothing will be kept", "cause", noStore)
		a.store = nil
	} else if cause := a.store.Unwritable(); cause != nil {
		a.log.Warn("nothing can be kept or traced now; what was kept can be read; make the store writable, or choose another with --store",
			"store", a.store.Dir(), "cause", cause)
	}
	traceDir := ""
	if a.store != nil && !isPermanent(a.store.Unwritable()) {
		traceDir = trace.Dir(a.store.Dir())
	}
	if a.trace, err = trace.Open(traceDir); err != nil {
		a.log.Warn("calls will not be traced", "cause", err)
		a.trace = nil
	}
	a.shell = s.shell(o, a.store)
	a.catalog = server.Catalog(server.Parts{JQ: o.JQ, Shell: a.shell, Documents: s.documents(), Toolsets: s.toolsets()})
	if a.sources, err = s.sources(a.store, a.shell); err != nil {
		a.close()
		return nil, err
	}
	for _, absent := range a.sources.Absent {
		a.log.Warn(absent)
	}
	for _, r := range a.sources.Roots {
		if grantsHome(r.Dir()) {
			a.log.Warn(wideRoot(r.Dir()))
		}
	}
	perTool, err := s.toolLimits()
	if err != nil {
		a.close()
		return nil, usageError{err}
	}
	a.funnel, err = funnel.New(funnel.Options{
		Store: a.store, NoStore: noStore, Trace: a.trace, Counter: a.counter, Model: s.Model,
		Policy: o.Policy, Limits: o.Limits,
		Tools:    perTool,
		Accounts: a.accounts(), SavedTo: local, Offered: func() []string { return toolNames(a.catalog) }, Log: a.log,
		Mask: s.masker().OnPanic(a.logUnsearched), Redact: s.RedactStore,
	})
	if err != nil {
		a.close()
		return nil, usageError{err}
	}
	return a, nil
}

// accounts returns the accounts of sessions whose clients report their usage; nil if there is no store to keep them in.
func (a *app) accounts() *account.Accounts {
	if a.store == nil || isPermanent(a.store.Unwritable()) {
		return nil
	}
	return account.Open(a.store.Dir())
}

// logUnsearched logs why a text could not be searched for secrets; none of that text was shown.
func (a *app) logUnsearched(why any, stack []byte) {
	a.log.Error("a text could not be searched for secrets", "why", why, "stack", string(stack))
}

// isPermanent reports whether a store cannot be written to for a cause that does not go away by itself, as a full
// disk may. With such a store every write to the trace would fail and log an error, so the trace is left out.
func isPermanent(unwritable error) bool {
	return errors.Is(unwritable, fs.ErrPermission) || errors.Is(unwritable, syscall.EROFS)
}

// documents returns the options of deliver.
func (s *Settings) documents() documents.Options {
	o := s.options().Documents
	o.Window = int64(s.ContextWindow)
	return o
}

// shell returns what runs commands. Their scratch directories lie in the store, which no command sees otherwise.
func (s *Settings) shell(o options, store *observations.Store) *shell.Shell {
	o.Shell.Store, o.Shell.Hidden, o.Shell.AllowRead = store, s.hidden(store), s.AllowRead
	o.Shell.Output, o.Shell.MinFree = max(o.Store.MaxObservation, 0), max(o.Store.MinFree, 0)
	if store != nil && store.Unwritable() == nil {
		o.Shell.Dir = filepath.Join(store.Dir(), "scratch")
	}
	return shell.New(o.Shell)
}

// hidden returns the paths that neither tools nor commands may see, wherever they lie: the stores, the configuration
// file and the token files.
func (s *Settings) hidden(store *observations.Store) (denied []string) {
	dir := s.Store // denied even if it could not be opened
	if store != nil {
		dir = store.Dir()
	} else if dir == "" {
		dir, _ = observations.DefaultDir() // without a default directory there is no store to deny
	}
	if other, err := observations.DefaultDir(); err == nil && other != dir { // another server's
		denied = append(denied, other, httpserver.TokenPath(other))
	}
	if dir != "" {
		// The token is denied as a file too: a hard link to it may lie outside the store's directory.
		denied = append(denied, dir, httpserver.TokenPath(dir))
	}
	for _, file := range []string{s.Config, s.TokenFile} {
		if file != "" {
			denied = append(denied, file)
		}
	}
	return denied
}

// sources opens the roots; those that cannot be opened are absent. Tools see nothing that is hidden.
func (s *Settings) sources(store *observations.Store, sh *shell.Shell) (source.Set, error) {
	src := source.Set{Places: places(store, sh, observations.Local)}
	denied := s.hidden(store)
	for _, dir := range s.roots() {
		r, err := tree.Open(dir, denied...)
		if errors.Is(err, tree.ErrDenied) {
			return src, usagef("--root %s: %v", content.ClipBytes(dir, 200), err)
		}
		if err != nil { // the client of a server that ended would see no reason
			src.Absent = append(src.Absent, absentRoot(dir, err))
			continue
		}
		if slices.ContainsFunc(src.Roots, func(other *tree.Root) bool { return other.Dir() == r.Dir() }) {
			_ = r.Close() // a root given twice would be searched twice
			continue
		}
		src.Roots = append(src.Roots, r)
	}
	return src, nil
}

// places lists the places besides the roots that an owner may name, in the order in which they are asked.
func places(store *observations.Store, sh *shell.Shell, owner string) []source.NamedPlace {
	return []source.NamedPlace{
		source.Observations(store, owner),
		source.Scratch(func() (*tree.Root, error) { return sh.Root(owner) }),
	}
}

func toolNames(catalog []tools.Tool) []string {
	names := make([]string, len(catalog))
	for i, t := range catalog {
		names[i] = t.Name
	}
	return names
}

func (a *app) tool(name string) (tools.Tool, error) {
	for _, t := range a.catalog {
		if t.Name == name {
			return t, nil
		}
	}
	return tools.Tool{}, usagef("no tool %.60q; there are %s", name, strings.Join(toolNames(a.catalog), ", "))
}

func (a *app) close() {
	a.shell.Close()
	for _, r := range a.sources.Roots {
		_ = r.Close()
	}
	if a.trace != nil {
		_ = a.trace.Close()
	}
	if a.store != nil {
		_ = a.store.Close()
	}
}

// localSession returns the session of the command line and of stdio.
func localSession() funnel.Session { return funnel.Session{ID: "local", Owner: observations.Local} }

// print writes the text of an answer as the model would see it, or the whole answer as JSON. It returns errFailed for a
// failed call.
func print(w *streams, a funnel.Answer, asJSON bool) error {
	show := printText
	if asJSON {
		show = printJSON
	}
	if err := show(w, a); err != nil {
		return err
	}
	if a.Failed {
		return errFailed
	}
	return nil
}

// printText writes the blocks of an answer, each with a line end.
func printText(w *streams, a funnel.Answer) error {
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
	return nil
}
