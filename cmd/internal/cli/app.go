package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/mcp-funnel/mcp-funnel/agents/answerer"
	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/agents/investigator"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/links"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/ask"
	"github.com/mcp-funnel/mcp-funnel/tools/deliver"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
	"github.com/mcp-funnel/mcp-funnel/tools/jq"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
	"github.com/mcp-funnel/mcp-funnel/tools/write"
)

// App holds the wired parts that commands use.
type App struct {
	*Kept     // without a store if it could not be opened: answers then say "not kept", and nothing is traced
	Counter   *tokens.Counter
	Catalog   []tools.Tool // of the toolsets that are offered
	Funnel    *funnel.Funnel
	Sources   source.Set
	Shell     *shell.Shell
	writable  []*tree.Root
	Log       *slog.Logger
	Links     *links.Links    // over HTTP with --link-base; nil: none
	Upstreams *upstream.Group // servers whose tools are offered too; nil: none
	local     bool            // callers are on this machine

	Investigator *investigate.Investigator
	Asker        *ask.Asker
}

// Open wires an app. If local is true its callers are on this machine, and receipts may name the data file. If the
// store cannot be opened, Open logs a warning instead of failing: tools still answer, and every receipt says that
// nothing was kept.
func (s *Settings) Open(w *Streams, local bool) (*App, error) {
	return s.OpenWith(w, local, Upstreams{})
}

// OpenWith is Open for an app that also offers the tools of upstream servers. They are started for each client.
func (s *Settings) OpenWith(w *Streams, local bool, up Upstreams) (opened *App, err error) {
	if err := CheckToolchain(runtime.Version()); err != nil {
		return nil, err
	}
	o := s.Options()
	a := &App{Log: s.logger(w), local: local}
	if a.Counter, err = s.Counter(); err != nil {
		return nil, err
	}
	kept, noStore := s.OpenKept(a.Log)
	if noStore != nil && s.IsRemote() { // other replicas serve; this one would keep nothing until it is started again
		return nil, noStore
	}
	defer func() {
		if err != nil {
			a.Close()
		}
	}()
	if a.Kept = kept; noStore != nil {
		a.Log.Warn("nothing will be kept", "cause", noStore)
		a.Kept = &Kept{Trace: trace.InDir("")}
	} else if cause := a.Store.Unwritable(); cause != nil {
		a.Log.Warn("nothing can be kept or traced now; what was kept can be read; make the store writable, or choose another with --store",
			"store", a.Store.Dir(), "cause", cause)
	}
	if a.Store != nil && !s.IsRemote() && !isPermanent(a.Store.Unwritable()) {
		dir := trace.Dir(a.Store.Dir())
		log, err := trace.Open(dir)
		if err != nil {
			a.Log.Warn("calls will not be traced", "cause", err)
		} else {
			a.Trace = log
		}
	}
	if quota := o.Store.Quota; !s.KeepShown {
		a.Trace.KeepShown(0)
	} else if quota >= 0 { // a sixteenth of it, besides the observations
		a.Trace.KeepShown(min(quota, max(quota/16, 16<<20)))
	}
	if a.Sources, err = s.OpenRoots(a.Store); err != nil {
		return nil, err
	}
	if o.Write.Dirs, err = s.OpenWritable(a.Store, a.Sources, a.Log); err != nil {
		return nil, err
	}
	a.writable = o.Write.Dirs
	o.Shell.AllowWrite = dirsOf(o.Write.Dirs)
	a.Shell = s.NewShell(o, a.Store)
	a.Investigator = a.newInvestigator(o, s.Masker().Holds)
	a.Asker = a.newAsker(s, o)
	writer, deliver := a.newWriter(s, o), s.Deliver()
	if writer != nil {
		deliver.Save = writer.Save
	}
	a.Catalog = server.Catalog(server.Parts{
		JQ: o.JQ, Shell: a.Shell, Deliver: deliver, Writer: writer, Investigator: a.Investigator, Asker: a.Asker,
		Toolsets: s.ToolsetNames(),
	})
	hint := ""
	if len(up.Servers) > 0 {
		a.offer(up, s)
		if !up.Common.Observe {
			hint = `pass it on as "obs:ID jq FILTER"`
		}
	}
	a.Sources.Places = a.places(observations.Local)
	for _, absent := range a.Sources.Absent {
		a.Log.Warn(absent)
	}
	for _, r := range a.Sources.Roots {
		if GrantsHome(r.Dir()) {
			a.Log.Warn(WideRoot(r.Dir()))
		}
	}
	perTool, err := s.toolLimits()
	if err != nil {
		return nil, UsageError{err}
	}
	if err := s.checkLinkBase(); err != nil {
		return nil, err
	}
	link, err := a.openLinks(s)
	if err != nil {
		return nil, err
	}
	a.Funnel, err = funnel.New(funnel.Options{
		Store: a.Store, NoStore: noStore, Trace: a.Trace, Counter: a.Counter, Model: s.Model,
		Policy: o.Policy, Limits: o.Limits,
		Tools:    perTool,
		Accounts: a.Accounts(), SavedTo: local, Link: link, Offered: toolNames(a.Catalog), Hint: hint, Log: a.Log,
		Mask: s.Masker().OnPanic(a.LogUnsearched), Redact: s.RedactStore,
	})
	if err != nil {
		return nil, UsageError{err}
	}
	if s.AskBy == "endpoint" {
		if err := a.AskEndpoint(s); err != nil {
			return nil, err
		}
	}
	if s.EndpointEmbeddings != "" {
		if err := a.embedByEndpoint(s); err != nil {
			return nil, err
		}
	}
	if s.InvestigateBy == "endpoint" {
		if err := a.UseEndpoint(s, true); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// endpoint is [Settings.Endpoint]. It logs the warning if the endpoint may be on another machine.
func (a *App) endpoint(s *Settings, warning string) (*chat.Client, *tokens.Counter, error) {
	client, counter, err := s.Endpoint()
	if err == nil && s.EndpointAllowRemote {
		a.Log.Warn(warning, "endpoint", s.EndpointURL)
	}
	return client, counter, err
}

// UseEndpoint has the endpoint of the settings answer orders of investigations; with forCallers also those of the tool.
func (a *App) UseEndpoint(s *Settings, forCallers bool) error {
	client, counter, err := a.endpoint(s, "what an investigation reads is sent to the endpoint")
	if err != nil {
		return err
	}
	a.Investigator.Use(investigator.New(investigator.Options{
		Client: client, Name: s.EndpointName, Funnel: a.Funnel, Store: a.Store, Count: counter.Count,
		Tools: server.Catalog(server.Parts{JQ: s.Options().JQ}),
	}), forCallers)
	return nil
}

// AskEndpoint has the endpoint of the settings answer questions over files.
func (a *App) AskEndpoint(s *Settings) error {
	client, _, err := a.endpoint(s, "facts from files are sent to the endpoint")
	if err != nil {
		return err
	}
	by := answerer.New(client, s.EndpointName)
	if a.Asker.Use(by); s.Extraction == "model" {
		a.Asker.Extract(by)
	}
	return nil
}

// embedByEndpoint has the endpoint's embedding model find passages by their meaning.
func (a *App) embedByEndpoint(s *Settings) error {
	client, _, err := a.endpoint(s, "passages of files are sent to the endpoint")
	if err != nil {
		return err
	}
	a.Asker.UseEmbedder(chat.NewEmbedder(client, s.EndpointEmbeddings))
	return nil
}

// AsksModel reports whether a model answers the questions of the command line: not where the endpoint is named for its
// embeddings alone.
func (s *Settings) AsksModel() bool {
	return s.EndpointURL != "" && (s.EndpointEmbeddings == "" || s.EndpointName != "" || s.AskBy == "endpoint")
}

// Accounts returns the accounts of sessions whose clients report their usage; nil if there is no store to keep them in.
func (a *App) Accounts() *usage.Accounts {
	if a.Store == nil || isPermanent(a.Store.Unwritable()) {
		return nil
	}
	return usage.OpenAccounts(a.Records)
}

// LogUnsearched logs why a text could not be searched for secrets; none of that text was shown.
func (a *App) LogUnsearched(why any, stack []byte) {
	a.Log.Error("a text could not be searched for secrets", "why", why, "stack", string(stack))
}

// isPermanent reports whether a store cannot be written to for a cause that does not go away by itself, as a full
// disk may. With such a store every write to the trace would fail and log an error, so the trace is left out.
func isPermanent(unwritable error) bool {
	return errors.Is(unwritable, fs.ErrPermission) || errors.Is(unwritable, syscall.EROFS)
}

// Deliver returns the options of the tool deliver.
func (s *Settings) Deliver() deliver.Options {
	o := s.Options().Deliver
	o.Window = int64(s.ContextWindow)
	return o
}

// NewShell returns the shell that runs commands. Their scratch directories are in the store's directory, of which
// commands see nothing else.
func (s *Settings) NewShell(o Options, store *observations.Store) *shell.Shell {
	o.Shell.Store, o.Shell.Hidden = store, s.hidden(store)
	o.Shell.AllowRead, o.Shell.AllowCache = s.AllowRead, s.AllowCache
	if s.HTTP != "" && (s.SessionKeyFile != "" || s.IsRemote()) {
		o.Shell.Replica = s.ReplicaName()
	}
	o.Shell.Output, o.Shell.MinFree = max(o.Store.MaxObservation, 0), max(o.Store.MinFree, 0)
	if store != nil && store.Unwritable() == nil {
		o.Shell.Dir = filepath.Join(store.Dir(), "scratch")
	}
	return shell.New(o.Shell)
}

// hidden returns the paths that neither tools nor commands may see, wherever they lie: the stores, the configuration
// file and the token files.
func (s *Settings) hidden(store *observations.Store) (denied []string) {
	dir, _ := s.StoreDir() // denied even if it could not be opened; "": there is no store to deny
	if store != nil {
		dir = store.Dir()
	}
	if other, err := observations.DefaultDir(); err == nil && other != dir { // another server's
		denied = append(denied, other, httpserver.TokenPath(other), links.KeyPath(other))
	}
	if dir != "" {
		// The secrets are denied as files too: a hard link to one may lie outside the store's directory.
		denied = append(denied, dir, httpserver.TokenPath(dir), links.KeyPath(dir))
	}
	for _, file := range []string{s.Config, s.TokenFile, s.SessionKeyFile} {
		if file != "" {
			denied = append(denied, file)
		}
	}
	return denied
}

// investigationsShare is the part of the quota that investigations may take besides the observations: a quarter.
const investigationsShare = 4

// newInvestigator returns the investigator.
func (a *App) newInvestigator(o Options, secret func(string) bool) *investigate.Investigator {
	options := investigate.Options{
		Trace: a.Trace, Slice: o.Shell.Slice, Secret: secret, Limit: max(o.Store.Quota, 0) / investigationsShare,
	}
	if a.Store != nil {
		options.Records, options.ReadOnly = a.Records, a.Store.Unwritable()
	}
	return investigate.New(options)
}

// textsDir returns the directory for texts of documents; "" if none may be kept there: texts hold secrets as they are.
func (s *Settings) textsDir(store *observations.Store) string {
	if store == nil || store.Unwritable() != nil || s.RedactStore {
		return ""
	}
	return filepath.Join(store.Dir(), "texts")
}

// newAsker returns the asker, which answers questions.
func (a *App) newAsker(s *Settings, o Options) *ask.Asker {
	options := ask.Options{Slice: o.Shell.Slice, ByWords: s.Meaning == "off"}
	if a.Store != nil {
		options.Store, options.Records, options.ReadOnly = a.Store.Dir(), a.Records, a.Store.Unwritable()
	}
	return ask.New(options)
}

// Caller returns the caller of investigate for the command line.
func (a *App) Caller() investigate.Caller {
	return investigate.Caller{Sources: a.Sources, Owner: observations.Local, Count: a.Counter.Count}
}

// OpenRoots opens the roots; those that cannot be opened are absent. Tools see nothing that is hidden.
func (s *Settings) OpenRoots(store *observations.Store, places ...source.NamedPlace) (source.Set, error) {
	src := source.Set{Places: places, Documents: source.NewDocuments(s.textsDir(store))}
	if store != nil {
		src.MaxMember = store.MaxObservation()
	}
	denied := s.hidden(store)
	for _, dir := range s.RootDirs() {
		r, err := tree.Open(dir, denied...)
		if errors.Is(err, tree.ErrDenied) {
			return src, Usagef("--root %s: %v", content.ClipBytes(dir, 200), err)
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

// OpenWritable opens the directories that may be changed, as --allow-write names them. One that cannot be opened is logged;
// one that lies in no root is a mistake.
func (s *Settings) OpenWritable(store *observations.Store, src source.Set, log *slog.Logger) (dirs []*tree.Root, err error) {
	for _, dir := range s.AllowWrite {
		r, err := tree.Open(dir, s.hidden(store)...)
		if err != nil {
			log.Warn("nothing can be changed there", "allow-write", dir, "cause", err)
			continue
		}
		dirs = append(dirs, r)
		if !slices.ContainsFunc(src.Roots, func(root *tree.Root) bool { return r.Within(root.Dir()) || root.Within(r.Dir()) }) {
			source.Set{Roots: dirs}.Close()
			return nil, Usagef("--allow-write %s: it lies in no root; grant it with --root too", content.ClipBytes(dir, 200))
		}
	}
	return dirs, nil
}

func dirsOf(roots []*tree.Root) (dirs []string) {
	for _, r := range roots {
		dirs = append(dirs, r.Dir())
	}
	return dirs
}

// newWriter returns the writer of the toolset write; nil if that is not offered.
func (a *App) newWriter(s *Settings, o Options) *write.Writer {
	if !slices.Contains(s.ToolsetNames(), write.Toolset) {
		return nil
	}
	w := o.Write
	w.JQ, w.Fsync = jq.JQ(o.JQ), s.Fsync
	if a.Store != nil && a.Store.Unwritable() == nil {
		w.Store, w.Records = a.Store, a.Records
	}
	a.Sources.Versions = source.NewVersions()
	writer := write.New(w)
	if err := writer.Sweep(); err != nil {
		a.Log.Error("what interrupted changes left could not be removed", "cause", err)
	}
	return writer
}

// places lists the places besides the roots that an owner may name, in the order in which they are asked.
func (a *App) places(owner string) []source.NamedPlace {
	kept := source.ObservationsByID(a.Store, owner)
	if a.local {
		kept = source.Observations(a.Store, owner)
	}
	return []source.NamedPlace{
		kept,
		source.Scratch(func() (*tree.Root, error) { return a.Shell.Root(owner) }),
		a.Investigator.Place(owner),
	}
}

// toolsets returns the names of the toolsets that a catalog has tools of.
func toolsets(catalog []tools.Tool) (names []string) {
	for _, t := range catalog {
		if !slices.Contains(names, t.Toolset) {
			names = append(names, t.Toolset)
		}
	}
	return names
}

func toolNames(catalog []tools.Tool) []string {
	names := make([]string, len(catalog))
	for i, t := range catalog {
		names[i] = t.Name
	}
	return names
}

// Tool returns the tool of a name; without one, a mistake on the command line.
func (a *App) Tool(name string) (tools.Tool, error) {
	for _, t := range a.Catalog {
		if t.Name == name {
			return t, nil
		}
	}
	for _, t := range server.Catalog(server.Parts{Toolsets: server.Toolsets}) {
		if t.Name == name {
			return tools.Tool{}, Usagef("the tool %s is in the toolset %s: offer it with --toolsets %s", name, t.Toolset,
				strings.Join(append(toolsets(a.Catalog), t.Toolset), ","))
		}
	}
	return tools.Tool{}, Usagef("no tool %.60q; there are %s", name, strings.Join(toolNames(a.Catalog), ", "))
}

// Close closes all that Open opened, and ends the commands that run.
func (a *App) Close() {
	if a.Upstreams != nil {
		a.Upstreams.Close()
	}
	if a.Shell != nil { // it was opened so far
		a.Shell.Close()
		a.Investigator.Close()
	}
	a.Sources.Close()
	source.Set{Roots: a.writable}.Close()
	a.Kept.Close()
}

// SourcesOf returns what a session may name: all roots, and the observations of its owner.
func (a *App) SourcesOf(who funnel.Session) source.Set {
	src := a.Sources
	src.Places, src.Versions = a.places(who.Owner), a.Sources.Versions.Of(who.Owner)
	return src
}

// Call calls a tool for the command line, which sees all that the app has.
func (a *App) Call(ctx context.Context, r funnel.Request) (funnel.Answer, error) {
	r.Who, r.Sources = LocalSession(), a.Sources
	if r.Tool.Calls {
		list := func(context.Context) ([]tools.Tool, error) { return a.Catalog, nil }
		r.Caller = funnel.NewCaller(r, list, a.Funnel.Call)
	}
	return a.Funnel.Call(ctx, r)
}

// LocalSession returns the session of the command line and of stdio.
func LocalSession() funnel.Session { return funnel.Session{ID: "local", Owner: observations.Local} }
