package main

import (
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
)

// channel is a way in which this program is installed.
type channel struct {
	path      string // a part of the program's path, with slashes, that only this channel has
	file      string // exists only if this channel installed the program; a relative name is in the program's directory
	name      string
	update    string
	transient bool // the path is that of one version: the next update removes it
}

// channels are tried in this order.
var channels = []channel{
	{path: "/_npx/", name: "npx", update: "npx -y mcp-funnel@latest", transient: true},
	{path: "/node_modules/", name: "an npm package",
		update: "as it was installed: npm install -g mcp-funnel@latest, or with pnpm, bun or Yarn"},
	{path: "/mcp-funnel", file: "manifest.json", name: "a bundle (.mcpb)", update: "open the bundle of the next release"},
	{path: "/Caskroom/", name: "Homebrew", update: "brew upgrade --cask mcp-funnel", transient: true},
	{path: "/scoop/apps/", name: "Scoop", update: "scoop update mcp-funnel"},
	{path: "/WinGet/", name: "winget", update: "winget upgrade mcp-funnel"},
	{path: "/usr/bin/", file: "/var/lib/dpkg/info/mcp-funnel.list", name: "a .deb package",
		update: "apt install ./mcp-funnel_VERSION_linux_ARCH.deb of the next release"},
	{path: "/usr/bin/", file: "/var/lib/pacman/local", name: "a package of Arch", update: "the way AUR packages are"},
	{path: "/usr/bin/", file: "/lib/apk/db/installed", name: "an .apk package",
		update: "apk add --allow-untrusted FILE of the next release"},
	{path: "/usr/bin/", file: "/usr/lib/rpm", name: "an .rpm package", update: "rpm -U FILE of the next release"},
	{path: "/mcp-funnel", file: "/etc/mcp-funnel.container", name: "a container image", update: "pull the next image"},
	{path: "/mcp-funnel", file: "completions", name: "an archive", update: "replace it by that of the next release"},
}

// installed returns how this copy was installed and how it is updated. Nothing asks whether there is a newer one.
func installed(*cli.Settings) []finding {
	program, c, err := ownChannel()
	if err != nil {
		return []finding{weak("installed", "unknown: "+err.Error())}
	}
	return []finding{{what: "installed", text: program + ", version " + versionText() + ", by " + c.name +
		"; to update: " + c.update}}
}

// ownChannel returns where this program is, without links, and the channel that installed it.
func ownChannel() (program string, c channel, err error) {
	if program, err = os.Executable(); err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	exists := func(file string) bool {
		_, err := os.Stat(file)
		return err == nil
	}
	return program, channelOf(filepath.ToSlash(program), exists), err
}

// channelOf returns the channel that installed a program, by its path and by which files exist.
func channelOf(program string, exists func(string) bool) channel {
	for _, c := range channels {
		file := c.file
		if file != "" && file[0] != '/' {
			file = path.Join(path.Dir(program), file)
		}
		if strings.Contains(program, c.path) && (file == "" || exists(file)) {
			return c
		}
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Sum != "" { // of a module that go downloaded
		return channel{name: "go install", update: "go install " + b.Path + "@latest"}
	}
	return channel{name: "hand", update: "build it again, or take that of the next release"}
}
