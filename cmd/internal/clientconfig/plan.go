package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Change is what a user asks for.
type Change struct {
	Self         string   // absolute path of this program
	Args         []string // for the server; the hook gets the settings in it, too
	Server, Hook bool     // add these, or remove them
	Wrap         []string // names of servers, or "all"
	Remove       bool
}

// Plan is what a change makes of a file.
type Plan struct {
	After   []byte // nil: there is no file
	Changed bool
	Notes   []string

	keep, drop bool // the backup, instead of writing a new one
}

// Plan works out a change of a file. A text that is nil is that of a missing file.
//
// If the backup and what is ours make the file as it is, nothing else has changed since. Then the result is made from
// the backup, so that removing gives back the bytes that were there. Else the file itself is edited.
func (c *Client) Plan(current, backup []byte, ch Change) (p Plan, err error) {
	p.After = current
	if !utf8.ValidString(strings.Join(append(ch.Args, ch.Self), "")) {
		return p, errors.New("a path that is not UTF-8 cannot be written into a configuration")
	}
	d, err := c.parse(current)
	if err != nil {
		return p, err
	}
	mine := d.ours(ch.Self)
	wanted, err := d.operations(mine, ch, &p)
	if p.Changed = len(wanted) > 0; err != nil || !p.Changed {
		return p, err
	}
	untouched := false
	if before, err := c.parse(backup); err == nil && len(mine) > 0 && len(before.ours(ch.Self)) == 0 {
		again, err := c.apply(backup, mine)
		untouched = err == nil && bytes.Equal(again, current)
	}
	if !untouched {
		p.After, err = c.apply(current, wanted)
		return p, err
	}
	mine = slices.DeleteFunc(mine, func(o operation) bool {
		return slices.ContainsFunc(wanted, func(w operation) bool {
			return w.name == o.name && (w.name != "" || sameHook(w.words[0], o.words[0]))
		})
	})
	for _, o := range wanted {
		if o.n = min(o.n, 0); o.name == ServerName && o.n == 0 {
			o.n = toAdd // it was another one
		}
		if o.n != toRemove && len(o.words) > 0 {
			mine = append(mine, o)
		}
	}
	if p.After, p.keep, p.drop = backup, backup != nil, backup != nil && len(mine) == 0; len(mine) > 0 {
		p.After, err = c.apply(backup, mine)
	}
	return p, err
}

// operations returns those that a change needs.
func (d *document) operations(mine []operation, ch Change, p *Plan) (all []operation, err error) {
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	argv, own := d.argv(), append([]string{ch.Self}, ch.Args...)
	names := slices.Sorted(maps.Keys(argv))
	if words, there := argv[ServerName]; ch.Server {
		switch ours := len(words) > 0 && isOwn(words[0], ch.Self) && wrapped(words, ch.Self) == 0; {
		case !there && !ch.Remove:
			all = append(all, operation{ServerName, toAdd, own})
		case !there:
		case !ours:
			return nil, fmt.Errorf("the server %q in it is another program; rename or remove that first", ServerName)
		case ch.Remove:
			all = append(all, operation{ServerName, toRemove, nil})
		case !slices.Equal(words, own):
			all = append(all, operation{ServerName, len(words), own})
		}
	}
	var missing []string // commands of hooks
	if ch.Hook && !ch.Remove {
		missing = []string{hookLine(ch.Self, ch.Args, toolHook), hookLine(ch.Self, ch.Args, startHook)}
	}
	for _, o := range mine {
		at := slices.IndexFunc(missing, func(line string) bool {
			return o.name == "" && sameHook(line, o.words[0]) &&
				(o.words[0] == line || len(ch.Args) == 0 && isConfigured(o.words[0], ch.Self))
		})
		switch {
		case at >= 0:
			missing = slices.Delete(missing, at, at+1)
		case o.name == "" && ch.Hook: // also that of another place, which is replaced
			all = append(all, operation{"", toRemove, o.words})
		case o.n == 0 && ch.Server && ch.Remove:
			note("%s is still wrapped; --remove --wrap %[1]s takes that out", o.name)
		}
	}
	for _, line := range missing {
		all = append(all, operation{"", toAdd, []string{line}})
	}
	for _, name := range ch.Wrap {
		_, there := argv[name]
		switch dirs := d.local(name); {
		case len(dirs) > 0 && name == "all":
			note("not looked at: the servers in the local scope of %s; --scope local, in such a directory, wraps them",
				strings.Join(dirs[:min(len(dirs), 3)], ", "))
		case len(dirs) > 0 && !there:
			return nil, fmt.Errorf("the server %q is in the local scope of %s: --scope local, in that directory, wraps it",
				name, strings.Join(dirs[:min(len(dirs), 3)], ", "))
		}
		if !there && name != "all" {
			return nil, fmt.Errorf("there is no server %q to wrap; there are: %s", name, strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		named, n := slices.Contains(ch.Wrap, name), wrapped(argv[name], ch.Self)
		switch {
		case !named && !slices.Contains(ch.Wrap, "all"):
		case ch.Remove && n > 0:
			all = append(all, operation{name, n, nil})
		case ch.Remove && named:
			note("%s is not wrapped", name)
		case ch.Remove || n > 0:
		case len(argv[name]) == 0:
			note("%s is not wrapped: it has a URL, or another form than a command with arguments", name)
		case below(d.value, append(slices.Clone(d.keys), name, "envFile")...) != nil:
			note("%s is not wrapped: it has an envFile, whose variables a wrapped server gets only by name (--env)", name)
		case !isOwn(argv[name][0], ch.Self):
			all = append(all, operation{name, 0, d.wrapping(name, ch.Self)})
		case named:
			note("%s is this server itself and is not wrapped", name)
		}
	}
	return all, nil
}

// local returns the directories that have a server of a name, or any for "all", in the local scope of claude-code. A
// document of that scope has none.
func (d *document) local(name string) (dirs []string) {
	if d.client.Name != claudeCode || d.keys[0] == localKey {
		return nil
	}
	projects, _ := d.value[localKey].(map[string]any)
	for _, dir := range slices.Sorted(maps.Keys(projects)) {
		servers, _ := below(projects[dir], "mcpServers").(map[string]any)
		if _, there := servers[name]; there || name == "all" && len(servers) > 0 {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// Block returns what a change without Wrap writes into an empty configuration.
func (c *Client) Block(ch Change) (string, error) {
	p, err := c.Plan(nil, nil, ch)
	return string(p.After), err
}
