package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

type version struct{}

func (version) Run(w *streams) error {
	_, err := fmt.Fprintf(w.out, "mcp-funnel %s (%s, %s/%s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
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
