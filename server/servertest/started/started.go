// Package started makes the servers that tests of the transports serve.
package started

import (
	"context"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// RunFunc is a [server.Funnel] of one function.
type RunFunc func(context.Context, funnel.Request) (funnel.Answer, error)

func (f RunFunc) Call(ctx context.Context, r funnel.Request) (funnel.Answer, error) { return f(ctx, r) }

// FitsPage and Show are not what these tests are about.
func (f RunFunc) FitsPage(tokens, chars int64) bool { return tokens <= 4000 && chars <= 40_000 }

func (f RunFunc) Show(_ funnel.Request, text string) funnel.Answer {
	return funnel.Answer{Blocks: []funnel.Block{{Text: text}}, Receipts: []funnel.Receipt{{Complete: true}}}
}

// Runs has every call be run by f.
func Runs(f RunFunc) func(*server.Options) { return func(o *server.Options) { o.Funnel = f } }

// WithAskTools adds the tools that ask.
func WithAskTools(o *server.Options) { o.Tools = append(o.Tools, servertest.AskTools()...) }

// Server returns a server of the test tools, or fails the test.
func Server(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	s, err := New(change...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// New returns a server of the test tools.
func New(change ...func(*server.Options)) (*server.Server, error) {
	f, err := funnel.New(funnel.Options{Counter: tokens.New(tokens.O200k)})
	if err != nil {
		return nil, err
	}
	o := server.Options{
		Funnel: f, Tools: servertest.TestTools(), Version: "test",
		Sources: func(who funnel.Session) source.Set { return source.Set{} },
	}
	for _, c := range change {
		c(&o)
	}
	return server.New(o)
}
