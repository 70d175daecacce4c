package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// stateSealer signs request states with an HMAC, so that a client can neither change a state nor use it for another
// call. It does not encrypt them.
type stateSealer struct {
	key [32]byte // random for each process
	now func() time.Time
}

func newStateSealer() stateSealer {
	s := stateSealer{now: time.Now}
	_, _ = rand.Read(s.key[:]) // never fails
	return s
}

var stateCoding = base64.RawURLEncoding.Strict()

// seal encodes and signs a state for the call about. The state expires after 10 minutes.
func (s *stateSealer) seal(about string, what roundState) string {
	what.Until = s.now().Add(roundLifetime).Unix()
	text, _ := json.Marshal(what) // cannot fail: the JSON in it is valid
	return stateCoding.EncodeToString(text) + "." + stateCoding.EncodeToString(s.mac(about, text))
}

// unseal returns a state that seal made for the same call; ok is false if it is invalid or expired.
func (s *stateSealer) unseal(about, sealed string) (what roundState, ok bool) {
	text, sum, _ := strings.Cut(sealed, ".")
	payload, err1 := stateCoding.DecodeString(text)
	mac, err2 := stateCoding.DecodeString(sum)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, s.mac(about, payload)) || json.Unmarshal(payload, &what) != nil {
		return roundState{}, false
	}
	return what, s.now().Unix() <= what.Until
}

func (s *stateSealer) mac(about string, payload []byte) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range [][]byte{[]byte(about), payload} {
		_, _ = fmt.Fprintf(mac, "%d:", len(part))
		_, _ = mac.Write(part)
	}
	return mac.Sum(nil)
}

// roundState is the content of a request state, which the client returns with its reply.
type roundState struct {
	Until int64              `json:"u"` // Unix seconds
	Given []answeredQuestion `json:"g,omitempty"`
	Asked []byte             `json:"a"` // the digest of the pending question
}

// answeredQuestion is a question and the client's reply.
type answeredQuestion struct {
	Question []byte          `json:"q"` // its digest
	Result   json.RawMessage `json:"r"` // the client's reply, as sent
}
