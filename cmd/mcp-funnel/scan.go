package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mcp-funnel/mcp-funnel/cmd/internal/cli"
	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate"
)

type scanCmd struct {
	Path string `arg:"" optional:"" help:"Directory: below a root where --root is given; the first root by default."`
	All  bool   `env:"-" help:"Hidden and ignored entries too, and node_modules, __pycache__, virtual environments and *.egg-info. .git is never entered."`
	JSON bool   `env:"-" name:"json" help:"Print the figures as JSON."`
}

func (c *scanCmd) Help() string {
	return `Looks at each file once: kind, language, lines, size and age. No model takes part.

Examples:

  mcp-funnel scan
  mcp-funnel scan src --json | jq '.largest[:3]'`
}

// Run prints what a scan found.
func (c *scanCmd) Run(ctx context.Context, s *cli.Settings, w *cli.Streams) error {
	dir := s.GrantNamed(c.Path)
	return cli.Do(ctx, s, w, "scan", func(ctx context.Context, app *cli.App, bar *cli.Bar) error {
		r, err := app.Investigator.Scan(ctx, app.Caller(), dir, c.All, bar.Progress)
		if err != nil {
			return err
		}
		bar.End()
		return show(w, c.JSON, r, func() string { return scanText(r) })
	})
}

// scanText is the report for a person.
func scanText(r investigate.ScanReport) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s, %s lines, %s bytes (%s on the disk), about %s tokens of text\n", r.Target,
		content.Plural(r.Files, "file", "files"), thousands(r.Lines), thousands(r.Bytes), thousands(r.DiskBytes),
		thousands(r.Tokens))
	for _, t := range []struct {
		title string
		count map[string]int64
	}{{"categories (files)", r.Categories}, {"languages (lines)", r.Languages}, {"kinds (files)", r.MIME}} {
		names := slices.SortedFunc(maps.Keys(t.count), func(a, b string) int {
			return cmp.Or(cmp.Compare(t.count[b], t.count[a]), cmp.Compare(a, b))
		})
		fmt.Fprintf(&b, "\n%s:\n", t.title)
		const most = 12
		for _, name := range names[:min(len(names), most)] {
			fmt.Fprintf(&b, "  %12s  %s\n", thousands(t.count[name]), name)
		}
		if more := len(names) - most; more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	treeText(&b, r)
	b.WriteString("\nlargest:\n")
	for _, f := range r.Largest[:min(len(r.Largest), 10)] {
		fmt.Fprintf(&b, "  %12s  %s\n", thousands(f.Bytes), content.VisibleLine(f.Path))
	}
	b.WriteString("\nchanged last:\n")
	for _, f := range r.Recent[:min(len(r.Recent), 10)] {
		fmt.Fprintf(&b, "  %s  %s\n", f.Modified.Format("2006-01-02 15:04"), content.VisibleLine(f.Path))
	}
	if len(r.Skipped) > 0 {
		b.WriteString("\nskipped (--all looks at them too):\n")
	}
	for i, k := range r.Skipped {
		if i == 20 {
			fmt.Fprintf(&b, "  and %d more\n", len(r.Skipped)-i)
			break
		}
		files := "not counted"
		if k.Files >= 0 {
			files = content.Plural(k.Files, "file", "files")
		}
		fmt.Fprintf(&b, "  %s: %s, %s\n", content.VisibleLine(k.Path), k.Why, files)
	}
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "not read: %s\n", content.VisibleLine(e))
	}
	return b.String()
}

// treeText writes the directories that take most of the disk, with all that is below each, as a tree.
func treeText(b *strings.Builder, r investigate.ScanReport) {
	const most = 40
	disk := func(i, j int) int { return cmp.Compare(r.Directories[j].DiskBytes, r.Directories[i].DiskBytes) }
	order := make([]int, len(r.Directories)) // by size; a directory comes before those in it
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, disk)
	largest := order[:min(most, len(order))]
	slices.Sort(largest)
	b.WriteString("\ndirectories (files, bytes, on the disk):\n")
	for _, i := range largest {
		d := r.Directories[i]
		depth := 0
		if d.Path != "." {
			depth = 1 + strings.Count(d.Path, "/")
		}
		fmt.Fprintf(b, "  %8s %14s %14s  %s%s\n", thousands(d.Files), thousands(d.Bytes), thousands(d.DiskBytes),
			strings.Repeat("  ", depth), content.VisibleLine(path.Base(d.Path)))
	}
	if more := len(order) - most; more > 0 {
		fmt.Fprintf(b, "  and %d smaller ones (--json has all)\n", more)
	}
}

// thousands writes a number with blanks between thousands.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
