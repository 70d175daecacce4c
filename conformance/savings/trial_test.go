package savings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// trialCommand marks the table of the trial's questions in the page.
const trialCommand = "go test ./conformance/savings -run TestTrial -update"

// TestTrial asks one question of each of eight kinds of outputs, at most 1.3 calls and 250 tokens on average.
func TestTrial(t *testing.T) {
	f := emptyFixture(t, testing.Short())
	for _, make := range []func(*fixture){
		accessLog, terraformPlan, javaLog, semicolons, changes, cargoTest, eventStream, goSource,
	} {
		before := len(f.questions)
		make(f)
		f.questions = f.questions[:before+1]
	}
	f.writeOutputs()
	s := startServer(t, f.dir)
	rows, calls, shown := f.askAll(s, tokens.New(tokens.O200k))
	n := len(rows)
	t.Logf("%d questions, %d calls, %d tokens shown", n, calls, shown)
	if n != 8 || 10*calls > 13*n || shown > 250*n {
		t.Errorf("%d questions, %d calls, %d tokens shown; want at most 1.3 calls and 250 tokens each", n, calls, shown)
	}
	if !testing.Short() && !t.Failed() {
		keep(t, trialCommand, questions(rows)+fmt.Sprintf("| **average** | | %.2f | %d | | | | |\n",
			float64(calls)/float64(n), shown/n))
	}
}

// accessLog writes a combined access log.
func accessLog(f *fixture) {
	const name = "access.log"
	var b strings.Builder
	by := map[string]int{}
	at := start
	for range f.size(20_000) {
		at = at.Add(time.Duration(f.random.IntN(4000)) * time.Millisecond)
		status, path := f.random.IntN(40), f.pick("/api/orders", "/api/users", "/health", "/login")
		code := map[int]int{0: 500, 1: 502, 2: 503, 3: 404, 4: 301}[status]
		if code == 0 {
			code = 200
		}
		if code >= 500 {
			by[fmt.Sprint(code)]++
			by[path]++
			by["hour "+at.Format("15")]++
		}
		fmt.Fprintf(&b, "10.0.%d.%d - - [%s] \"GET %s HTTP/1.1\" %d %d \"-\" \"client/%d\"\n",
			f.random.IntN(9), f.random.IntN(200), at.Format("02/Jan/2006:15:04:05 -0700"), path, code,
			f.random.IntN(9000), f.random.IntN(9))
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many requests have status 500 or more, by status, by path and by hour?", counted(by), jq(name,
		`map(select(.status>=500)|[.status,.path,"hour \(.time|split(":")[1])"][])|group_by(.)[]|"\(.[0]) \(length)"`))
}

// terraformPlan writes what "terraform show -json" prints.
func terraformPlan(f *fixture) {
	const name = "plan.json"
	actions, gone := map[string]int{}, ""
	var changes []any
	for i := range f.size(900) {
		do := []string{"no-op"}
		switch i % 9 {
		case 0:
			do = []string{"create"}
		case 1:
			do = []string{"update"}
		}
		address := fmt.Sprintf("%s.%s", f.pick("aws_instance", "aws_s3_bucket", "aws_iam_role"), f.hex(8))
		if i == 300%f.size(900) {
			do, gone = []string{"delete"}, address
		}
		actions[do[0]]++
		changes = append(changes, map[string]any{
			"address": address, "mode": "managed", "provider_name": "registry/aws",
			"change": map[string]any{"actions": do, "before": map[string]any{"tags": map[string]any{"id": f.hex(12)}},
				"after": map[string]any{"tags": map[string]any{"id": f.hex(12)}, "size": f.random.IntN(100)}},
		})
	}
	text := expect.Value(json.Marshal(map[string]any{"format_version": "1.2", "resource_changes": changes}))(f.t)
	f.outputs[name] = string(text)
	want := append(counted(actions), words(gone)...)
	f.ask(name, "How many changes of each action are planned, and what is to be deleted?", want, read(name),
		jq(name, `.[0].resource_changes|(group_by(.change.actions)[]|"\(.[0].change.actions[0]) \(length)"),`+
			`(.[]|select(.change.actions[0]=="delete").address)`))
}

// javaLog writes the log of a Java service, with stack traces.
func javaLog(f *fixture) {
	const name = "service-java.log"
	var b strings.Builder
	thrown := map[string]int{}
	at := start
	for range f.size(9000) {
		at = at.Add(time.Duration(f.random.IntN(900)) * time.Millisecond)
		stamp := at.Format("2006-01-02 15:04:05,000")
		if f.random.IntN(60) > 0 {
			fmt.Fprintf(&b, "%s INFO  [http-%d] c.e.Web - request %s done\n", stamp, f.random.IntN(9), f.hex(8))
			continue
		}
		class := f.pick("java.net.SocketTimeoutException", "java.lang.NullPointerException", "com.example.StockException")
		thrown[class]++
		fmt.Fprintf(&b, "%s ERROR [http-%d] c.e.Web - request failed\n%s: order %s\n",
			stamp, f.random.IntN(9), class, f.hex(6))
		for range 12 {
			fmt.Fprintf(&b, "\tat com.example.%s.run(%s.java:%d)\n", f.hex(5), f.hex(5), f.random.IntN(400))
		}
	}
	f.outputs[name] = b.String()
	f.ask(name, "How often was each exception thrown?", counted(thrown), groups(name, `(?i)^([\w.]+exception)\b`))
}

// semicolons writes a table with semicolons, and with line breaks in quoted cells.
func semicolons(f *fixture) {
	const name = "umsatz.csv"
	b := strings.Builder{}
	b.WriteString("datum;region;notiz;betrag\r\n")
	sums := map[string]int{}
	for i := range f.size(6000) {
		region, amount := f.pick("Nord", "Süd", "West"), f.random.IntN(500)
		sums[region] += amount
		note := f.hex(6)
		if i%7 == 0 {
			note = fmt.Sprintf("\"Zeile 1;\r\n\"\"%s\"\"\r\nZeile 3\"", f.hex(4))
		}
		fmt.Fprintf(&b, "2026-03-%02d;%s;%s;%d\r\n", 1+i%28, region, note, amount)
	}
	f.outputs[name] = b.String()
	f.ask(name, "What is the sum of betrag of each region?", counted(sums),
		jq(name, `group_by(.region)[]|"\(.[0].region) \(map(.betrag)|add)"`))
}

// cargoTest writes what "cargo test" prints.
func cargoTest(f *fixture) {
	const name = "cargo-test.txt"
	var b, details strings.Builder
	count := f.size(2400)
	fmt.Fprintf(&b, "\nrunning %d tests\n", count)
	var failed, places []string
	for i := range count {
		test := fmt.Sprintf("%s::%s_%d", f.pick("store", "wire", "server"), f.hex(5), i)
		if slices.Contains([]int{count / 3, count / 2, count * 4 / 5}, i) {
			place := fmt.Sprintf("src/%s.rs:%d:9", f.hex(4), 10+f.random.IntN(400))
			failed, places = append(failed, test), append(places, place)
			fmt.Fprintf(&b, "test %s ... FAILED\n", test)
			fmt.Fprintf(&details, "---- %s stdout ----\n\nthread '%s' panicked at %s:\nassertion failed: left == right\n\n",
				test, test, place)
			continue
		}
		fmt.Fprintf(&b, "test %s ... ok\n", test)
	}
	fmt.Fprintf(&b, "\nfailures:\n\n%s\nfailures:\n    %s\n\ntest result: FAILED. %d passed; 3 failed; 0 ignored\n",
		details.String(), strings.Join(failed, "\n    "), count-3)
	f.outputs[name] = b.String()
	f.ask(name, "Which tests failed, and where is each panicked at?", append(words(failed...), words(places...)...),
		call{"grep", map[string]any{"source": name, "pattern": "panicked at"}})
}

// eventStream writes events, one a line.
func eventStream(f *fixture) {
	const name = "events.ndjson"
	var b strings.Builder
	reasons := map[string]int{}
	for range f.size(20_000) {
		status, reason := f.pick("ok", "ok", "ok", "failed"), f.pick("declined", "expired", "limit")
		if status == "failed" {
			reasons[reason]++
		}
		fmt.Fprintf(&b, `{"id":%q,"status":%q,"reason":%q,"amount":%d}`+"\n", f.hex(12), status, reason, f.random.IntN(9000))
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many events have the status failed, by reason?", counted(reasons),
		jq(name, `map(select(.status=="failed"))|group_by(.reason)[]|"\(.[0].reason) \(length)"`))
}
