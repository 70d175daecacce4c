package savings

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/tokens"
)

// unseenCommand marks the table of unseen files in the page.
const unseenCommand = "go test ./conformance/savings -run TestUnseen -update"

// TestUnseen asks one question of each of eight files of formats that no name in the question tells: the first call
// shows what the directory holds, and one call answers each question. On average a question takes at most 1.2 calls and
// 250 tokens.
func TestUnseen(t *testing.T) {
	f := unseen(t)
	s := startServer(t, f.dir)
	counter := tokens.New(tokens.O200k)
	first := s.call(call{"find", map[string]any{"show": "kinds"}})
	rows, calls, shown := f.askAll(s, counter, first)
	all, n := counter.Count(first), len(rows)
	calls, shown = calls+1, shown+all
	t.Logf("%d questions, %d calls, %d tokens shown, %d of them first\n%s", n, calls, shown, all, first)
	if n != 8 || 10*calls > 12*n || shown > 250*n {
		t.Errorf("%d questions, %d calls, %d tokens shown; want at most 1.2 calls and 250 tokens each", n, calls, shown)
	}
	if !testing.Short() && !t.Failed() {
		keep(t, unseenCommand, questions(rows)+fmt.Sprintf("| all | `find show=kinds` before them | 1 | %d | | | | |\n", all)+
			fmt.Sprintf("| **average** | | %.2f | %d | | | | |\n", float64(calls)/float64(n), shown/n))
	}
}

// unseen writes the files and returns their questions.
func unseen(t *testing.T) *fixture {
	f := emptyFixture(t, testing.Short())
	for _, make := range []func(*fixture){
		podsYAML, lockFile, history, orders, composeLog, junitReport, resources, goSource,
	} {
		before := len(f.questions)
		make(f)
		f.questions = f.questions[:before+1]
		if q := &f.questions[before]; len(q.calls) > 1 { // the first call has shown what this one looks for
			q.calls = q.calls[1:]
		}
	}
	f.writeOutputs()
	return f
}

// TestUnseenScript asks the same questions by one look at the directory and one script that calls the tools, at most
// 3 calls and 2,500 tokens together.
func TestUnseenScript(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("scripts call tools from the sandbox of Linux")
	}
	f := unseen(t)
	s := startWith(t, "serve", "--root", f.dir, "--toolsets", "core,shell")
	var script strings.Builder
	for _, q := range f.questions {
		c := q.calls[0]
		fmt.Fprintf(&script, "funnel %s", c.tool)
		for _, name := range slices.Sorted(maps.Keys(c.args)) {
			fmt.Fprintf(&script, " %s='%v'", name, c.args[name])
		}
		script.WriteString("\n")
	}
	counter := tokens.New(tokens.O200k)
	shown := counter.Count(s.call(call{"find", map[string]any{"show": "kinds"}}))
	answer := s.call(call{"run", map[string]any{"command": script.String()}})
	shown += counter.Count(answer)
	t.Logf("%d questions, 2 calls, %d tokens shown", len(f.questions), shown)
	for _, q := range f.questions {
		if !holds(answer, q.want) {
			t.Errorf("%s: %s: not all of %v in the answer:\n%.2500s", q.source, q.text, q.want, answer)
		}
	}
	if shown > 2500 {
		t.Errorf("%d tokens shown, want at most 2,500:\n%s", shown, answer)
	}
}

// podsYAML writes what "kubectl get pods -o yaml" prints.
func podsYAML(f *fixture) {
	const name = "pods.yaml"
	var b strings.Builder
	phases := map[string]int{}
	b.WriteString("apiVersion: v1\nitems:\n")
	for range f.size(600) {
		phase := f.pick("Running", "Running", "Running", "Pending", "Failed")
		phases[phase]++
		fmt.Fprintf(&b, `- apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      checksum/config: %s
    name: web-%s
    namespace: %s
  spec:
    containers:
    - image: registry.example/web:%s
      name: web
      resources:
        limits:
          memory: 128Mi
  status:
    hostIP: 10.0.0.%d
    phase: %s
`, f.hex(40), f.hex(10), f.pick("web", "data"), f.hex(7), f.random.IntN(250), phase)
	}
	b.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	f.outputs[name] = b.String()
	f.ask(name, "How many pods are in each phase?", counted(phases),
		jq(name, `[..|.phase?|strings]|group_by(.)[]|"\(.[0]) \(length)"`))
}

// lockFile writes a lock file of Python's uv.
func lockFile(f *fixture) {
	const name = "uv.lock"
	var b strings.Builder
	locked := ""
	b.WriteString("version = 1\nrequires-python = \">=3.11\"\n")
	count := f.size(400)
	for i := range count {
		pkg, version := "lib-"+f.hex(6), fmt.Sprintf("%d.%d.%d", f.random.IntN(9), f.random.IntN(30), f.random.IntN(9))
		if i == count*2/3 {
			pkg, locked = "httpx", version
		}
		fmt.Fprintf(&b, "\n[[package]]\nname = %q\nversion = %q\nsource = { registry = \"https://pypi.example/simple\" }\n"+
			"wheels = [\n    { url = \"https://files.example/%s.whl\", hash = \"sha256:%s\", size = %d },\n]\n",
			pkg, version, f.hex(30), f.hex(64), f.random.IntN(90_000))
	}
	f.outputs[name] = b.String()
	f.ask(name, "Which version of httpx is locked?", words(locked),
		jq(name, `.[].package[]|select(.name=="httpx").version`))
}

// composeLog writes what "docker compose logs" prints.
func composeLog(f *fixture) {
	const name = "compose.log"
	var b strings.Builder
	errors := map[string]int{}
	at := start
	for range f.size(9000) {
		at = at.Add(time.Duration(f.random.IntN(3000)) * time.Millisecond)
		service, level := f.pick("web-1", "db-1", "queue-1"), "INFO"
		if f.random.IntN(50) == 0 {
			level = "ERROR"
			errors[service]++
		}
		fmt.Fprintf(&b, "%-8s | %s %s request %s took=%dms\n", service, at.Format(time.RFC3339), level, f.hex(8),
			f.random.IntN(900))
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many error lines has each service?", counted(errors),
		jq(name, `map(select(.level=="error"))|group_by(.service)[]|"\(.[0].service) \(length)"`))
}

// junitReport writes a report of pytest.
func junitReport(f *fixture) {
	const name = "report.xml"
	var b strings.Builder
	count := f.size(2000)
	var failed []string
	fmt.Fprintf(&b, "<?xml version=\"1.0\" encoding=\"utf-8\"?><testsuites name=\"pytest tests\"><testsuite name=\"pytest\" "+
		"errors=\"0\" failures=\"3\" skipped=\"0\" tests=\"%d\" time=\"%d.1\">", count, count/40)
	for i := range count {
		test := "test_" + f.hex(8)
		fmt.Fprintf(&b, "<testcase classname=\"tests.test_%s\" name=\"%s\" time=\"0.%03d\"", f.hex(3), test, f.random.IntN(999))
		if i == count/4 || i == count/2 || i == count-9 {
			message := "assert " + f.hex(6)
			failed = append(failed, test, message)
			fmt.Fprintf(&b, "><failure message=\"%s\">def %s():\n&gt;   assert x == y\nE   %s\n</failure></testcase>", message, test,
				message)
			continue
		}
		b.WriteString(" />")
	}
	b.WriteString("</testsuite></testsuites>\n")
	f.outputs[name] = b.String()
	f.ask(name, "Which tests failed, with which message?", words(failed...),
		jq(name, `.[]|select(.status=="failed")|"\(.name): \(.message)"`))
}

// resources writes custom resource definitions, each a document.
func resources(f *fixture) {
	const name = "crds.yaml"
	var b strings.Builder
	scopes := map[string]int{}
	for range f.size(120) {
		scope, kind := f.pick("Namespaced", "Namespaced", "Cluster"), "Kind"+f.hex(6)
		scopes[scope]++
		fmt.Fprintf(&b, "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: %s.example.com\n"+
			"spec:\n  group: example.com\n  names:\n    kind: %s\n  scope: %s\n  versions:\n  - name: v1\n    schema:\n"+
			"      openAPIV3Schema:\n        properties:\n", strings.ToLower(kind), kind, scope)
		for range 60 {
			fmt.Fprintf(&b, "          field%s:\n            description: |-\n              %s of the resource, which\n"+
				"              overrides the default\n            type: %s\n", f.hex(5), f.hex(8), f.pick("string", "integer"))
		}
		b.WriteString("        type: object\n")
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many definitions are there of each scope?", counted(scopes),
		jq(name, `[..|.scope?|strings]|group_by(.)[]|"\(.[0]) \(length)"`))
}
