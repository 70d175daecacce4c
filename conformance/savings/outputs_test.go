package savings

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func serviceLog(f *fixture) {
	const name = "service.log"
	var b strings.Builder
	errors, slowest, slowestID, lastFatal := map[string]int{}, 0, "", ""
	at := start
	for i := range 2000 * f.scale {
		at = at.Add(time.Duration(f.random.IntN(900)+1) * time.Millisecond)
		service, id, ms := f.pick("billing", "gateway", "orders", "search"), f.hex(12), f.random.IntN(400)*1000+i%1000
		level, message := "INFO", "request done"
		switch n := f.random.IntN(100); {
		case n == 0:
			level, message = "ERROR", "upstream timeout"
			errors[service]++
			lastFatal = id
		case n < 6:
			level, message = "WARN", "slow query"
		}
		if ms > slowest {
			slowest, slowestID = ms, id
		}
		fmt.Fprintf(
			&b,
			"%s %s [%s] %s request_id=%s duration_us=%d\n",
			at.Format("2006-01-02T15:04:05.000Z"),
			level,
			service,
			message,
			id,
			ms,
		)
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many ERROR lines has each service?", counted(errors), groups(name, ` ERROR \[(\w+)\]`))
	f.ask(name, "Which request took longest?", []string{slowestID, fmt.Sprint(slowest)},
		jq(name, `max_by(.duration_us|tonumber)|.text`))
	f.ask(
		name,
		"Which request failed last?",
		[]string{lastFatal},
		jq(name, `map(select(.level|ascii_downcase=="error"))|last|.text`),
	)
}

// counted returns "N key" of each key.
func counted(counts map[string]int) (rows []string) {
	for k, n := range counts {
		rows = append(rows, fmt.Sprint(n, " ", k))
	}
	return rows
}

func apiDump(f *fixture) {
	const name = "pods.json"
	type object = map[string]any
	var items []object
	restarts, phases, broken := 0, map[string]int{}, ""
	for i := range 300 * f.scale {
		ns, phase, n := f.pick(
			"web",
			"data",
			"ops",
		), f.pick(
			"Running",
			"Running",
			"Running",
			"Pending",
		), f.random.IntN(
			5,
		)
		pod := fmt.Sprintf("%s-%s", ns, f.hex(10))
		status := object{"phase": phase, "restartCount": n, "hostIP": fmt.Sprintf("10.0.%d.%d", i%7, i%250)}
		if i == 211*f.scale {
			status["lastState"] = object{"terminated": object{"exitCode": 137, "reason": "OOMKilled"}}
			broken = pod
		}
		if ns == "data" {
			restarts += n
		}
		phases[phase]++
		items = append(items, object{
			"metadata": object{
				"name":      pod,
				"namespace": ns,
				"uid":       f.hex(32),
				"labels":    object{"app": ns, "hash": f.hex(10)},
			},
			"spec": object{
				"image":    "registry.example/" + ns + ":" + f.hex(7),
				"nodeName": "node-" + f.hex(2),
			}, "status": status,
		})
	}
	text, _ := json.MarshalIndent(object{"kind": "PodList", "items": items}, "", "  ")
	f.outputs[name] = string(text)
	f.ask(
		name,
		"Which pod was killed, and why?",
		[]string{broken, "OOMKilled", "137"},
		call{"read", map[string]any{"path": name}},
		jq(name, `.[].items[]|select(.status.lastState)|{name: .metadata.name, state: .status.lastState}`),
	)
	f.ask(name, "How many restarts has namespace data?", []string{fmt.Sprint(restarts)},
		call{"read", map[string]any{"path": name}},
		jq(name, `[.[].items[]|select(.metadata.namespace=="data").status.restartCount]|add`))
	f.ask(name, "How many pods are in each phase?", counted(phases), groups(name, `"phase": "(\w+)"`))
}

func geoJSON(f *fixture) {
	const name = "places.geojson"
	type object = map[string]any
	var features []object
	kinds, largest, largestName, capitals := map[string]int{}, 0, "", 0
	for i := range 1000 * f.scale {
		place, kind, n := "place-"+f.hex(8), f.pick("city", "town", "village"), f.random.IntN(1000)*20000+i
		kinds[kind]++
		if n > largest {
			largest, largestName = n, place
		}
		if n > 15_000_000 {
			capitals++
		}
		features = append(features, object{"type": "Feature",
			"geometry": object{
				"type":        "Point",
				"coordinates": []float64{float64(f.random.IntN(36000)) / 100, float64(i) / 100},
			},
			"properties": object{"name": place, "kind": kind, "population": n}})
	}
	text, _ := json.Marshal(object{"type": "FeatureCollection", "features": features})
	f.outputs[name] = string(text)
	f.ask(
		name,
		"Which place has the most people?",
		[]string{largestName, fmt.Sprint(largest)},
		call{"read", map[string]any{"path": name}},
		jq(name, `[.[].features[].properties]|max_by(.population)`),
	)
	f.ask(name, "How many places of each kind?", counted(kinds),
		jq(name, `[.[].features[].properties.kind]|group_by(.)[]|"\(length) \(.[0])"`))
	f.ask(name, "How many places have over 15 million people?", []string{fmt.Sprint(capitals)},
		jq(name, `[.[].features[]|select(.properties.population > 15000000)]|length`))
}

func orders(f *fixture) {
	const name = "orders.csv"
	var b strings.Builder
	b.WriteString("order,customer,region,status,cents\n")
	cents, status, customers := 0, map[string]int{}, map[string]int{}
	for i := range 3000 * f.scale {
		customer, region := fmt.Sprintf("C%03d", f.random.IntN(200)), f.pick("north", "south", "east", "west")
		state, n := f.pick("paid", "paid", "shipped", "refunded"), f.random.IntN(50000)
		status[state]++
		customers[customer] += n
		if region == "west" {
			cents += n
		}
		fmt.Fprintf(&b, "%d,%s,%s,%s,%d\n", 100000+i, customer, region, state, n)
	}
	f.outputs[name] = b.String()
	top := most(customers)
	f.ask(
		name,
		"What is the revenue of region west?",
		[]string{fmt.Sprint(cents)},
		jq(name, `map(select(.region=="west").cents)|add`),
	)
	f.ask(name, "Which customer spent most?", []string{top, fmt.Sprint(customers[top])},
		jq(name, `group_by(.customer)|map({customer: .[0].customer, cents: (map(.cents)|add)})|max_by(.cents)`))
	f.ask(name, "How many orders were refunded?", []string{fmt.Sprint(status["refunded"])}, count(name, `,refunded,`))
}

func changes(f *fixture) {
	const name = "change.diff"
	var b strings.Builder
	added, dirs, deleted := map[string]int{}, map[string]int{}, 0
	for i := range 20 * f.scale {
		dir := f.pick("api", "store", "web")
		file := fmt.Sprintf("%s/%s_%d.go", dir, f.hex(6), i)
		dirs[dir]++
		n := 5 + f.random.IntN(40)*2 + i%2
		if i%17 == 3 {
			deleted++
			fmt.Fprintf(
				&b,
				"diff --git a/%[1]s b/%[1]s\ndeleted file mode 100644\nindex %[2]s..0000000\n--- a/%[1]s\n+++ /dev/null\n"+
					"@@ -1,%[3]d +0,0 @@\n",
				file,
				f.hex(7),
				n,
			)
			for range n {
				fmt.Fprintf(&b, "-\told(%q)\n", f.hex(20))
			}
			continue
		}
		n += i
		added[file] = n
		fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\nindex %[2]s..%[3]s 100644\n--- a/%[1]s\n+++ b/%[1]s\n"+
			"@@ -10,2 +10,%[4]d @@ func run() {\n \tbefore()\n", file, f.hex(7), f.hex(7), n+2)
		for range n {
			fmt.Fprintf(&b, "+\tcall(%q)\n", f.hex(20))
		}
		b.WriteString(" \tafter()\n")
	}
	f.outputs[name] = b.String()
	top := most(added)
	f.ask(
		name,
		"Which file gains most lines?",
		[]string{fmt.Sprint(added[top])},
		jq(name, `max_by(.added)|{file, added}`),
	)
	f.ask(
		name,
		"How many files are deleted?",
		[]string{fmt.Sprint(deleted)},
		jq(name, `map(select(.status=="deleted"))|length`),
	)
	f.ask(name, "How many files change in each directory?", counted(dirs), groups(name, `^diff --git a/(\w+)/`))
}

func testEvents(f *fixture) {
	const name = "test.json"
	var b strings.Builder
	var failed []string
	packages, slowest, slowestName := map[string]int{}, 0, ""
	for i := range 400 * f.scale {
		pkg, test, ms := "example.org/shop/"+f.pick(
			"api",
			"cart",
			"pay",
		), fmt.Sprintf(
			"Test%s%d",
			f.pick("Add", "Get", "Put"),
			i,
		), i
		ms += f.random.IntN(90) * 10000
		action, out := "pass", "--- PASS: "
		if i%(150*f.scale) == 149 {
			action, out = "fail", "--- FAIL: "
			failed = append(failed, test)
		}
		if ms > slowest {
			slowest, slowestName = ms, test
		}
		packages[pkg]++
		for _, e := range []string{
			`"run"`, `"output","Output":"=== RUN   ` + test + `\n"`, `"output","Output":"` + out + test + `\n"`,
			fmt.Sprintf(`%q,"Elapsed":%d.%03d`, action, ms/1000, ms%1000),
		} {
			fmt.Fprintf(
				&b,
				`{"Time":%q,"Package":%q,"Test":%q,"Action":%s}`+"\n",
				start.Add(time.Duration(i)*time.Second).Format(time.RFC3339),
				pkg,
				test,
				e,
			)
		}
	}
	f.outputs[name] = b.String()
	f.ask(name, "Which tests failed?", failed, jq(name, `.[]|select(.Action=="fail")|.Test`))
	f.ask(name, "Which test was slowest?", []string{slowestName}, jq(name, `max_by(.Elapsed)|.Test`))
	f.ask(
		name,
		"How many tests ran in each package?",
		counted(packages),
		groups(name, `"Package":"([^"]+)".*"Action":"run"`),
	)
}

func history(f *fixture) {
	const name = "git.log"
	var b strings.Builder
	authors, largest, largestID, fixes := map[string]int{}, 0, "", 0
	at := start
	for i := range 150 * f.scale {
		at = at.Add(-time.Duration(f.random.IntN(36000)) * time.Second)
		id, author, n := f.hex(40), f.pick("Ada Byron", "Bo Lind", "Cy Young"), 1+f.random.IntN(300)*2000+i
		verb := f.pick("add", "fix", "drop", "rename")
		authors[author]++
		if verb == "fix" {
			fixes++
		}
		if n > largest {
			largest, largestID = n, id
		}
		fmt.Fprintf(
			&b,
			"commit %s\nAuthor: %s <dev@example.org>\nDate:   %s\n\n    store: %s %s\n\n store/%s.go | %d +++++\n"+
				" 1 file changed, %d insertions(+)\n\n",
			id,
			author,
			at.Format("Mon Jan 2 15:04:05 2006 -0700"),
			verb,
			f.hex(8),
			f.hex(6),
			n,
			n,
		)
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many commits has each author?", counted(authors), groups(name, `^Author: ([^<]+) <`))
	f.ask(name, "Which commit adds most lines?", []string{largestID}, jq(name, `max_by(.added)|.commit`))
	f.ask(
		name,
		"How many commits fix something?",
		[]string{fmt.Sprint(fixes)},
		jq(name, `map(select(.subject|test(": fix ")))|length`),
	)
}

func goSource(f *fixture) {
	const name = "src"
	var all strings.Builder
	todos, wanted, lookups := map[string]int{}, "", 0
	for i := range 30 * f.scale {
		dir := f.pick("client", "server", "wire")
		file := fmt.Sprintf("%s/%s/%s_%d.go", name, dir, f.hex(4), i)
		var b strings.Builder
		fmt.Fprintf(&b, "package %s\n", dir)
		for k := range 12 {
			fmt.Fprintf(&b, "\n// handle%d%s answers.\nfunc handle%d%s(in string) string {\n", i, f.hex(3), k, f.hex(5))
			if f.random.IntN(20) == 0 {
				b.WriteString("\t// TODO: check the length\n")
				todos[name+"/"+dir]++
			}
			if f.random.IntN(200) == 0 || i == 3 && k == 3 {
				b.WriteString("\tlookupTable(in)\n")
				lookups++
			}
			b.WriteString("\treturn in\n}\n")
		}
		if i == 7*f.scale {
			b.WriteString("\nfunc decodeHeader(in []byte) error { return nil }\n")
			wanted = file
		}
		path := filepath.Join(f.dir, file)
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		_ = os.WriteFile(path, []byte(b.String()), 0o600)
		all.WriteString(b.String())
	}
	f.outputs[name] = all.String()
	var rows []string
	for dir, n := range todos {
		rows = append(rows, fmt.Sprint(dir, " ", n))
	}
	search := func(pattern, show string) call {
		return call{"search", map[string]any{"path": name, "pattern": pattern, "show": show}}
	}
	f.ask(name, "Where is decodeHeader defined?", []string{wanted}, search(`func decodeHeader\(`, "matches"))
	f.ask(name, "How many TODOs has each directory?", rows, search(`TODO`, "dirs"))
	f.ask(name, "How often is lookupTable called?", []string{fmt.Sprint(lookups)}, search(`lookupTable`, "groups"))
}
