package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// systems are Go's names of systems and processors as npm and bundles have them.
var systems = strings.NewReplacer("windows", "win32", "amd64", "x64")

// bundles writes a bundle for each system: one for both processors of macOS, because a manifest tells systems apart
// but not processors.
func (r *release) bundles() error {
	tools, prompts, err := offered("bin/release/mcp-funnel")
	if err != nil {
		return err
	}
	for _, p := range r.programs {
		if p.GOOS == "darwin" && p.GOARCH != "all" {
			continue
		}
		if err := r.bundle(p, tools, prompts); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) bundle(p program, tools, prompts any) error {
	m, err := readJSON("packaging/mcpb/manifest.json")
	if err != nil {
		return err
	}
	m["version"], m["tools"], m["prompts"] = r.version, tools, prompts
	m["tools_generated"], m["prompts_generated"] = true, true // wrapped servers and toolsets add some
	m["compatibility"] = map[string]any{"platforms": []string{systems.Replace(p.GOOS)}}
	name := "mcp-funnel" + filepath.Ext(p.Path)
	binary, err := programFile(name, p.Path)
	if err != nil {
		return err
	}
	paths := []string{"packaging/mcpb/icon.png", "LICENSE", "NOTICES.md"}
	if p.GOOS == "windows" { // keeps no modes, and has no sh
		server := m["server"].(map[string]any)
		config := server["mcp_config"].(map[string]any)
		server["entry_point"], config["command"] = name, "${__dirname}/"+name
		config["args"] = config["args"].([]any)[1:]
	} else {
		paths = append(paths, "packaging/mcpb/launch.sh")
	}
	files, err := readFiles("", paths...)
	if err != nil {
		return err
	}
	archive, err := zipped(r.when, append(files, file{name: "manifest.json", mode: 0o644, text: indented(m)}, binary))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, r.bundleName(p)), archive, 0o644)
}

func (r *release) bundleName(p program) string {
	return fmt.Sprintf("mcp-funnel_%s_%s_%s.mcpb", r.version, p.GOOS, strings.Replace(p.GOARCH, "all", "universal", 1))
}

// offered returns the tools and prompts of a program in the form of a manifest, where an argument of a prompt's text is
// ${arguments.NAME}.
func offered(program string) (tools, prompts []map[string]any, err error) {
	type named struct {
		Name, Description string
		Arguments         []struct{ Name string }
		Messages          []struct{ Content struct{ Text string } }
	}
	var list struct{ Tools, Prompts []named }
	if err := ask(program, &list, `"tools/list"`, `"prompts/list"`); err != nil {
		return nil, nil, err
	}
	for _, t := range list.Tools {
		if parts := strings.Split(t.Description, "; "); t.Name == "run" && len(parts) == 3 {
			t.Description = parts[0] + "; " + parts[2] // without the interpreters of this machine
		}
		tools = append(tools, map[string]any{"name": t.Name, "description": t.Description})
	}
	for _, p := range list.Prompts {
		names, values := []string{}, map[string]string{}
		for _, a := range p.Arguments {
			names, values[a.Name] = append(names, a.Name), "${arguments."+a.Name+"}"
		}
		var got named
		params := indented(map[string]any{"name": p.Name, "arguments": values})
		if err := ask(program, &got, `"prompts/get","params":`+strings.Join(strings.Fields(string(params)), " ")); err != nil {
			return nil, nil, err
		}
		prompts = append(prompts, map[string]any{
			"name": p.Name, "description": p.Description, "arguments": names, "text": got.Messages[0].Content.Text,
		})
	}
	return tools, prompts, nil
}

// ask starts a program as a bundle does, sends requests, and fills result with what it answers.
func ask(program string, result any, requests ...string) error {
	store, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	in := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"release","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	for i, request := range requests {
		in += fmt.Sprintf("\n{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":%s}", i+1, request)
	}
	c := exec.Command(program, "serve", "packaging")
	c.Env = append(os.Environ(), "MCP_FUNNEL_TOOLSETS=core,shell", "MCP_FUNNEL_STORE="+store)
	c.Stdin, c.Stderr = strings.NewReader(in+"\n"), os.Stderr
	out, err := c.Output()
	if err != nil {
		return err
	}
	answers := 0
	for line := range bytes.Lines(out) {
		var m struct {
			ID     int
			Result json.RawMessage
		}
		if err := json.Unmarshal(line, &m); err != nil || m.ID == 0 {
			continue
		}
		answers++
		if err := json.Unmarshal(m.Result, result); err != nil {
			return fmt.Errorf("%s answers %s", program, line)
		}
	}
	if answers != len(requests) {
		return fmt.Errorf("%s answers %d of %d requests", program, answers, len(requests))
	}
	return nil
}
