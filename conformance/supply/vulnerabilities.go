package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// The Go vulnerability database is files: index/modules.json names the entries of each module, ID/… are the
// entries, in OSV's form. A directory that holds a copy serves as well as its address.

// maxFile bounds one file of the database, in bytes.
const maxFile = 64 << 20

// vulnerabilities are the entries of the database that name a version of a part. Whether what they are about is
// called is not asked. Without a database the error is errNotChecked.
func vulnerabilities(base string, parts []part) (found []string, err error) {
	get, err := database(base)
	if err != nil {
		return nil, err
	}
	var modules []struct {
		Path  string
		Vulns []struct{ ID string }
	}
	if err := get("index/modules.json", &modules); err != nil {
		return nil, fmt.Errorf("%w: no database at %s: %w (VULN_DB names another, or a directory with a copy)", errNotChecked, base, err)
	}
	if len(modules) == 0 {
		return nil, fmt.Errorf("%w: the database at %s is empty", errNotChecked, base)
	}
	for _, m := range modules {
		at := slices.IndexFunc(parts, func(p part) bool { return p.Path == m.Path })
		if at < 0 {
			continue
		}
		for _, v := range m.Vulns {
			var e entry
			if err := get(path.Join("ID", path.Base(v.ID)+".json"), &e); err != nil {
				return nil, fmt.Errorf("%w: entry %s: %w", errNotChecked, v.ID, err)
			}
			if e.names(parts[at]) {
				found = append(found, fmt.Sprintf("%s %s: %s (%s) %s", parts[at].Path, parts[at].Version, e.ID, strings.Join(e.Aliases, ", "), e.Summary))
			}
		}
	}
	return found, nil
}

// entry is what is read of one.
type entry struct {
	ID, Summary, Withdrawn string
	Aliases                []string
	Affected               []struct {
		Package struct{ Name string }
		Ranges  []struct {
			Type   string
			Events []struct{ Introduced, Fixed string }
		}
	}
}

// names says that a part's version is one of those affected: after an introduction, and before what mended it.
func (e entry) names(p part) bool {
	if e.Withdrawn != "" {
		return false
	}
	for _, a := range e.Affected {
		if a.Package.Name != p.Path {
			continue
		}
		if len(a.Ranges) == 0 { // all of them
			return true
		}
		for _, r := range a.Ranges {
			if r.Type != "SEMVER" {
				continue
			}
			hit := false
			for _, event := range r.Events { // in ascending order
				switch {
				case event.Introduced != "" && (event.Introduced == "0" || compare(p.Version, event.Introduced) >= 0):
					hit = true
				case event.Fixed != "" && compare(p.Version, event.Fixed) >= 0:
					hit = false
				}
			}
			if hit {
				return true
			}
		}
	}
	return false
}

// database returns how a file of it is read.
func database(base string) (get func(name string, into any) error, err error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	decode := func(r io.ReadCloser, into any) error {
		defer func() { _ = r.Close() }()
		return json.NewDecoder(io.LimitReader(r, maxFile)).Decode(into)
	}
	if u.Scheme == "https" || u.Scheme == "http" {
		client := &http.Client{Timeout: 30 * time.Second}
		return func(name string, into any) error {
			answer, err := client.Get(u.JoinPath(name).String()) //nolint:noctx // bounded by the client's time-out
			if err != nil {
				return err
			}
			if answer.StatusCode != http.StatusOK {
				_ = answer.Body.Close()
				return fmt.Errorf("%s: %s", name, answer.Status)
			}
			return decode(answer.Body, into)
		}, nil
	}
	dir := os.DirFS(strings.TrimPrefix(base, "file://"))
	return func(name string, into any) error {
		var f fs.File
		if f, err = dir.Open(name); err != nil {
			return err
		}
		return decode(f, into)
	}, nil
}
