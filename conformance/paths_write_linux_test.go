package conformance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// keptText is in each file that no tool may change, so that its hash is known.
const keptText = "a kept word\n"

// shortHash is the hash of a text as answers show it.
func shortHash(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:8] }

// writeHouse is a root with a directory that may be written, and what lies around it and in it that may not.
type writeHouse struct{ parent, root, open, store string }

func newWriteHouse(t testing.TB) writeHouse {
	t.Helper()
	parent := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	h := writeHouse{parent, parent + "/root", parent + "/root/open", parent + "/root/open/state"}
	h.plant(t)
	return h
}

func (h writeHouse) flags(more ...string) []string {
	return append([]string{
		"--root", h.root, "--allow-write", h.open, "--store", h.store, "--min-free", "0",
		"--toolsets", "core,documents,write", "--config", h.open + "/conf/config.yaml",
		"--token-file", h.open + "/conf/tokens",
	}, more...)
}

// plant makes all files again, except the store.
func (h writeHouse) plant(t testing.TB) {
	t.Helper()
	for _, dir := range []string{h.parent, h.root, h.open} {
		expect.Must(t, os.MkdirAll(dir, 0o755))
		for _, e := range expect.Value(os.ReadDir(dir))(t) {
			if path := filepath.Join(dir, e.Name()); path != h.root && path != h.open && path != h.store {
				expect.Must(t, os.RemoveAll(path))
			}
		}
	}
	for _, name := range []string{
		"vault/known.txt", "vault/inner/known.txt", "root-evil/known.txt", "root/known.txt", "root/closed/known.txt",
		"root/open-evil/known.txt",
	} {
		write(t, filepath.Join(h.parent, name), keptText)
	}
	for _, name := range []string{
		".git/config", ".git/hooks/pre-commit", "sub/.git/config", "worktree/.git", ".vscode/known.txt",
		".claude/known.txt",
		".mcp.json", "sub/.mcp.json", "x.code-workspace", ".envrc", ".husky/known.txt", ".npmrc", ".cursor/mcp.json",
		"conf/known.txt", "own/known.txt", "own.txt", "dir/known.txt", "other-store/.mcp-funnel-store",
		"other-store/known.txt",
	} {
		write(t, filepath.Join(h.open, name), keptText)
	}
	write(t, h.open+"/conf/config.yaml", "log-level: warn\n")
	write(t, h.open+"/conf/tokens", strings.Repeat("a-kept-word-", 4)+"\n")
	expect.Must(t, os.Chmod(h.open+"/conf/tokens", 0o600))
	for name, target := range map[string]string{
		"dir": "../../vault", "abs": h.parent + "/vault", "file": "../../vault/known.txt",
		"file-abs": h.parent + "/vault/known.txt",
		"dangling": "../../vault/new.txt", "dangling-dir": "../../vault/new", "closed": "../closed", "up": "..",
		"self":  "self",
		"chain": "l-dir", "a/b/c/deep": "../../../../../../vault", "dots": "dir/../../../vault",
		"evil": "../open-evil",
		"cwd":  "/proc/self/cwd", "top": "/proc/self/root" + h.parent, "task": "/proc/thread-self/cwd/known.txt",
		"git": ".git", "vscode": ".vscode", "state": "state", "conf": "conf", "store": "other-store",
	} {
		path := filepath.Join(h.open, filepath.Dir(name), "l-"+filepath.Base(name))
		expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		expect.Must(t, os.Symlink(target, path))
	}
	expect.Must(t, unix.Mkfifo(h.open+"/fifo", 0o600))
	expect.Must(t, unix.Mknod(h.open+"/socket", unix.S_IFSOCK|0o600, 0))
	_ = unix.Mknod(h.open+"/null", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) // no rights: it is missing then
	for _, name := range []string{"/conf/tokens", "/conf/config.yaml", "/state/state/http-token"} {
		if _, err := os.Stat(h.open + name); err == nil {
			expect.Must(t, os.Link(h.open+name, h.open+"/hard-"+filepath.Base(name)))
		}
	}
}

// launch starts a program on the house, and has a token of its store.
func (h writeHouse) launch(t testing.TB, program string, flags ...string) *stdioClient {
	t.Helper()
	expect.Must(t, os.MkdirAll(h.parent+"/vault", 0o755))
	c := launch{program: program, flags: h.flags(flags...), dir: h.parent + "/vault"}.stdio(t)
	if token := h.store + "/state/http-token"; expect.Err(os.Stat(token)) != nil {
		write(t, token, keptText)
	}
	return c
}

// guardedName finds a name in the directory that may be written that no tool may change.
var guardedName = regexp.MustCompile(`(?i)^(conf/tokens|conf/config|hard-|other-store|fifo|socket|null)|` +
	`(^|/)(\.git|\.vscode|\.claude|\.mcp\.json|[^/]*\.code-workspace|\.envrc|` +
	`\.husky|\.npmrc|\.cursor|\.mcp-funnel-store)[. ]*(/|$)`)

// kept returns what no tool may change, by path: all but what lies in open and has no guarded name, and of the store
// its mark and its secrets.
func (h writeHouse) kept(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	expect.Must(t, filepath.WalkDir(h.parent, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if rel, in := strings.CutPrefix(path, h.open+"/"); in {
			below, state := strings.CutPrefix(rel, "state/")
			if state && below != ".mcp-funnel-store" && below != "state" && !strings.HasPrefix(below, "state/http-token") ||
				!state && !guardedName.MatchString(rel) {
				return nil
			}
		}
		all[path] = describeFile(t, path)
		return nil
	}))
	return all
}

// describeFile returns the type, mode, owner and content of a file, or the target of a link.
func describeFile(t testing.TB, path string) string {
	t.Helper()
	at := expect.Value(os.Lstat(path))(t)
	s := fmt.Sprintf("%v %d", at.Mode(), ownerOf(at))
	switch {
	case at.Mode().IsRegular():
		text := expect.Value(os.ReadFile(path))(t)
		s += fmt.Sprintf(" %x", sha256.Sum256(text))
	case at.Mode()&fs.ModeSymlink != 0:
		s += " " + expect.Value(os.Readlink(path))(t)
	}
	return s
}

// ownerOf returns the user that a file belongs to.
func ownerOf(at fs.FileInfo) int { return int(at.Sys().(*syscall.Stat_t).Uid) }

// differences names what is not as it was.
func differences(was, is map[string]string) (all []string) {
	for path := range was {
		if was[path] != is[path] {
			all = append(all, fmt.Sprintf("%s was %q, is %q", path, was[path], is[path]))
		}
	}
	for path := range is {
		if was[path] == "" {
			all = append(all, path+" was created")
		}
	}
	slices.Sort(all)
	return all
}

// names are those that no tool may create, change or remove anything by, outside and inside.
func (h writeHouse) names() []string {
	all := []string{
		"../vault/known.txt", "open/../../vault/known.txt", "./../vault/new.txt", h.parent + "/vault/known.txt",
		h.parent + "/vault/new.txt", h.root + "-evil/known.txt", "../root-evil/known.txt",
		"file://" + h.parent + "/vault/known.txt",
		`"../vault/known.txt"`, `open/\x2e\x2e/\x2e\x2e/vault/known.txt`, "open/%2e%2e/%2e%2e/vault/known.txt",
		`open\..\..\vault\known.txt`, "open//..//..//vault//known.txt", "/proc/self/cwd/known.txt",
		h.open + "/../../vault/known.txt",
		"known.txt", "closed/known.txt", "closed/new.txt", "closed", "open-evil/known.txt", "open/../closed/known.txt", "open",
		".",
		"", "/", "..", "open/own/../../known.txt",
		"open/fifo", "open/socket", "open/null", "open/dir", "open/dir/", "open/own.txt/known.txt",
		"open/.git", "open/.git/config", "open/.git/hooks/pre-commit", "open/.git/new", "open/.GIT/config", "open/.Git/new",
		"open/.git./config", "open/.git /config", "open/.git. . /config", "open/sub/.git/config", "open/own/.git/config",
		"open/worktree/.git", "open/new/.git", "open/.vscode/known.txt", "open/.vscode", "open/.VSCode/tasks.json",
		"open/.claude/known.txt", "open/.mcp.json", "open/.MCP.json", "open/sub/.mcp.json", "open/own/.mcp.json",
		"open/x.code-workspace", "open/new.code-workspace", "open/.envrc", "open/.husky/known.txt", "open/.npmrc",
		"open/.cursor/mcp.json", "open/.cursor",
		"open/state", "open/state/.mcp-funnel-store", "open/state/state/http-token", h.store + "/state/http-token",
		"open/own/.mcp-funnel-store", "open/other-store/known.txt", "open/other-store/new.txt", "open/other-store",
		"open/conf/tokens", "open/conf/config.yaml", "open/conf", "open/hard-tokens", "open/hard-config.yaml",
		"open/hard-http-token",
		"open/a\x00b", "open/\x00/../../../vault/new.txt", "open/../../vault/a\nb",
		"open/" + strings.Repeat("n", 300),
		"open/" + strings.Repeat("n/", 3000) + "x", "../vault/" + strings.Repeat("n", 256),
	}
	for _, link := range []string{
		"dir", "abs", "chain", "dots", "closed", "up", "evil", "cwd", "git", "vscode", "state", "conf",
		"store",
	} {
		all = append(all, "open/l-"+link, "open/l-"+link+"/known.txt", "open/l-"+link+"/new.txt")
	}
	for _, link := range []string{
		"file", "file-abs", "dangling", "dangling-dir", "dangling-dir/new.txt", "self", "self/x", "task",
		"top/vault/known.txt",
		"top/vault/inner/new.txt", "up/known.txt", "up/closed/known.txt", "up/../vault/known.txt", "git/hooks/pre-commit",
		"state/state/http-token", "conf/tokens",
	} {
		all = append(all, "open/l-"+link)
	}
	return append(all, "open/a/b/c/l-deep/known.txt", "open/a/b/c/l-deep/new.txt", "open/a/b/c/l-deep")
}

type writeAttempt struct {
	tool string
	args object
}

// writeAttempts are the ways to create, change or remove something by a name.
func writeAttempts(name, own string) []writeAttempt {
	text, hash := "another word\n", shortHash(keptText)
	return []writeAttempt{
		{"write", object{"path": name, "content": text}},
		{"write", object{"path": name, "content": text, "append": true}},
		{"write", object{"path": name, "content": text, "parents": true}},
		{"write", object{"path": name, "content": text, "mode": "replace", "expect": hash}},
		{"write", object{"path": name + "/more/new.txt", "content": text, "parents": true}},
		{"edit", object{"path": name, "edits": []object{{"old": "kept", "new": "changed"}}}},
		{"move", object{"from": name, "to": own + "/taken"}},
		{"move", object{"from": name, "to": own + "/copied", "copy": true, "parents": true}},
		{"move", object{"from": own + "/own.txt", "to": name}},
		{"move", object{"from": own + "/own.txt", "to": name, "replace": hash}},
		{"move", object{"from": own + "/own.txt", "to": name, "copy": true, "parents": true}},
		{"move", object{"from": own + "/own", "to": name}},
		{"remove", object{"path": name}},
		{"remove", object{"path": name, "tree": true}},
		{"deliver", object{"part": `{"a":1}`, "to": name}},
	}
}

// try makes a share of all attempts by all names, and reports what they changed that is kept.
func (h writeHouse) try(t testing.TB, c toolCaller, share int, fail func(string)) (cases int) {
	t.Helper()
	was := h.kept(t)
	for i, name := range h.names() {
		var tried []writeAttempt
		for j, a := range writeAttempts(name, "open") {
			if (i+j)%share == 0 {
				cases++
				tried = append(tried, a)
				expect.Value(c.call(a.tool, a.args))(t, "%s %.200v", a.tool, a.args)
			}
		}
		if changed := differences(was, h.kept(t)); len(changed) > 0 {
			fail(fmt.Sprintf("%.200q: %.600q after %.600v", name, changed, tried))
		}
		h.plant(t)
		was = h.kept(t)
	}
	return cases
}

// race makes attempts while directories and files are exchanged for links that lead out.
func (h writeHouse) race(t testing.TB, c *stdioClient, calls, enough int, fail func(string)) (cases int) {
	t.Helper()
	pairs, targets := map[string]string{}, []string{"../../vault", h.parent + "/vault", "../closed", "..", ".git"}
	for i, target := range targets {
		dir := fmt.Sprintf("open/swap-%d", i)
		write(t, filepath.Join(h.root, dir, "deep/known.txt"), keptText)
		write(t, filepath.Join(h.root, dir, "known.txt"), keptText)
		pairs[dir] = fmt.Sprintf("open/other-%d", i)
		expect.Must(t, os.Symlink(target, filepath.Join(h.root, pairs[dir])))
	}
	for i, target := range []string{"../../vault/known.txt", "../closed/known.txt", "conf/tokens"} {
		file := fmt.Sprintf("open/swap-file-%d", i)
		write(t, filepath.Join(h.root, file), keptText)
		pairs[file] = fmt.Sprintf("open/other-file-%d", i)
		expect.Must(t, os.Symlink(target, filepath.Join(h.root, pairs[file])))
	}
	was, stop := h.kept(t), make(chan struct{})
	var racers sync.WaitGroup
	var mu sync.Mutex
	defer h.plant(t)
	defer racers.Wait()
	defer close(stop)
	for a, b := range pairs {
		racers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Microsecond):
					mu.Lock() // against those who look what has changed
					_ = unix.Renameat2(unix.AT_FDCWD, h.root+"/"+a, unix.AT_FDCWD, h.root+"/"+b, unix.RENAME_EXCHANGE)
					mu.Unlock()
				}
			}
		})
	}
	names := slices.Sorted(maps.Keys(pairs))
	draw := rand.New(rand.NewPCG(7, 7))
	for failures := 0; cases < calls && failures < enough; cases++ {
		name := names[draw.IntN(len(names))]
		if !strings.Contains(name, "file") {
			name += []string{"", "/known.txt", "/deep/known.txt", "/new.txt", "/deep/new.txt"}[draw.IntN(5)]
		}
		tried := writeAttempts(name, "open")
		a := tried[draw.IntN(len(tried))]
		expect.Value(c.call(a.tool, a.args))(t, "%s %v", a.tool, a.args)
		if cases%10 == 9 {
			mu.Lock()
			is := h.kept(t)
			if changed := differences(was, is); len(changed) > 0 {
				failures++
				fail(fmt.Sprintf("raced, at the latest by %s %v: %.600q", a.tool, a.args, changed))
			}
			was = is
			for a := range pairs { // what was moved away or removed
				if strings.Contains(a, "file") {
					_ = os.WriteFile(h.open+"/own.txt", []byte(keptText), 0o600)
				} else if _, err := os.Lstat(h.root + "/" + a); err != nil {
					_ = os.MkdirAll(h.root+"/"+a+"/deep", 0o755)
				}
			}
			mu.Unlock()
		}
	}
	return cases
}

var shownUndo = regexp.MustCompile(`undo: (obs:[a-z0-9]{12})`)

// undoes has changes undone whose directory was exchanged meanwhile for a link that leads out, to files like those that
// the changes left.
func (h writeHouse) undoes(t testing.TB, c *stdioClient, fail func(string)) (cases int) {
	t.Helper()
	for _, change := range []writeAttempt{
		{"edit", object{"path": "open/own/known.txt", "edits": []object{{"old": "kept", "new": "changed"}}}},
		{"write", object{"path": "open/own/new.txt", "content": keptText}},
		{"write", object{"path": "open/own/inner/made/new.txt", "content": keptText, "parents": true}},
		{"write", object{"path": "open/own/known.txt", "content": "more\n", "append": true}},
		{"move", object{"from": "open/own/known.txt", "to": "open/own/new.txt"}},
		{"move", object{"from": "open/own/known.txt", "to": "open/moved.txt"}},
		{"move", object{"from": "open/own.txt", "to": "open/own/copy.txt", "copy": true}},
		{"remove", object{"path": "open/own/known.txt"}},
		{"remove", object{"path": "open/own/known.txt", "tree": true}},
		{"move", object{"from": "open/own", "to": "open/dir/own"}},
	} {
		a := expect.Value(c.call(change.tool, change.args))(t)
		id := shownUndo.FindStringSubmatch(a.text())
		if a.failed || id == nil {
			t.Fatalf("%s %v: %s", change.tool, change.args, a.text())
		}
		twin := h.parent + "/twin" // what the change left lies outside
		if err := os.Rename(h.open+"/own", twin); err != nil {
			expect.Must(t, os.Mkdir(twin, 0o755))
		}
		expect.Must(t, os.Symlink("../../twin", h.open+"/own"))
		was := h.kept(t)
		expect.Value(c.call("write", object{"undo": id[1]}))(t)
		cases++
		if changed := differences(was, h.kept(t)); len(changed) > 0 {
			fail(fmt.Sprintf("undo of %s %v: %.600q", change.tool, change.args, changed))
		}
		h.plant(t)
	}
	return cases
}

// moved has a directory moved out of the root while a change waits: for the client's answer, and for the lock of the
// directory.
func (h writeHouse) moved(t testing.TB, program string, fail func(string)) (cases int) {
	t.Helper()
	out := func() { _ = os.Rename(h.open+"/dir", h.parent+"/twin") }
	asked := launch{program: program, flags: h.flags("--confirm"), dir: h.parent + "/vault"}
	asked.capabilities = object{"elicitation": object{}}
	asked.replies = map[string]func() any{"elicitation/create": func() any {
		out()
		return object{"action": "accept", "content": object{}}
	}}
	clients := []*stdioClient{asked.stdio(t), h.launch(t, program)}
	for _, a := range writeAttempts("open/dir/known.txt", "open") {
		for i, c := range clients {
			h.plant(t)
			was := describeFile(t, h.open+"/dir/known.txt")
			dir := expect.Value(os.Open(h.open + "/dir"))(t)
			if i == 1 {
				expect.Must(t, unix.Flock(int(dir.Fd()), unix.LOCK_EX))
			}
			p := c.beginCall(a.tool, a.args)
			if i == 1 {
				time.Sleep(30 * time.Millisecond) // until it waits; if not, it finds no directory
				out()
			}
			_ = dir.Close()
			expect.Value(p.wait())(t)
			cases++
			if _, err := os.Stat(h.parent + "/twin"); err != nil {
				out() // it was not asked: nothing was to be changed
			}
			names, _ := filepath.Glob(h.parent + "/twin/*")
			hidden, _ := filepath.Glob(h.parent + "/twin/.*")
			if len(names)+len(hidden) != 1 || describeFile(t, h.parent+"/twin/known.txt") != was {
				fail(fmt.Sprintf("%s %v: in a directory that was moved out: %q", a.tool, a.args, append(names, hidden...)))
			}
		}
	}
	h.plant(t)
	return cases
}

// TestS34WritesStayInside makes all attempts to create, change and remove what no tool may: outside of what was granted
// to be written, by names, links, races, undoing and directories that move; and inside, what others run or trust.
func TestS34WritesStayInside(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	var faults []string
	fail := func(what string) { faults = append(faults, what) }
	h := newWriteHouse(t)
	c := h.launch(t, "")
	h.plant(t) // with the store's token
	cases := h.try(t, c, promise.Size(4, 1), fail)
	names, undoes := cases, h.undoes(t, c, fail)
	moves := h.moved(t, "", fail)
	raced := h.race(t, c, promise.Size(200, 20_000), 20, fail)
	cases += undoes + moves + raced
	for _, a := range writeAttempts("open/here.txt", "open") { // what must work, in the same place
		a := expect.Value(c.call("write", object{"path": "open/here-" + a.tool + ".txt", "content": keptText}))(t)
		if id := shownUndo.FindStringSubmatch(a.text()); a.failed || id == nil {
			t.Fatal(a.text())
		} else if a, err := c.call("write", object{"undo": id[1]}); err != nil || a.failed {
			t.Fatal(a.text(), err)
		}
	}
	report(t, faults)

	control, weakened := 0, newWriteHouse(t)
	count := func(string) { control++ }
	w := weakened.launch(t, weak.binary(t))
	weakened.plant(t)
	weakened.try(t, w, promise.Size(8, 2), count)
	weakened.race(t, w, 100, 3, count)
	promise.Keptf(t, promise.Proof{Promise: "S34", Cases: cases, Failures: len(faults), Control: control},
		"%d attempts by %d names, %d undone behind links, %d in directories that were moved out, %d raced",
		names, len(h.names()), undoes, moves, raced)
}

// tokenIssuer is an issuer of access tokens on loopback.
type tokenIssuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

func newTokenIssuer(t testing.TB) *tokenIssuer {
	t.Helper()
	i := &tokenIssuer{key: expect.Value(ecdsa.GenerateKey(elliptic.P256(), crand.Reader))(t)}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
				{Key: i.key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"},
			}})
			return
		}
		_ = json.NewEncoder(w).Encode(object{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *tokenIssuer) token(t testing.TB, subject string) string {
	t.Helper()
	o := (&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", "k")
	signer := expect.Value(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, o))(t)
	text := expect.Value(json.Marshal(object{
		"iss": i.URL, "aud": resourceURL, "sub": subject, "exp": time.Now().Add(time.Hour).Unix(),
	}))(t)
	return expect.Value(expect.Value(signer.Sign(text))(t).CompactSerialize())(t)
}

// TestS34RootsOfOthersStay has anna, whose token or client names one directory of those that may be written, try to
// write in that of bert. The control is bert.
func TestS34RootsOfOthersStay(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	plant := func() {
		for _, name := range []string{"bert/known.txt", "anna/own.txt", "anna/own/known.txt"} {
			expect.Must(t, os.RemoveAll(filepath.Join(top, "root", filepath.Dir(name))))
			write(t, filepath.Join(top, "root", name), keptText)
		}
		for i, target := range []string{"../bert", top + "/root/bert", "../bert/known.txt"} {
			expect.Must(t, os.Symlink(target, fmt.Sprintf("%s/root/anna/l-%d", top, i)))
		}
	}
	expect.Must(t, os.MkdirAll(top+"/root/anna/own", 0o755))
	plant()
	issuer := newTokenIssuer(t)
	config := top + "/config.yaml"
	write(t, config, "oauth-issuer: "+issuer.URL+"\noauth-audience: ["+resourceURL+"]\n"+
		"roots:\n  sub:\n    anna: [root/anna]\n    bert: [root/bert]\n")
	flags := []string{
		"--root", top + "/root", "--allow-write", top + "/root", "--store", top + "/store", "--min-free", "0",
		"--toolsets", "core,documents,write",
	}
	server := launch{flags: append([]string{"--config", config}, flags...)}.http(t)
	var anna, bert httpSession
	for subject, session := range map[string]*httpSession{"anna": &anna, "bert": &bert} {
		token := issuer.token(t, subject)
		waitFor(time.Minute, func() bool { // until the keys are there
			r, err := send(t.Context(), server.url+"/mcp", hello, "Authorization", "Bearer "+token)
			if err == nil {
				_ = r.Body.Close()
			}
			return err == nil && r.StatusCode == http.StatusOK
		})
		*session = server.open(token)
	}
	narrow := launch{flags: flags, capabilities: object{"roots": object{}}, replies: map[string]func() any{
		"roots/list": func() any { return rootsOf("file://" + top + "/root/anna") },
	}}.stdio(t)

	var faults []string
	cases := 0
	try := func(who string, c toolCaller, fail func(string)) {
		for _, dir := range []string{"../bert", "bert", top + "/root/bert", "l-0", "l-1", "l-2"} {
			for _, name := range []string{"", "/known.txt", "/new.txt"} {
				was := map[string]string{"known.txt": describeFile(t, top+"/root/bert/known.txt")}
				for _, a := range writeAttempts(dir+name, ".") {
					cases++
					expect.Value(c.call(a.tool, a.args))(t)
				}
				is := map[string]string{}
				for _, e := range expect.Value(os.ReadDir(top + "/root/bert"))(t) {
					is[e.Name()] = describeFile(t, top+"/root/bert/"+e.Name())
				}
				if changed := differences(was, is); len(changed) > 0 {
					fail(fmt.Sprintf("%s by %s: %.600q", who, dir+name, changed))
				}
				plant()
			}
		}
	}
	fail := func(what string) { faults = append(faults, what) }
	try("the token of anna", anna, fail)
	try("a client with the roots of anna", narrow, fail)
	report(t, faults)
	tried, control := cases, 0
	try("bert", bert, func(string) { control++ })
	promise.Keptf(t, promise.Proof{Promise: "S34", Cases: tried, Failures: len(faults), Control: control},
		"in a directory of another identity and of no root of the client; control: its own identity")
}
