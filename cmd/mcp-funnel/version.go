package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

type version struct{}

func (version) Run(w *streams) error {
	_, err := fmt.Fprintln(w.out, versionLine())
	return err
}

// versionFlag is --version, which many try first.
type versionFlag bool

// BeforeReset is called by kong where the flag is given, whatever else is on the line.
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

// versionText comes from the build itself, so that `go install` knows it: the
// module's version, or the commit of a checkout.
func versionText() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return cmp.Or(b.Main.Version, "unknown")
}
