package server

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// A tool's questions in the stateless era. Nothing of a call is remembered between its rounds: what was
// answered so far travels with the client as the request state, under our seal.
//
//	tools/call ──► run: Ask 1 ──► input required {q1}, state []
//	tools/call + q1 ──► run: Ask 1 = given, Ask 2 ──► input required {q2}, state [1]
//	tools/call + q2 ──► run: Ask 1, Ask 2 = given ──► the answer

const (
	maxRounds  = 10               // questions of one call
	maxGiven   = 96 << 10         // bytes of all answers to them: the state goes there and back in the params
	roundsLife = 10 * time.Minute // how long after a question its answer is taken
)

// rounds are the questions of one call over its repetitions.
type rounds struct {
	server *Server
	about  string // which call, whose
	has    func() mcp.ClientCapabilities

	mu      sync.Mutex
	given   []given
	next    int             // of given, for the next question
	pending *tools.Question // what the client is to be asked
	lacks   string          // the capability for want of which a question was refused
}

// given is a question that was answered.
type given struct {
	Question []byte          `json:"q"` // its digest
	Result   json.RawMessage `json:"r"` // the client's, as sent
}

// state is what travels with the client.
type state struct {
	Until int64   `json:"u"` // Unix seconds
	Given []given `json:"g,omitempty"`
	Asked []byte  `json:"a"` // the digest of the question that is open
}

// roundsOf takes up a call where its request state left it.
func (k *call) roundsOf(args json.RawMessage) (*rounds, *Fault) {
	tool := k.frame.text("name")
	r := &rounds{
		server: k.conn.server, has: k.can,
		about: k.conn.who.Owner + "\x00" + observations.CallHash(tool, args),
	}
	var responses map[string]json.RawMessage
	sealed, fault := k.frame.str("requestState")
	if fault == nil {
		fault = k.frame.member("inputResponses", &responses)
	}
	if fault != nil || sealed == "" {
		return r, fault
	}
	s, ok := r.server.seal.open(r.about, sealed)
	if !ok {
		return nil, faultf(mcp.INVALID_PARAMS, "%s: requestState is not one that was given for this call within %s; make the call without it",
			echo(tool), roundsLife)
	}
	r.given = s.Given
	// One that was left out is asked for again.
	if result := responses[roundName(len(s.Given))]; result != nil {
		r.given = append(r.given, given{s.Asked, result})
	}
	return r, nil
}

// roundName names the question that comes after n others.
func roundName(n int) string { return "q" + strconv.Itoa(n+1) }

// ask is the [tools.Asker] of the call.
func (r *rounds) ask(ctx context.Context, q tools.Question) (tools.Reply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return tools.Reply{}, err
	}
	if r.pending != nil {
		return tools.Reply{}, tools.ErrAsked
	}
	if r.next < len(r.given) {
		if g := r.given[r.next]; bytes.Equal(g.Question, digestOf(q)) {
			r.next++
			return replyOf(q, g.Result)
		}
		// The tool asks something else than it did: the answers to what it asked before are of no use.
		r.given = r.given[:r.next]
	}
	size := 0
	for _, g := range r.given {
		size += len(g.Result)
	}
	if len(r.given) >= maxRounds || size > maxGiven {
		return tools.Reply{}, fmt.Errorf("%w: it has answered %d questions in %d bytes, at most %d in %d are put",
			tools.ErrNoReply, len(r.given), size, maxRounds, maxGiven)
	}
	method, _ := wordsOf(q)
	if err := able(r.has(), method); err != nil {
		r.lacks = err.Capability
		return tools.Reply{}, err
	}
	r.pending = &q
	return tools.Reply{}, tools.ErrAsked
}

// required is the answer that puts the open question to the client.
func (r *rounds) required() *mcp.CallToolResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := roundName(len(r.given))
	out := &mcp.CallToolResult{}
	out.ResultType = mcp.ResultTypeInputRequired
	out.RequestState = r.server.seal.close(r.about, state{Given: r.given, Asked: digestOf(*r.pending)})
	switch _, params := wordsOf(*r.pending); p := params.(type) {
	case mcp.ElicitationParams:
		out.InputRequests = mcp.InputRequests{name: mcp.NewElicitationInputRequest(p)}
	case mcp.CreateMessageParams:
		out.InputRequests = mcp.InputRequests{name: mcp.NewSamplingInputRequest(p)}
	}
	return out
}

// refusal is the fault that the stateless era has for a call that needs a capability its client has not
// declared; nil where that is not why it failed.
func (r *rounds) refusal(tool string) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lacks == "" {
		return nil
	}
	fault := faultf(mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, "%s: %s", tool, &tools.CapabilityError{Capability: r.lacks})
	fault.Data = map[string]any{"requiredCapabilities": map[string]any{r.lacks: struct{}{}}}
	return fault
}

// digestOf is the same for the same question.
func digestOf(q tools.Question) []byte {
	text, _ := json.Marshal(q) // of strings, numbers and JSON that was checked
	sum := sha256.Sum256(text)
	return sum[:16]
}

// seal closes what travels with a client, so that it can neither be changed nor used for another call.
type seal struct {
	key [32]byte // of this process
	now func() time.Time
}

func newSeal() seal {
	s := seal{now: time.Now}
	_, _ = rand.Read(s.key[:]) // it never fails
	return s
}

var stateCoding = base64.RawURLEncoding.Strict()

func (s *seal) close(about string, what state) string {
	what.Until = s.now().Add(roundsLife).Unix()
	text, _ := json.Marshal(what) // of JSON that was checked
	return stateCoding.EncodeToString(text) + "." + stateCoding.EncodeToString(s.sum(about, text))
}

// open says false to all but what close made for the same call, not too long ago.
func (s *seal) open(about, sealed string) (what state, ok bool) {
	text, sum, _ := strings.Cut(sealed, ".")
	payload, err1 := stateCoding.DecodeString(text)
	mac, err2 := stateCoding.DecodeString(sum)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, s.sum(about, payload)) || json.Unmarshal(payload, &what) != nil {
		return state{}, false
	}
	return what, s.now().Unix() <= what.Until
}

func (s *seal) sum(about string, payload []byte) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range [][]byte{[]byte(about), payload} {
		_, _ = fmt.Fprintf(mac, "%d:", len(part))
		_, _ = mac.Write(part)
	}
	return mac.Sum(nil)
}
