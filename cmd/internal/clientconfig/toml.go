package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// In TOML the lines of a server's table, [mcp_servers.NAME], are found by patterns. They miss what is written in
// another way, and could be misled by a text of several lines; so apply compares all that was decoded before and after.
const (
	tomlString = `(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')`
	tomlName   = `(?:%s|"%[1]s"|'%[1]s')`
)

var (
	tomlCommand = regexp.MustCompile(`(?m)^[ \t]*command[ \t]*=[ \t]*(` + tomlString + `)`)
	tomlArgs    = regexp.MustCompile(`(?m)^[ \t]*args[ \t]*=[ \t]*\[((?:[^\]"']|` + tomlString + `)*)\]`)
	tomlWord    = regexp.MustCompile(tomlString)
	tomlHeader  = regexp.MustCompile(`(?m)^[ \t]*\[`)
)

func (d *document) parseTOML() error {
	err := toml.Unmarshal(d.src, &d.value)
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, column := at.Position()
		return fmt.Errorf("line %d, column %d: %s", line, column, strings.TrimPrefix(at.Error(), "toml: "))
	}
	if _, ok := d.value[d.keys[0]].(map[string]any); !ok && d.value[d.keys[0]] != nil {
		return fmt.Errorf("%s is no table", d.keys[0])
	}
	return err
}

// table returns where the table of a server begins and ends, with its header; with sub, a table within it. The comments
// before the next header belong to that.
func (d *document) table(name, sub string) (start, end int) {
	name = fmt.Sprintf(tomlName, regexp.QuoteMeta(name))
	header := regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*` + d.keys[0] + `[ \t]*\.[ \t]*` + name + sub + `[ \t]*\].*$`)
	at := header.FindIndex(d.src)
	if at == nil {
		return 0, 0
	}
	end = len(d.src)
	if next := tomlHeader.FindIndex(d.src[at[1]:]); next != nil {
		end = at[1] + next[0]
	}
	for end > at[1] {
		line := bytes.LastIndexByte(d.src[:end-1], '\n') + 1
		if row := bytes.TrimSpace(d.src[line:end]); len(row) > 0 && row[0] != '#' {
			break
		}
		end = line
	}
	return at[0], end
}

// block returns the table of a server.
func (c *Client) block(argv []string, nl string) string {
	return "[" + c.keys[0] + "." + ServerName + "]" + nl + "command = " + quoted(argv[:1]) + nl +
		"args = [" + quoted(argv[1:]) + "]" + nl
}

// putTOML adds the table of our server at the end.
func (d *document) putTOML(argv []string) {
	nl := lineEnd(d.src)
	if len(d.src) > 0 && !bytes.HasSuffix(d.src, []byte("\n")) {
		d.src = append(d.src, nl...)
	}
	if len(d.src) > 0 {
		d.src = append(d.src, nl...)
	}
	d.src = append(d.src, d.client.block(argv, nl)...)
}

// editTOML puts words in place of the first n of a command and its arguments. The others keep their spelling.
func (d *document) editTOML(name string, n int, words []string) {
	from, to := d.table(name, "")
	table := string(d.src[from:to])
	command, args := tomlCommand.FindStringSubmatchIndex(table), tomlArgs.FindStringSubmatchIndex(table)
	if command == nil {
		return // apply finds that nothing has changed
	}
	if args == nil {
		line := strings.LastIndexByte(table[:command[2]], '\n') + 1
		table = table[:line] + "args = []" + lineEnd(d.src) + table[line:]
		command, args = tomlCommand.FindStringSubmatchIndex(table), tomlArgs.FindStringSubmatchIndex(table)
	}
	list := table[args[2]:args[3]]
	places := tomlWord.FindAllStringIndex(list, -1)
	old, all := []string{table[command[2]:command[3]]}, []string(nil)
	for _, p := range places {
		old = append(old, list[p[0]:p[1]])
	}
	for _, w := range words {
		all = append(all, quoted([]string{w}))
	}
	if n > len(old) || n == len(old) && len(all) == 0 {
		return // the patterns are misled
	}
	all = append(all, old[n:]...)
	kept := min(len(all)-1, len(old)-max(n, 1)) // arguments that stay where they are
	text, begin, end := strings.Join(all[1:len(all)-kept], ", "), 0, 0
	if len(places) > 0 {
		begin, end = places[0][0], places[len(places)-1][1]
	}
	if kept > 0 {
		if end = places[len(places)-kept][0]; text != "" {
			text += ", "
		}
	}
	table = table[:args[2]+begin] + text + table[args[2]+end:]
	command = tomlCommand.FindStringSubmatchIndex(table) // it may have moved
	table = table[:command[2]] + all[0] + table[command[3]:]
	d.src = slices.Concat(d.src[:from], []byte(table), d.src[to:])
}

// removeTOML removes the table of a server and those within it, with the empty line before each.
func (d *document) removeTOML(name string) {
	for _, sub := range []string{"", `[ \t]*\.[^\]]*`} {
		for {
			from, to := d.table(name, sub)
			if from == to {
				break
			}
			nl := []byte(lineEnd(d.src))
			if bytes.HasSuffix(d.src[:from], slices.Concat(nl, nl)) {
				from -= len(nl)
			}
			d.src = slices.Concat(d.src[:from], d.src[to:])
		}
	}
}
