package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/mcp-funnel/mcp-funnel/agents/chat"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/httpserver"
	"github.com/mcp-funnel/mcp-funnel/server/oauth"
	clientusage "github.com/mcp-funnel/mcp-funnel/session/usage"
	"github.com/mcp-funnel/mcp-funnel/system/sandbox"
	"github.com/mcp-funnel/mcp-funnel/system/worker"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools/shell"
)

type doctor struct {
	Endpoint bool `env:"-" help:"Also send one short request to the endpoint."`
	Ready    bool `env:"-" help:"Only ask the server of --http on this machine whether it is ready, as containers do. Without --http there is nothing to ask: done."`
}

func (doctor) Help() string {
	return `Every line is the result of a test: a root is opened, an observation is written,
read back and removed, a worker is started. The exit code is 1 if something does
not work.`
}

// finding is one line of the report.
type finding struct {
	what string
	text string
	bad  bool // it does not work
	weak bool // it works, but not as well as it could
}

// bad returns the finding that something does not work.
func bad(what, text string) []finding { return []finding{{what: what, bad: true, text: text}} }

// weak returns a finding that something works, but not as well as it could.
func weak(what, text string) finding { return finding{what: what, weak: true, text: text} }

func (d doctor) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	if d.Ready {
		return serverReady(ctx, s)
	}
	var all []finding
	for _, check := range []func(*cli.Settings) []finding{
		goVersion, installed, rootsFound, settingsWork, storeWorks, tokenizerWorks, usageReported, workerWorks, commandsWork,
	} {
		all = append(all, check(s)...)
	}
	if s.OAuthIssuer != "" {
		all = append(all, issuerAnswers(ctx, s)...)
	}
	if s.IsRemote() {
		all = append(all, remoteWorks(ctx, s)...)
	}
	all = append(all, httpWorks(ctx, s)...)
	if d.Endpoint {
		all = append(all, endpointAnswers(ctx, s)...)
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
		if _, err := fmt.Fprintf(w.Out, "%s %-10s %s\n", mark, f.what, cli.InLine(f.text)); err != nil {
			return err
		}
	}
	if sick {
		return cli.ErrFailed
	}
	return nil
}

// serverReady returns an error if the server of --http does not say that it is ready within 3 seconds: a container's
// health check gives it 5.
func serverReady(ctx context.Context, s *cli.Settings) error {
	if s.HTTP == "" {
		return nil
	}
	host, port, err := httpserver.SplitAddr(s.HTTP)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() { // a container may have no /etc/hosts to find localhost in
		host = "127.0.0.1"
		if ip.To4() == nil {
			host = "::1"
		}
	}
	at := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/readyz"}
	direct := http.Client{
		Timeout: 3 * time.Second, Transport: &http.Transport{}, // through no proxy
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if err := answers(ctx, &direct, at.String()); err != nil {
		return fmt.Errorf("%s: %w", &at, err)
	}
	return nil
}

// answers returns an error if a GET does not get 200.
func answers(ctx context.Context, c *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	got, err := c.Do(r)
	if err != nil {
		return err
	}
	_ = got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return errors.New("it answers " + got.Status)
	}
	return nil
}

func rootsFound(s *cli.Settings) []finding {
	dirs := s.RootDirs()
	if len(dirs) == 0 {
		return bad("root",
			"none: the current directory is a home, a system directory or the file system's root; set --root DIR")
	}
	var all []finding
	src, err := s.OpenRoots(nil)
	if err != nil {
		return bad("root", err.Error())
	}
	for _, absent := range src.Absent {
		all = append(all, bad("root", absent)...)
	}
	for _, r := range src.Roots {
		text := r.Dir()
		if len(s.Root) == 0 {
			text += " (the current directory; set --root to grant another)"
		}
		if _, err := r.Stat("."); err != nil {
			all = append(all, bad("root", err.Error())...)
		} else {
			all = append(all, finding{what: "root", text: text})
		}
		if cli.GrantsHome(r.Dir()) {
			all = append(all, finding{what: "root", text: cli.WideRoot(r.Dir())})
		}
		_ = r.Close()
	}
	return all
}

// settingsWork lists the settings that have no effect.
func settingsWork(s *cli.Settings) (all []finding) {
	for _, warning := range s.Warnings() {
		all = append(all, bad("settings", warning)...)
	}
	return all
}

func storeWorks(s *cli.Settings) []finding {
	kept, err := s.OpenKept(nil)
	if err != nil {
		return bad("store", err.Error())
	}
	defer kept.Close()
	store := kept.Store
	err = cli.ExplainWrite(store, roundTrip(store))
	if errors.Is(err, cli.ErrUnwritable) { // the error names the directory
		return bad("store", err.Error())
	} else if err != nil {
		return bad("store", store.Dir()+": "+err.Error())
	}
	u, err := store.Usage()
	if err != nil {
		return bad("store", store.Dir()+": "+err.Error())
	}
	minFree := int64(s.MinFree)
	all := []finding{{what: "store", bad: u.Free < minFree, text: fmt.Sprintf(
		"%s: %s, %s of %s; %s free on its disk, %s stay free", kept.Where(), cli.ObservationsText(u.Observations),
		cli.BytesText(u.Bytes), cli.BytesText(u.Quota), cli.BytesText(u.Free), cli.BytesText(minFree),
	)}}
	if tmp, err := filepath.EvalSymlinks(os.TempDir()); err == nil &&
		strings.HasPrefix(store.Dir(), tmp+string(filepath.Separator)) {
		all = append(all, finding{what: "store", text: "it is below " + tmp + ", which a reboot may empty"})
	}
	return all
}

// maxSkew is how far clocks of bucket and database may be from ours: times of sessions and links depend on them.
const maxSkew = time.Minute

// remoteWorks tests the bucket and the database beside what storeWorks does.
func remoteWorks(ctx context.Context, s *cli.Settings) (all []finding) {
	kept, err := s.OpenKept(nil)
	if err != nil {
		return nil // storeWorks has said so
	}
	defer kept.Close()
	skew, compares, err := kept.Bucket.Check(ctx)
	if err != nil {
		all = bad("bucket", err.Error()+": check --s3-endpoint and --s3-region, and that the keys may read, write and delete")
	} else {
		all = append(all, finding{what: "bucket", bad: skew.Abs() > maxSkew, text: fmt.Sprintf(
			"%s: written, read back, deleted; its clock is %s ahead of ours, %s are allowed", kept.Where(), skew, maxSkew)})
		if !compares {
			all = append(all, weak("bucket",
				"the server stores bytes whose checksum is wrong: use one that supports x-amz-checksum-crc32c"))
		}
	}
	if kept.Bucket.Plain() {
		all = append(all, weak("bucket", "plain HTTP: others on the network can read observations; use https"))
	}
	d, err := kept.Database.Status(ctx)
	if err == nil {
		k := records.Key{Kind: records.Map, Owner: observations.Local, Name: "doctor-" + string(observations.RandomID())}
		err = errors.Join(kept.Records.Put(k, []byte("{}")), kept.Records.Touch(k), kept.Records.Delete(k))
	}
	if err != nil {
		return append(all, bad("database", err.Error())...)
	}
	all = append(all, finding{what: "database", bad: d.Skew.Abs() > maxSkew, text: fmt.Sprintf(
		"%s: Postgres %s, tables of version %d; a record was written and deleted; its clock is %s ahead of ours, %s are "+
			"allowed",
		d.Where, d.Server, d.Schema, d.Skew.Round(time.Millisecond), maxSkew)})
	if host, _, _ := strings.Cut(d.Where, ":"); !d.TLS && host != "localhost" && !strings.HasPrefix(host, "127.") &&
		!strings.HasPrefix(host, "/") {
		all = append(all, weak("database", "no TLS: add ?sslmode=verify-full to --database"))
	}
	if d.Bypasses {
		all = append(all, weak("database", "its role bypasses row-level security, the second line between identities: "+
			"use one that is neither superuser nor has BYPASSRLS"))
	}
	return all
}

// httpWorks tests what a server over HTTP needs, and names the limits of one identity.
func httpWorks(ctx context.Context, s *cli.Settings) (all []finding) {
	if s.SessionKeyFile != "" {
		if _, err := httpserver.ReadSessionKey(s.SessionKeyFile); err != nil {
			all = bad("sessions", err.Error())
		} else {
			all = append(all, finding{what: "sessions", text: s.SessionKeyFile + " holds a key"})
		}
	}
	if s.LinkBase != "" {
		url := strings.TrimRight(s.LinkBase, "/") + "/healthz"
		all = append(all, finding{what: "links", text: url + " answers"})
		if err := answers(ctx, &http.Client{Timeout: 5 * time.Second}, url); err != nil {
			all[len(all)-1] = weak("links", fmt.Sprintf(
				"--link-base: %s: %v; start the server, or write the URL at which others reach it", url, err))
		}
	}
	if s.IsRemote() || s.HTTP != "" {
		o := s.Options()
		rate, calls, quota := "none", "none", "none"
		if o.Server.Rate != (server.Rate{}) {
			rate = fmt.Sprintf("%g,%d", o.Server.Rate.PerSecond, o.Server.Rate.Burst)
		}
		if o.Server.OwnerCalls > 0 {
			calls = fmt.Sprint(o.Server.OwnerCalls)
		}
		if o.Store.OwnerQuota > 0 {
			quota = cli.BytesText(o.Store.OwnerQuota)
		}
		all = append(all, finding{what: "limits", text: fmt.Sprintf(
			"of one identity: --rate-per-identity %s, --calls-per-identity %s, --quota-per-identity %s", rate, calls, quota)})
	}
	return all
}

// endpointAnswers sends one short request to the endpoint.
func endpointAnswers(ctx context.Context, s *cli.Settings) []finding {
	client, _, err := s.Endpoint()
	if err != nil {
		return bad("endpoint", err.Error())
	}
	began := time.Now()
	r, err := client.Complete(ctx, chat.Request{
		Messages: []chat.Message{
			{Role: "user", Content: "Answer with the word yes."},
		}, MaxTokens: 64, Stream: true,
	})
	if err != nil {
		return bad("endpoint", err.Error())
	}
	text := fmt.Sprintf("%s answered %q in %s; ", s.EndpointURL, content.ClipBytes(strings.TrimSpace(r.Text), 40),
		time.Since(began).Round(time.Millisecond))
	if r.Usage.Prompt > 0 {
		text += fmt.Sprintf("it reports usage (%d and %d tokens)", r.Usage.Prompt, r.Usage.Completion)
	} else {
		text += "it reports no usage"
	}
	if client.Context() == 0 {
		text += "; its context window is unknown, set --endpoint-context"
	}
	return []finding{{what: "endpoint", text: text, weak: r.Text == "" || client.Context() == 0}}
}

// issuerAnswers gets the issuer's document and keys, and compares its clock with ours.
func issuerAnswers(ctx context.Context, s *cli.Settings) []finding {
	v, _ := oauth.New(s.Options().OAuth) // the settings were checked
	keys, ahead, err := v.Check(ctx)
	if err != nil {
		return bad("oauth", err.Error())
	}
	return []finding{{what: "oauth", bad: ahead.Abs() > oauth.Skew, text: fmt.Sprintf(
		"%s: %d keys; its clock is %s ahead of ours, %s are allowed", s.OAuthIssuer, keys, ahead.Round(time.Second), oauth.Skew)}}
}

// commandsWork tests whether commands can be contained, if the tool run is offered.
func commandsWork(s *cli.Settings) []finding {
	if !slices.Contains(s.ToolsetNames(), shell.Toolset) {
		return nil
	}
	sh := s.NewShell(s.Options(), nil)
	defer sh.Close()
	all := append(sandboxLayers(), ownersMapped(s.RootDirs())...)
	if err := sh.Try(); err != nil {
		return append(all, bad("commands", err.Error())...)
	}
	works := "run works, with --sandbox " + s.Sandbox
	all = append(all, finding{what: "commands", weak: s.Sandbox != "required", text: works})
	dirs, programs := sh.Unreachable(s.RootDirs())
	for _, lacks := range []struct {
		what  string
		names []string
	}{{"programs in these directories of PATH", dirs}, {"these programs of PATH, links that lead elsewhere,", programs}} {
		if n := len(lacks.names); n > 0 {
			all = append(all, finding{what: "commands", weak: true, text: fmt.Sprintf(
				"%s cannot be run: %s; --allow-read grants them", lacks.what, firstNames(lacks.names))})
		}
	}
	return all
}

// firstNames lists names, at most 20.
func firstNames(names []string) string {
	const most = 20
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// ownersMapped tests of each root whether commands may use files in it that only root may.
func ownersMapped(roots []string) (all []finding) {
	for _, dir := range roots {
		needed, err := sandbox.MapsOwners(dir)
		switch {
		case err != nil:
			all = append(all, finding{what: "sandbox", weak: true, text: fmt.Sprintf(
				"does not hold: owners in %s (%v: commands use files of root there as anyone may); needed: %s",
				dir, err, sandbox.Remedy("owners"))})
		case needed:
			all = append(all, finding{what: "sandbox", text: fmt.Sprintf(
				"holds: owners in %s (commands own files of root there, by a mapping)", dir)})
		}
	}
	return all
}

// sandboxLayers lists the layers that contain a command on this machine, and the strongest mode that they allow.
func sandboxLayers() (all []finding) {
	layers := sandbox.Layers()
	for _, l := range layers {
		text := "holds: " + l.Name + " (" + l.Detail + ")"
		if !l.Holds {
			text = "does not hold: " + l.Name + " (" + l.Detail + "); needed: " + l.Needs
		}
		all = append(all, finding{what: "sandbox", text: text, weak: !l.Holds})
	}
	mode := sandbox.Strongest(layers)
	text := "the layers of this machine allow --sandbox " + string(mode)
	if mode == "" {
		text = "no command can be run on this system"
	}
	return append(all, finding{what: "sandbox", text: text, weak: mode != sandbox.Required})
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

func tokenizerWorks(s *cli.Settings) []finding {
	c, err := s.Counter()
	if err != nil {
		return bad("tokenizer", err.Error())
	}
	start := time.Now()
	// Three tokens in both vocabularies, counted with tiktoken.
	const probe, want = "tokens are counted", 3
	encoding := c.Model().Encoding
	if n := tokens.New(encoding).Count(probe); n != want {
		return bad("tokenizer", fmt.Sprintf("%s counts %q as %d tokens, not %d", encoding, probe, n, want))
	}
	text := fmt.Sprintf("%s, loaded in %s", encoding, time.Since(start).Round(10*time.Millisecond))
	if m := c.Model(); m.Estimated() {
		text += fmt.Sprintf("; %s is estimated: ×%v ±%.0f %%", s.Model, m.Factor, 100*m.Error)
	}
	if s.ContextWindow > 0 {
		text += fmt.Sprintf("; window of %d tokens", s.ContextWindow)
	}
	return []finding{{what: "tokenizer", text: text}}
}

// maxReports is how many sessions are listed.
const maxReports = 20

// usageReported lists the last report of each session, the newest first, and where its window comes from.
func usageReported(s *cli.Settings) (all []finding) {
	if why := unnamedSession(s); why != "" {
		all = append(all, finding{what: "usage", weak: true, text: why})
	} else if client, ok := clientusage.Clients[s.UsageFrom]; ok {
		path, err := sessionFile(client, clientusage.SessionID(nil, os.Getenv, nil))
		if err != nil {
			path = err.Error()
		}
		all = append(all, finding{what: "usage", weak: err != nil, text: "--usage-from " + s.UsageFrom + ": " + path})
	}
	kept, err := s.OpenKept(nil)
	if err != nil {
		return all // storeWorks has said so
	}
	defer kept.Close()
	sessions, err := clientusage.OpenAccounts(kept.Records).List()
	if err != nil {
		return append(all, bad("usage", err.Error())...)
	}
	sessions = slices.DeleteFunc(sessions, func(a clientusage.Account) bool { return a.Report == nil })
	if len(sessions) == 0 {
		return append(all, finding{what: "usage", text: "no session has reported its usage to this store"})
	}
	for _, a := range sessions[:min(len(sessions), maxReports)] {
		all = append(all, finding{what: "usage", text: reportText(s, a)})
	}
	if more := len(sessions) - maxReports; more > 0 {
		all = append(all, finding{what: "usage", text: fmt.Sprintf("%d sessions more, older", more)})
	}
	return all
}

// reportText words the last report of a session.
func reportText(s *cli.Settings, a clientusage.Account) string {
	r := a.Report
	text := fmt.Sprintf("session %s: %d tokens reported by %s", cmp.Or(r.Session, "without a name"), r.PromptTokens,
		r.Source)
	if !r.At.IsZero() {
		text += " " + time.Since(r.At).Round(time.Second).String() + " ago"
	}
	spent := funnel.SpentOf(a)
	usable, window, from, known := s.Options().Policy.Usable(spent)
	switch {
	case window > 0 && from == "table":
		text += fmt.Sprintf("; window of %d from the table (%s)", window, cmp.Or(r.Model, s.Model))
	case window > 0:
		text += fmt.Sprintf("; window of %d from: %s", window, from)
	default:
		text += fmt.Sprintf("; the window of %s is unknown, set --context-window", cmp.Or(r.Model, "its model"))
	}
	if known {
		text += fmt.Sprintf("; %d tokens left", max(usable-spent.Tokens, 0))
	}
	return text
}

// workerWorks lists the layers that confine a worker on this machine. A missing one is reported with its cause as
// weak; a worker that cannot start is bad, because the jq tool then fails.
func workerWorks(*cli.Settings) []finding {
	var all []finding
	holding := 0
	layers := worker.Layers()
	for _, l := range layers {
		text := "does not hold: "
		if l.Holds {
			holding++
			text = "holds: "
		}
		text += l.Name + " (" + l.Detail + ")"
		all = append(all, finding{what: "worker", text: text, bad: !l.Holds && l.Name == "worker", weak: !l.Holds})
	}
	return append(all, finding{what: "worker", text: fmt.Sprintf("%d of %d layers hold", holding, len(layers))})
}

// goVersion is the check of the doctor command.
func goVersion(*cli.Settings) []finding {
	if err := cli.CheckToolchain(runtime.Version()); err != nil {
		return bad("go", err.Error())
	}
	return []finding{
		{what: "go", text: "built with " + runtime.Version() + ", which keeps tools inside their roots"},
	}
}
