package conformance

import (
	le "encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// refusal is a change that cannot be made, or not be kept, and why; and how it can be made.
type refusal struct {
	name    string
	flags   []string
	prepare func(dir string) error // the directory of the file; nil: nothing is prepared
	text    string
	says    string
	control func(c *stdioClient, dir string, args object) object // takes the cause away
}

// TestS35WhatCannotBeKeptIsNotChanged makes changes on full and read-only disks, and such that the store does not take:
// each is refused, and the file is as it was. The control takes the cause away.
func TestS35WhatCannotBeKeptIsNotChanged(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	disk := func(size string, flags uintptr) func(dir string) error {
		return func(dir string) error {
			text, err := os.ReadFile(dir + "/file")
			if err == nil {
				err = unix.Mount("none", dir, "tmpfs", 0, "size="+size)
			}
			if err != nil {
				return err
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			if err = os.WriteFile(dir+"/file", text, 0o640); err == nil && flags != 0 {
				err = unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|flags, "")
			}
			return err
		}
	}
	noise := make([]byte, 150<<10) // which a store cannot make smaller
	for i := range noise {
		noise[i] = "0123456789abcdefghijklmnopqrstuvwxyz-_ABCDEFGHIJKLMNOPQRSTUVWXYZ"[rand.IntN(64)]
	}
	unkept := func(_ *stdioClient, _ string, args object) object {
		args["keep"] = false
		return args
	}
	secret := "a kept word, ghp_" + strings.Repeat("aB3dE5", 6) + "\n"
	all := []refusal{
		{name: "full disk", prepare: disk("256k", 0), text: "a kept word\n" + strings.Repeat("a row of a long file\n", 9000),
			says: "no space left", control: func(_ *stdioClient, dir string, args object) object {
				expect.Must(t, unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT, "size=8m"))
				return args
			}},
		{name: "read-only disk", prepare: disk("1m", unix.MS_RDONLY), text: "a kept word\n", says: "read-only",
			control: func(_ *stdioClient, dir string, args object) object {
				expect.Must(t, unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT, ""))
				return args
			}},
		{name: "quota full", flags: []string{"--quota", "100KiB"}, text: "a kept word\n" + string(noise) + "\n",
			says: "keep=false", control: unkept},
		{
			name: "store that masks secrets", flags: []string{"--redact-store"}, text: secret,
			says: "masks them", control: unkept,
		},
	}
	if promise.Full() {
		all = append(all, refusal{
			name: "over 64 MiB", text: "a kept word\n" + strings.Repeat("a row of a long file\n", 4<<20),
			says: "keep=false", control: unkept,
		})
	}
	cases, control, tried := 0, 0, []string{}
	var faults []string
	for _, r := range all {
		top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
		dir, file := top+"/root/dir", top+"/root/dir/file"
		write(t, file, r.text)
		expect.Must(t, os.Chmod(file, 0o640))
		if r.prepare != nil {
			if err := r.prepare(dir); err != nil {
				t.Logf("%s: not tried: %v", r.name, err)
				continue
			}
		}
		tried = append(tried, r.name)
		c := launch{flags: writeFlags(top, "store", r.flags...)}.stdio(t)
		more := strings.Repeat("a row\n", 30_000)
		for _, a := range []writeAttempt{
			{"edit", object{"path": "dir/file", "edits": []object{{"old": "kept word", "new": "changed word " + more}}}},
			{"write", object{"path": "dir/file", "append": true, "content": more}},
			{"write", object{"path": "dir/file", "mode": "replace", "expect": shortHash(r.text), "content": more}},
			{"remove", object{"path": "dir/file"}},
		} {
			was := describeFile(t, file)
			cases++
			if r.name == "full disk" && a.tool == "remove" {
				continue // it needs no space
			}
			said := expect.Value(c.call(a.tool, a.args))(t)
			if is := describeFile(t, file); !said.failed || !strings.Contains(said.text(), r.says) || is != was {
				faults = append(faults, fmt.Sprintf("%s: %s: %.300s; was %s, is %s", r.name, a.tool, said.text(), was, is))
			}
			if _, left := filesIn(t, top+"/root"); len(left) > 0 {
				faults = append(faults, fmt.Sprintf("%s: %s: left %q", r.name, a.tool, left))
			}
		}
		edit := object{"path": "dir/file", "edits": []object{{"old": "kept word", "new": "changed word"}}}
		if a := expect.Value(c.call("edit", r.control(c, dir, edit)))(t); !a.failed {
			control++
		} else {
			t.Errorf("%s: the control failed: %s", r.name, a.text())
		}
	}
	// A store that cannot be written: no change at all is made.
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	write(t, top+"/root/file", keptText)
	write(t, top+"/no-directory", "")
	c := launch{flags: writeFlags(top, "no-directory/store")}.stdio(t)
	for _, keep := range []bool{true, false} {
		cases++
		a := expect.Value(c.call("edit", object{
			"path": "file", "edits": []object{{"old": "kept", "new": "changed"}}, "keep": keep,
		}))(t)
		if text := expect.Value(os.ReadFile(top + "/root/file"))(t); !a.failed || string(text) != keptText {
			faults = append(faults, fmt.Sprintf("a store that cannot be written, keep=%v: %s", keep, a.text()))
		}
	}
	report(t, faults)
	promise.Keptf(t, promise.Proof{Promise: "S35", Cases: cases, Failures: len(faults), Control: control},
		"%s, a store that cannot be written; control: the cause taken away, or keep=false", strings.Join(tried, ", "))
}

// accessList returns an access list as the system has it, of entries of tag, rights and ID.
func accessList(entries ...[3]uint32) []byte {
	list := le.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		list = le.LittleEndian.AppendUint16(list, uint16(e[0]))
		list = le.LittleEndian.AppendUint16(list, uint16(e[1]))
		list = le.LittleEndian.AppendUint32(list, e[2])
	}
	return list
}

// TestS35AttributesStay changes files of all modes and owners, with extended attributes and access lists, in a
// directory whose new files get one: they keep what they have, and get nothing. The control is a new file.
func TestS35AttributesStay(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	const anyone = ^uint32(0)
	top := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	dir := top + "/root/dir"
	expect.Must(t, os.MkdirAll(dir, 0o755))
	list := accessList([3]uint32{1, 7, anyone}, [3]uint32{2, 6, 1234}, [3]uint32{4, 5, anyone}, [3]uint32{16, 7, anyone},
		[3]uint32{32, 0, anyone})
	lists := unix.Setxattr(dir, "system.posix_acl_default", list, 0) == nil
	c := launch{flags: writeFlags(top, "store")}.stdio(t)
	state := func(path string) string {
		at := expect.Value(os.Lstat(path))(t)
		return fmt.Sprintf("%v %d %q", at.Mode(), ownerOf(at), extended(t, path))
	}
	var faults []string
	cases, control := 0, 0
	for i, mode := range []uint32{0o644, 0o600, 0o666, 0o444, 0o755, 0o4755, 0o2755, 0o6711, 0o1644, 0o640, 0o664} {
		name := fmt.Sprintf("dir/file-%d", i)
		path := top + "/root/" + name
		write(t, path, keptText)
		_ = unix.Removexattr(path, "system.posix_acl_access")
		if i%2 == 1 {
			_ = unix.Setxattr(path, "user.k", []byte("a value"), 0)
			_ = unix.Setxattr(path, "trusted.k", []byte{0, 1, 255}, 0) // with rights
		}
		if i >= 9 {
			_ = unix.Setxattr(path, "system.posix_acl_access", list, 0)
		}
		if i%3 == 2 {
			_ = os.Chown(path, 1234, 2345) // with rights
		}
		if i < 9 {
			expect.Must(t, unix.Chmod(path, mode))
		}
		was := state(path)
		for _, a := range []writeAttempt{
			{"edit", object{"path": name, "edits": []object{{"old": "kept", "new": "changed"}}}},
			{"write", object{"path": name, "append": true, "content": "more\n"}},
			{"write", object{
				"path": name, "mode": "replace", "expect": shortHash("a changed word\nmore\n"), "content": keptText,
			}},
			{"move", object{"from": name, "to": name + "-moved"}},
			{"move", object{"from": name + "-moved", "to": name, "copy": true}},
		} {
			said := expect.Value(c.call(a.tool, a.args))(t)
			at := path
			if a.args["to"] == name+"-moved" {
				at += "-moved"
			}
			if cases++; said.failed || state(at) != was {
				faults = append(faults, fmt.Sprintf("%s of %s: %s; was %s, is %s", a.tool, name, said.text(), was, state(at)))
			}
			if a.tool != "move" {
				undone := expect.Value(c.call("write", object{"undo": shownUndo.FindStringSubmatch(said.text())[1]}))(t)
				if cases++; undone.failed || state(at) != was {
					faults = append(faults, fmt.Sprintf("undo %s of %s: %s; is %s", a.tool, name, undone.text(), state(at)))
				}
				if a := expect.Value(c.call(a.tool, a.args))(t); a.failed {
					t.Fatal(a.text())
				}
			}
		}
		expect.Must(t, os.Remove(path))
		if a := expect.Value(c.call("write", object{"path": name, "content": keptText}))(t); a.failed {
			t.Fatal(a.text())
		}
		if state(path) != was {
			control++
		}
	}
	// Hard links: the others keep the old content, and the answer says so.
	write(t, dir+"/one", keptText)
	expect.Must(t, os.Link(dir+"/one", dir+"/two"))
	edit := object{"path": "dir/one", "edits": []object{{"old": "kept", "new": "changed"}}}
	said, two := expect.Value(c.call("edit", edit))(t), expect.Value(os.ReadFile(dir+"/two"))(t)
	if string(two) != keptText || !strings.Contains(said.text(), "2 names") {
		faults = append(faults, "hard links: "+said.text())
	}
	cases++
	report(t, faults)
	figures := "modes, set-ID bits, owners, extended attributes; control: a new file"
	if lists {
		figures = "modes, set-ID bits, owners, extended attributes, access lists; control: a new file"
	}
	promise.Keptf(t, promise.Proof{Promise: "S35", Cases: cases, Failures: len(faults), Control: control}, "%s", figures)
}
