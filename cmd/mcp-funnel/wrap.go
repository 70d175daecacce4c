package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/tools"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// wrap is the command wrap.
type wrap struct {
	Env         []string `env:"-" placeholder:"NAME" sep:"," help:"Variable of this process that the server gets, besides PATH, HOME, USER, LANG, LC_*, TZ and TMPDIR; repeatable."`
	Header      []string `env:"-" placeholder:"NAME=VALUE" sep:"none" help:"Header for a server at a URL; $$VAR and $${VAR} stand for variables; repeatable."`
	Observe     bool     `env:"-" help:"Pass everything on as it is, and only measure: stats then says what receipts would have saved."`
	NoReference []string `env:"-" placeholder:"TOOL" sep:"," help:"Tool of the server whose arguments are passed on as they are, also obs:ID; repeatable."`
	Command     []string `arg:"" passthrough:"" placeholder:"COMMAND" help:"The server's program and its arguments, or its URL, after --."`
}

// Help returns the help of the command.
func (*wrap) Help() string {
	return `Starts another MCP server and offers its tools with their own names. A small
answer is passed on as it is. A large one is stored whole, and the model gets a
receipt; jq, grep, slice, find and search look into what is stored.

Write it before the command of a server in the configuration of a client:

  "command": "mcp-funnel", "args": ["wrap", "--", "npx", "-y", "@modelcontextprotocol/server-everything"]

No directory is granted to this program's own tools without --root. The server
gets the variables that --env names: a client puts the keys of a server into the
environment of wrap.

--observe changes nothing at all and only measures; mcp-funnel stats then says,
for each tool, what receipts would have saved.

An argument of the server's tools may be obs:ID, obs:ID jq FILTER or
obs:ID lines A-B: the server gets that text. --no-reference TOOL ends that.`
}

func (c *wrap) Run(ctx context.Context, k *kong.Context, s *cli.Settings, w *cli.Streams) error {
	if s.HTTP != "" {
		return cli.Usagef("wrap serves one client on stdio: leave out --http")
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		return cli.Usagef("write the command of the server after --, such as: mcp-funnel wrap -- npx -y SERVER")
	}
	remote, err := c.remote(command)
	if err != nil {
		return err
	}
	noRoots := len(s.Root) == 0
	if noRoots {
		s.Root = []string{}
	}
	return serveWith(ctx, k, s, w, func(a *cli.App) (func(), error) {
		jq, err := a.Tool("jq")
		if err != nil {
			return nil, err
		}
		server := upstream.New(upstream.Options{
			JQ: jq, Literal: c.NoReference, Records: recordsOf(a), Observe: c.Observe, Prefix: serverName(command),
			Remote: remote, Command: mcpclient.Command{Args: command, Env: c.Env}, Version: versionText(), Log: a.Log,
		})
		theirs, err := server.Tools(ctx)
		if err != nil {
			server.Close()
			return nil, fmt.Errorf("%s: %w", server.Name(), err)
		}
		if noRoots {
			a.Catalog = slices.DeleteFunc(a.Catalog, func(t tools.Tool) bool { return t.Name == "read" })
		}
		for _, name := range c.NoReference {
			if !slices.ContainsFunc(theirs, func(t tools.Tool) bool {
				return t.Name == name || serverName(command)+"_"+t.Name == name
			}) {
				server.Close()
				return nil, cli.Usagef("--no-reference %.100s: the server has no such tool", name)
			}
		}
		a.Relay, a.Observe, a.Instructions = server, c.Observe, server.Instructions()
		if c.Observe {
			a.Catalog = theirs
			return server.Close, nil
		}
		a.Further = `pass it on as "obs:ID jq FILTER"`
		a.Catalog, err = joined(a.Catalog, theirs, serverName(command), a.Log)
		return server.Close, err
	})
}

// remote returns the endpoint that stands in place of a command; nil for a command.
func (c *wrap) remote(command []string) (*mcpclient.Endpoint, error) {
	if len(command) != 1 || !strings.Contains(command[0], "://") {
		if len(c.Header) > 0 {
			return nil, cli.Usagef("--header is for a server at a URL: a command gets variables by --env")
		}
		return nil, nil
	}
	e := &mcpclient.Endpoint{URL: command[0], Headers: map[string]string{}}
	for _, header := range c.Header {
		name, value, ok := strings.Cut(header, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("--header has the form NAME=VALUE, such as 'Authorization=Bearer ${TOKEN}'")
		}
		var missing string
		e.Headers[name] = os.Expand(value, func(variable string) string {
			v, is := os.LookupEnv(variable)
			if !is {
				missing = variable
			}
			return v
		})
		if missing != "" {
			return nil, cli.Usagef("--header %s: the variable %s is not set", name, missing)
		}
	}
	return e, nil
}

// joined returns our tools and those of a server. One of its tools that has the name of another gets the server's name
// before its own.
func joined(ours, theirs []tools.Tool, server string, log *slog.Logger) ([]tools.Tool, error) {
	all := slices.Clone(ours)
	for _, t := range theirs {
		if slices.ContainsFunc(all, func(o tools.Tool) bool { return o.Name == t.Name }) {
			var err error
			if t, err = upstream.Renamed(t, server+"_"+t.Name); err != nil {
				return nil, err
			}
		}
		if slices.ContainsFunc(all, func(o tools.Tool) bool { return o.Name == t.Name }) {
			log.Warn("a tool of an upstream server is not offered: another has its name", "tool", t.Name)
			continue
		}
		all = append(all, t)
	}
	return all, nil
}

// noName matches what no name of a server has.
var noName = regexp.MustCompile(`[^a-z0-9_-]+`)

// serverName returns a name for a server: of its package or script if an interpreter runs it, else of its program.
func serverName(command []string) string {
	name := command[0]
	for _, arg := range command[1:] {
		if !strings.HasPrefix(arg, "-") {
			if slices.Contains([]string{"npx", "uvx", "node", "python", "python3", "bunx", "deno", "bun"}, filepath.Base(name)) {
				name = arg
			}
			break
		}
	}
	name, _, _ = strings.Cut(filepath.Base(name), ".")
	return strings.Trim(noName.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

// recordsOf returns the records of an app's store; nil if there is none.
func recordsOf(a *cli.App) *upstream.Records {
	if a.Store == nil {
		return nil
	}
	r := upstream.RecordsIn(a.Store.Dir())
	return &r
}
