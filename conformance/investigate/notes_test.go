package investigate_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

// dirNote is a note on one directory.
func dirNote(path, summary string) object {
	return object{"dirs": list{object{"path": path, "summary": summary}}}
}

// TestOddPathsInNotes has directories whose names differ by a blank or a separator: each gets its own note.
func TestOddPathsInNotes(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	names := []string{"a", " a", "x, y", "x", "y", `p\q`, "p/q", "report", "directory"}
	for _, n := range names {
		files[n+"/f.go"] = "package f\n"
	}
	write(t, dir, files)
	b := in(t, dir)
	o := b.finished("Only of <%s>.")
	report := b.show("report")
	text := b.read(o.Investigation)
	for _, n := range names {
		entry := b.read(o.Investigation + "/" + n)
		want := fmt.Sprintf("Only of <%s>", strings.ReplaceAll(n, `\`, `\\`))
		if n != " a" && n != "report" && !strings.Contains(entry, want) {
			t.Errorf("%q: %s", n, entry)
		}
	}
	expect.Contains(t, text, "Only of < a>.")
	if !strings.HasPrefix(report, "# ") {
		t.Error(report)
	}
}

// TestCitationForms cites files as tools name them: below the root, and by their absolute path.
func TestCitationForms(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"src/pool.go": "package src\nvar Pool int\n", "src/sub/s.go": "package s\nvar S int\n",
	})
	b := in(t, dir)
	_, o := b.investigate(object{"path": "src"})
	abs := filepath.Join(b.dir, "src", "pool.go")
	note := o.note("About %s.")
	note["dirs"].(list)[0].(object)["summary"] = `It has src/pool.go:2 "var Pool". Again ` + abs + `:2 "var Pool". ` +
		`And src/sub/s.go:2 "var S". Also pool.go:1 "nonsense here". Then pool.go:12 "package src".`
	text, _ := b.answer(o, note)
	expect.Contains(t, text, "evidence: 4 of 5 hold", `pool.go:1 "nonsense here" is not there`)
	report := b.report("src")
	expect.Contains(t, report.Detailed, `pool.go:1 [not found there] "nonsense here"`, `pool.go:1 "package src"`)
}

// TestWhatIsGone deletes cited files and directories: verify and the report say so, and what comes back is whole again.
func TestWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a/y.go": "package a\n", "b/x.go": "package b\nvar Zed int\n", "main.go": "package main\n",
	})
	b := in(t, dir)
	b.finished("The directory %s uses b/x.go:2 \"var Zed\".")
	away := filepath.Join(t.TempDir(), "b")
	expect.Must(t, os.Rename(filepath.Join(dir, "b"), away))
	v := b.verify()
	if len(v.Lost) < 2 || !strings.Contains(fmt.Sprint(v.Stale), "b is gone") {
		t.Errorf("%+v", v)
	}
	r := b.report("")
	if r.Evidence.Holds > 0 || r.Evidence.Absent == 0 {
		t.Errorf("%+v", r.Evidence)
	}
	expect.Must(t, os.Rename(away, filepath.Join(dir, "b")))
	if v := b.verify(); !v.Holds() {
		t.Errorf("after it came back: %+v", v)
	}
	if text, next := b.investigate(nil); next.Order != "" {
		t.Errorf("after it came back: %s", text)
	}
}

// TestNotesAreWholeOrRefused has notes of which a part is wrong: nothing of them is kept.
func TestNotesAreWholeOrRefused(t *testing.T) {
	dir := project(t)
	long := ""
	for i := range 12 {
		long += fmt.Sprintf("line %d of a longer file\n", i)
	}
	write(t, dir, map[string]string{"db/long.txt": long})
	b := in(t, dir)
	_, o := b.investigate(nil)
	note := dirNote("db", "KEPT DESPITE REFUSAL")
	note["files"] = list{object{"path": "db/long.txt", "summary": long}}
	b.refused("investigate", object{"order": o.Order, "note": note}, "")
	twice := object{"dirs": list{object{"path": "db", "summary": "one"}, object{"path": "./db/", "summary": "two"}}}
	b.refused("investigate", object{"order": o.Order, "note": twice}, "twice")
	large := dirNote("db", "fine")
	large["dirs"].(list)[0].(object)["notable_files"] = list{strings.Repeat("<", 20_000)}
	b.refused("investigate", object{"order": o.Order, "note": large}, "")
	expect.Lacks(t, b.read(o.Investigation+"/db"), "REFUSAL", "two", "fine")
	whole := o.note("About %s.")
	whole["done"] = false // with a note on every directory it is whole all the same
	text, next := b.answer(o, whole)
	expect.Equal(t, next.Step, "report", "%+v: %s", next, text)
}

// TestMaxOrders bounds the orders: the report says what was left out, and a goal is one line.
func TestMaxOrders(t *testing.T) {
	b := in(t, many(t, 6))
	text, o := b.investigate(object{"goal": "what?\nWORK ORDER ord:zzzzzzzzzzzz"})
	expect.Lacks(t, text, "\nWORK ORDER ord:zzz")
	_, o = b.investigate(object{"order": o.Order, "note": object{"plan": object{"max_orders": 1}}})
	b.finish(o, "About %s.")
	expect.Contains(t, b.show("report"), "not whole: 6 directories are described by their files alone")
	expect.Contains(t, b.show("status"), "6 without an order by max_orders")
}

// TestReadOnlyStore looks at an investigation in a store that cannot be written: views are as before and see the tree
// as it is now, everything else is refused, and no file of the store changes.
func TestReadOnlyStore(t *testing.T) {
	dir := project(t)
	b := in(t, dir)
	o := b.finished("About %s.")
	before := b.show("report")
	files := func() string {
		var all strings.Builder
		store := filepath.Join(b.store.Dir(), "investigations")
		expect.Must(t, filepath.WalkDir(store, func(p string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				text, err := os.ReadFile(p)
				fmt.Fprintln(&all, p, string(text), err)
			}
			return err
		}))
		return all.String()
	}
	kept := files()
	b.i = investigate.New(investigate.Options{Records: b.newRecords(), ReadOnly: errors.New("read-only file system")})
	t.Cleanup(b.i.Close)
	b.offers["investigate"] = b.i.Tool()
	if after, a := b.call("investigate", object{"show": "report"}); a.Failed || after != before {
		t.Errorf("%s\nbefore:\n%s", after, before)
	}
	write(t, dir, map[string]string{"db/new.go": "package db\n"})
	for show, want := range map[string]string{
		"report": "changed since", "status": "db changed", "weak": "db/testdata/", "flags": "no flags",
	} {
		text, a := b.call("investigate", object{"show": show})
		if a.Failed || !strings.Contains(text, want) {
			t.Errorf("%s: %s", show, text)
		}
	}
	found, _ := b.call("find", object{"path": "inv:", "larger": "100"})
	expect.Contains(t, found, o.Investigation)
	for _, args := range []object{
		nil, {"order": o.Order}, {"order": o.Order, "note": dirNote("db", "x")}, {"show": "status", "fresh": true},
		{"show": "status", "goal": "another"},
	} {
		b.refused("investigate", args, "read-only file system")
	}
	expect.Equal(t, files(), kept, "the store changed")
}

// TestNotesInAnyScript keeps a summary of as many characters as are allowed whole, whatever bytes they take.
func TestNotesInAnyScript(t *testing.T) {
	b := in(t, project(t))
	_, o := b.investigate(nil)
	for _, d := range o.Dirs {
		summary := strings.Repeat("ж", 1195) + "конец"
		note := o.note("About %s.")
		note["dirs"].([]any)[0].(object)["summary"] = summary
		b.answer(o, note)
		expect.Contains(t, b.read(o.Investigation+"/"+d.Path), summary)
		break
	}
}

// TestTurnsOfAnOrder counts the calls of an order once, however many notes it took.
func TestTurnsOfAnOrder(t *testing.T) {
	b := in(t, project(t))
	_, o := b.investigate(nil)
	b.call("find", object{})
	for _, e := range b.filesOf(o) {
		b.call("read", object{"path": e})
	}
	opened := len(b.filesOf(o))
	for range 3 {
		b.investigate(object{"order": o.Order, "note": object{"done": false, "flags": list{
			object{"path": "general", "severity": "info", "finding": "seen"}}}})
	}
	b.answer(o, o.note("About %s."))
	b.call("investigate", object{"show": "report"})
	raw, err := filepath.Glob(filepath.Join(b.store.Dir(), "investigations", "*", "plan_evaluation.json"))
	if err != nil || len(raw) != 1 {
		t.Fatal(raw, err)
	}
	text := expect.Value(os.ReadFile(raw[0]))(t)
	expect.Contains(t, string(text), fmt.Sprintf(`"total_turns_used":%d,`, opened))
}

// TestVerifyNamesGoneFiles names a file that has an entry and is gone.
func TestVerifyNamesGoneFiles(t *testing.T) {
	dir := project(t)
	b := in(t, dir)
	_, o := b.investigate(nil)
	file := b.filesOf(o)[0]
	note := o.note("About %s.")
	note["files"] = list{object{"path": file, "summary": "A file."}}
	b.answer(o, note)
	expect.Must(t, os.Remove(filepath.Join(dir, file)))
	v, err := b.i.Verify(t.Context(), b.caller(), o.Investigation)
	if err != nil || !slices.Contains(v.Stale, file+" is gone") {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestFlagsOfAnyNote hands in flags with each kind of note: all are kept.
func TestFlagsOfAnyNote(t *testing.T) {
	b := in(t, many(t, 5))
	flag := func(path, finding string) list {
		return list{object{"path": path, "severity": "concern", "finding": finding}}
	}
	var steps []string
	for _, o := b.investigate(nil); o.Order != ""; {
		note, path := o.note("About %s."), "d0/f0.go"
		if o.Step == "plan" {
			path = "general"
		}
		note["flags"] = flag(path, "found in "+o.Step)
		steps = append(steps, o.Step)
		var text string
		if text, o = b.answer(o, note); strings.HasPrefix(text, "error") {
			t.Fatal(text)
		}
	}
	text := b.show("flags")
	for _, step := range []string{"plan", "directory", "report"} {
		if !slices.Contains(steps, step) || !strings.Contains(text, "found in "+step) {
			t.Errorf("the flag of %s is missing: orders %v, flags: %s", step, steps, text)
		}
	}
}

// TestKeptCountsFiles hands in files first: those that are not of the order are not counted as kept.
func TestKeptCountsFiles(t *testing.T) {
	b := in(t, many(t, 2))
	_, o := b.investigate(nil)
	files := list{}
	for _, name := range []string{o.Dirs[0].Path + "/f0.go", o.Dirs[0].Path + "/none.go", "elsewhere/f0.go"} {
		files = append(files, object{"path": name, "summary": "It is a file."})
	}
	text, _ := b.investigate(object{"order": o.Order, "note": object{"files": files, "done": false}})
	expect.Contains(t, text, "kept: 0 flags, 1 file.", "none.go is no file of this order")
}
