package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
)

// changing is a command line of which calls may change files below its root.
func changing(t *testing.T) *commandLine {
	t.Helper()
	c := newCommandLine(t)
	c.root = expect.Value(filepath.EvalSymlinks(c.root))(t)
	return c
}

// change calls a tool of the toolset write, and returns the observation that undoes it.
func (c *commandLine) change(tool, args string) (id string) {
	c.t.Helper()
	code, out, said := c.run("--toolsets", "core,write", "--allow-write", c.root, "call", tool, args)
	_, id, found := strings.Cut(out, "undo: ")
	if code != done || !found {
		c.t.Fatalf("%s %s: code %d, %s%s", tool, args, code, out, said)
	}
	return id[:len("obs:")+12]
}

func (c *commandLine) has(name, want string) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.root, name))
	if os.IsNotExist(err) {
		text = []byte("(missing)")
	}
	expect.Equal(c.t, string(text), want, name)
}

// TestUndo undoes changes from another directory, without roots: the last one, one by its ID, and what undo has undone;
// not one of a file that has changed since.
func TestUndo(t *testing.T) {
	c := changing(t)
	write(t, filepath.Join(c.root, "a.txt"), "one\ntwo\n")
	write(t, filepath.Join(c.root, "b.txt"), "b\n")
	first := c.change("edit", `{"path":"a.txt","edits":[{"old":"two","new":"2"}]}`)
	c.change("remove", `{"path":"b.txt"}`)
	c.has("b.txt", "(missing)")

	t.Chdir(t.TempDir())
	undo := func(code int, out, said string, words ...string) {
		t.Helper()
		gotCode, gotOut, gotSaid := runs(t, append([]string{"--store", c.store, "undo"}, words...)...)
		if gotCode != code || !strings.Contains(gotOut, out) || !strings.Contains(gotSaid, said) ||
			(gotSaid == "") != (said == "") {
			t.Errorf("undo %q: code %d, %s, %s; want %d, %s, %s", words, gotCode, gotOut, gotSaid, code, out, said)
		}
	}
	undo(done, "b.txt: put back as it was before remove, with its mode; owner and attributes are those of a new file", "")
	c.has("b.txt", "b\n")
	undo(done, "b.txt: ", "") // the last change is that of undo
	c.has("b.txt", "(missing)")

	write(t, filepath.Join(c.root, "a.txt"), "one\n2\nthree\n") // by another program
	undo(failed, "it was changed after that", "", first)
	undo(failed, "-2\n-three\n+two\n", "", first)
	c.has("a.txt", "one\n2\nthree\n")
	write(t, filepath.Join(c.root, "a.txt"), "one\n2\n")
	undo(done, "-2\n+two\n", "", strings.TrimPrefix(first, "obs:"))
	c.has("a.txt", "one\ntwo\n")
	undo(done, `"text": "a.txt: put back`, "", "--json", c.lastChange())
	c.has("a.txt", "one\n2\n")

	for _, wrong := range []string{"obs:1", "obs:000000000000", c.kept("no change")} {
		undo(usage, "", "observations list --changes", wrong)
	}
	c.store = filepath.Join(t.TempDir(), "other")
	undo(usage, "", "there is no such change")
}

// kept returns an observation that is no change.
func (c *commandLine) kept(text string) (id string) {
	c.t.Helper()
	c.in = text
	_, out, _ := c.run("keep", "--json")
	return between(out, `"observation_id": "`, `"`)
}

// lastChange returns the newest of the changes that are listed.
func (c *commandLine) lastChange() string {
	c.t.Helper()
	code, out, said := c.run("observations", "list", "--changes", "--json")
	expect.Equal(c.t, code, done, said)
	return between(out, `"id":"`, `"`)
}

// TestListOfChanges lists changes alone, as a table and as JSON, and completes their IDs.
func TestListOfChanges(t *testing.T) {
	c := changing(t)
	c.expect(done, "no change of a file is kept in "+c.store, "", "observations", "list", "--changes")
	other := c.kept(strings.Repeat("a line\n", 500))
	c.expect(done, "no change of a file is kept in "+c.store, "", "observations", "list", "--changes")
	write(t, filepath.Join(c.root, "a.txt"), "one\n")
	edit := c.change("edit", `{"path":"a.txt","edits":[{"old":"one","new":"1"}]}`)
	moved := c.change("move", `{"from":"a.txt","to":"sub/b.txt","parents":true}`)
	_, table, _ := c.run("observations", "list", "--changes")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	expect.Equal(t, len(rows), 3, table)
	expect.Equal(t, strings.Join(strings.Fields(rows[0]), " "), "ID MADE CHANGE FILE BYTES BEFORE SESSION")
	expect.Contains(t, rows[1], moved, " move ", " local",
		filepath.Join(c.root, "a.txt")+" -> "+filepath.Join(c.root, "sub/b.txt"))
	expect.Contains(t, rows[2], edit, " edit ", filepath.Join(c.root, "a.txt"), " 4 ")
	_, list, _ := c.run("observations", "list", "--changes", "--json")
	var ids, actions []string
	for d := json.NewDecoder(strings.NewReader(list)); d.More(); {
		var o struct {
			ID   string `json:"id"`
			Seen struct{ State struct{ Action string } }
		}
		expect.Must(t, d.Decode(&o), list)
		ids, actions = append(ids, "obs:"+o.ID), append(actions, o.Seen.State.Action)
	}
	expect.EqualList(t, ids, []string{moved, edit})
	expect.EqualList(t, actions, []string{"move", "edit"})

	_, words, _ := runs(t, "__complete", "--", "mcp-funnel --store "+c.store+" undo obs:")
	expect.Contains(t, words, moved+"\t", edit+"\t")
	expect.Lacks(t, words, other)
}

// TestPinsOfChangesEnd checks that the old content of a change is pinned for a day.
func TestPinsOfChangesEnd(t *testing.T) {
	c := changing(t)
	write(t, filepath.Join(c.root, "a.txt"), "one\n")
	old := c.change("edit", `{"path":"a.txt","edits":[{"old":"one","new":"1"}]}`)
	fresh := c.change("edit", `{"path":"a.txt","edits":[{"old":"1","new":"2"}]}`)
	age := func(id string, age time.Duration) {
		t.Helper()
		kept := records.InDir(c.store)
		defer kept.Close()
		aged := 0
		for _, r := range expect.Value(kept.List(records.Key{Kind: records.Change}, "*", true))(t) {
			var body map[string]any
			expect.Must(t, json.Unmarshal(r.Body, &body))
			if "obs:"+body["obs"].(string) != id {
				continue
			}
			body["at"] = time.Now().Add(-age)
			key := records.Key{Kind: records.Change, Owner: observations.Local, Name: r.Name}
			expect.Must(t, kept.Put(key, expect.Value(json.Marshal(body))(t)))
			aged++
		}
		expect.Equal(t, aged, 1, "records of %s", id)
	}
	age(old, 25*time.Hour)
	age(fresh, 23*time.Hour)
	// It begins as a server does.
	c.expect(done, "", "", "--toolsets", "core,write", "--allow-write", c.root, "call", "find")
	pinned := map[string]bool{}
	_, list := c.open()
	for _, o := range list {
		pinned["obs:"+string(o.ID)] = o.Pinned
	}
	expect.Same(t, pinned, map[string]bool{old: false, fresh: true})
	c.expect(done, "", "", "observations", "rm", old) // without --yes
}
