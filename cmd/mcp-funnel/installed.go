package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
)

// channel is a way in which this program is installed.
type channel struct {
	path   string // a part of the program's path, with slashes, that only this channel has
	file   string // a file that exists only where this channel installed the program
	name   string
	update string
}

// channels are tried in this order.
var channels = []channel{
	{path: "/_npx/", name: "npx", update: "npx mcp-funnel@latest"},
	{path: "/node_modules/", name: "npm", update: "npm install -g mcp-funnel@latest, or update it in the project"},
	{path: "/Claude Extensions/", name: "a bundle (.mcpb)", update: "open the bundle of the next release"},
	{path: "/Caskroom/", name: "Homebrew", update: "brew upgrade --cask mcp-funnel"},
	{path: "/scoop/apps/", name: "Scoop", update: "scoop update mcp-funnel"},
	{path: "/WinGet/", name: "winget", update: "winget upgrade mcp-funnel"},
	{path: "/usr/bin/", file: "/var/lib/dpkg/info/mcp-funnel.list", name: "a .deb package",
		update: "apt install ./mcp-funnel_VERSION_linux_ARCH.deb of the next release"},
	{path: "/usr/bin/", file: "/var/lib/pacman/local", name: "a package of Arch", update: "the way AUR packages are"},
	{path: "/usr/bin/", file: "/lib/apk/db/installed", name: "an .apk package",
		update: "apk add --allow-untrusted FILE of the next release"},
	{path: "/usr/bin/", name: "an .rpm package", update: "rpm -U FILE of the next release"},
	{path: "/mcp-funnel", file: "/etc/mcp-funnel.container", name: "a container image", update: "pull the next image"},
}

// installed returns how this copy was installed and how it is updated. Nothing asks whether there is a newer one.
func installed(*cli.Settings) []finding {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return []finding{weak("installed", "unknown: "+err.Error())}
	}
	c := channelOf(filepath.ToSlash(program), func(file string) bool { _, err := os.Stat(file); return err == nil })
	return []finding{{what: "installed", text: program + ", version " + versionText() + ", by " + c.name +
		"; to update: " + c.update}}
}

// channelOf returns the channel that installed a program, by its path and by which files exist.
func channelOf(program string, exists func(string) bool) channel {
	for _, c := range channels {
		if strings.Contains(program, c.path) && (c.file == "" || exists(c.file)) {
			return c
		}
	}
	b, ok := debug.ReadBuildInfo()
	switch {
	case ok && b.Main.Sum != "": // of a module that go downloaded
		return channel{name: "go install", update: "go install " + b.Path + "@latest"}
	case ok && slices.ContainsFunc(b.Settings, func(s debug.BuildSetting) bool { return s.Key == "-trimpath" }):
		return channel{name: "an archive", update: "replace it by that of the next release"}
	}
	return channel{name: "go build", update: "git pull, then build it again"}
}
