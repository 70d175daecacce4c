package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/mcp-funnel/mcp-funnel/base/panics"
	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/funnel"
	"github.com/mcp-funnel/mcp-funnel/funnel/policy"
	"github.com/mcp-funnel/mcp-funnel/observations"
	"github.com/mcp-funnel/mcp-funnel/server"
	"github.com/mcp-funnel/mcp-funnel/session/hook"
	"github.com/mcp-funnel/mcp-funnel/session/trace"
	"github.com/mcp-funnel/mcp-funnel/system/osfile"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools"
)

type hookCmd struct {
	Event      string `arg:"" optional:"" enum:"post-tool-use,session-start" default:"post-tool-use" help:"Which hook of the client runs it: ${enum}."`
	Configured bool   `env:"-" help:"The client has this server too: receipts name its tools. By default they name the command mcp-funnel call."`
	Owner      string `env:"-" default:"${owner}" placeholder:"NAME" help:"Identity of the client at a server over HTTP."`
}

func (c *hookCmd) Help() string {
	return `Claude Code runs it after a tool call (PostToolUse); docs/HOOK.md has the block for
its settings. It always ends with code 0: where it prints nothing, the output passes as it is.

session-start is its hook SessionStart: after a compaction, or when a session is resumed,
it prints at most ten stored outputs that the session used most and latest.`
}

// Run answers one hook. It never fails, and takes at most 5 s.
func (c *hookCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	respond, effect := c.answer, "the output passes as it is"
	if c.Event == sessionStart {
		respond, effect = c.started, "no stored output is listed"
	}
	var answer []byte
	ended := make(chan error, 1)
	go func() { // it may wait for standard input or a disk for longer
		var err error
		panics.Into(&err, func() {
			var text []byte
			if text, err = readBounded(w.In); err != nil {
				_, _ = io.Copy(io.Discard, w.In) // else the client's write fails
				err = fmt.Errorf("standard input: %w", err)
				return
			}
			answer, err = respond(ctx, text, s, w)
		})
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil && len(answer) > 0 {
		_, err = w.Out.Write(answer)
	}
	if err != nil {
		cli.PrintMessage(w.Err, fmt.Sprintf("hook: %s: %s", effect, err))
	}
	return nil
}

// answer returns what to print; nil: nothing.
func (c *hookCmd) answer(ctx context.Context, text []byte, s *cli.Settings, w *cli.Streams) ([]byte, error) {
	call, err := hook.Parse(text)
	if err != nil || !s.Enabled {
		return nil, err
	}
	texts, err := call.Texts()
	path, read := clientFile(call, call.Output("file", "filePath"))
	if read = read && call.Tool == "Read"; err != nil || len(texts) == 0 && !read {
		return nil, err
	}
	app, err := s.Open(w, true)
	if err != nil {
		return nil, err
	}
	defer app.Close()
	if read {
		shown := call.Output("file", "content")
		hash, mask := fingerprint(path, shown), s.Masker()
		path, _ = mask.String(path)
		masked, _ := mask.String(shown)
		tokens, size := int64(app.Counter.Count(shown)), int64(len(shown))
		return nil, app.Trace.Append(trace.Call{
			At: time.Now(), Session: call.Key(), Owner: c.Owner, Tool: call.Tool, Source: path, Model: s.Model,
			CallHash: observations.CallHash(call.Tool, call.Arguments()), Status: "success", Verdict: string(policy.OK),
			SeenBytes: size, SeenTokens: tokens, ShownTokens: tokens,
			Opened: []trace.Opened{{File: path, Shown: size, Hash: hash}},
		}, &trace.Shown{Args: mask.JSON(call.Arguments()), Text: masked})
	}
	for i := range texts {
		if texts[i].By, err = c.receipt(ctx, app, s.Store, call, texts[i]); err != nil {
			return nil, err
		}
	}
	return call.Answer(texts), nil
}

// fingerprint returns the SHA-256 of a file, in hex, if it has the text that was shown of it; else "".
func fingerprint(path, shown string) string {
	b, err := readOwn(path)
	if err != nil || !bytes.Contains(b, []byte(shown)) {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// readOwn is readBounded for a file of this user, which is not opened through a link.
func readOwn(path string) ([]byte, error) {
	f, _, err := osfile.OpenOwn(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return readBounded(f)
}

// readBounded reads all, unless that is more than the input of a hook may be.
func readBounded(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, hook.MaxInput+1))
	if err == nil && len(b) > hook.MaxInput {
		err = fmt.Errorf("over %d MiB", hook.MaxInput>>20)
	}
	return b, err
}

// wholeText returns the whole of a text. If the client has cut it, the whole is in a file.
func wholeText(t hook.Text) (string, error) {
	if t.File == "" {
		return t.Text, nil
	}
	b, err := readOwn(t.File)
	if err == nil && len(b) < len(t.Text) {
		err = errors.New("it has less than the client has shown")
	}
	return string(b), err
}

// receipt stores a text and returns its receipt; "" for one that is small, or is an answer of this server.
func (c *hookCmd) receipt(ctx context.Context, a *cli.App, store string, call hook.Call, t hook.Text) (string, error) {
	text, err := wholeText(t)
	if err != nil || text == "" || isOwn(call) && utf8.RuneCountInString(text) <= policy.MaxPageChars {
		return "", err
	}
	got, err := a.Funnel.Call(ctx, funnel.Request{
		Tool: tools.Tool{
			Name: call.Tool, Toolset: "client", Opens: opens(call), Whole: a.Shell.Run().Whole,
			Run: func(_ context.Context, _ tools.Input, out tools.Output) error {
				out.ResolveWith(func(name string) (string, bool) { return clientFile(call, name) })
				_, err := io.WriteString(out, text)
				return err
			},
		},
		Args: call.Arguments(), Who: funnel.Session{ID: call.Key(), Owner: c.Owner}, Command: c.command(store),
	})
	if err != nil || got.Receipts[0].Complete {
		return "", err
	}
	if r := got.Receipts[0]; !r.Kept || r.Truncated || got.Failed || len(got.Blocks) != 1 {
		return "", fmt.Errorf("it was not kept whole: %s", cmp.Or(r.NotKept, "mcp-funnel doctor shows why"))
	}
	return got.Blocks[0].Text, nil
}

// isOwn reports whether the output of a call may be an answer of this server, which is small already. Nobody knows the
// name under which the client has it, or whether another server has a tool of the same name.
func isOwn(call hook.Call) bool {
	return call.Tool == "Bash" && strings.Contains(call.Argument("command"), "mcp-funnel") ||
		slices.ContainsFunc(server.Catalog(server.Parts{Toolsets: server.Toolsets}),
			func(t tools.Tool) bool { return strings.HasSuffix(call.Tool, "__"+t.Name) })
}

// grepCommand matches a command whose output has the names of files before their lines.
var grepCommand = content.Pattern(`^\s*(?:rg|grep|git\s+grep)\s`)

// opens says which files an output of the client's own tools shows lines of.
func opens(call hook.Call) tools.Opens {
	_, one := clientFile(call, call.Argument("path")) // then lines do not name the file
	switch grep := call.Tool == "Grep" && call.Argument("output_mode") == "content"; {
	case grep && one:
		return tools.OpensSource
	case grep, call.Tool == "Bash" && grepCommand().MatchString(call.Argument("command")):
		return tools.OpensLines
	}
	return tools.OpensNothing
}

// clientFile returns the path of a regular file, without links, as the trace has it.
func clientFile(call hook.Call, name string) (string, bool) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(call.CWD, name)
	}
	path, err := filepath.EvalSymlinks(name)
	info, gone := os.Lstat(path)
	return path, err == nil && gone == nil && filepath.IsAbs(path) && info.Mode().IsRegular()
}

// command returns how a shell runs a tool of this server on this store; "" if the client has the tools.
func (c *hookCmd) command(store string) string {
	if c.Configured {
		return ""
	}
	command, _ := syntax.Quote(os.Args[0], syntax.LangPOSIX) // the client has just started it by this name
	if store != "" {
		dir, _ := syntax.Quote(cli.ExpandPath(store), syntax.LangPOSIX)
		command += " --store " + dir
	}
	return command + " call"
}
