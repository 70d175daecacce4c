package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// heldFile is a file, whole.
type heldFile struct {
	mode  fs.FileMode
	attr  string // its extended attribute user.k
	owner int
	text  string
}

// heldFiles are those below a directory, by name.
type heldFiles map[string]heldFile

// filesIn returns the files below a directory, and the names of temporary ones.
func filesIn(t testing.TB, dir string) (all heldFiles, temporary []string) {
	t.Helper()
	all = heldFiles{}
	expect.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), ".mcp-funnel-") {
			temporary = append(temporary, path)
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		at, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		value := make([]byte, 100)
		n, _ := unix.Getxattr(path, "user.k", value)
		all[name] = heldFile{at.Mode(), string(value[:max(n, 0)]), ownerOf(at), string(text)}
		return err
	}))
	return all, temporary
}

// done is a change that was reported as done.
type done struct {
	id            string
	before, after heldFiles
}

// hand is one of several that change the files of one directory each, by one server, and knows what they should be.
type hand struct {
	t        testing.TB
	dir      string    // absolute
	name     string    // as tools name it
	is, will heldFiles // now, and when the change under way is made
	what     string    // is under way
	done     []done    // the last one at the end
	n        int
	control  bool // changes may fail
}

// writeFlags are those of a server that may change the files below the directory root of top.
func writeFlags(top, store string, more ...string) []string {
	return append([]string{
		"--root", top + "/root", "--allow-write", top + "/root", "--toolsets", "core,write", "--store", top + "/" + store,
		"--min-free", "0",
	}, more...)
}

func newHand(t testing.TB, dir, name string) *hand {
	t.Helper()
	h := &hand{t: t, dir: dir, name: name}
	for i, mode := range []fs.FileMode{0o640, 0o755, 0o600, 0o644} {
		path := fmt.Sprintf("%s/f%d", dir, i)
		write(t, path, fmt.Sprintf("counter: 0\n%s", strings.Repeat("a row of the file\n", 10<<(4*i))))
		expect.Must(t, os.Chmod(path, mode))
	}
	h.plantTree()
	_ = unix.Setxattr(dir+"/f0", "user.k", []byte("a value"), 0) // if the file system has attributes
	h.is, _ = filesIn(t, dir)
	return h
}

func (h *hand) plantTree() {
	for i := range 20 {
		write(h.t, fmt.Sprintf("%s/tree/%d/file", h.dir, i), strings.Repeat("a file of the tree\n", i*20))
	}
}

// change begins a change drawn at random.
func (h *hand) next() (tool string, args object) {
	h.will = maps.Clone(h.is)
	name := slices.Sorted(maps.Keys(h.is))[rand.IntN(len(h.is))]
	old := h.is[name]
	path := h.name + "/" + name
	h.n++
	fresh := fmt.Sprintf("new-%d", h.n)
	put := func(text string) { h.will[name] = heldFile{old.mode, old.attr, old.owner, text} }
	draw := rand.IntN(10)
	if len(h.is) > 40 { // not ever more
		draw = 7 + rand.IntN(3)
	}
	if name == "f0" { // attributes are of files that stay
		draw %= 3
	}
	switch {
	case draw == 0 && strings.HasPrefix(old.text, "counter: "):
		n, _, _ := strings.Cut(old.text, "\n")
		put(fmt.Sprintf("counter: %d", h.n) + old.text[len(n):])
		return "edit", object{"path": path, "edits": []object{{"old": n + "\n", "new": fmt.Sprintf("counter: %d\n", h.n)}}}
	case draw <= 1 && len(old.text) < 1<<20:
		put(old.text + fmt.Sprintf("row %d\n", h.n))
		return "write", object{"path": path, "append": true, "content": fmt.Sprintf("row %d\n", h.n)}
	case draw <= 2:
		put(fmt.Sprintf("counter: 0\n%s", strings.Repeat("another row\n", rand.IntN(2000))))
		return "write", object{"path": path, "mode": "replace", "expect": shortHash(old.text), "content": h.will[name].text}
	case draw == 3:
		fresh = "deep/" + fresh + "/file"
		fallthrough
	case draw == 4:
		text := strings.Repeat("a row of a new file\n", rand.IntN(3000))
		h.will[fresh] = heldFile{0o644, "", os.Getuid(), text}
		return "write", object{"path": h.name + "/" + fresh, "content": text, "parents": true}
	case draw == 5:
		delete(h.will, name)
		h.will[fresh] = old
		return "move", object{"from": path, "to": h.name + "/" + fresh}
	case draw == 6:
		h.will[fresh] = old
		return "move", object{"from": path, "to": h.name + "/" + fresh, "copy": true}
	case draw == 7:
		to := slices.Sorted(maps.Keys(h.is))[rand.IntN(len(h.is))]
		if to == "f0" || to == name {
			break
		}
		delete(h.will, name)
		h.will[to] = old
		return "move", object{"from": path, "to": h.name + "/" + to, "replace": shortHash(h.is[to].text)}
	case draw == 8:
		for one := range h.is {
			if strings.HasPrefix(one, "tree/") {
				maps.DeleteFunc(h.will, func(name string, _ heldFile) bool { return strings.HasPrefix(name, "tree/") })
				return "remove", object{"path": h.name + "/tree", "tree": true}
			}
		}
	}
	delete(h.will, name)
	return "remove", object{"path": path}
}

// work changes files until the server has ended.
func (h *hand) work(c *stdioClient, answered chan<- struct{}) {
	for {
		tool, args := "", object(nil)
		if last := len(h.done) - 1; last >= 0 && rand.IntN(4) == 0 {
			tool, args, h.will = "write", object{"undo": h.done[last].id}, h.done[last].before
		} else {
			tool, args = h.next()
		}
		h.what = fmt.Sprintf("%s %.200v", tool, args)
		a, err := c.call(tool, args)
		if err != nil {
			return
		}
		select {
		case answered <- struct{}{}:
		default:
		}
		id := shownUndo.FindStringSubmatch(a.text())
		if !a.failed && strings.Contains(a.text(), "/tree: put back") { // which alone cannot be undone
			h.done, h.is, h.will, h.what = nil, h.will, nil, ""
			continue
		}
		if a.failed || id == nil {
			if !h.control {
				h.t.Errorf("%s: %s", h.what, a.text())
			}
			return
		}
		h.done = append(h.done, done{id[1], h.is, h.will})
		h.is, h.will, h.what = h.will, nil, ""
	}
}

// differ names what is not as it should be.
func (f heldFiles) differ(is heldFiles) (all []string) {
	for name, one := range f {
		if now, there := is[name]; !there {
			all = append(all, name+" is missing")
		} else if now != one {
			all = append(all, fmt.Sprintf("%s: %v %q %d, %d bytes, was %v %q %d, %d bytes", name, now.mode, now.attr, now.owner,
				len(now.text), one.mode, one.attr, one.owner, len(one.text)))
		}
	}
	for name := range is {
		if _, there := f[name]; !there {
			all = append(all, name+" is there")
		}
	}
	return all
}

// isBetween reports whether each of several files that the change under way concerns is as before or after it, and
// nothing is missing that is there before and after.
func (h *hand) isBetween(is heldFiles) bool {
	there := map[heldFile]bool{}
	for name, one := range is {
		there[one] = true
		if one != h.is[name] && one != h.will[name] {
			return false
		}
	}
	stay := map[heldFile]bool{}
	for _, one := range h.will {
		stay[one] = true
	}
	for name, one := range h.is {
		_, still := h.will[name]
		if _, now := is[name]; !now && still || stay[one] && !there[one] {
			return false
		}
	}
	return true
}

// settle compares the files with what they were before and after the change under way, whose outcome it notes.
func (h *hand) settle() (fault string) {
	is, _ := filesIn(h.t, h.dir)
	was := h.is.differ(is)
	if h.will != nil && len(was) > 0 {
		if now := h.will.differ(is); len(now) > 0 && !h.isBetween(is) {
			fault = fmt.Sprintf("%s: neither as before: %.300q, nor as after: %.300q", h.what, was, now)
		}
		h.done = nil // by a change whose obs:ID nobody was told
	} else if len(was) > 0 {
		fault = fmt.Sprintf("after all was done: %.300q", was)
	}
	h.is, h.will = is, nil
	return fault
}

// undo undoes a few of the changes that were done last.
func (h *hand) undo(c *stdioClient) (undone int, fault string) {
	for range min(len(h.done), 1+rand.IntN(4)) {
		last := h.done[len(h.done)-1]
		h.done = h.done[:len(h.done)-1]
		a, err := c.call("write", object{"undo": last.id})
		if err != nil || a.failed {
			return undone, fmt.Sprintf("undo: %v %s", err, a.text())
		}
		is, _ := filesIn(h.t, h.dir)
		if wrong := last.before.differ(is); len(wrong) > 0 {
			return undone, fmt.Sprintf("undone, %s: %q", a.text(), wrong)
		}
		h.is = is
		undone++
	}
	return undone, ""
}

// TestS35AKilledServerLeavesFilesWhole kills the server at random moments of changes that four make at once. Each file
// is then as before or after the change under way, a later server leaves nothing temporary, and undoes what was done.
func TestS35AKilledServerLeavesFilesWhole(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	try := func(program string, kills int) (changes, undone int, faults []string) {
		dir := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
		var hands []*hand
		for kill := range kills + 1 {
			if kill%50 == 0 { // a new store and new files, so that little is stored
				expect.Must(t, os.RemoveAll(dir+"/root"))
				expect.Must(t, os.RemoveAll(dir+"/store"))
				hands = nil
				for i := range 4 {
					h := newHand(t, fmt.Sprintf("%s/root/%d", dir, i), strconv.Itoa(i))
					h.control = program != binary(t)
					hands = append(hands, h)
				}
			}
			if kill%4 == 3 { // the store serves another directory meanwhile
				write(t, dir+"/other/root/file", "")
				launch{program: program, flags: writeFlags(dir+"/other", "../store")}.stdio(t).kill()
			}
			c := launch{program: program, flags: writeFlags(dir, "store", "--quota", "8GiB")}.stdio(t)
			expect.Value(c.call("find", object{"path": "."}))(t) // it has started
			if _, left := filesIn(t, dir+"/root"); len(left) > 0 {
				faults = append(faults, fmt.Sprintf("left: %q", left))
			}
			for _, h := range hands {
				if fault := h.settle(); fault != "" {
					faults = append(faults, fault)
					h.done = nil
				}
				n, fault := h.undo(c)
				if undone += n; fault != "" {
					faults = append(faults, fault)
				}
				h.done = nil
			}
			if kill == kills || t.Failed() {
				break
			}
			var all sync.WaitGroup
			answered := make(chan struct{}, 4)
			for _, h := range hands {
				all.Go(func() { h.work(c, answered) })
			}
			over := make(chan struct{})
			go func() { all.Wait(); close(over) }()
			for range 1 + rand.IntN(20) {
				select {
				case <-answered:
				case <-over: // a change failed
				}
			}
			time.Sleep(time.Duration(rand.IntN(10_000)) * time.Microsecond)
			c.kill()
			<-over
			for _, h := range hands {
				changes += len(h.done)
			}
		}
		return changes, undone, faults
	}
	kills := promise.Size(8, 1000)
	changes, undone, faults := try(binary(t), kills)
	report(t, faults)
	var control []string
	for tries := 0; tries < 40 && len(control) == 0; tries++ { // a kill that comes between two writes tears nothing
		_, _, control = try(torn.binary(t), 3)
	}
	promise.Keptf(t, promise.Proof{Promise: "S35", Cases: 4*kills + undone, Failures: len(faults), Control: len(control)},
		"the server killed %d times beside four changes at once; of %d that were done, %d undone by the next server; "+
			"control: written in place", kills, changes, undone)
}

// TestS35NoUpdateIsLost has 32 sessions count in one file over HTTP, and two processes with stores of their own append
// to one. Each edit is made or refused. The control writes without a lock.
func TestS35NoUpdateIsLost(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	counted := regexp.MustCompile(`counter: (\d+)`)
	try := func(program string, each int) (cases, refused, lost int) {
		dir := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
		path := dir + "/root/counted"
		write(t, path, "counter: 0\nend\n")
		write(t, dir+"/root/appended", "")
		l := launch{program: program, flags: writeFlags(dir, "a")}
		both := []*stdioClient{l.stdio(t), launch{program: program, flags: writeFlags(dir, "b")}.stdio(t)}
		l.env = append(environment(t), "MCP_FUNNEL_TOKEN="+testToken)
		server := l.http(t)
		var done, no, created atomic.Int64
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				session := server.open(testToken)
				for n, tries := 0, 0; n < each && (program == "" || tries < 20); tries++ { // the control tears it for good
					text, err := os.ReadFile(path)
					m := counted.FindStringSubmatch(string(text))
					if err != nil || m == nil {
						if program == "" {
							t.Errorf("a torn file: %v %q", err, text)
							return
						}
						time.Sleep(time.Millisecond)
						continue
					}
					count, _ := strconv.Atoi(m[1])
					a, err := session.call("edit", object{"path": "counted", "edits": []object{
						{"old": m[0] + "\n", "new": fmt.Sprintf("counter: %d\n", count+1)},
						{"old": "\nend\n", "new": fmt.Sprintf("\n%d of %d\nend\n", n, i)},
					}})
					switch {
					case err != nil:
						t.Error(err)
						return
					case !a.failed:
						done.Add(1)
						n++
					case strings.Contains(a.text(), "old is not in the file") || strings.Contains(a.text(), "call again"):
						no.Add(1)
					case program == "":
						t.Errorf("an edit was neither made nor refused: %s", a.text())
						return
					}
				}
			})
		}
		for i := range 8 {
			all.Go(func() {
				for n := range 4 * each {
					a, err := both[i%2].call("write", object{
						"path": "appended", "append": true, "content": fmt.Sprintf("%d of %d\n", n, i),
					})
					if program == "" && (err != nil || a.failed) {
						t.Errorf("append: %v %s", err, a.text())
					}
					a, err = both[i%2].call("write", object{"path": fmt.Sprintf("created-%d", n), "content": strconv.Itoa(i)})
					if expect.OK(t, err); err == nil && !a.failed {
						created.Add(1)
					}
				}
			})
		}
		all.Wait()
		text := string(expect.Value(os.ReadFile(path))(t))
		if !strings.HasPrefix(text, fmt.Sprintf("counter: %d\n", 32*each)) {
			lost++
		}
		appended := string(expect.Value(os.ReadFile(dir + "/root/appended"))(t))
		for n := range 4 * each {
			for i := range 32 {
				line := fmt.Sprintf("%d of %d", n, i)
				if n < each && strings.Count("\n"+text, "\n"+line+"\n") != 1 {
					lost++
				}
				if i < 8 && strings.Count("\n"+appended, "\n"+line+"\n") != 1 {
					lost++
				}
			}
		}
		return int(done.Load() + no.Load() + created.Load()), int(no.Load()), lost + int(created.Load()) - 4*each
	}
	cases, refused, lost := try("", promise.Size(3, 30))
	_, _, control := try(torn.binary(t), 3)
	promise.Keptf(t, promise.Proof{Promise: "S35", Cases: cases, Failures: lost, Control: control},
		"32 sessions and two more processes at once; %d edits refused, because another came before; control: no lock",
		refused)
}

// extended lists the extended attributes of a file.
func extended(t testing.TB, path string) map[string]string {
	t.Helper()
	list, all := make([]byte, 4096), map[string]string{}
	n, err := unix.Listxattr(path, list)
	if errors.Is(err, unix.ENOTSUP) {
		return all
	}
	expect.Must(t, err)
	for _, name := range strings.FieldsFunc(string(list[:n]), func(r rune) bool { return r == 0 }) {
		value := make([]byte, 4096)
		n := expect.Value(unix.Getxattr(path, name, value))(t)
		all[name] = string(value[:n])
	}
	return all
}
