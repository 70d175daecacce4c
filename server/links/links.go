// Package links signs URLs that read one observation, or store one, without a token. A link names its owner and the
// time of its end; it is signed by a key of the store, so each server of the store accepts it.
package links

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/records"
)

// Path is the path of a server below which its links lie.
const Path = "/link/"

// Life is how long a link can be used if nobody says otherwise, and Longest how long one may be.
const (
	Life    = 15 * time.Minute
	Longest = 7 * 24 * time.Hour // records.Link must stay for longer than this
)

// Errors of [Links.Parse] and [Links.Claim].
var (
	ErrInvalid = errors.New("the link is not valid: it was changed, or made for another server; ask for a new one")
	ErrEnded   = errors.New("the link has ended; ask for a new one")
	ErrUsed    = errors.New("the link was used once already")
)

// Link is what a link permits.
type Link struct {
	Put   bool            // it stores an observation; else it reads one
	Owner string          // of the observation
	ID    observations.ID // of the observation that is read; of a link that stores one, only its own name
	Until time.Time       // in seconds
}

// Links signs and checks links. It is safe for concurrent use.
type Links struct {
	Now     func() time.Time // the clock; tests set another one
	base    string           // URL of the server, without a slash at its end
	key     []byte
	records records.Store
}

// Key names the record with the key, which is a secret.
func Key() records.Key { return records.Key{Kind: records.Secret, Name: "link-key"} }

// KeyPath returns the path of the key in the directory of a store, whether the file exists or not.
func KeyPath(store string) string { return records.InDir(store).Where(Key()) }

// CheckBase returns an error for what is not the URL of a server.
func CheckBase(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(base, "?# ") {
		return errors.New("it is not the URL of this server: write http or https, a host, and the path before " + Path +
			" if there is one, as in https://funnel.example")
	}
	return nil
}

// New returns the links of the server at a URL. The key is made at the first call for a store.
func New(base string, r records.Store) (*Links, error) {
	if err := CheckBase(base); err != nil {
		return nil, err
	}
	key, err := keyIn(r)
	if err != nil {
		return nil, fmt.Errorf("the key of links: %s: %w", r.Where(Key()), err)
	}
	return &Links{Now: time.Now, base: strings.TrimRight(base, "/"), key: key, records: r}, nil
}

// keyIn returns the key of a store: of several servers that make one at once, all use the first.
func keyIn(r records.Store) ([]byte, error) {
	key, err := records.Once(r, Key(), func() []byte { return []byte(rand.Text() + rand.Text() + "\n") })
	if err == nil && len(bytes.TrimSpace(key)) < 32 {
		err = errors.New("it is too short; delete it, and the next start makes another one")
	}
	return key, err
}

// Host returns the host of the links' URL, with its port if it has one, in lower case.
func (l *Links) Host() string {
	u, _ := url.Parse(l.base) // CheckBase has done so
	return strings.ToLower(u.Host)
}

// Read returns the URL of a link that reads an observation for a time.
func (l *Links) Read(owner string, id observations.ID, life time.Duration) (url string, until time.Time, err error) {
	return l.make(Link{Owner: owner, ID: id}, life)
}

// Store returns the URL of a link that stores one observation within a time.
func (l *Links) Store(owner string, life time.Duration) (url string, until time.Time, err error) {
	return l.make(Link{Put: true, Owner: owner, ID: observations.RandomID()}, life)
}

func (l *Links) make(k Link, life time.Duration) (string, time.Time, error) {
	if life < time.Second || life > Longest {
		return "", time.Time{}, fmt.Errorf("a link lasts from 1 second to 7 days, not %s", life)
	}
	k.Until = l.Now().Add(life).Truncate(time.Second)
	verb := "get"
	if k.Put {
		verb = "put"
	}
	text := strings.Join([]string{verb, k.Owner, string(k.ID), strconv.FormatInt(k.Until.Unix(), 36)}, mark)
	return l.base + Path + url.PathEscape(text+mark+l.sign(text)), k.Until, nil
}

// mark stands between the parts of a link. Only an owner may contain it, and is what the other parts leave.
const mark = "~"

// sign returns the first half of the HMAC of a text: 128 bits are not guessed, and a link costs tokens.
func (l *Links) sign(text string) string {
	mac := hmac.New(sha256.New, l.key)
	_, _ = mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:sha256.Size/2])
}

// Parse returns the link of what follows [Path] in a URL. Its error is [ErrInvalid] or [ErrEnded].
func (l *Links) Parse(s string) (Link, error) {
	text, sign := cutLast(s)
	// The texts of signatures are compared: several texts decode to one signature.
	if !hmac.Equal([]byte(sign), []byte(l.sign(text))) {
		return Link{}, ErrInvalid
	}
	verb, rest, _ := strings.Cut(text, mark)
	rest, until := cutLast(rest)
	owner, id := cutLast(rest)
	seconds, err := strconv.ParseInt(until, 36, 64)
	if err != nil { // no version has signed it
		return Link{}, ErrInvalid
	}
	k := Link{Put: verb == "put", Owner: owner, ID: observations.ID(id), Until: time.Unix(seconds, 0)}
	if !l.Now().Before(k.Until) {
		return k, ErrEnded
	}
	return k, nil
}

func cutLast(s string) (before, after string) {
	at := max(strings.LastIndex(s, mark), 0)
	return s[:at], strings.TrimPrefix(s[at:], mark)
}

func (k Link) record() records.Key {
	return records.Key{Kind: records.Link, Owner: k.Owner, Name: string(k.ID)}
}

// Claim marks a link that stores as used, in all processes and for good. The error is [ErrUsed] if it was before.
func (l *Links) Claim(k Link) error {
	return l.records.Update(k.record(), func(old records.Record) ([]byte, error) {
		if old.Body != nil {
			return nil, fmt.Errorf("%w: %s; ask for a new one", ErrUsed, old.Body)
		}
		if old.Damaged { // it may say that the link was used
			return nil, fmt.Errorf("%w, or what says so is damaged; ask for a new one", ErrUsed)
		}
		return []byte("what was sent is not stored yet"), nil
	})
}

// Stored notes what was stored by a link that was claimed.
func (l *Links) Stored(k Link, id observations.ID) error {
	return l.records.Put(k.record(), []byte(observations.Prefix+string(id)+" has what was sent"))
}

// Release lets a link be used again that was claimed: nothing was stored.
func (l *Links) Release(k Link) error { return l.records.Delete(k.record()) }
