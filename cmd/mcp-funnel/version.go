package main

import (
	"cmp"
	_ "embed" // what an archive is made from
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/text/content"

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
// right after `go install` too; else that of the source archive.
func versionText() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return cmp.Or(archivedVersion(archived), "(devel)")
}

// archived is filled in by git archive: the last tag, the hash of the commit and its time.
//
//go:embed archived.txt
var archived string

// archivedVersion returns the version of a source archive in the form of go's: the tag, what git describe says of a
// commit after one, or v0.0.0-TIME-HASH without a tag; "" in a checkout, where archived.txt is not filled in. git before
// 2.35 does not fill in the first line.
func archivedVersion(text string) string {
	found := archivedForm().FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	at, err := time.Parse(time.RFC3339, found[3])
	if err != nil {
		return ""
	}
	return cmp.Or(found[1], "v0.0.0-"+at.UTC().Format("20060102150405")+"-"+found[2])
}

var archivedForm = content.Pattern(`^(?:(v\d[\w.+-]{0,60})|[^\n]{0,60})\n([0-9a-f]{12})[0-9a-f]{0,52}\n(\S{1,40})\n$`)
