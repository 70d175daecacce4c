package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/system/jsonrpc"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

// exchange is one call of a tool, and the questions that the server asks meanwhile. It can outlive a run of the tool: a
// client of the stateless protocol answers by repeating its call, which joins the exchange. Nothing is sent twice.
type exchange struct {
	ctx       context.Context // ends with the exchange
	cancel    context.CancelFunc
	questions chan *question
	done      chan struct{} // closed when result and err are set
	result    json.RawMessage
	err       error
	asked     []*question // questions so far; only the attending run uses them
	expiry    *time.Timer // cancels the exchange if no run attends it

	mu  sync.Mutex
	out tools.Output // output of the attending run; nil: no run attends
}

// question is a question of the server and the channel for its reply.
type question struct {
	tools.Question
	ctx      context.Context // ends with the server's request
	reply    chan reply
	answered bool
}

type reply struct {
	result json.RawMessage
	err    error
}

const (
	unattended = time.Minute // how long an exchange waits for a repeated call
	maxOpen    = 64          // concurrent calls of one server
	maxRounds  = 10          // rounds of questions in one request of the stateless protocol
)

// call sends a call of a tool to the server and returns its result. key names the call: its tool and arguments.
func (s *Server) call(
	ctx context.Context, key string, params json.RawMessage, p connection, modern bool, in tools.Input, out tools.Output,
) (json.RawMessage, error) {
	s.mu.Lock()
	e := s.waiting[key]
	if e == nil && len(s.open) >= maxOpen {
		s.mu.Unlock()
		return nil, fmt.Errorf("busy: %d calls of the server %s are running; wait for one to end and try again",
			maxOpen, s.options.Name)
	}
	if delete(s.waiting, key); e == nil {
		e = &exchange{questions: make(chan *question), done: make(chan struct{})}
		e.ctx, e.cancel = context.WithCancel(s.life)
		if modern && s.options.Remote != nil {
			e.ctx = mcpclient.WithHeaders(e.ctx, s.headers(params))
		}
		s.open = append(s.open, e)
		go s.hold(e, p, modern, params)
	} else {
		e.expiry.Stop()
	}
	s.mu.Unlock()
	e.attend(out)
	defer e.attend(nil)
	result, err := e.attended(ctx, in.Ask)
	switch {
	case errors.Is(err, tools.ErrAsked):
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting[key] != nil { // an equal call waits already
			e.cancel()
			break
		}
		s.waiting[key] = e
		e.expiry = time.AfterFunc(unattended, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.waiting[key] == e { // else a repeated call has just joined it
				delete(s.waiting, key)
				e.cancel()
			}
		})
	default:
		e.cancel()
	}
	return result, err
}

// hold sends the call, stores its result in the exchange, and ends the exchange.
func (s *Server) hold(e *exchange, p connection, modern bool, params json.RawMessage) {
	var defect error
	panics.Into(&defect, func() {
		e.result, e.err = s.send(e.ctx, p, modern, "tools/call", params, e.progress, e.ask)
	})
	if defect != nil {
		e.err = defect
	}
	s.mu.Lock()
	s.open = slices.DeleteFunc(s.open, func(o *exchange) bool { return o == e })
	s.mu.Unlock()
	close(e.done)
	e.cancel()
}

func (e *exchange) attend(out tools.Output) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out = out
}

func (e *exchange) progress(params json.RawMessage) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out != nil {
		report(params, e.out)
	}
}

// ask passes a question of the server to the attending run, and returns the reply of that run's client.
func (e *exchange) ask(ctx context.Context, q tools.Question) (json.RawMessage, error) {
	one := &question{Question: q, ctx: ctx, reply: make(chan reply, 1)}
	select {
	case e.questions <- one:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.done:
		return nil, errNobody
	}
	select {
	case r := <-one.reply:
		return r.result, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.done:
		return nil, errNobody
	}
}

var errNobody = errors.New("the call that the question belongs to has ended")

// attended passes the server's questions to ask, in their order, until the result is there. A repeated run starts with
// the first question again: ask answers the earlier ones at once.
func (e *exchange) attended(ctx context.Context, ask tools.Asker) (json.RawMessage, error) {
	for i := 0; ; i++ {
		if i == len(e.asked) {
			select {
			case q := <-e.questions:
				e.asked = append(e.asked, q)
			case <-e.done:
				return e.result, e.err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		q := e.asked[i]
		asking, stop := context.WithCancel(ctx)
		unlink, unhook := context.AfterFunc(e.ctx, stop), context.AfterFunc(q.ctx, stop)
		result, err := ask(asking, q.Question)
		unlink()
		unhook()
		stop()
		if errors.Is(err, tools.ErrAsked) {
			return nil, err
		}
		if !q.answered {
			q.answered = true
			q.reply <- reply{result, err}
		}
	}
}

// send sends a request to the server and returns its result. ask answers what a server of the stateless protocol asks
// before it has one; nil: such a result is returned.
func (s *Server) send(
	ctx context.Context, p connection, modern bool, method string, params json.RawMessage,
	progress func(json.RawMessage), ask tools.Asker,
) (json.RawMessage, error) {
	for range maxRounds {
		sent := params
		if modern {
			var err error
			if sent, err = s.declared(params); err != nil {
				return nil, err
			}
		}
		raw, err := p.Call(ctx, method, sent, progress)
		if err != nil || !modern || ask == nil || !bytes.Contains(raw, []byte(`"input_required"`)) {
			return raw, err
		}
		var r struct {
			Type     string                    `json:"resultType"`
			Requests map[string]tools.Question `json:"inputRequests"`
			State    json.RawMessage           `json:"requestState"`
		}
		if err := json.Unmarshal(raw, &r); err != nil || r.Type != "input_required" {
			return raw, nil // another result that contains the word
		}
		responses := map[string]json.RawMessage{}
		for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
			if responses[name], err = ask(ctx, s.named(r.Requests[name])); err != nil {
				return nil, err
			}
		}
		if params, err = answering(params, responses, r.State); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the server has asked in %d rounds, and still has no result", maxRounds)
}

// answering adds the replies to the params of a request.
func answering(
	params json.RawMessage, responses map[string]json.RawMessage, state json.RawMessage,
) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	replies, err := json.Marshal(responses)
	if err = errors.Join(err, json.Unmarshal(params, &all)); err != nil {
		return nil, err
	}
	if all["inputResponses"] = replies; state != nil {
		all["requestState"] = state
	}
	return json.Marshal(all)
}

// named puts the server's name before the message of a question if there are several servers, because the client knows
// only this one. It makes hidden characters of the message visible.
func (s *Server) named(q tools.Question) tools.Question {
	message := memberOf(q.Params, "message")
	clean := content.Visible(message, false)
	if s.options.many {
		clean = s.options.Name + ": " + clean
	}
	if message == "" || clean == message {
		return q
	}
	if params, err := withMember(q.Params, "message", clean); err == nil {
		q.Params = params
	}
	return q
}

// answer passes a request of the server to the client: through the latest open call, else through the session.
func (s *Server) answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	ask := s.client.Ask
	if n := len(s.open); n > 0 {
		ask = s.open[n-1].ask
	}
	s.mu.Unlock()
	if ask == nil {
		ask = tools.NoClient
	}
	result, err := ask(ctx, s.named(tools.Question{Method: method, Params: params}))
	if lacks := (*tools.CapabilityError)(nil); errors.As(err, &lacks) {
		return nil, jsonrpc.Faultf(mcpclient.MethodNotFound, "%s", lacks)
	}
	return result, err
}

// headers returns the headers that repeat arguments of a call: those whose schema has x-mcp-header.
func (s *Server) headers(params json.RawMessage) map[string]string {
	var call struct {
		Name      string                     `json:"name"`
		Arguments map[string]json.RawMessage `json:"arguments"`
	}
	var tool struct {
		Schema struct {
			Properties map[string]struct {
				Header string `json:"x-mcp-header"`
			} `json:"properties"`
		} `json:"inputSchema"`
	}
	out := map[string]string{}
	if json.Unmarshal(params, &call) != nil || json.Unmarshal(definition(s.record.Approved, call.Name), &tool) != nil {
		return out
	}
	for name, p := range tool.Schema.Properties {
		value := call.Arguments[name]
		if p.Header == "" || value == nil || string(value) == "null" {
			continue
		}
		text, err := jsonrpc.Unquote(value)
		if err != nil { // a number, or true or false
			text = string(value)
		}
		out["Mcp-Param-"+p.Header] = text
	}
	return out
}
