package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/mcp-funnel/mcp-funnel/server/callstate"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// This file implements a tool's questions in the stateless era. The server keeps no state between the round trips of
// a call: the client carries the replies so far in the request state, which the server signs.
//
//	tools/call ──► run: Ask 1 ──► input required {q1}, state []
//	tools/call + q1 ──► run: Ask 1 = q1, Ask 2 ──► input required {q2}, state [q1]
//	tools/call + q2 ──► run: Ask 1 = q1, Ask 2 = q2 ──► the answer

const (
	maxRounds      = 10       // questions of one call
	maxAnswerBytes = 96 << 10 // bytes of all replies: the state that holds them must fit in the params
)

// roundTrips holds the questions of one call and the client's replies, over all repetitions of the call.
type roundTrips struct {
	server       *Server
	binding      string // the owner and the hash of the call for which a state is valid
	capabilities func() mcp.ClientCapabilities

	repeated bool // the call carries the state of an earlier one

	mu               sync.Mutex
	answered         []callstate.Answered
	next             int             // index in answered for the next question
	pending          *tools.Question // the question for the client; nil: none
	lackedCapability string          // the missing capability for which a question was refused; "": none
}

// roundTrips restores the replies of a call from its request state. It returns a fault if the state is invalid.
func (k *call) roundTrips(args json.RawMessage) (*roundTrips, *jsonrpc.Fault) {
	tool := k.frame.StringOrEmpty("name")
	r := &roundTrips{
		server: k.conn.server, capabilities: k.capabilities,
		binding: k.conn.account.Owner + "\x00" + observations.CallHash(tool, args),
	}
	var responses map[string]json.RawMessage
	var sealed string
	fault := cmp.Or(k.frame.Param("requestState", &sealed), k.frame.Param("inputResponses", &responses))
	if fault != nil || sealed == "" {
		return r, fault
	}
	s, ok := r.server.sealer.Unseal(r.binding, sealed)
	if !ok {
		return nil, jsonrpc.BadParams("%s: requestState is invalid for this call or older than %s; repeat the call without it",
			jsonrpc.Echo(tool), callstate.Lifetime)
	}
	r.answered, r.repeated = s.Given, true
	// If the reply is missing, the question is asked again.
	if result := responses[roundName(len(s.Given))]; result != nil {
		r.answered = append(r.answered, callstate.Answered{Question: s.Asked, Result: result})
	}
	return r, nil
}

// roundName returns the name of the question that follows n others: "q1" for n = 0.
func roundName(n int) string { return "q" + strconv.Itoa(n+1) }

// nextReply is the [tools.Asker] of the call. It returns the reply to q if the client has sent it, else
// [tools.ErrAsked].
func (r *roundTrips) nextReply(ctx context.Context, q tools.Question) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.pending != nil {
		return nil, tools.ErrAsked
	}
	if r.next < len(r.answered) {
		if g := r.answered[r.next]; bytes.Equal(g.Question, digestOf(q)) {
			r.next++
			return g.Result, nil
		}
		// The tool asks another question than before: the replies from here on are useless.
		r.answered = r.answered[:r.next]
	}
	size := 0
	for _, g := range r.answered {
		size += len(g.Result)
	}
	if len(r.answered) >= maxRounds || size > maxAnswerBytes {
		return nil, fmt.Errorf(
			"%w: it has answered %d questions in %d bytes; the limits are %d questions and %d bytes",
			tools.ErrNoReply, len(r.answered), size, maxRounds, maxAnswerBytes)
	}
	if err := missingCapability(r.capabilities(), q); err != nil {
		r.lackedCapability = err.Capability
		return nil, err
	}
	r.pending = &q
	return nil, tools.ErrAsked
}

// inputRequired is the result that asks the client a question.
type inputRequired struct {
	mcp.Result
	InputRequests map[string]tools.Question `json:"inputRequests"`
	RequestState  string                    `json:"requestState"`
}

// inputRequired returns the result that asks the client the pending question.
func (r *roundTrips) inputRequired() *inputRequired {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &inputRequired{
		InputRequests: map[string]tools.Question{roundName(len(r.answered)): *r.pending},
		RequestState:  r.server.sealer.Seal(r.binding, callstate.State{Given: r.answered, Asked: digestOf(*r.pending)}),
	}
	out.ResultType = mcp.ResultTypeInputRequired
	return out
}

// missingCapability returns the fault of the stateless era for a call that needs a capability which its client has
// not declared; nil if no question was refused for that reason.
func (r *roundTrips) missingCapability(tool string) *jsonrpc.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lackedCapability == "" {
		return nil
	}
	fault := jsonrpc.Faultf(
		mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, "%s: %s", tool, &tools.CapabilityError{Capability: r.lackedCapability},
	)
	fault.Data = map[string]any{"requiredCapabilities": map[string]any{r.lackedCapability: struct{}{}}}
	return fault
}

// digestOf returns 16 bytes of the SHA-256 of a question.
func digestOf(q tools.Question) []byte {
	text, _ := json.Marshal(q) // cannot fail: strings, numbers and valid JSON
	sum := sha256.Sum256(text)
	return sum[:16]
}
