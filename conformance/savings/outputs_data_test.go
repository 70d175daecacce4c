package savings

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

type object = map[string]any

// apiDump writes 2 MB as "kubectl get pods -o json" does.
func apiDump(f *fixture) {
	const name = "pods.json"
	var items []object
	restarts, phases, broken := 0, map[string]int{}, ""
	count := f.size(1500)
	for i := range count {
		ns, phase := f.pick("web", "data", "ops"), f.pick("Running", "Running", "Running", "Pending")
		pod, n, last := fmt.Sprintf("%s-%s", ns, f.hex(10)), f.random.IntN(5), object{}
		if i == count*7/10 {
			last, broken = object{"terminated": object{"exitCode": 137, "reason": "OOMKilled"}}, pod
		}
		if ns == "data" {
			restarts += n
		}
		phases[phase]++
		image := "registry.example/" + ns + ":" + f.hex(7)
		items = append(items, object{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": object{
				"name": pod, "namespace": ns, "uid": f.hex(32),
				"labels": object{"app": ns, "pod-template-hash": f.hex(10)},
			},
			"spec": object{
				"containers": []object{{
					"image": image, "name": ns,
					"resources": object{"limits": object{"memory": fmt.Sprintf("%dMi", 64<<f.random.IntN(4))}},
				}},
				"nodeName": "node-" + f.hex(2), "restartPolicy": "Always",
			},
			"status": object{
				"containerStatuses": []object{{
					"image": image, "lastState": last, "name": ns, "ready": phase == "Running", "restartCount": n,
				}},
				"hostIP": fmt.Sprintf("10.0.%d.%d", i%7, i%250), "phase": phase,
			},
		})
	}
	text, _ := json.MarshalIndent(object{"apiVersion": "v1", "items": items, "kind": "List"}, "", "    ")
	f.outputs[name] = string(text) + "\n"
	f.ask(name, "Which pod was killed, and why?", words(broken, "OOMKilled", "137"), read(name))
	f.ask(name, "How many restarts has namespace data?", alone(restarts), read(name), jq(name,
		`[.[].items[]|select(.metadata.namespace=="data").status.containerStatuses[].restartCount]|add`))
	f.ask(name, "How many pods are in each phase?", counted(phases), read(name))
}

// geoJSON writes 5 MB in one line.
func geoJSON(f *fixture) {
	const name = "places.geojson"
	var features []object
	kinds, largest, largestName, big := map[string]int{}, 0, "", 0
	for i := range f.size(26000) {
		place, kind, n := "place-"+f.hex(8), f.pick("city", "town", "village"), f.random.IntN(700_000)*28+i%28
		for n == largest {
			n--
		}
		kinds[kind]++
		if n > largest {
			largest, largestName = n, place
		}
		if n > 15_000_000 {
			big++
		}
		features = append(features, object{
			"type": "Feature",
			"geometry": object{
				"type": "Point",
				"coordinates": []float64{
					float64(f.random.IntN(360000))/1000 - 180, float64(f.random.IntN(180000))/1000 - 90,
				},
			},
			"properties": object{
				"name": place, "kind": kind, "population": n, "country": f.pick("AR", "BE", "CH", "DK", "EG"),
				"elevation": f.random.IntN(3000),
			},
		})
	}
	text, _ := json.Marshal(object{"type": "FeatureCollection", "features": features})
	f.outputs[name] = string(text)
	f.ask(name, "Which place has the most people?", words(largestName), read(name),
		jq(name, `[.[].features[].properties]|max_by(.population).name`))
	f.ask(name, "How many places of each kind?", counted(kinds), read(name))
	f.ask(name, "How many places have over 15,000,000 people?", alone(big), read(name),
		jq(name, `[.[].features[].properties|select(.population > 15000000)]|length`))
}

// orders writes 60,000 rows.
func orders(f *fixture) {
	const name = "orders.csv"
	var b strings.Builder
	b.WriteString("order,day,customer,region,status,cents\n")
	cents, status, customers := 0, map[string]int{}, map[string]int{}
	rows := f.size(60000)
	for i := range rows {
		customer, region := fmt.Sprintf("C%03d", f.random.IntN(200)), f.pick("north", "south", "east", "west")
		state, n := f.pick("paid", "paid", "shipped", "refunded"), f.random.IntN(50000)
		status[state]++
		customers[customer] += n
		if region == "west" {
			cents += n
		}
		day := start.AddDate(0, 0, i*180/rows).Format("2006-01-02")
		fmt.Fprintf(&b, "%d,%s,%s,%s,%s,%d\n", 100000+i, day, customer, region, state, n)
	}
	f.outputs[name] = b.String()
	f.ask(name, "What is the revenue of region west?", alone(cents), read(name),
		jq(name, `map(select(.region=="west").cents)|add`))
	f.ask(name, "Which customer spent most?", words(most(customers)), read(name),
		jq(name, `group_by(.customer)|max_by(map(.cents)|add)[0].customer`))
	f.ask(name, "How many orders were refunded?", beside("refunded", status["refunded"]), read(name))
}

// testEvents writes what "go test -json ./..." prints.
func testEvents(f *fixture) {
	const name = "test.json"
	var b strings.Builder
	var failed []string
	packages, slowest, slowestName := map[string]int{}, 0, ""
	second := 0
	event := func(action, pkg, test, rest string) {
		at := start.Add(time.Duration(second) * time.Second).Format(time.RFC3339Nano)
		fmt.Fprintf(&b, `{"Time":%q,"Action":%q,"Package":%q`, at, action, pkg)
		if test != "" {
			fmt.Fprintf(&b, `,"Test":%q`, test)
		}
		b.WriteString(rest + "}\n")
	}
	output := func(pkg, test, line string) { event("output", pkg, test, fmt.Sprintf(`,"Output":%q`, line+"\n")) }
	count := f.size(4000)
	for p := range 8 {
		pkg, bad := "example.org/shop/"+[]string{"api", "cart", "mail", "pay", "rate", "stock", "tax", "user"}[p], "pass"
		event("start", pkg, "", "")
		n := count/10 + p*count/140
		packages[pkg] = n
		for i := range n {
			second++
			test, ms := fmt.Sprintf("Test%s%s%d", f.pick("Add", "Get", "Put"), f.pick("Cold", "Warm"), p*1000+i), 0
			ms = f.random.IntN(900)
			result, word := "pass", "PASS"
			if p == 5 && i == n/3 {
				ms, slowestName = 9470, test
				slowest = ms
			}
			event("run", pkg, test, "")
			output(pkg, test, "=== RUN   "+test)
			if p%3 == 1 && i == n/2 {
				result, word, bad = "fail", "FAIL", "fail"
				failed = append(failed, test)
				output(pkg, test, fmt.Sprintf("    %s_test.go:%d: got %d, want %d", pkg[17:], 20+i, ms, ms+1))
			}
			took := fmt.Sprintf("%d.%02d", ms/1000, ms%1000/10)
			output(pkg, test, fmt.Sprintf("--- %s: %s (%ss)", word, test, took))
			event(result, pkg, test, `,"Elapsed":`+strings.TrimSuffix(strings.TrimRight(took, "0"), "."))
		}
		output(pkg, "", map[string]string{"pass": "PASS", "fail": "FAIL"}[bad])
		event(bad, pkg, "", fmt.Sprintf(`,"Elapsed":%d`, n/2+slowest/1000))
	}
	f.outputs[name] = b.String()
	f.ask(name, "Which tests failed?", words(failed...), read(name),
		jq(name, `.[]|select(.Action=="fail" and .Test).Test`))
	f.ask(name, "Which test was slowest?", words(slowestName), read(name),
		jq(name, `map(select(.Test and .Elapsed))|max_by(.Elapsed).Test`))
	f.ask(name, "How many tests ran in each package?", counted(packages), read(name),
		jq(name, `map(select(.Action=="run"))|group_by(.Package)[]|"\(length) \(.[0].Package)"`))
}
