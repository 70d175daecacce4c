package main

import (
	"os"
	"path/filepath"
)

// registry writes dist/server.json, the entry of the MCP registry: where each package is, and how it is started.
func (r *release) registry() error {
	entry, err := readJSON("packaging/registry/server.json")
	if err != nil {
		return err
	}
	stdio := map[string]any{"type": "stdio"}
	// After --, no name of a directory is taken as a flag.
	serve := []any{map[string]any{"type": "positional", "value": "serve"}, map[string]any{"type": "positional", "value": "--"}}
	dirs := map[string]any{
		"type": "positional", "valueHint": "directory", "format": "filepath", "isRepeated": true, "isRequired": false,
		"description": "Directories that the tools may read; without one, none",
	}
	packages := []any{map[string]any{
		"registryType": "npm", "identifier": "mcp-funnel", "version": r.version, "runtimeHint": "npx",
		"transport": stdio, "packageArguments": append(serve, dirs),
	}}
	for _, p := range r.programs {
		name := r.bundleName(p)
		sum, err := sha256Of(filepath.Join(r.dist, name))
		if os.IsNotExist(err) { // macOS has one for both processors
			continue
		}
		if err != nil {
			return err
		}
		packages = append(packages, map[string]any{
			"registryType": "mcpb", "identifier": project + "/releases/download/v" + r.version + "/" + name,
			"fileSha256": sum, "transport": stdio,
		})
	}
	entry["version"] = r.version
	entry["packages"] = append(packages, map[string]any{
		"registryType": "oci", "identifier": image + ":" + r.version, "runtimeHint": "docker", "transport": stdio,
		"runtimeArguments": []any{map[string]any{
			"type": "named", "name": "--mount", "isRequired": true,
			"value":       `type=bind,"source={directory}",target=/data,readonly`, // Docker reads it as CSV
			"description": `The directory whose files the tools may read; its path must have no "`,
			"variables":   map[string]any{"directory": map[string]any{"format": "filepath", "isRequired": true}},
		}},
		"packageArguments": append(serve, map[string]any{"type": "positional", "value": "/data"}),
	})
	return os.WriteFile(filepath.Join(r.dist, "server.json"), indented(entry), 0o644)
}
