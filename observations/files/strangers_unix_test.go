//go:build linux || darwin

package files_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
	"github.com/mcp-funnel/mcp-funnel/observations/backend"
	"github.com/mcp-funnel/mcp-funnel/observations/files"
	"github.com/mcp-funnel/mcp-funnel/observations/storefs"
)

// playHere plays what only these systems have.
func playHere(role string, args []string) error {
	switch role {
	case "umask":
		return playUmask(args[0], args[1])
	case "stranger":
		return playStranger(args[0], args[1])
	}
	return fmt.Errorf("no role %q", role)
}

// playUmask makes a store with one of everything, under a umask.
func playUmask(dir, mask string) error {
	syscall.Umask(int(atoi(mask)))
	s, err := OpenStore(Options{Dir: dir, MinFree: -1})
	if err != nil {
		return err
	}
	var ids []ID
	for range 3 {
		r, err := s.Record(Provenance{})
		if err != nil {
			return err
		}
		_, _ = r.Write(corpus.Random(100_000))
		o, err := r.Commit(Stats{})
		if err != nil {
			return err
		}
		ids = append(ids, o.ID)
	}
	r, err := s.Record(Provenance{}) // and one on its way
	if err != nil {
		return err
	}
	_, _ = r.Write(corpus.Random(100_000))
	return errors.Join(s.Pin(Local, ids[0], true), s.Remove(Local, ids[1]))
}

// playStranger is another user, who tries to get at a store and says what worked.
func playStranger(dir, data string) error {
	planted := filepath.Join(dir, storefs.ObservationsDir, string(backend.RandomID())+files.SideExt)
	for what, err := range map[string]error{
		"list the store":        second(os.ReadDir(dir)),
		"list observations":     second(os.ReadDir(filepath.Join(dir, storefs.ObservationsDir))),
		"read by path":          second(os.ReadFile(data)),
		"stat by path":          second(os.Stat(data)),
		"read the quota file":   second(os.ReadFile(filepath.Join(dir, files.QuotaName))),
		"plant a file":          os.WriteFile(planted, []byte("{}"), 0o600),
		"plant a link":          os.Symlink("/etc/passwd", planted),
		"take a data file away": os.Rename(data, data+".mine"),
		"remove a data file":    os.Remove(data),
		"take over a directory": os.Chmod(dir, 0o777),
		"enter it":              os.Chdir(dir),
	} {
		if err == nil {
			fmt.Println("could", what)
		}
	}
	s, err := OpenStore(Options{Dir: dir, MinFree: -1})
	if err == nil {
		fmt.Println("could open it as a store")
		_ = s.Close()
	}
	return nil
}

// privacy is what was tried, and what came of it.
type privacy struct {
	cases int
	leaks []string
}

func (p *privacy) note(format string, args ...any) {
	p.leaks = append(p.leaks, fmt.Sprintf(format, args...))
}

// modes looks at what stands in a store.
func (p *privacy) modes(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			p.note("%v", err)
			return nil
		}
		info, err := e.Info()
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		p.cases++
		if err != nil || info.Mode().Perm() != want {
			p.note("%s has mode %04o, want %04o; %v", strings.TrimPrefix(path, dir), info.Mode().Perm(), want, err)
		}
		return nil
	})
}

// guess asks, as somebody, for what somebody else has, and for IDs that nobody has:
// both are answered by the same bytes.
func (p *privacy) guess(t *testing.T, s *Store, as string, guesses int) {
	ann := []ID{}
	for range 4 {
		ann = append(ann, keep(t, s, Provenance{Owner: "ann"}, []byte("ann's secret")).ID)
	}
	must(t, s.Remove("ann", ann[1]))
	must(t, s.Pin("ann", ann[2], true))
	must(t, os.Remove(dir(s, storefs.ObservationsDir+"/"+observation(t, s, "ann", ann[3]).File))) // damaged
	ask := map[string]func(ID) (string, error){
		"Open": func(id ID) (string, error) {
			r, err := s.Open(as, id)
			if err != nil {
				return "", err
			}
			defer func() { _ = r.Close() }()
			b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
			return string(b), err
		},
		"Look":   func(id ID) (string, error) { o, err := s.Stat(as, id); return o.File, err },
		"Verify": func(id ID) (string, error) { return "", s.Verify(as, id) },
		"Pin":    func(id ID) (string, error) { return "", s.Pin(as, id, false) },
		"Rename": func(id ID) (string, error) { return "", s.Rename(as, id, "x") },
		"Remove": func(id ID) (string, error) { return "", s.Remove(as, id) },
	}
	try := func(name string, id ID) string {
		p.cases++
		said, err := ask[name](id)
		if said != "" || !errors.Is(err, ErrNotFound) {
			p.note("%s of obs:%s says %q, %v", name, id, said, err)
		}
		return strings.ReplaceAll(fmt.Sprint(err), string(id), "ID")
	}
	unknown := map[string]string{}
	for name := range ask {
		unknown[name] = try(name, backend.RandomID())
	}
	for _, id := range ann {
		for name := range ask {
			if got := try(name, id); got != unknown[name] {
				p.note("%s tells another's from an unknown one: %q, %q", name, got, unknown[name])
			}
		}
	}
	for i := range guesses {
		try([]string{"Open", "Look", "Verify"}[i%3], backend.RandomID())
	}
	list, err := s.List(as, true)
	p.cases++
	if len(list) > 0 || err != nil {
		p.note("%d of another's are listed, %v", len(list), err)
	}
	if o, err := s.Stat("ann", ann[2]); err != nil || !o.Pinned {
		p.note("another let go of a pin: %v", err)
	}
}

func observation(t *testing.T, s *Store, owner string, id ID) Observation {
	t.Helper()
	o, err := s.Stat(owner, id)
	must(t, err)
	return o
}

// elsewhere is a directory that every user may write in and pass through, and this
// test as a program there: other users cannot enter where go test keeps it.
func elsewhere(t *testing.T, sticky bool) (dir, exe string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mcp-funnel-strangers-") //nolint:usetesting // what TempDir makes others cannot enter
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	mode := fs.FileMode(0o777)
	if sticky {
		mode |= fs.ModeSticky
	}
	must(t, os.Chmod(dir, mode))
	self, err := os.Executable()
	must(t, err)
	b, err := os.ReadFile(self)
	must(t, err)
	exe = filepath.Join(dir, "observations.test")
	must(t, os.WriteFile(exe, b, 0o755))
	return dir, exe
}

const nobody = 65534

// strange runs a role as another user.
func strange(t *testing.T, exe, role string, args ...string) (said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// strangers lets another user at a store in a directory where all may write, and
// plants what would have this user keep into the other's hands.
func (p *privacy) strangers(t *testing.T) (control int) {
	for _, sticky := range []bool{false, true} {
		world, exe := elsewhere(t, sticky)
		s := open(t, Options{Dir: filepath.Join(world, "store")})
		o := keep(t, s, Provenance{}, []byte("a secret"))
		p.cases += 12
		if said := strange(t, exe, "stranger", s.Dir(), s.SavedTo(o)); said != "" {
			p.note("another user %s", said)
		}
		expectWhole(t, s, o.ID)

		theirs := filepath.Join(world, "theirs")
		strange(t, exe, "umask", theirs, "18") // 022
		link := filepath.Join(world, "link")
		must(t, os.Symlink(s.Dir(), link))
		must(t, os.Lchown(link, nobody, nobody))
		for path, want := range map[string]string{theirs: fmt.Sprintf("belongs to user %d", nobody), link: fmt.Sprintf(
			"a link that user %d made", nobody,
		)} {
			p.cases++
			if bad, err := OpenStore(roomy(Options{Dir: path})); err == nil {
				p.note("%s was taken", path)
				_ = bad.Close()
			} else if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--store") {
				p.note("what to do is not said: %v", err)
			}
		}
		// The control: a store whose modes let others in.
		must(t, os.Chmod(s.Dir(), 0o755))
		must(t, os.Chmod(dir(s, storefs.ObservationsDir), 0o755))
		must(t, os.Chmod(s.SavedTo(o), 0o644))
		if said := strange(t, exe, "stranger", s.Dir(), s.SavedTo(o)); strings.Contains(said, "could read by path") {
			control++
		}
	}
	return control
}

// What is kept is for its user and its owner: whatever the umask, wherever the
// store stands, whoever guesses.
func TestS16ObservationsArePrivate(t *testing.T) {
	p := &privacy{}
	for _, mask := range []string{"0", "18", "63"} { // 0, 022, 077
		store := filepath.Join(t.TempDir(), "store")
		a := start(t, "umask", store, mask)
		if _, err := a.rest(); err != nil {
			t.Fatal(err, &a.said)
		}
		p.modes(store)
	}
	guesses := promise.Size(1000, 100_000)
	p.guess(t, open(t, Options{}), "bob", guesses)
	control := &privacy{}
	control.guess(t, open(t, Options{}), "ann", 10) // as if nobody looked at owners
	others := "another user tried"
	if os.Geteuid() == 0 {
		control.leaks = append(control.leaks, make([]string, p.strangers(t))...)
	} else {
		others = "not root, so no other user tried"
	}
	for _, l := range p.leaks {
		t.Error(l)
	}
	promise.Kept(t, promise.Proof{Promise: "S16", Cases: p.cases, Failures: len(p.leaks), Control: len(control.leaks),
		Figures: fmt.Sprintf("%d IDs guessed; %s; control: owners not looked at, modes that let others in", guesses, others)})
}

// The same store under modes that do not let its own user write, as another user
// than root, whom no mode stops.
func TestReadOnlyDirectoriesOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: TestReadOnlyDirectories is tried as it is")
	}
	_, exe := elsewhere(t, true)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run", "^TestReadOnlyDirectories$", "-test.v")
	cmd.Dir = filepath.Dir(exe)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(exe))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v: %s", err, out)
	}
}
