package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/system/mcpclient"
	"github.com/mcp-funnel/mcp-funnel/tools/upstream"
)

// wrap is the command wrap.
type wrap struct {
	Env         []string `env:"-" placeholder:"NAME" sep:"," help:"Variable of this process that the server gets, besides PATH, HOME, USER, LANG, LC_*, TZ and TMPDIR; repeatable."`
	Header      []string `env:"-" placeholder:"NAME=VALUE" sep:"none" help:"Header for a server at a URL; $$VAR and $${VAR} stand for variables; repeatable."`
	Observe     bool     `env:"-" help:"Pass everything on as it is, and only measure: stats then says what receipts would have saved."`
	NoReference []string `env:"-" placeholder:"TOOL" sep:"," help:"Tool of the server whose arguments are passed on as they are, also obs:ID; repeatable."`

	Defer   cli.Defer `env:"-" help:"List definitions of tools up to 1,000 tokens of each server, or --defer TOKENS; of other tools the name and one line until they are used."`
	Command []string  `arg:"" optional:"" passthrough:"" placeholder:"COMMAND" help:"The server's program and its arguments, or its URL, after --."`
}

// Help returns the help of the command.
func (*wrap) Help() string {
	return `Starts other MCP servers and offers their tools with their own names. A small
answer is passed on as it is. A large one is stored whole, and the model gets a
receipt; jq, grep, slice, find and search look into what is stored.

Write it before the command of a server in the configuration of a client:

  "command": "mcp-funnel", "args": ["wrap", "--", "npx", "-y", "@modelcontextprotocol/server-everything"]

Without a COMMAND the servers of the file of --config are started: those under
upstreams:, and those of a client's own block mcpServers. Over --http each
session has processes of its own.

No directory is granted to this program's own tools without --root. The server
gets the variables that --env names: a client puts the keys of a server into the
environment of wrap.

--observe changes nothing at all and only measures; mcp-funnel stats then says,
for each tool, what receipts would have saved.

An argument of the server's tools may be obs:ID, obs:ID jq FILTER or
obs:ID lines A-B: the server gets that text. --no-reference TOOL ends that.`
}

func (c *wrap) Run(
	ctx context.Context, k *kong.Context, s *cli.Settings, w *cli.Streams, file *cli.FileResolver,
) error {
	servers, err := c.servers(file)
	if err != nil {
		return err
	}
	for i := range servers {
		if servers[i].Defer = cmp.Or(servers[i].Defer, int(c.Defer)); c.Observe && servers[i].Defer > 0 {
			return cli.Usagef("--observe passes the list on as it is: leave --defer out, and defer of the file")
		}
	}
	up := cli.Upstreams{Servers: servers, Common: upstream.Common{Version: versionText(), Observe: c.Observe}}
	if len(s.Root) == 0 {
		s.Root, up.Without = []string{}, "read"
	}
	return serveWith(ctx, k, s, w, up)
}

// servers returns the server of the command line, or those of the configuration file.
func (c *wrap) servers(file *cli.FileResolver) ([]upstream.Options, error) {
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 {
		if len(file.Servers) == 0 {
			return nil, cli.Usagef("write the command of the server after --, such as: mcp-funnel wrap -- npx -y SERVER; " +
				"or name a file with upstreams: by --config FILE")
		}
		return file.Servers, nil
	}
	remote, err := c.remote(command)
	if err != nil {
		return nil, err
	}
	if remote == nil {
		if _, err := exec.LookPath(command[0]); err != nil {
			return nil, fmt.Errorf("the server cannot be started: %w", err)
		}
	}
	return []upstream.Options{{
		Name: serverName(command), NoReference: c.NoReference, Remote: remote,
		Command: mcpclient.Command{Args: command, Env: c.Env},
	}}, nil
}

// remote returns the endpoint of a URL that is given in place of a command; nil for a command.
func (c *wrap) remote(command []string) (*mcpclient.Endpoint, error) {
	if len(command) != 1 || !strings.Contains(command[0], "://") {
		if len(c.Header) > 0 {
			return nil, cli.Usagef("--header is for a server at a URL: a command gets variables by --env")
		}
		return nil, nil
	}
	if scheme, _, _ := strings.Cut(command[0], "://"); scheme != "http" && scheme != "https" {
		return nil, cli.Usagef("the URL of a server begins with http:// or https://, not %.20s://", scheme)
	}
	e := &mcpclient.Endpoint{URL: command[0], Headers: map[string]string{}}
	for _, header := range c.Header {
		name, value, ok := strings.Cut(header, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("--header has the form NAME=VALUE, such as 'Authorization=Bearer ${TOKEN}'")
		}
		var err error
		if e.Headers[name], err = cli.Expanded(value); err != nil {
			return nil, cli.Usagef("--header %s: %w", name, err)
		}
	}
	return e, nil
}

// serverName returns a name for a server: of its package or script if an interpreter runs it, else of its program.
func serverName(command []string) string {
	name, _, _ := strings.Cut(command[0], "?") // the query of a URL may hold a key
	for _, arg := range command[1:] {
		if !strings.HasPrefix(arg, "-") {
			if slices.Contains([]string{"npx", "uvx", "node", "python", "python3", "bunx", "deno", "bun"}, filepath.Base(name)) {
				name = arg
			}
			break
		}
	}
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		return cli.ServerName(u.Hostname())
	}
	name = strings.TrimRight(name, "/")
	last := func() string {
		word, _, _ := strings.Cut(filepath.Base(name), ".")
		return cli.ServerName(word)
	}
	for strings.Contains(name, "/") && slices.Contains(noNames, last()) {
		name = filepath.Dir(name)
	}
	return last()
}

// noNames are names of files and directories that many servers have.
var noNames = []string{"index", "main", "server", "cli", "dist", "build", "src", "lib", "bin"}
