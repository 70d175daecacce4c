package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server/servertest"
	"github.com/mcp-funnel/mcp-funnel/text/tokens"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

func withExtra(o *Options) {
	o.Extra.Resources = []Resource{
		{mcp.NewResource("test://one", "one"), func(context.Context, string) ([]mcp.ResourceContents, error) {
			return []mcp.ResourceContents{mcp.TextResourceContents{URI: "test://one", Text: "the text of one"}}, nil
		}},
	}
	o.Extra.Templates = []Template{
		{
			mcp.NewResourceTemplate("test://all/{name}", "all"),
			func(_ context.Context, uri string) ([]mcp.ResourceContents, error) {
				return []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, Text: "the text of " + uri}}, nil
			},
		},
	}
	o.Extra.Prompts = []Prompt{
		{
			mcp.NewPrompt("poem", mcp.WithArgument("on")),
			func(_ context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
				return mcp.NewGetPromptResult(
					"",
					[]mcp.PromptMessage{
						mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("a poem on "+args["on"])),
					},
				), nil
			},
		},
	}
	o.Extra.Tools = []RawTool{
		{
			Tool: mcp.NewTool("raw", mcp.WithDescription("Tells a lot.")),
			Call: func(ctx context.Context) (any, error) {
				raw, err := Arguments(ctx)
				var args struct{ N int }
				if err := errors.Join(err, json.Unmarshal(raw, &args)); err != nil {
					return nil, err
				}
				for i := range args.N {
					Progress(ctx, int64(i+1), 300, "")
				}
				Log(ctx, mcp.LoggingLevelWarning, "raw", "not asked for")
				Log(ctx, mcp.LoggingLevelError, "raw", "asked for")
				return mcp.NewToolResultText("told"), nil
			},
		},
	}
}

func TestExtraIsServedToo(t *testing.T) {
	c := newClient(t, newTestServer(t, withExtra))
	for request, want := range map[string]string{
		`"resources/list"`: `"uri":"test://one"`,
		`"resources/read","params":{"uri":"test://one"}`:     "the text of one",
		`"resources/templates/list"`:                         `"uriTemplate":"test://all/{name}"`,
		`"resources/read","params":{"uri":"test://all/x"}`:   `the text of test://all/x"`,
		`"resources/read","params":{"uri":"test://all/x/y"}`: "unknown resource",
		`"prompts/list"`: `"name":"poem"`,
		`"prompts/get","params":{"name":"poem","arguments":{"on":"rain"}}`:                                                   "a poem on rain",
		`"completion/complete","params":{"ref":{"type":"ref/prompt","name":"poem"},"argument":{"name":"on","value":"r"}}`:    `"values":[]`,
		`"completion/complete","params":{"ref":{"type":"ref/prompt","name":"no such"},"argument":{"name":"on","value":"r"}}`: "unknown prompt",
		`"tools/list"`: `"name":"raw"`,
	} {
		expect.Contains(t, c.ask(`{"jsonrpc":"2.0","id":1,"method":`+request+`}`), want)
	}
	c.conn.Handle(
		t.Context(), []byte(servertest.ToolCall("2", "raw", `{"n":300}`, `,"_meta":{"progressToken":"t"}`)), c.send,
	)
	if n := len(c.got); n != 302 || !strings.Contains(c.got[300], `"data":"asked for"`) ||
		!strings.Contains(c.got[301], `"text":"told"`) {
		t.Errorf("%d messages, the last ones %v", n, c.got[max(0, n-2):])
	}
}

// TestExtraResourcesStandOnTheFirstPage follows the pages of a store that has more than one of them.
func TestExtraResourcesStandOnTheFirstPage(t *testing.T) {
	store := servertest.NewTestStore(t)
	f, err := funnel.New(funnel.Options{Store: store, Counter: tokens.New(tokens.O200k)})
	expect.Must(t, err)
	for i := range resourcesPage + 1 {
		servertest.Keep(t, store, observations.Local, fmt.Sprint(i), observations.Stats{})
	}
	c := newClient(t, newTestServer(t, withExtra, func(o *Options) { o.Funnel, o.Store = f, store }))
	var pages [][]string
	for cursor := "{}"; cursor != ""; {
		var page struct {
			Result struct {
				Resources  []struct{ URI string }
				NextCursor string
			}
		}
		expect.Must(t, json.Unmarshal(
			[]byte(c.request("resources/list", cursor)), &page,
		))
		var uris []string
		for _, r := range page.Result.Resources {
			uris = append(uris, r.URI)
		}
		pages = append(pages, uris)
		if cursor = ""; page.Result.NextCursor != "" {
			cursor = fmt.Sprintf(`{"cursor":%q}`, page.Result.NextCursor)
		}
	}
	if len(pages) != 2 || len(pages[0]) != resourcesPage+1 || len(pages[1]) != 1 || pages[0][0] != "test://one" {
		t.Errorf("%d pages: %v", len(pages), pages)
	}
}

func TestSoundIsShownAsSound(t *testing.T) {
	beep := tools.New(tools.Tool{Name: "beep", Title: "Beep", Description: "Makes a sound."},
		func(_ context.Context, _ struct{}, _ tools.Input, out tools.Output) error {
			_, err := io.WriteString(out.Part("audio/wav", "beep.wav"), "RIFF")
			return err
		})
	c := newClient(t, newTestServer(t, func(o *Options) { o.Tools = []tools.Tool{beep} }))
	expect.Contains(
		t,
		c.ask(servertest.ToolCall("1", "beep", "{}", "")),
		`"type":"audio"`,
		`"mimeType":"audio/wav"`,
		`"data":"UklGRg=="`,
	)
}

// TestExtraAsksItsClient has a tool and a prompt answer "input required" and read the replies of the repeated request.
func TestExtraAsksItsClient(t *testing.T) {
	requests := mcp.InputRequests{"roots": mcp.NewRootsInputRequest()}
	replied := func(ctx context.Context) (*mcp.InputRequiredResult, string, error) {
		sent, state, err := InputResponses(ctx)
		if err != nil || len(sent) == 0 {
			return mcp.NewInputRequiredResult(requests, "first round"), "", err
		}
		err = sent.DecodeFor(requests)
		return nil, fmt.Sprint(state, ": ", sent["roots"].Roots.Roots[0].URI), err
	}
	c := newClient(t, newTestServer(t, func(o *Options) {
		o.Extra.Tools = []RawTool{
			{
				Tool: mcp.NewTool("where", mcp.WithDescription("Asks.")),
				Call: func(ctx context.Context) (any, error) {
					asked, text, err := replied(ctx)
					if err != nil || asked == nil {
						return mcp.NewToolResultText(text), err
					}
					return &mcp.CallToolResult{
						Result:               asked.Result,
						MultiRoundTripResult: asked.MultiRoundTripResult,
					}, nil
				},
			},
		}
		o.Extra.Prompts = []Prompt{
			{mcp.NewPrompt("where"), func(ctx context.Context, _ map[string]string) (*mcp.GetPromptResult, error) {
				asked, text, err := replied(ctx)
				if err != nil || asked == nil {
					text := mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent(text))
					return mcp.NewGetPromptResult("", []mcp.PromptMessage{text}), err
				}
				return &mcp.GetPromptResult{Result: asked.Result, MultiRoundTripResult: asked.MultiRoundTripResult}, nil
			}},
		}
	}))
	for _, method := range []string{"tools/call", "prompts/get"} {
		first := c.ask(servertest.StatelessRequest(method, `"name":"where"`))
		expect.Contains(
			t, first, `"resultType":"input_required"`, `"roots":{"method":"roots/list"`, `"requestState":"first round"`,
		)
		if strings.Contains(first, `"content"`) || strings.Contains(first, `"messages"`) {
			t.Errorf("%s: it asks and answers: %s", method, first)
		}
		const reply = `"name":"where","requestState":"first round","inputResponses":{"roots":{"roots":[{"uri":"file:///x"}]}}`
		expect.Contains(t, c.ask(servertest.StatelessRequest(method, reply)), `"first round: file:///x"`)
		expect.Contains(
			t,
			c.ask(servertest.StatelessRequest(method, `"name":"where","inputResponses":5`)),
			`"code":-32602`,
			"inputResponses",
		)
	}
}
