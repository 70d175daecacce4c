package investigate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-funnel/mcp-funnel/text/content"
	"github.com/mcp-funnel/mcp-funnel/tools/investigate/entries"
	"github.com/mcp-funnel/mcp-funnel/tools/source"
)

// Place returns the place inv: of an identity. inv:ID is NDJSON, one entry a line with its kind (survey, plan, dir,
// file, flag, report); inv:ID/PATH is one entry, and inv:ID/report the report as text.
func (i *Investigator) Place(identity string) source.NamedPlace {
	return source.Texts(entries.Prefix, notes{i, identity})
}

// notes makes the texts of the place inv:.
type notes struct {
	i        *Investigator
	identity string
}

var errNoStore = errors.New("investigations are kept in the store, and no store could be opened: choose one with --store")

// Texts implements [source.TextProvider].
func (n notes) Texts(context.Context) ([]source.Text, error) {
	if n.i.store == nil {
		return nil, errNoStore
	}
	all, err := n.i.store.List(n.identity)
	if err != nil {
		return nil, err
	}
	var texts []source.Text
	for _, m := range all {
		if inv, err := n.i.store.Peek(n.identity, m.ID); err == nil { // else it was removed meanwhile
			text, _, err := textOf(inv, "")
			if err != nil {
				return nil, fmt.Errorf("%s%s: %w", entries.Prefix, m.ID, err)
			}
			texts = append(texts, source.Text{Path: m.ID, Size: int64(len(text)), Modified: m.LastUsed})
		}
	}
	return texts, nil
}

// Text implements [source.TextProvider].
func (n notes) Text(_ context.Context, at string) ([]byte, time.Time, error) {
	id, rest, _ := strings.Cut(at, "/")
	name := entries.Prefix + content.ClipBytes(at, 200)
	if n.i.store == nil {
		return nil, time.Time{}, errNoStore
	}
	inv, err := n.i.store.Get(n.identity, id)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%s: %w, or expired; find path=inv: lists those there are", name, err)
	}
	text, modified, err := textOf(inv, rest)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return text, modified, err
}

// textOf returns what an investigation keeps of a path: everything of "", the report of "report".
func textOf(inv *entries.Investigation, at string) ([]byte, time.Time, error) {
	unlock, err := inv.Lock()
	if err != nil {
		return nil, time.Time{}, err
	}
	defer unlock()
	m, err := inv.Meta()
	if err != nil {
		return nil, time.Time{}, err
	}
	if at == "report" {
		var r Report
		if ok, err := inv.Read(entries.ShownName, &r); err != nil || !ok {
			return nil, time.Time{}, fmt.Errorf("no report was shown yet: investigate path=%s%s show=report makes it",
				entries.Prefix, m.ID)
		}
		return []byte(r.Text()), r.At, nil
	}
	var b bytes.Buffer
	err = each(inv, func(kind, path string, v any) error {
		if at != "" && path != strings.TrimSuffix(at, "/") {
			return nil
		}
		raw, err := content.PlainJSON(v) // search finds < and > as they are
		if err == nil {
			fmt.Fprintf(&b, "{\"kind\":%q,%s\n", kind, raw[1:])
		}
		return err
	})
	if err == nil && b.Len() == 0 && at != "" {
		err = fmt.Errorf("no entry of that path; search path=%s%s pattern=… looks into all", entries.Prefix, m.ID)
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	return b.Bytes(), m.LastUsed, nil
}

// each calls visit for the entries of an investigation, directories and files by path.
func each(inv *entries.Investigation, visit func(kind, path string, v any) error) error {
	for _, one := range []struct{ kind, file string }{
		{"survey", entries.SurveyName}, {"plan", entries.PlanName}, {"report", entries.ReportName},
	} {
		var v map[string]any
		ok, err := inv.Read(one.file, &v)
		if err == nil && ok && len(v) > 0 {
			err = visit(one.kind, one.kind+".json", v)
		}
		if err != nil {
			return err
		}
	}
	dirs, _, err := inv.Dirs()
	for _, d := range sorted(dirs) {
		err = cmp.Or(err, visit("dir", d, dirs[d]))
	}
	files, _, filesErr := inv.Files()
	for _, f := range sorted(files) {
		err = cmp.Or(err, visit("file", f, files[f]))
	}
	flags, flagsErr := inv.Flags()
	for _, f := range flags {
		err = cmp.Or(err, visit("flag", f.Path, f))
	}
	return cmp.Or(err, filesErr, flagsErr)
}

func sorted[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }
