package savings

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// serviceLog writes 180,000 lines.
func serviceLog(f *fixture) {
	const name = "service.log"
	var b strings.Builder
	errors, slowestID, lastFailed := map[string]int{}, "", ""
	at, lines := start, f.size(180_000)
	for i := range lines {
		at = at.Add(time.Duration(f.random.IntN(900)+1) * time.Millisecond)
		service, id, us := f.pick("billing", "gateway", "orders", "search", "stock"), f.hex(12), f.random.IntN(400_000)
		level, message := "INFO", f.pick("request done", "request done", "cache refreshed", "session opened")
		switch n := f.random.IntN(100); {
		case n == 0:
			level, message = "ERROR", f.pick("upstream timeout", "connection reset by peer", "queue full")
			errors[service]++
			lastFailed = id
		case n < 6:
			level, message = "WARN", "slow query"
		}
		if i == lines*2/3 {
			us, slowestID = 9_412_377, id
		}
		fmt.Fprintf(&b, "%s %s [%s] %s request_id=%s duration_us=%d\n",
			at.Format("2006-01-02T15:04:05.000Z"), level, service, message, id, us)
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many ERROR lines has each service?", counted(errors), read(name), groups(name, ` ERROR \[(\w+)\]`))
	f.ask(
		name,
		"Which request took longest?",
		words(slowestID),
		read(name),
		jq(name, `max_by(.duration_us).request_id`),
	)
	f.ask(name, "Which request failed last?", words(lastFailed), read(name))
}

// changes writes a diff of 220 files.
func changes(f *fixture) {
	const name = "change.diff"
	var b strings.Builder
	added, dirs, deleted := map[string]int{}, map[string]int{}, 0
	for i := range f.size(220) {
		dir := f.pick("api", "cmd", "docs", "store", "web")
		file := fmt.Sprintf("%s/%s_%d.go", dir, f.hex(6), i)
		dirs[dir]++
		switch i % 17 {
		case 3:
			deleted++
			n := 5 + f.random.IntN(80)
			fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\ndeleted file mode 100644\nindex %[2]s..0000000\n--- a/%[1]s\n"+
				"+++ /dev/null\n@@ -1,%[3]d +0,0 @@\n", file, f.hex(7), n)
			f.lines(&b, "-", n)
		case 9:
			added[file] = 20 + f.random.IntN(100)
			fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\nnew file mode 100644\nindex 0000000..%[2]s\n--- /dev/null\n"+
				"+++ b/%[1]s\n@@ -0,0 +1,%[3]d @@\n", file, f.hex(7), added[file])
			f.lines(&b, "+", added[file])
		default:
			fmt.Fprintf(&b, "diff --git a/%[1]s b/%[1]s\nindex %[2]s..%[3]s 100644\n--- a/%[1]s\n+++ b/%[1]s\n",
				file, f.hex(7), f.hex(7))
			for h := range 1 + f.random.IntN(3) {
				plus, minus := 1+f.random.IntN(60), f.random.IntN(20)
				if i == 11 && h == 0 {
					plus = 260
				}
				added[file] += plus
				fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@ func %s() {\n \tbefore()\n",
					10+h*100, minus+2, 10+h*150, plus+2, f.pick("run", "open", "parse"))
				f.lines(&b, "-", minus)
				f.lines(&b, "+", plus)
				b.WriteString(" \tafter()\n")
			}
		}
	}
	f.outputs[name] = b.String()
	f.ask(name, "Which file gains most lines?", words(most(added)), jq(name, `max_by(.added).file`))
	f.ask(name, "How many files are deleted?", alone(deleted), jq(name, `map(select(.status=="deleted"))|length`))
	f.ask(name, "How many files change in each directory?", counted(dirs),
		jq(name, `map(.file|split("/")[0])|group_by(.)[]|"\(length) \(.[0])"`))
}

func (f *fixture) lines(b *strings.Builder, sign string, n int) {
	for range n {
		fmt.Fprintf(b, "%s\tcall(%q, %d)\n", sign, f.hex(12), f.random.IntN(1000))
	}
}

// history writes what "git log --stat" prints.
func history(f *fixture) {
	const name = "git.log"
	var b strings.Builder
	authors, largestID, fixes := map[string]int{}, "", 0
	at, commits := start, f.size(1500)
	for i := range commits {
		at = at.Add(-time.Duration(f.random.IntN(36000)) * time.Second)
		id, author := f.hex(40), f.pick("Ada Byron", "Ada Byron", "Bo Lind", "Cy Young", "Di Moss")
		verb := f.pick("add", "fix", "drop", "rename", "prefix")
		authors[author]++
		if verb == "fix" {
			fixes++
		}
		fmt.Fprintf(
			&b,
			"commit %s\nAuthor: %s <%s@example.org>\nDate:   %s\n\n    %s: %s %s\n\n",
			id,
			author,
			strings.ToLower(
				author[:2],
			),
			at.Format("Mon Jan 2 15:04:05 2006 -0700"),
			f.pick("store", "web"),
			verb,
			f.hex(8),
		)
		sum, files := 0, 1+f.random.IntN(4)
		for k := range files {
			n := 1 + f.random.IntN(300)
			if i == commits/3 && k == 0 {
				n, largestID = 7200, id
			}
			sum += n
			fmt.Fprintf(&b, " store/%s.go | %d %s\n", f.hex(6), n, strings.Repeat("+", min(n/10+1, 40)))
		}
		noun := map[bool]string{true: "file", false: "files"}[files == 1]
		fmt.Fprintf(&b, " %d %s changed, %d insertions(+)\n\n", files, noun, sum)
	}
	f.outputs[name] = b.String()
	f.ask(name, "How many commits has each author?", counted(authors),
		jq(name, `group_by(.author)[]|"\(length) \(.[0].author)"`))
	f.ask(name, "Which commit adds most lines?", words(largestID), jq(name, `max_by(.added).commit`))
	f.ask(name, "How many commits fix something?", alone(fixes),
		jq(name, `map(select(.subject|test("\\bfix\\b")))|length`))
}

const tree = "src"

// goSource writes 900 Go files in nested directories.
func goSource(f *fixture) {
	files, todos, defined, calls := map[string]string{}, map[string]int{}, "", 0
	count := f.size(900)
	for i := range count {
		dir := f.pick("client", "server", "server/http", "wire", "wire/frame")
		file := fmt.Sprintf("%s/%s/%s_%d.go", tree, dir, f.hex(4), i)
		var b strings.Builder
		fmt.Fprintf(&b, "package %s\n\nimport \"strings\"\n", path.Base(dir))
		for k := range 12 {
			fmt.Fprintf(&b, "\n// handle%[1]d%[2]s answers.\nfunc handle%[1]d%[2]s(in string) string {\n", k, f.hex(5))
			if f.random.IntN(40) == 0 {
				b.WriteString("\t// TODO: check the length\n")
				todos[tree+"/"+dir]++
			}
			switch n := f.random.IntN(1000); {
			case n < 3 || i == 3 && k == 3:
				b.WriteString(
					"\tif strings.EqualFold(in, \"a\") || strings.EqualFold(in, \"b\") {\n\t\treturn in\n\t}\n",
				)
				calls += 2
			case n < 5:
				b.WriteString("\t// EqualFold is too slow here.\n")
			case n < 6 || i == 4 && k == 4:
				b.WriteString("\t_ = decodeHeader([]byte(in))\n")
			}
			b.WriteString("\treturn strings.TrimSpace(in)\n}\n")
		}
		if i == count*7/10 {
			b.WriteString("\nfunc decodeHeader(in []byte) error { return nil }\n")
			defined = file
		}
		files[file] = b.String()
	}
	var all strings.Builder
	for _, file := range slices.Sorted(maps.Keys(files)) {
		f.write(file, files[file])
		fmt.Fprintf(&all, "==> %s <==\n%s\n", file, files[file])
	}
	f.outputs[tree] = all.String()
	f.ask(
		tree,
		"Where is decodeHeader defined?",
		near(defined, "func decodeHeader("),
		search(tree, `decodeHeader`, "matches"),
	)
	f.ask(tree, "How many TODO comments has each directory?", counted(todos), search(tree, `TODO`, "dirs"))
	f.ask(tree, "How often is strings.EqualFold called?", beside("strings.EqualFold", calls),
		search(tree, `strings\.EqualFold`, "groups"))
}
