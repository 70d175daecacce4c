package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"

	"github.com/alecthomas/kong"
)

type version struct{}

func (version) Run(w *cli.Streams) error {
	_, err := fmt.Fprintln(w.Out, versionLine())
	return err
}

// versionFlag is --version.
type versionFlag bool

// BeforeReset prints the version and exits; kong calls it if the flag is given, whatever else is on the command line.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	if _, err := fmt.Fprintln(app.Stdout, versionLine()); err != nil {
		return err
	}
	app.Exit(done)
	return nil
}

func versionLine() string {
	return fmt.Sprintf("mcp-funnel %s (%s, %s/%s)", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// versionText returns the module's version or the commit of a checkout, as recorded by the build, so that it is
// right after `go install` too.
func versionText() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(b.Main.Version, "unknown")
}
