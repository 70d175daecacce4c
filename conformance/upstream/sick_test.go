//go:build linux

package upstream_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// serveSick is an MCP server with a fault. Its tools are echo, rows (439 records), import (counts the lines of an
// argument), and what a fault adds. The file state may hold another description of echo, the tools as a JSON array, or
// another fault as "fault: NAME". The names of called tools are appended to the file STATE.calls if there is one.
func serveSick(usual, state string) {
	fault := faultIn(state, usual)
	if fault == "ignores SIGTERM" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
	}
	say := func(format string, args ...any) { _, _ = fmt.Printf(format+"\n", args...) }
	switch fault {
	case "banner on stdout":
		say("Welcome! This is a server.")
	case "grandchildren":
		if strings.HasSuffix(state, childMark) {
			os.Exit(3) // a child must never start children
		}
		for _, child := range []*exec.Cmd{
			exec.Command(os.Args[0], "sick", "sleeps", state+childMark),          //nolint:noctx // it is to outlive this process
			exec.Command(os.Args[0], "sick", "ignores SIGTERM", state+childMark), //nolint:noctx // this one, too
		} {
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: child.Args[2] != "sleeps"}
			if err := child.Start(); err != nil {
				os.Exit(3)
			}
		}
	case "sleeps":
		time.Sleep(time.Hour)
	case "ends at once":
		os.Exit(1)
	}
	calls, lists, late := 0, 0, ""
	var asked json.RawMessage // the call whose question is open
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			if usual == "ignores SIGTERM" || fault == "ignores SIGTERM" {
				time.Sleep(time.Hour)
			}
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Cursor    string
				Arguments map[string]json.RawMessage
				URI       string
				Meta      struct {
					Token json.RawMessage `json:"progressToken"`
				} `json:"_meta"`
			}
		}
		if err := json.Unmarshal(line, &m); err != nil || m.ID == nil {
			continue
		}
		fault = faultIn(state, usual)
		if fault == "asks in a call" && m.Method == "" { // the reply to its question
			say("%s", answer(asked, string(line)))
			continue
		}
		result := func(text string) { say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, text) }
		text := func(text string) { result(textResult(text)) }
		noMethod := func() { say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID) }
		switch m.Method {
		case "server/discover":
			switch fault {
			case "exits on discover":
				os.Exit(1)
			case "modern", "environment, modern":
				result(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"resultType":"complete"}`)
			case "newer":
				result(`{"supportedVersions":["2099-01-01"],"capabilities":{},"resultType":"complete"}`)
			default:
				noMethod()
			}
		case "prompts/list":
			if fault != "hangs in lists" {
				noMethod()
			}
		case "initialize":
			if fault == "never answers initialize" || strings.HasSuffix(fault, "modern") {
				continue
			}
			version := map[string]string{"newer": "2099-01-01"}[fault]
			result(fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"sick","version":"1"}}`,
				cmp.Or(version, "2025-06-18")))
		case "tools/list":
			lists++
			if text := map[string]string{
				"endless pages": `{"tools":[],"nextCursor":"again"}`, "no tools": `{"resources":[]}`,
			}[fault]; text != "" {
				result(text)
				continue
			}
			echo := "Repeats."
			b, err := os.ReadFile(state) //nolint:gosec // the test's own file
			if err == nil && !strings.HasPrefix(string(b), "fault: ") {
				echo = string(b)
			}
			if fault == "tells its secrets" {
				echo = strings.Join(os.Environ(), " ")
				_, _ = fmt.Fprintln(os.Stderr, echo)
			}
			if strings.HasPrefix(echo, "[") {
				result(`{"tools":` + echo + `}`)
				continue
			}
			result(fmt.Sprintf(`{"tools":[{"name":"echo", "description":%q, "inputSchema":{"type":"object","properties":`+
				`{"text":{"type":"string"}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},`+
				`{"name":"rows","description":"Rows.","inputSchema":{"type":"object"}},`+
				`{"name":"import","description":"Counts.","inputSchema":{"type":"object","properties":{"csv":{"type":"string"}}}},`+
				`{"name":"raw","description":"Returns it.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},%s`+
				`{"name":"search","description":"Clashes.","inputSchema":{"type":"object"}}]}`, echo, map[string]string{
				"tells its secrets": `{"name":"fault","inputSchema":{"type":"object"}},`,
				"odd tools":         `{"name":"odd","inputSchema":{}},{"name":"echo","description":"Again.","inputSchema":{"type":"object"}},`,
			}[fault]))
		case "tools/call":
			calls++
			args, _ := json.Marshal(m.Params.Arguments) // they came as JSON
			record(state, m.Params.Name)
			switch {
			case m.Params.Name == "exit":
				os.Exit(0)
			case m.Params.Name == "lists": // how often its tools were listed
				text(fmt.Sprintf("lists: %d", lists))
			case m.Params.Name == "notify":
				say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				result(`{"content":[]}`)
			case fault == "ends in a call":
				os.Exit(1)
			case fault == "floods stdout":
				for range 2000 {
					say("%s", strings.Repeat("noise ", 1400))
				}
				text("done")
			case fault == "late answer" && late == "":
				late = answer(m.ID, string(args))
			case fault == "late answer":
				say("%s", late)
				late = ""
				say("%s", answer(m.ID, string(args)))
			case fault == "hangs" && m.Params.Name == "echo":
			case fault == "dies every second call" && calls%2 == 0:
				os.Exit(1)
			case fault == "floods stderr":
				_, _ = os.Stderr.WriteString(strings.Repeat("x", 10<<20) + "\n")
				text("done")
			case fault == "half frame" && calls == 1:
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"te`, m.ID)
			case fault == "wrong id" && calls == 1:
				say(`{"jsonrpc":"2.0","id":999999,"result":{"content":[]}}`)
				text("right")
			case (fault == "huge frame" || fault == "1 GB frame") && calls == 1:
				_, _ = fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
				part := strings.Repeat("y", 1<<20)
				for range map[string]int{"huge frame": 300, "1 GB frame": 1024}[fault] {
					_, _ = fmt.Print(part)
				}
				say(`"}]}}`)
			case fault == "tells its secrets" && m.Params.Name == "fault":
				quoted, _ := json.Marshal(strings.Join(os.Environ(), " ")) // a string
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s}}`, m.ID, quoted)
			case m.Params.Name == "raw" && m.Params.Arguments["result"] == nil: // the text of a file
				file, _ := os.ReadFile(state) //nolint:gosec // the test's own file
				if whole, ok := strings.CutPrefix(string(file), "result: "); ok {
					result(whole)
					continue
				}
				text(string(file))
			case m.Params.Name == "raw": // the result as the caller wants it
				result(string(m.Params.Arguments["result"]))
			case fault == "shows its call":
				text(string(line))
			case fault == "progress":
				for _, at := range []string{"0", "0.28", "0.29", "1"} {
					say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"total":1,`+
						`"message":"so much of it: %s"}}`, m.Params.Meta.Token, at, at)
					time.Sleep(110 * time.Millisecond) // the funnel passes on ten a second
				}
				result(`{"content":[]}`)
			case fault == "asks", fault == "asks for roots": // twice, and says how often it was called
				method := "elicitation/create"
				if fault == "asks for roots" {
					method = "roots/list"
				}
				var replies []string
				for i := range 2 {
					say(`{"jsonrpc":"2.0","id":"ask %d","method":%q,"params":{"message":"who? %d",`+
						`"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`, i, method, i)
					for reply := ""; !strings.Contains(reply, `"ask `); {
						if reply, err = in.ReadString('\n'); err != nil {
							return
						}
						if strings.Contains(reply, `"ask `) {
							replies = append(replies, reply)
						}
					}
				}
				text(fmt.Sprint("call ", calls, ": ", replies))
			case fault == "asks in a call" && m.Params.Name == "echo":
				asked = m.ID
				time.AfterFunc(300*time.Millisecond, func() {
					say(`{"jsonrpc":"2.0","id":"ask","method":"elicitation/create","params":{"message":"who?","requestedSchema":{}}}`)
				})
			case fault == "asks in a call":
				id := m.ID
				time.AfterFunc(700*time.Millisecond, func() { say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id) })
			case fault == "counts":
				text(fmt.Sprintf("call %d", calls))
			case fault == "endless answer":
				_, _ = fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
				for part := strings.Repeat("y", 1<<20); err == nil; {
					_, err = fmt.Print(part)
				}
				return
			case fault == "ends with a word":
				_, _ = fmt.Fprintln(os.Stderr, "panic: out of cheese")
				os.Exit(2)
			case fault == "tells":
				say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":{"n":1.50}}}`)
				say(`{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`)
				say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://1"}}`)
				_ = os.WriteFile(state, []byte("Changed."), 0o600)
				say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				text("told")
			case fault == "reads no more":
				time.Sleep(time.Hour)
			case strings.HasPrefix(fault, "environment"):
				text(strings.Join(slices.Concat(os.Environ(), os.Args, openFiles()), "\n"))
			case m.Params.Name == "rows":
				var rows []map[string]any
				for i := range 439 {
					rows = append(rows, map[string]any{"id": i, "name": fmt.Sprint("row ", i), "price": float64(i) + 0.5})
				}
				text, _ := json.Marshal(map[string]any{"rows": rows}) // plain values
				quoted, _ := json.Marshal(string(text))
				result(fmt.Sprintf(`{"content":[{"type":"text","text":%s}],"structuredContent":%s}`, quoted, text))
			case m.Params.Name == "import":
				var csv string
				_ = json.Unmarshal(m.Params.Arguments["csv"], &csv)
				text(fmt.Sprintf("%d lines", strings.Count(csv, "\n")+1))
			case m.Params.Name == "search":
				text("theirs")
			default:
				quoted, _ := json.Marshal(string(args))
				result(fmt.Sprintf(`{"content": [{"type":"text", "text":%s}], "x":1.50,"_meta":{"a/b":1e2}}`, quoted))
			}
		default:
			noMethod()
		}
	}
}

// childMark ends the name of a child's state: it reads no fault of its parent's file.
const childMark = ".child"

// answer returns a response with a text.
func answer(id json.RawMessage, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, textResult(text))
}

// textResult returns the result of a call that is a text.
func textResult(text string) string {
	quoted, _ := json.Marshal(text) // a string
	return `{"content":[{"type":"text","text":` + string(quoted) + `}]}`
}

// faultIn returns the fault that the file state names, or the usual one.
func faultIn(state, usual string) string {
	b, _ := os.ReadFile(state) //nolint:gosec // the test's own file, which may be missing
	if fault, ok := strings.CutPrefix(string(b), "fault: "); ok {
		return fault
	}
	return usual
}

// record appends the name of a called tool to the file STATE.calls if there is one.
func record(state, tool string) {
	f, err := os.OpenFile(state+".calls", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return // nobody wants it
	}
	_, _ = fmt.Fprintln(f, tool)
	_ = f.Close()
}

// openFiles returns a line "open: N FILE" for each descriptor of this process but the three standard ones and those
// that Go's runtime opens.
func openFiles() (all []string) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, l := range links {
		to, err := os.Readlink(l)
		n := filepath.Base(l)
		if err != nil || len(n) == 1 && n < "3" || strings.HasPrefix(to, "anon_inode:") ||
			strings.HasPrefix(to, "/sys/fs/cgroup/") {
			continue // the descriptor of the listing itself is closed by now
		}
		all = append(all, "open: "+n+" "+to)
	}
	return all
}
