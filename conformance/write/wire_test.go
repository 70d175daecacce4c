//go:build linux

package write_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/built"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// wire is a client of the program over stdio, which answers what the server asks. In the stateless era it repeats the
// call with its replies.
type wire struct {
	t    *testing.T
	root string
	in   io.Writer
	out  *bufio.Reader
	last int
	meta string // what each request declares in the stateless era; "": the sessions era

	asked   []string                         // messages of questions
	replies map[string]func(q string) string // the result of a question, by its method
}

// serve starts the program for a client with these capabilities, with the toolset write and a root whose files it may
// change, and flags.
func serve(t *testing.T, stateless bool, capabilities string, flags ...string) *wire {
	t.Helper()
	if promise.UnderRace {
		t.Skip("it drives a program, which is built without the race detector")
	}
	root := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	return serveOn(t, root, t.TempDir(), stateless, capabilities, append([]string{"--allow-write", root}, flags...)...)
}

func serveOn(t *testing.T, root, store string, stateless bool, capabilities string, flags ...string) *wire {
	t.Helper()
	flags = append([]string{"--root", root, "--store", store, "--min-free", "0"}, flags...)
	if !slices.Contains(flags, "--toolsets") {
		flags = append(flags, "--toolsets", "core,documents,write")
	}
	cmd := exec.CommandContext(t.Context(), built.Program(t, "cmd/mcp-funnel"), flags...)
	cmd.WaitDelay = 5 * time.Second
	w := &wire{t: t, root: root, replies: map[string]func(string) string{}}
	in := expect.Value(cmd.StdinPipe())(t)
	w.in, w.out = in, bufio.NewReaderSize(expect.Value(cmd.StdoutPipe())(t), 1<<20)
	expect.Must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if stateless {
		w.meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":` +
			`{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
		return w
	}
	w.request("initialize", `{"protocolVersion":"2025-06-18","clientInfo":{"name":"t","version":"1"},"capabilities":`+
		capabilities+`}`)
	expect.Value(io.WriteString(w.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"))(t)
	return w
}

// answer is a result or an error of the server.
type answer struct {
	Content       []struct{ Text string }
	IsError       bool
	ResultType    string
	RequestState  string
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	}
	Tools []struct {
		Name        string
		Annotations map[string]any
	}
	Code    int
	Message string
}

// request sends a request and returns what it is answered, after it has answered what the server asks meanwhile.
func (w *wire) request(method, params string) (a answer) {
	w.t.Helper()
	w.last++
	params = strings.Replace(strings.TrimSuffix(params, "}")+w.meta+"}", "{,", "{", 1)
	expect.Value(fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", w.last, method, params))(w.t)
	for {
		line := expect.Value(w.out.ReadString('\n'))(w.t)
		var m struct {
			ID            json.RawMessage
			Method        string
			Params        json.RawMessage
			Result, Error json.RawMessage
		}
		expect.Must(w.t, json.Unmarshal([]byte(line), &m), line)
		switch {
		case m.Method != "" && m.ID != nil:
			expect.Value(fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, w.reply(m.Method, m.Params)))(w.t)
		case m.Method == "":
			expect.Must(w.t, json.Unmarshal([]byte(string(m.Result)+string(m.Error)), &a), line)
			return a
		}
	}
}

func (w *wire) reply(method string, params json.RawMessage) string {
	w.t.Helper()
	var q struct{ Message string }
	if len(params) > 0 {
		expect.Must(w.t, json.Unmarshal(params, &q))
	}
	if method == "elicitation/create" {
		w.asked = append(w.asked, q.Message)
	}
	of := w.replies[method]
	if of == nil {
		w.t.Fatalf("the server asks %s", method)
	}
	return of(q.Message)
}

// call calls a tool and returns the text of its answer.
func (w *wire) call(tool, args string) (text string, failed bool) {
	w.t.Helper()
	more := ""
	for range 10 {
		a := w.request("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s%s}`, tool, args, more))
		if a.ResultType != "input_required" {
			for _, c := range a.Content {
				text += c.Text + "\n"
			}
			return text + a.Message, a.IsError || a.Code != 0
		}
		for name, q := range a.InputRequests {
			more = fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:%s}`, a.RequestState, name, w.reply(q.Method, q.Params))
		}
	}
	w.t.Fatalf("%s is asked for again and again", tool)
	return "", true
}

// does calls a tool that must do it.
func (w *wire) does(tool, args string, want ...string) string {
	w.t.Helper()
	text, failed := w.call(tool, args)
	if failed {
		w.t.Errorf("%s %s: %s", tool, args, text)
	}
	expect.Contains(w.t, text, want...)
	return text
}

// refuses calls a tool that must not do it.
func (w *wire) refuses(tool, args string, want ...string) string {
	w.t.Helper()
	text, failed := w.call(tool, args)
	if !failed {
		w.t.Errorf("%s %s was done: %s", tool, args, text)
	}
	expect.Contains(w.t, text, want...)
	return text
}

func (w *wire) file(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	expect.Must(w.t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // a test's directory
	expect.Must(w.t, os.WriteFile(path, []byte(text), 0o600))
}

// has compares a file; "-" is no file.
func (w *wire) has(name, want string) {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, name))
	if os.IsNotExist(err) {
		text = []byte("-")
	}
	expect.Equal(w.t, string(text), want, name)
}

var (
	obsID     = regexp.MustCompile(`obs:[0-9a-z]{12}`)
	shownHash = regexp.MustCompile(`hash (?:is )?([0-9a-f]{8})`)
)

// hashIn returns the last hash of an answer.
func hashIn(t *testing.T, text string) string {
	t.Helper()
	all := shownHash.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		t.Fatalf("no hash: %s", text)
	}
	return all[len(all)-1][1]
}

// eras runs a test with clients of both eras.
func eras(t *testing.T, test func(t *testing.T, stateless bool)) {
	t.Helper()
	for _, stateless := range []bool{false, true} {
		t.Run(map[bool]string{false: "sessions", true: "stateless"}[stateless], func(t *testing.T) {
			t.Parallel()
			test(t, stateless)
		})
	}
}

// token is a secret of a known format.
const token = "AKIA" + "IOSFODNN7EXAMPLX"

const canBeAsked = `{"elicitation":{}}`

func always(result string) func(string) string { return func(string) string { return result } }

// A change is asked of the client with its diff, in which secrets are masked, and made only if it is accepted.
func TestConfirm(t *testing.T) {
	eras(t, func(t *testing.T, stateless bool) {
		w := serve(t, stateless, canBeAsked, "--confirm")
		w.file("a.txt", "token = "+token+"\ntwo\nthree\n")
		const edit = `{"path":"a.txt","edits":[{"old":"two","new":"2"}]}`
		before, after := "token = "+token+"\ntwo\nthree\n", "token = "+token+"\n2\nthree\n"
		for action, want := range map[string]string{
			`{"action":"decline"}`:               "nothing was changed: the user did not accept it (decline)",
			`{"action":"cancel"}`:                "nothing was changed: the user did not accept it (cancel)",
			`{"action":"` + token + `"}`:         "nothing was changed: the user did not accept it (",
			`{}`:                                 "nothing was changed: the user did not accept it ()",
			`{"action":["accept"]}`:              "nothing was changed: the user did not accept it ()",
			`{"action":"ACCEPT","content":null}`: "nothing was changed: the user did not accept it (ACCEPT)",
		} {
			w.replies["elicitation/create"] = always(action)
			expect.Lacks(t, w.refuses("edit", edit, want), token)
			w.has("a.txt", before)
		}
		w.asked, w.replies["elicitation/create"] = nil, always(`{"action":"accept","content":{}}`)
		w.does("edit", edit, "-two\n+2\n", "undo: obs:")
		w.has("a.txt", after)
		expect.Equal(t, len(w.asked), 1, "questions: %q", w.asked)
		expect.Contains(t, w.asked[0], "edit a.txt", "-two\n+2\n", "[masked: ")
		expect.Lacks(t, w.asked[0], token)
		w.does("edit", `{"path":"a.txt","edits":[{"old":"2","new":"zwei"}],"dry_run":true}`, "nothing is written")
		expect.Equal(t, len(w.asked), 1, "questions: %q", w.asked)
	})
}

// Each kind of change is asked once, and none is made that is declined.
func TestConfirmAllChanges(t *testing.T) {
	eras(t, func(t *testing.T, stateless bool) {
		w := serve(t, stateless, canBeAsked, "--confirm")
		w.file("a.txt", "one\n")
		w.replies["elicitation/create"] = always(`{"action":"accept"}`)
		undo := obsID.FindString(w.does("edit", `{"path":"a.txt","edits":[{"old":"one","new":"two"}]}`))
		hash := hashIn(t, w.does("read", `{"path":"a.txt"}`))
		for _, c := range []struct{ tool, args, path, asks, before, after string }{
			{"write", `{"path":"sub/new/b.txt","content":"b\n","parents":true}`, "sub/new/b.txt", "write sub/new/b.txt", "-",
				"b\n"},
			{"write", `{"path":"a.txt","mode":"replace","expect":"` + hash + `","content":"3\n"}`, "a.txt", "-two\n+3\n",
				"two\n", "3\n"},
			{"write", `{"path":"a.txt","append":true,"content":"4\n"}`, "a.txt", "+4\n", "3\n", "3\n4\n"},
			{"move", `{"from":"a.txt","to":"c.txt"}`, "c.txt", "moved from a.txt", "-", "3\n4\n"},
			{"move", `{"from":"c.txt","to":"d.txt","copy":true}`, "d.txt", "copied from c.txt", "-", "3\n4\n"},
			{"remove", `{"path":"c.txt"}`, "c.txt", "): removed, 4 bytes", "3\n4\n", "-"},
			{"deliver", `{"part":"[1,2]","to":"e.json"}`, "e.json", "write e.json", "-", "[1,2]"},
		} {
			w.asked, w.replies["elicitation/create"] = nil, always(`{"action":"decline"}`)
			text, failed := w.call(c.tool, c.args)
			expect.Has(t, text, "the user did not accept it")
			expect.Equal(t, failed, c.tool != "deliver", text) // the document is kept all the same
			w.has(c.path, c.before)
			expect.Equal(t, len(w.asked), 1, "questions: %q", w.asked)
			expect.Has(t, w.asked[0], c.asks)
			w.replies["elicitation/create"] = always(`{"action":"accept"}`)
			w.does(c.tool, c.args)
			w.has(c.path, c.after)
			expect.Equal(t, len(w.asked), 2, "questions: %q", w.asked)
		}
		w.file("a.txt", "two\n")
		w.asked = nil
		w.does("write", `{"undo":"`+undo+`"}`)
		w.has("a.txt", "one\n")
		expect.Equal(t, len(w.asked), 1, "questions: %q", w.asked)
		expect.Contains(t, w.asked[0], "undo a.txt", "-two\n+one\n")
		entries := expect.Value(os.ReadDir(filepath.Join(w.root, "sub")))(t)
		expect.Equal(t, len(entries), 1, "directories that were made for a declined change stay")
	})
}

// A client that cannot be asked gets an error, and nothing is changed.
func TestConfirmNeedsAClient(t *testing.T) {
	eras(t, func(t *testing.T, stateless bool) {
		w := serve(t, stateless, `{}`, "--confirm")
		w.file("a.txt", "one\n")
		w.refuses("edit", `{"path":"a.txt","edits":[{"old":"one","new":"two"}]}`, "elicitation")
		w.refuses("remove", `{"path":"a.txt"}`, "elicitation")
		w.has("a.txt", "one\n")
		w.does("edit", `{"path":"a.txt","edits":[{"old":"one","new":"two"}],"dry_run":true}`, "-one\n+two\n")
	})
}

// A file that changes while the client is asked is not changed by an answer to what it was: the call is refused, or the
// client is asked again, also if the diff is the same.
func TestConfirmOfWhatHasChanged(t *testing.T) {
	eras(t, func(t *testing.T, stateless bool) {
		far := strings.Repeat("a line\n", 2000)
		for old, now := range map[string]string{
			"one\ntwo\n":               "one\ntwo\nthree\n",
			"one\ntwo\n" + far + "x\n": "one\ntwo\n" + far + "y\n",
		} {
			w := serve(t, stateless, canBeAsked, "--confirm")
			w.file("a.txt", old)
			w.replies["elicitation/create"] = func(string) string {
				if len(w.asked) == 1 {
					w.file("a.txt", now)
				}
				return `{"action":"accept"}`
			}
			const edit = `{"path":"a.txt","edits":[{"old":"one","new":"1"}]}`
			if stateless {
				w.does("edit", edit)
				expect.Equal(t, len(w.asked), 2, "questions: %q", w.asked)
				w.has("a.txt", strings.Replace(now, "one", "1", 1))
				continue
			}
			w.refuses("edit", edit, "it was changed while the client was asked: nothing was written")
			w.has("a.txt", now)
			w.does("edit", edit)
			w.has("a.txt", strings.Replace(now, "one", "1", 1))
		}
	})
}

// A tree that changes while the client is asked is not removed by an answer to what was in it.
func TestConfirmOfATreeThatHasChanged(t *testing.T) {
	w := serve(t, false, canBeAsked, "--confirm")
	w.file("tree/a.txt", "one\n")
	w.replies["elicitation/create"] = func(string) string {
		w.file("tree/b.txt", "two\n")
		return `{"action":"accept"}`
	}
	w.refuses("remove", `{"path":"tree","tree":true}`, "it was changed while the client was asked")
	w.has("tree/b.txt", "two\n")
	w.does("remove", `{"path":"tree","tree":true}`, "removed, 3 files and directories")
}

// A file that changes while the client is asked is not moved by an answer to what was in it.
func TestConfirmOfAMoveThatHasChanged(t *testing.T) {
	w := serve(t, false, canBeAsked, "--confirm")
	w.file("a.txt", "one\n")
	w.replies["elicitation/create"] = func(string) string {
		w.file("a.txt", "two\n")
		return `{"action":"accept"}`
	}
	w.refuses("move", `{"from":"a.txt","to":"b.txt"}`, "it was changed while the client was asked")
	w.has("a.txt", "two\n")
	w.does("move", `{"from":"a.txt","to":"b.txt","copy":true}`, "b.txt: copied from a.txt")
	expect.Contains(t, w.asked[0], "move b.txt (hash 2c8b08da)")
}

// The client is shown what a new file gets, no character that hides others, and that a part is left out.
func TestConfirmShowsAll(t *testing.T) {
	w := serve(t, false, canBeAsked, "--confirm")
	w.replies["elicitation/create"] = always(`{"action":"accept"}`)
	w.does("write", `{"path":"a\nb","content":"evil\u001b[1A\u202egood\n"}`)
	w.does("write", `{"path":"long","content":"`+strings.Repeat("harmless ", 1000)+`"}`)
	expect.Contains(t, w.asked[0], `write a\x0ab (hash none)`, `evil\x1b[1A\u{202e}good`)
	expect.Contains(t, w.asked[1], "harmless", "a part is not shown")
}

// The roots of a client narrow what it may change, as they narrow what it may read.
func TestClientRootsNarrowChanges(t *testing.T) {
	w := serve(t, false, `{"roots":{}}`)
	w.file("sub/a.txt", "one\n")
	w.file("top.txt", "one\n")
	w.replies["roots/list"] = always(`{"roots":[{"uri":"file://` + w.root + `/sub"}]}`)
	w.does("edit", `{"path":"a.txt","edits":[{"old":"one","new":"two"}]}`)
	w.has("sub/a.txt", "two\n")
	for _, name := range []string{"../top.txt", w.root + "/top.txt"} {
		w.refuses("edit", `{"path":"`+name+`","edits":[{"old":"one","new":"two"}]}`)
		w.refuses("write", `{"path":"`+name+`","append":true,"content":"x"}`)
		w.refuses("move", `{"from":"a.txt","to":"`+name+`2"}`)
		w.refuses("move", `{"from":"`+name+`","to":"b.txt"}`)
		w.refuses("remove", `{"path":"`+name+`"}`)
	}
	w.refuses("write", `{"path":"`+w.root+`/new/x.txt","content":"x","parents":true}`)
	entries := expect.Value(os.ReadDir(w.root))(t)
	expect.Equal(t, len(entries), 2, "below the root")
	w.has("top.txt", "one\n")

	// The control: without roots of its own, a client may.
	control := serve(t, false, `{}`)
	control.file("top.txt", "one\n")
	control.does("edit", `{"path":"top.txt","edits":[{"old":"one","new":"two"}]}`)
	control.has("top.txt", "two\n")
}

// Below a wider root only what the operator allowed may be changed, all of it may be read.
func TestAllowedIsNarrowerThanTheRoot(t *testing.T) {
	if promise.UnderRace {
		t.Skip("it drives a program")
	}
	root := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	expect.Must(t, os.Mkdir(filepath.Join(root, "sub"), 0o755)) //nolint:gosec // a test's directory
	w := serveOn(t, root, t.TempDir(), false, `{}`, "--allow-write", filepath.Join(root, "sub"))
	w.file("top.txt", "one\n")
	w.does("read", `{"path":"top.txt"}`, "one")
	w.refuses("edit", `{"path":"top.txt","edits":[{"old":"one","new":"two"}]}`, "what may be changed lies below sub")
	w.refuses("move", `{"from":"top.txt","to":"sub/top.txt"}`, "may be read, not changed")
	w.does("write", `{"path":"sub/x.txt","content":"x\n"}`)
	w.refuses("move", `{"from":"sub/x.txt","to":"x.txt"}`, "may be read, not changed")
	w.has("sub/x.txt", "x\n")
	w.has("top.txt", "one\n")
}

// A file is changed only if it still has the hash that was shown: by read, or by the last change. Else the error shows
// what has changed since.
func TestExpect(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	w.file("a.txt", "one\ntwo\nthree\n")
	hash := hashIn(t, w.does("read", `{"path":"a.txt"}`, "one\ntwo\nthree\n"))
	edit := func(old, new, hash string) string {
		return fmt.Sprintf(`{"path":"a.txt","edits":[{"old":%q,"new":%q}],"expect":%q}`, old, new, hash)
	}
	// By another session, of another process.
	other := serveOn(t, w.root, t.TempDir(), false, `{}`, "--allow-write", w.root)
	other.does("edit", edit("two", "2", hash))
	stale := w.refuses("edit", edit("three", "3", hash), "it has changed", "nothing was written",
		"what changed since then:\n", "-two\n+2\n")
	w.has("a.txt", "one\n2\nthree\n")
	now := hashIn(t, strings.SplitAfter(stale, "now")[0])
	own := hashIn(t, strings.Split(w.does("edit", edit("three", "3", "sha256:"+strings.ToUpper(now))), "\n")[0])
	w.file("a.txt", "eins\n2\n3\n") // after its own change
	w.refuses("edit", edit("3", "drei", own), "-one\n+eins\n")
	w.refuses("edit", edit("3", "drei", "00000000"), "it has changed", "read it again")
	w.refuses("edit", edit("3", "drei", own[:7]), "hash")
	w.refuses("edit", `{"path":"b.txt","edits":[{"old":"a","new":"b"}],"expect":"`+own+`"}`, "it does not exist")
	w.has("a.txt", "eins\n2\n3\n")
	dry := w.does("edit", `{"path":"a.txt","edits":[{"old":"2","new":"zwei"}],"dry_run":true}`, "-2\n+zwei\n",
		"nothing is written (dry_run)")
	w.has("a.txt", "eins\n2\n3\n")
	w.does("edit", edit("2", "zwei", hashIn(t, dry)))
	w.has("a.txt", "eins\nzwei\n3\n")
}

// A diff of 40 lines is shown whole; of a longer one there is a receipt, with the hash and the way to undo it.
func TestReceiptOfALongDiff(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	var short, long strings.Builder
	for i := range 300 {
		if i < 19 {
			fmt.Fprintf(&short, "line %d is a\n", i)
		}
		fmt.Fprintf(&long, "line %d is a\n", i)
	}
	w.file("short.txt", short.String())
	w.file("long.txt", long.String())
	const all = `"edits":[{"old":" is a","new":" is b","all":true}]}`
	text := w.does("edit", `{"path":"short.txt",`+all, "19 places replaced, +19 -19 lines",
		"-line 18 is a\n", "+line 18 is b\n")
	expect.Lacks(t, text, "LARGE OUTPUT")
	text = w.does("edit", `{"path":"long.txt",`+all, "LARGE OUTPUT DETECTED: kept whole as obs:",
		"total: 60", "300 places replaced, +300 -300 lines")
	kept, undo, _ := strings.Cut(text, "undo: ")
	if n := strings.Count(text, "\n"); n > 60 {
		t.Errorf("%d lines are shown: %s", n, text)
	}
	w.does("grep", `{"source":"`+obsID.FindString(kept)+`","pattern":"^[+]line 299 is b$"}`, "line 299 is b")
	w.does("write", `{"undo":"`+obsID.FindString(undo)+`"}`)
	w.has("long.txt", long.String())
}

// deliver writes a document to a file once it is whole, as it is kept, and says why it does not.
func TestDeliverToAFile(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	text := w.does("deliver", `{"part":"{\"a\": [1,\n 2]}\n","to":"doc.json"}`, "WHOLE", "doc.json: created",
		"hash ", "undo: obs:")
	w.has("doc.json", "{\"a\": [1,\n 2]}\n")
	w.does("write", `{"undo":"`+obsID.FindString(strings.SplitAfter(text, "undo: ")[1])+`"}`)
	w.has("doc.json", "-")
	text = w.does("deliver", `{"part":"{\"a\": [\"eins und zwei und drei\", \"vier","to":"doc.json"}`, "CUT OFF",
		"doc.json is not written: it is not known that the document is whole")
	w.has("doc.json", "-")
	after := regexp.MustCompile(`after=(obs:[0-9a-z]{12})`).FindStringSubmatch(text)[1]
	w.does("deliver", `{"part":"\"eins und zwei und drei\", \"vier\"]}","after":"`+after+`","to":"doc.json"}`,
		"WHOLE", "doc.json: created")
	w.has("doc.json", `{"a": ["eins und zwei und drei", "vier"]}`)
	w.does("deliver", `{"part":"[3]","to":"doc.json"}`, "WHOLE", "it was not written to a file: doc.json: it exists")
	w.does("deliver", `{"part":"[3]","to":"../doc.json"}`, "WHOLE", "it was not written to a file: ")
	w.does("deliver", `{"part":"[3]","to":"none/doc.json"}`, "WHOLE", "it was not written to a file: ",
		"directory of the file is missing")
	w.does("deliver", `{"part":"{\"x\":1}","as":"intent","to":"intent.json"}`, "intent.json was not written: ")
	w.has("intent.json", "-")
	w.does("deliver", `{"part":"some words\n","as":"text","to":"words.txt"}`, "words.txt is not written: ", "from=obs:")
	w.has("words.txt", "-")
	off := serveOn(t, w.root, t.TempDir(), false, `{}`, "--toolsets", "core,documents")
	off.does("deliver", `{"part":"[3]","to":"off.json"}`, "WHOLE", "off.json was not written: ", "--toolsets write")
	off.has("off.json", "-")
}

// write takes what was kept, whole or a part of it, byte for byte and with its secrets.
func TestWriteFrom(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	var rows, ids strings.Builder
	for i := range 439 {
		fmt.Fprintf(&rows, `{"id":%d,"name":"größer %d","token":"%s"}`+"\n", i, i, token)
		fmt.Fprintln(&ids, i)
	}
	w.file("rows.ndjson", rows.String())
	kept := obsID.FindString(w.does("jq", `{"source":"rows.ndjson","filter":".","save":true}`, "439"))
	for i, c := range []struct{ from, want string }{
		{`"` + kept + `"`, rows.String()},
		{`"` + kept + ` jq .id"`, ids.String()},
		{`{"$obs":"` + kept + `"}`, rows.String()},
		{`{"$obs":"` + kept + `","jq":".id"}`, ids.String()},
		{`{"$obs":"` + kept + `","jq":"map(.id) | add","slurp":true}`, "96141\n"},
		{`"` + kept + ` lines 2-3"`, strings.Join(strings.SplitAfter(rows.String(), "\n")[1:3], "")},
		{`"` + kept + ` jq select(.id == 7).token"`, token + "\n"},
		{`"` + kept + ` jq empty"`, ""},
	} {
		name := fmt.Sprintf("new/%d.txt", i)
		text := w.does("write", `{"path":"`+name+`","parents":true,"from":`+c.from+`}`,
			fmt.Sprintf("created, %d line", strings.Count(c.want, "\n")))
		expect.Lacks(t, text, token)
		w.has(name, c.want)
	}
	w.file("log.txt", "a")
	w.does("write", `{"path":"log.txt","append":true,"from":"`+kept+` jq select(.id < 2).id"}`,
		"the file did not end with a line end")
	w.has("log.txt", "a\n0\n1\n")
	for from, want := range map[string]string{
		`"obs:000000000000"`:             "obs:000000000000",
		`"` + kept + ` jq .id |"`:        "nothing was written",
		`"` + kept + ` lines 500-"`:      "it has no line 500",
		`"` + kept + ` lines 0"`:         "counted from 1",
		`"` + kept + ` tail"`:            "from is obs:ID",
		`{"$obs":"` + kept + `","jg":1}`: "from is obs:ID",
		`"rows.ndjson"`:                  "from is obs:ID",
	} {
		w.refuses("write", `{"path":"bad.txt","from":`+from+`}`, want)
		w.has("bad.txt", "-")
	}
}

// A mask, which answers show in place of a secret, is not written in its place.
func TestMasksAreNotWritten(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	const text = "a\ntoken = %s\nb [masked]\n"
	w.file("a.txt", fmt.Sprintf(text, token))
	shown := w.does("read", `{"path":"a.txt"}`)
	mask := regexp.MustCompile(`\[masked: [^\]]*\]`).FindString(shown)
	expect.MustEqual(t, mask != "", true, shown)
	w.refuses("edit", `{"path":"a.txt","edits":[{"old":"token = `+mask+`","new":"x"}]}`, "old has a mask")
	w.refuses("edit", `{"path":"a.txt","edits":[{"old":"a\n","new":"a\ntoken = `+mask+`\n"}]}`,
		"shown in place of a secret")
	w.refuses("write", `{"path":"b.txt","content":"token = `+mask+`\n"}`, "shown in place of a secret")
	w.refuses("write", `{"path":"a.txt","append":true,"content":"[masked]\n"}`, "shown in place of a secret")
	w.has("a.txt", fmt.Sprintf(text, token))
	w.has("b.txt", "-")
	expect.Lacks(t, w.does("edit", `{"path":"a.txt","edits":[{"old":"b [masked]","new":"c [masked]"}]}`), token)
	w.has("a.txt", strings.Replace(fmt.Sprintf(text, token), "b [", "c [", 1))
}

// The list of tools says what they may do.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	eras(t, func(t *testing.T, stateless bool) {
		w := serve(t, stateless, `{}`)
		got := map[string]map[string]any{}
		for _, tool := range w.request("tools/list", "{}").Tools {
			delete(tool.Annotations, "title")
			got[tool.Name] = tool.Annotations
		}
		for _, name := range []string{"edit", "write", "move", "remove"} {
			delete(got[name], "idempotentHint") // false, as if it is not there
			expect.Same(t, got[name], map[string]any{
				"readOnlyHint": false, "destructiveHint": true, "openWorldHint": false,
			}, name)
		}
		expect.Equal(t, got["read"]["readOnlyHint"], any(true))
	})
}

// What the arguments lack or have too much is named, and nothing is changed. A list that is quoted, and one edit
// without a list, are taken as they are meant.
func TestArguments(t *testing.T) {
	t.Parallel()
	w := serve(t, false, `{}`)
	w.file("a.txt", "one two three four\n")
	w.file("dir/b.txt", "b\n")
	w.does("edit", `{"path":"a.txt","edits":{"old":"one","new":"1"}}`)
	w.does("edit", `{"path":"a.txt","edits":"[{\"old\":\"two\",\"new\":\"2\"},{\"old\":\"2 three\",\"new\":\"2 3\"}]"}`)
	w.does("edit", `{"path":"a.txt","edits":"{\"old\":\"four\",\"new\":\"\"}"}`)
	w.has("a.txt", "1 2 3 \n")
	form := `{"old": "…", "new": "…"}`
	for _, c := range []struct{ tool, args, want string }{
		{"edit", `{"path":"a.txt","edits":[{"old":"1","new":"2","al":true}]}`, `al`},
		{"edit", `{"path":"a.txt","edits":[{"old":"1"}]}`, "edits[0] lacks old or new"},
		{"edit", `{"path":"a.txt","edits":[{"old":"1","new":"x"},{"new":"2"}]}`, "edits[1] lacks old or new"},
		{"edit", `{"path":"a.txt","edits":[{"old":"1","new":null}]}`, "edits[0] lacks old or new"},
		{"edit", `{"path":"a.txt","edits":[{"old":1,"new":"2"}]}`, form},
		{"edit", `{"path":"a.txt","edits":"old: 1"}`, form},
		{"edit", `{"path":"a.txt","edits":["1","2"]}`, form},
		{"edit", `{"path":"a.txt","edits":[]}`, "edits is empty"},
		{"edit", `{"path":"a.txt","edits":[{"old":"","new":"2"}]}`, "edits[0]: old is empty"},
		{"edit", `{"path":"a.txt","edits":[{"old":"1","new":"1"}]}`, "the same text"},
		{"edit", `{"path":"a.txt","edits":[{"old":"1","new":"x"},{"old":"5","new":"y"}]}`,
			"edits[1]: old is not in the file"},
		{"edit", `{"path":"a.txt"}`, "edits"},
		{"edit", `{"edits":[{"old":"1","new":"2"}]}`, "path"},
		{"edit", `{"path":"","edits":[{"old":"1","new":"2"}]}`, "path is empty"},
		{"edit", `{"path":"a.txt","old":"1","new":"2"}`, "edits"},
		{"edit", `{"path":"dir","edits":[{"old":"1","new":"2"}]}`, "director"},
		{"edit", `{"path":"none.txt","edits":[{"old":"1","new":"2"}]}`, "no such file"},
		{"edit", `{"path":"obs:000000000000","edits":[{"old":"1","new":"2"}]}`, "cannot be changed"},
		{"write", `{}`, "path is missing"},
		{"write", `{"path":"a.txt"}`, "content is missing"},
		{"write", `{"path":"a.txt","content":"x"}`, "it exists, with 7 bytes and hash "},
		{"write", `{"path":"n.txt","content":"x","from":"obs:000000000000"}`, "give content or from, not both"},
		{"write", `{"path":"a.txt","content":"x","append":true,"mode":"replace"}`, "leave out mode"},
		{"write", `{"path":"a.txt","content":"x","mode":"replace"}`, "mode=replace needs expect"},
		{"write", `{"path":"a.txt","content":"x","expect":"00000000"}`, "add mode=replace"},
		{"write", `{"path":"a.txt","content":"x","mode":"overwrite"}`, "create"},
		{"write", `{"path":"n/n.txt","content":"x"}`, "parents=true makes it"},
		{"write", `{"path":"a.txt","undo":"obs:000000000000"}`, "undo is given alone"},
		{"write", `{"undo":"obs:1"}`, "obs:1"},
		{"write", `{"undo":"obs:000000000000"}`, "obs:000000000000"},
		{"move", `{"from":"a.txt"}`, "to"},
		{"move", `{"from":"none.txt","to":"n.txt"}`, "none.txt"},
		{"move", `{"from":"a.txt","to":"dir/b.txt"}`, "it exists, with 2 bytes: replace="},
		{"move", `{"from":"a.txt","to":"dir/b.txt","replace":"00000000"}`, "it has changed"},
		{"move", `{"from":"dir","to":"dir/sub"}`, "lies in, what is to be moved"},
		{"move", `{"from":"dir","to":"dir2","copy":true}`, "it is no file"},
		{"remove", `{"path":"none.txt"}`, "none.txt"},
		{"remove", `{"path":"dir"}`, "tree=true removes it"},
		{"remove", `{"path":"."}`, "the directory that was granted"},
		{"remove", `{"path":"a.txt","force":true}`, "force"},
	} {
		w.refuses(c.tool, c.args, c.want)
	}
	w.has("a.txt", "1 2 3 \n")
	w.has("dir/b.txt", "b\n")
	expect.Equal(t, len(expect.Value(os.ReadDir(w.root))(t)), 2, "below the root")
}
