package main

import (
	"os"
	"path/filepath"
)

// npm writes the package that people install, and one with the program for each system, which that one names as
// optional: npm installs the one whose os and cpu are those of the machine.
func (r *release) npm() error {
	about, err := readJSON("packaging/npm/package.json")
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(r.dist, "npm"), 0o755); err != nil {
		return err
	}
	platforms := map[string]any{}
	for _, p := range r.programs {
		if p.GOARCH == "all" { // macOS has a package for each processor
			continue
		}
		system, cpu := systems.Replace(p.GOOS), systems.Replace(p.GOARCH)
		name := "mcp-funnel-" + system + "-" + cpu
		platforms[name] = r.version
		binary, err := programFile("package/mcp-funnel"+filepath.Ext(p.Path), p.Path)
		if err != nil {
			return err
		}
		err = r.pack(map[string]any{
			"name": name, "version": r.version, "os": []string{system}, "cpu": []string{cpu},
			"description": "The program of mcp-funnel for " + system + " on " + cpu + ".",
			"license":     about["license"], "repository": about["repository"], "homepage": about["homepage"],
			"preferUnplugged": true, // Yarn PnP cannot start a program in a zip
		}, []file{binary}, "LICENSE", "NOTICES.md")
		if err != nil {
			return err
		}
	}
	about["version"], about["optionalDependencies"] = r.version, platforms
	return r.pack(about, nil, "packaging/npm/mcp-funnel.js", "packaging/npm/README.md", "LICENSE")
}

// pack writes a package as npm publish takes it.
func (r *release) pack(about map[string]any, files []file, paths ...string) error {
	more, err := readFiles("package/", paths...)
	if err != nil {
		return err
	}
	files = append(files, file{name: "package/package.json", mode: 0o644, text: indented(about)})
	archive, err := tgz(r.when, append(files, more...))
	if err != nil {
		return err
	}
	name := about["name"].(string) + "-" + r.version + ".tgz"
	return os.WriteFile(filepath.Join(r.dist, "npm", name), archive, 0o644)
}
