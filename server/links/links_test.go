package links

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
	"github.com/mcp-funnel/mcp-funnel/text/secrets"
)

const id = observations.ID("k3v9q2m7x4ab")

func linksIn(t testing.TB, store string) *Links {
	t.Helper()
	l, err := New("https://funnel.example/files/", records.InDir(store))
	expect.Must(t, err)
	return l
}

func tokenOf(t testing.TB, url string) string {
	t.Helper()
	token, ok := strings.CutPrefix(url, "https://funnel.example/files/link/")
	if !ok {
		t.Fatalf("%s does not lie below the base", url)
	}
	return token
}

func TestLinksSayWhatTheyPermit(t *testing.T) {
	l := linksIn(t, t.TempDir())
	for _, owner := range []string{"local", "a.b-c_d", "with~mark", "~", ""} {
		read, until, err := l.Read(owner, id, time.Hour)
		expect.Must(t, err)
		k, err := l.Parse(tokenOf(t, read))
		expect.OK(t, err, owner)
		expect.Equal(t, k, Link{Owner: owner, ID: id, Until: k.Until}, owner)
		if !k.Until.Equal(until) || time.Until(until) > time.Hour {
			t.Errorf("%s: it ends at %s, not %s", owner, k.Until, until)
		}
		store, _, err := l.Store(owner, Life)
		expect.Must(t, err)
		k, err = l.Parse(tokenOf(t, store))
		expect.OK(t, err, owner)
		if !k.Put || k.Owner != owner {
			t.Errorf("%+v", k)
		}
	}
	for _, life := range []time.Duration{-time.Hour, 0, time.Millisecond, Longest + 1} {
		if url, _, err := l.Read("local", id, life); err == nil {
			t.Errorf("a link lasts %s: %s", life, url)
		}
	}
	if records.Link.Age <= Longest {
		t.Error("a link outlives the note that it was used")
	}
}

// TestChangedLinks changes, drops and repeats each character of a link. None may be accepted. Controls: the link itself
// is, and so are many of the changed ones where they are signed anew.
func TestChangedLinks(t *testing.T) {
	l := linksIn(t, t.TempDir())
	url, _, err := l.Read("anna", id, Life)
	expect.Must(t, err)
	token := tokenOf(t, url)
	_, err = l.Parse(token)
	expect.OK(t, err, "the control")
	changed := []string{
		"", "~", "~~~~", token + "\n", token + "=", " " + token, strings.ToUpper(token), "put" + token[3:],
		strings.Replace(token, "~anna~", "~bert~", 1), strings.Repeat(token, 1000),
	}
	for i := range token {
		for _, by := range []string{"", "a", "~", "\n", token[i:i+1] + token[i:i+1]} {
			if one := token[:i] + by + token[i+1:]; one != token {
				changed = append(changed, one)
			}
		}
	}
	for _, one := range changed {
		if k, err := l.Parse(one); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is accepted: %+v, %v", one, k, err)
		}
	}
	signed := 0
	for _, one := range changed {
		text, _ := cutLast(one)
		if _, err := l.Parse(text + mark + l.sign(text)); err == nil {
			signed++
		}
	}
	if signed < len(changed)/4 {
		t.Errorf("only %d of %d are accepted where they are signed: what is tried proves nothing", signed, len(changed))
	}
	if _, err := linksIn(t, t.TempDir()).Parse(token); !errors.Is(err, ErrInvalid) {
		t.Errorf("the link of another store: %v", err)
	}
	l.Now = func() time.Time { return time.Now().Add(Life) }
	_, err = l.Parse(token)
	expect.ErrorIs(t, err, ErrEnded)
}

// TestLinksAreNotMasked shows links as receipts do: a signature may look like anything.
func TestLinksAreNotMasked(t *testing.T) {
	mask, dir := secrets.New(), t.TempDir()
	for range 200 {
		expect.Must(t, os.RemoveAll(KeyPath(dir)))
		l := linksIn(t, dir)
		for range 10 {
			url, _, err := l.Store("local", Life)
			expect.Must(t, err)
			if shown, n := mask.String("link: " + url + "\n"); n > 0 {
				t.Errorf("%s is shown as %s", url, shown)
			}
		}
	}
}

// TestOneKey has many servers of one new store make its key at once.
func TestOneKey(t *testing.T) {
	dir := t.TempDir()
	all := make([]*Links, 16)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i], _ = New("http://127.0.0.1:1", records.InDir(dir)) })
	}
	group.Wait()
	for i, l := range all {
		if l == nil || string(l.key) != string(all[0].key) {
			t.Fatalf("server %d has another key", i)
		}
	}
	b, err := os.ReadFile(KeyPath(dir))
	expect.Must(t, err)
	expect.Equal(t, string(b), string(all[0].key))
	info, err := os.Stat(KeyPath(dir))
	expect.Must(t, err)
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the key has mode %v", info.Mode())
	}
}

func TestBadKeys(t *testing.T) {
	dir := t.TempDir()
	expect.Must(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	for _, text := range []string{"", "short\n", strings.Repeat("x", 5000)} {
		expect.Must(t, os.WriteFile(KeyPath(dir), []byte(text), 0o600))
		_, err := New("http://127.0.0.1:1", records.InDir(dir))
		if err == nil || !strings.Contains(err.Error(), KeyPath(dir)) {
			t.Errorf("a key of %d bytes: %v", len(text), err)
		}
		if b, _ := os.ReadFile(KeyPath(dir)); string(b) != text {
			t.Errorf("a key of %d bytes was replaced", len(text))
		}
	}
}

func TestBases(t *testing.T) {
	for base, ok := range map[string]bool{
		"https://funnel.example": true, "http://127.0.0.1:8080/": true, "http://[::1]:80/a/b": true,
		"": false, "funnel.example": false, "ftp://funnel.example": false, "https://": false, "https://a@b.example": false,
		"https://funnel.example?x": false, "https://funnel.example#x": false, "//funnel.example": false, "http:///x": false,
		"javascript:alert(1)": false, "https://funnel.example/a b": false,
	} {
		if err := CheckBase(base); (err == nil) != ok {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestClaims has many processes claim one link at once, twice.
func TestClaims(t *testing.T) {
	dir := t.TempDir()
	url, _, err := linksIn(t, dir).Store("local", Life)
	expect.Must(t, err)
	k, err := linksIn(t, dir).Parse(tokenOf(t, url))
	expect.Must(t, err)
	for range 2 {
		won := make(chan bool, 8)
		var group sync.WaitGroup
		for range cap(won) {
			l := linksIn(t, dir)
			group.Go(func() {
				err := l.Claim(k)
				if err != nil && !errors.Is(err, ErrUsed) {
					t.Error(err)
				}
				won <- err == nil
			})
		}
		group.Wait()
		n := 0
		for range cap(won) {
			if <-won {
				n++
			}
		}
		expect.Equal(t, n, 1, "claims that won")
		expect.Must(t, linksIn(t, dir).Release(k))
	}
	l := linksIn(t, dir)
	expect.Must(t, l.Claim(k))
	expect.Must(t, l.Stored(k, id))
	if err := linksIn(t, dir).Claim(k); err == nil || !strings.Contains(err.Error(), "obs:"+string(id)) {
		t.Errorf("after a restart: %v", err)
	}
}

// TestDamagedClaim: a link whose mark cannot be read may have been used, so it stores nothing.
func TestDamagedClaim(t *testing.T) {
	dir := t.TempDir()
	l := linksIn(t, dir)
	k := Link{Put: true, Owner: "anna", ID: observations.RandomID()}
	path := records.InDir(dir).Where(k.record())
	expect.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.Must(t, os.WriteFile(path, make([]byte, records.Link.Limit+1), 0o600))
	expect.ErrorIs(t, l.Claim(k), ErrUsed, "a damaged mark")
	expect.Must(t, os.Remove(path))
	expect.Must(t, l.Claim(k)) // the control
}
