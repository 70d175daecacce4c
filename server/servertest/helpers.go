// Package servertest holds the tools, messages and stores that tests of the server and of its transports share.
//
// It starts no server, so that the tests within package server can use it too.
package servertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/tree"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/fs"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// TestTools returns tools that echo, sleep, fail, panic, report progress or write much.
func TestTools() []tools.Tool {
	type echoArgs struct {
		Text string `json:"text" jsonschema:"said back"`
	}
	type sleepArgs struct {
		MS   int  `json:"ms" jsonschema:"milliseconds"`
		Deaf bool `json:"deaf,omitempty" jsonschema:"ignore cancellation"`
	}
	return []tools.Tool{
		tools.New(tools.Tool{Name: "say", Title: "Say", Description: "Says a text back."},
			func(_ context.Context, a echoArgs, _ tools.Input, out tools.Output) error {
				_, err := io.WriteString(out, a.Text)
				return err
			}),
		{Name: "args", Title: "Arguments", Description: "Says its arguments back as they came.", Schema: json.RawMessage(`{"type":"object"}`),
			Run: func(_ context.Context, in tools.Input, out tools.Output) error {
				_, err := out.Write(in.Args)
				return err
			}},
		tools.New(tools.Tool{Name: "sleep", Title: "Sleep", Description: "Sleeps."},
			func(ctx context.Context, a sleepArgs, _ tools.Input, out tools.Output) error {
				timer := time.After(time.Duration(a.MS) * time.Millisecond)
				if a.Deaf {
					<-timer
				}
				select {
				case <-timer:
				case <-ctx.Done():
					return ctx.Err()
				}
				_, err := fmt.Fprintf(out, "slept %d", a.MS)
				return err
			}),
		tools.New(tools.Tool{Name: "fail", Title: "Fail", Description: "Fails."},
			func(context.Context, struct{}, tools.Input, tools.Output) error {
				return errors.New("fail: as it always does")
			}),
		tools.New(tools.Tool{Name: "panic", Title: "Panic", Description: "Panics.", Effect: tools.Destructive, OpenWorld: true},
			func(context.Context, struct{}, tools.Input, tools.Output) error { panic("as it always does") }),
		tools.New(tools.Tool{Name: "steps", Title: "Steps", Description: "Tells its progress."},
			func(_ context.Context, a struct {
				N int `json:"n" jsonschema:"steps"`
			}, _ tools.Input, out tools.Output) error {
				for i := range a.N {
					out.Progress(int64(i+1), int64(a.N), "step")
				}
				_, err := io.WriteString(out, "done")
				return err
			}),
		tools.New(tools.Tool{Name: "big", Title: "Big", Description: "Writes many lines."},
			func(_ context.Context, a struct {
				KB int `json:"kb" jsonschema:"kilobytes"`
			}, _ tools.Input, out tools.Output) error {
				line := strings.Repeat("x", 1023) + "\n"
				for range a.KB {
					if _, err := io.WriteString(out, line); err != nil {
						return err
					}
				}
				return nil
			}),
	}
}

// Answer is a response to a tools/call, decoded by the client.
type Answer struct {
	ID     json.RawMessage
	Error  *jsonrpc.Fault
	Result struct {
		Content []struct{ Type, Text, Data, MIMEType string }
		IsError bool
		Meta    map[string]json.RawMessage `json:"_meta"`
	}
}

const Initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

const ModernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

const Initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func (a Answer) Text() string {
	var b strings.Builder
	for _, c := range a.Result.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

func Read(t testing.TB, message string) Answer {
	t.Helper()
	var a Answer
	if err := json.Unmarshal([]byte(message), &a); err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	return a
}

// Message is a message of any type from the server, decoded by the client.
type Message struct {
	ID     json.RawMessage
	Method string
	Error  *jsonrpc.Fault
	Result json.RawMessage
	Params struct {
		ProgressToken json.RawMessage
		Progress      int
	}
}

func ToolCall(id, tool, args, meta string) string {
	return fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s%s}}`, id, tool, args, meta,
	)
}

// Form returns a question to the user with this message.
func Form(message string) tools.Question {
	return tools.Question{Method: "elicitation/create", Params: fmt.Appendf(nil, `{"message":%q,"requestedSchema":`+
		`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`, message)}
}

// AskTools returns tools that ask their client questions.
func AskTools() []tools.Tool {
	type who struct {
		Model bool `json:"model,omitempty" jsonschema:"ask the model too"`
		Twice bool `json:"twice,omitempty" jsonschema:"ask the user twice"`
	}
	return []tools.Tool{
		tools.New(tools.Tool{Name: "greet", Title: "Greet", Description: "Asks for a name."},
			func(ctx context.Context, a who, in tools.Input, out tools.Output) error {
				if _, err := io.WriteString(out, "asking\n"); err != nil {
					return err
				}
				var names []string
				for i := range 2 {
					reply, err := in.Ask(ctx, Form(fmt.Sprint("who? ", i)))
					if err != nil {
						return err
					}
					var filled struct {
						Action  string
						Content struct{ Name string }
					}
					if err := json.Unmarshal(reply, &filled); err != nil {
						return err
					}
					if filled.Action != "accept" {
						_, err := fmt.Fprintf(out, "the user: %s", filled.Action)
						return err
					}
					names = append(names, filled.Content.Name)
					if !a.Twice {
						break
					}
				}
				text := "hello " + strings.Join(names, " and ")
				if a.Model {
					reply, err := in.Ask(ctx, tools.Question{Method: "sampling/createMessage", Params: fmt.Appendf(nil,
						`{"messages":[{"role":"user","content":{"type":"text","text":%q}}],"systemPrompt":"be brief","maxTokens":50}`, text)})
					if err != nil {
						return err
					}
					var said struct{ Content struct{ Text string } }
					if err := json.Unmarshal(reply, &said); err != nil {
						return err
					}
					text += "; the model: " + said.Content.Text
				}
				_, err := io.WriteString(out, text)
				return err
			}),
		tools.New(tools.Tool{Name: "bad-question", Title: "Bad question", Description: "Asks what cannot be asked."},
			func(ctx context.Context, _ struct{}, in tools.Input, _ tools.Output) error {
				_, err := in.Ask(ctx, tools.Question{Method: "tools/list"})
				return err
			}),
	}
}

// Ours is a request or a notification from the server, decoded by the client.
type Ours struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// ReplyTo returns the result member with which a test client replies to a question, or "" for other messages.
func ReplyTo(o Ours) string {
	switch o.Method {
	case "elicitation/create":
		return SayAnna
	case "sampling/createMessage":
		return SayModel
	}
	return ""
}

const (
	CanAll   = `{"elicitation":{},"sampling":{}}`
	SayAnna  = `"result":{"action":"accept","content":{"name":"Anna"}}`
	SayModel = `"result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m","stopReason":"endTurn"}`
)

func MetaWith(capabilities string) string {
	return strings.Replace(ModernMeta, `clientCapabilities":{}`, `clientCapabilities":`+capabilities, 1)
}

func Within(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatalf("%s did not end in time", what)
	}
}

// Notes returns a run function that reports progress n times, and 20 times more after its answer.
func Notes(n int) func(context.Context, funnel.Request) (funnel.Answer, error) {
	return func(_ context.Context, r funnel.Request) (funnel.Answer, error) {
		for i := range n {
			r.Progress(int64(i+1), int64(n), "step")
		}
		late := r.Progress
		go func() {
			for i := range 20 { // a tool that goes on after its answer
				late(int64(n+i+1), 0, "late")
			}
		}()
		return funnel.Answer{Blocks: []funnel.Block{{Text: "done"}}}, nil
	}
}

// SaysLate reports whether text answers a call at its deadline. The funnel words it, or the server if the funnel is
// late on a busy machine.
func SaysLate(text string) bool {
	return strings.Contains(text, "timed out after ") || strings.Contains(text, "no answer within ")
}

func Wait(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

const Ping = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`

// clock returns a clock that advances by one second on each call, so that observations have distinct times.
func clock() func() time.Time {
	var n atomic.Int64
	start := time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)
	return func() time.Time { return start.Add(time.Duration(n.Add(1)) * time.Second) }
}

func NewTestStore(t testing.TB) *observations.Store {
	t.Helper()
	store, err := observations.OpenStore(observations.Options{Dir: t.TempDir(), Now: clock(), MinFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func Keep(t testing.TB, store *observations.Store, owner, text string, seen observations.Stats) observations.ID {
	t.Helper()
	r, err := store.Record(observations.Provenance{Owner: owner, Tool: "search", Args: json.RawMessage(`{"pattern":"x"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if seen.Kind == "" {
		seen.Kind, seen.Ext = string(content.Text), "txt"
	}
	o, err := r.Commit(seen)
	if err != nil {
		t.Fatal(err)
	}
	return o.ID
}

// badFrame is one malformed message and its expected answer.
type badFrame struct {
	Name, Line string
	Code       int    // of the error; 0: no answer
	Id         string // in the answer
	Says       string // text that the answer contains
}

//go:embed testdata/malformed.tsv
var malformed string

// BadFrames reads testdata/malformed.tsv: one case per line, with five fields separated by tabs; "-" is an empty
// field. In a frame, ⟦s×n⟧ means n times s, and \xNN means one byte.
func BadFrames() (all []badFrame) {
	repeated := regexp.MustCompile(`⟦(.+?)×(\d+)⟧`)
	coded := regexp.MustCompile(`\\x[0-9a-f]{2}`)
	for line := range strings.Lines(malformed) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 5)
		for i, f := range fields {
			if f == "-" {
				fields[i] = ""
			}
		}
		code, err := strconv.Atoi(fields[0])
		if err != nil {
			panic(err)
		}
		frame := repeated.ReplaceAllStringFunc(fields[4], func(s string) string {
			parts := repeated.FindStringSubmatch(s)
			n, _ := strconv.Atoi(parts[2])
			return strings.Repeat(parts[1], n)
		})
		frame = coded.ReplaceAllStringFunc(frame, func(s string) string {
			n, _ := strconv.ParseUint(s[2:], 16, 8)
			return string([]byte{byte(n)})
		})
		all = append(all, badFrame{Name: fields[3], Line: frame, Code: code, Id: fields[1], Says: fields[2]})
	}
	return all
}

// Granted is a temporary directory in which the operator granted the directory work. Files and links lie in and
// outside of work.
type Granted struct {
	Top  string
	root *tree.Root
}

func NewGranted(t testing.TB) *Granted {
	t.Helper()
	g := &Granted{Top: t.TempDir()}
	for _, dir := range []string{"work/sub", "work/two", "work/store", "outside", "work-evil"} {
		if err := os.MkdirAll(filepath.Join(g.Top, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"work/top.txt", "work/sub/sub.txt", "work/two/two.txt", "work/store/secret.txt", "outside/secret.txt", "work-evil/secret.txt", "secret.txt"} {
		if err := os.WriteFile(filepath.Join(g.Top, file), []byte("this is "+filepath.Base(file)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"work/leave": "../outside", "work/sub/up": ".."} {
		if err := os.Symlink(to, filepath.Join(g.Top, link)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if g.root, err = tree.Open(filepath.Join(g.Top, "work"), filepath.Join(g.Top, "work", "store")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.root.Close() })
	return g
}

// Tools returns two tools that read files.
func (g *Granted) Tools() []tools.Tool { return []tools.Tool{fs.Find(), fs.Read()} }

// Sources returns the granted directory, for every session.
func (g *Granted) Sources(funnel.Session) source.Set {
	return source.Set{Roots: []*tree.Root{g.root}}
}

// Says returns the result member of a response to roots/list with these directories.
func (g *Granted) Says(dirs ...string) string {
	roots := []map[string]string{}
	for _, dir := range dirs {
		uri := dir
		if !strings.Contains(dir, ":") {
			uri = "file://" + filepath.ToSlash(filepath.Join(g.Top, dir))
		}
		roots = append(roots, map[string]string{"uri": uri, "name": "x"})
	}
	text, _ := json.Marshal(map[string]any{"roots": roots}) // of strings
	return `"result":` + string(text)
}

const CanRoots = `{"roots":{"listChanged":true}}`

// StatelessRequest returns a request of the stateless era.
func StatelessRequest(method, params string) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if params != "" {
		meta = "," + meta
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, meta)
}

// Round is a response to a tools/call of the stateless era, decoded by the client.
type Round struct {
	Answer
	Result struct {
		ResultType    string
		Content       []struct{ Text string }
		IsError       bool
		InputRequests map[string]struct {
			Method string
			Params json.RawMessage
		}
		RequestState string
	}
}

// Again returns the params that repeat the call with responses: the request state and the responses.
func (r Round) Again(responses string) string {
	return fmt.Sprintf(`"requestState":%q,"inputResponses":%s,`, r.Result.RequestState, responses)
}

const Anna = `{"action":"accept","content":{"name":"Anna"}}`
