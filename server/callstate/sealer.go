// Package callstate has the state of a call that waits for its client's reply, in the protocol without sessions: the
// client returns it with the repeated call. A state is signed, not encrypted.
package callstate

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Lifetime is how long after a question its reply is accepted.
const Lifetime = 10 * time.Minute

// Sealer signs request states with an HMAC, so that a client can neither change a state nor use it for another
// call. It does not encrypt them.
type Sealer struct {
	Now func() time.Time // the clock
	key []byte
}

// NewSealer returns a sealer with a key that is derived from a shared secret of at least 32 random bytes, so that all
// processes with that secret accept its states. nil: the key is random, and only this process accepts them.
func NewSealer(shared []byte) Sealer {
	if shared == nil {
		shared = make([]byte, sha256.Size)
		_, _ = rand.Read(shared) // never fails
	}
	key, err := hkdf.Key(sha256.New, shared, nil, "mcp-funnel request state 1", sha256.Size)
	if err != nil { // only if the length asked for is too large
		panic(err)
	}
	return Sealer{Now: time.Now, key: key}
}

var stateCoding = base64.RawURLEncoding.Strict()

// Seal encodes and signs a state for the call about. The state expires after 10 minutes.
func (s *Sealer) Seal(about string, what State) string {
	what.Until = s.Now().Add(Lifetime).Unix()
	text, _ := json.Marshal(what) // cannot fail: the JSON in it is valid
	return stateCoding.EncodeToString(text) + "." + stateCoding.EncodeToString(s.mac(about, text))
}

// Unseal returns a state that Seal made for the same call; ok is false if it is invalid or expired.
func (s *Sealer) Unseal(about, sealed string) (what State, ok bool) {
	text, sum, _ := strings.Cut(sealed, ".")
	payload, err1 := stateCoding.DecodeString(text)
	mac, err2 := stateCoding.DecodeString(sum)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, s.mac(about, payload)) || json.Unmarshal(payload, &what) != nil {
		return State{}, false
	}
	return what, s.Now().Unix() <= what.Until
}

func (s *Sealer) mac(about string, payload []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	for _, part := range [][]byte{[]byte(about), payload} {
		_, _ = fmt.Fprintf(mac, "%d:", len(part))
		_, _ = mac.Write(part)
	}
	return mac.Sum(nil)
}

// State is the content of a request state, which the client returns with its reply.
type State struct {
	Until int64      `json:"u"` // Unix seconds
	Given []Answered `json:"g,omitempty"`
	Asked []byte     `json:"a"` // the digest of the pending question
}

// Answered is a question and the client's reply.
type Answered struct {
	Question []byte          `json:"q"` // its digest
	Result   json.RawMessage `json:"r"` // the client's reply, as sent
}
