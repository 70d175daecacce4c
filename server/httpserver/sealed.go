package httpserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
)

// With Options.SessionKey of the server, an Mcp-Session-Id holds all that another process needs to continue the session:
// base64 of a nonce and of the encrypted sealed, for one identity. No process asks another one, or a store.

const (
	// maxSealed bounds an ID, in bytes: proxies bound all headers, some at 4 KiB.
	maxSealed = 1000
	// maxSkew is how far ahead the clock of another replica may be.
	maxSkew = 5 * time.Minute
	// maxDeleted is how many deleted sessions of one identity are remembered each by its nonce.
	maxDeleted = 256
)

type nonce [12]byte

// connID returns the ID under which all replicas keep what belongs to the session, such as its budget.
func (n nonce) connID() string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(n[:])
}

// sealed is the content of a session ID.
type sealed struct {
	server.Handshake
	Opened  int64  `json:"t"` // Unix seconds
	Replica string `json:"r,omitempty"`

	nonce nonce
}

// sealer makes and opens the IDs of sessions. It is safe for concurrent use.
type sealer struct {
	aead cipher.AEAD
	age  time.Duration // an ID opens a session at another replica for so long after initialize
	now  func() time.Time
}

// newSealer returns a sealer with a key that is derived from the shared secret; nil without one.
func newSealer(shared []byte, age time.Duration) (*sealer, error) {
	if shared == nil {
		return nil, nil
	}
	key, err := hkdf.Key(sha256.New, shared, nil, "mcp-funnel session ID 1", 32)
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	return &sealer{aead: aead, age: age, now: time.Now}, err
}

var idCoding = base64.RawURLEncoding.Strict()

// seal returns the ID of a session for its owner. What it has to leave out to fit maxSealed, it returns in words.
func (l *sealer) seal(owner string, s sealed) (id, left string) {
	for {
		text, _ := json.Marshal(s) // cannot fail: the JSON in it is valid
		id = idCoding.EncodeToString(l.aead.Seal(s.nonce[:], s.nonce[:], text, []byte(owner)))
		switch {
		case len(id) <= maxSealed:
			return id, left
		case left == "":
			left, s.Handshake = "extensions among the client's capabilities", s.WithoutExtensions()
		default: // what is left is bounded
			left, s.Name, s.Version = left+", its name and version", "", ""
		}
	}
}

// open returns the content of an ID that was sealed for this owner with the same key, and is not too old.
func (l *sealer) open(owner, id string) (s sealed, ok bool) {
	if len(id) > maxSealed {
		return s, false
	}
	raw, err := idCoding.DecodeString(id)
	if err != nil || len(raw) < len(s.nonce) || idCoding.EncodeToString(raw) != id { // DecodeString ignores newlines
		return s, false
	}
	copy(s.nonce[:], raw)
	text, err := l.aead.Open(nil, s.nonce[:], raw[len(s.nonce):], []byte(owner))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return s, false
	}
	age := l.now().Sub(time.Unix(s.Opened, 0))
	return s, age <= l.age && age >= -maxSkew
}

// addSession opens a session on a connection that is initialized.
func (h *httpServer) addSession(owner string, n nonce, conn *server.Conn) (*httpSession, *refusal) {
	if h.sealer == nil {
		return h.sessions.add(owner, conn)
	}
	content := sealed{
		Handshake: conn.Handshake(), Opened: h.sealer.now().Unix(), Replica: h.server.Options().Replica, nonce: n,
	}
	id, left := h.sealer.seal(owner, content)
	if left != "" {
		h.log.Warn("a client describes itself at length: at another replica its session goes on without a part of that",
			"client", jsonrpc.Echo(content.Name), "without", left)
	}
	content.Handshake = server.Handshake{} // the connection has it
	mine := &httpSession{id: id, owner: owner, conn: conn, uses: 1, sealed: &content}
	h.relayOwn(mine)
	return h.sessions.open(mine)
}

// takeUp continues a session that another process has opened, or that this one has evicted. It returns nil if the ID is
// not valid, for another identity, too old, or of a session that was deleted here.
func (h *httpServer) takeUp(owner, id string) (*httpSession, *refusal) {
	if h.sealer == nil {
		return nil, nil
	}
	was, ok := h.sealer.open(owner, id)
	if !ok {
		return nil, nil
	}
	if h.isDraining() {
		return nil, h.draining()
	}
	conn := h.server.ConnectAs(h.ctx, was.nonce.connID())
	_ = conn.Identify(owner, jsonrpc.Frame{})
	if conn.Resume(was.Handshake, movedNotice(was.Replica, h.server.Options().Replica)) != nil {
		conn.End(errRetired)
		return nil, nil
	}
	was.Handshake = server.Handshake{} // the connection has it
	mine := &httpSession{id: id, owner: owner, conn: conn, uses: 1, idle: idleness{proven: true}, sealed: &was}
	h.relayOwn(mine)
	x, no := h.sessions.open(mine)
	if x != mine {
		conn.End(errRetired)
	} else {
		h.log.Info("continues a session", "opened_by", was.Replica)
	}
	return x, no
}

// movedNotice is what a client reads whose session another process continues.
func movedNotice(from, to string) string {
	return fmt.Sprintf("this session began at replica %s and goes on at replica %s. What replica %s was doing for it stays there: "+
		"repeat a call that got no answer (what it stored is in obs:), start commands with a run:ID again if %s has ended, "+
		"subscribe again, and set the log level again. Other servers behind this one start anew.", from, to, from, from)
}

// deletedSessions remembers the sessions of an identity that were deleted here, so that their IDs open nothing.
type deletedSessions struct {
	opened map[nonce]int64 // when each was opened
	last   int64           // when the latest of them was
	until  int64           // sessions opened until then count as deleted too, unless they are open here
}

func (d *deletedSessions) has(s sealed) bool {
	_, deleted := d.opened[s.nonce]
	return deleted || s.Opened <= d.until
}

// add remembers a session. At maxDeleted it forgets the one that was opened first, and sets until, so that those of an
// identity that opens and deletes without end take bounded memory and none comes back.
func (d *deletedSessions) add(s sealed) {
	d.opened[s.nonce], d.last = s.Opened, max(d.last, s.Opened)
	if len(d.opened) <= maxDeleted {
		return
	}
	first := s.nonce
	for n, at := range d.opened {
		if at < d.opened[first] {
			first = n
		}
	}
	d.until = max(d.until, d.opened[first])
	delete(d.opened, first)
}
