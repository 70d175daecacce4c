// Package supply is a command that reports the parts of a binary: its modules, their licences, those with known
// vulnerabilities, and a bill of materials.
//
// It downloads no module and changes no version: it reports problems, and a person decides. govulncheck, pinned in
// scripts/lint, finds the vulnerabilities.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const help = `usage: supply COMMAND BINARY

  licences         every module has a licence that is allowed
  notices          the licences' texts, as they must go with the binary
  sbom             a bill of materials (CycloneDX, JSON)
  denied           no module is of a version that is known to be bad (denied.txt)
  vulnerabilities  none has an entry in the Go vulnerability database: VULN_DB is its address or a directory`

// errNotChecked means that no usable database was available. It does not count as a pass.
var errNotChecked = errors.New("not checked")

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "supply:", err)
		if errors.Is(err, errNotChecked) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New(help)
	}
	read := partsOf
	if args[0] == "licences" || args[0] == "notices" {
		read = releaseParts
	}
	parts, err := read(args[1])
	if err != nil {
		return err
	}
	var found []string
	what := args[0]
	switch what {
	case "licences":
		found = check(parts)
	case "notices":
		return notices(out, parts)
	case "sbom":
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(bill(parts))
	case "denied":
		what = "denied version"
		rules, err := denials(denied)
		if err != nil {
			return err
		}
		found = rules.check(parts)
	case "vulnerabilities":
		if found, err = vulnerabilities(os.Getenv("VULN_DB"), args[1]); err != nil {
			return err
		}
	default:
		return errors.New(help)
	}
	if len(found) > 0 {
		return fmt.Errorf("%s: %d found\n%s", what, len(found), strings.Join(found, "\n"))
	}
	_, err = fmt.Fprintf(out, "%s: none found\n", what)
	return err
}

// vulnerabilities returns the entries of a database that name a version of a module in the binary, found by
// govulncheck. The database is a URL or a directory with a copy. Whether the vulnerable code is called is not
// checked. The error is errNotChecked if there is no database, or if the database has no entry for any module or Go's
// own library.
func vulnerabilities(base, binary string) (found []string, err error) {
	if base == "" {
		return nil, fmt.Errorf("%w: no database: set VULN_DB to the address of the Go vulnerability database, "+
			"or to a directory with a copy of it", errNotChecked)
	}
	if !strings.Contains(base, "://") {
		if base, err = filepath.Abs(base); err != nil {
			return nil, err
		}
		base = "file://" + base
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return nil, err
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output() //nolint:noctx // a command's only work
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	lint := filepath.Join(filepath.Dir(string(mod)), "scripts", "lint")
	var errs bytes.Buffer
	cmd := exec.CommandContext(context.Background(), "go", "-C", lint, "tool", "govulncheck", "-format", "json", "-mode", "binary", "-scan",
		"module", "-db", base, binary)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: database %s: govulncheck: %w: %s", errNotChecked, base, err, errs.String())
	}
	type message struct {
		OSV *struct {
			ID, Summary string
			Aliases     []string
		}
		Finding *struct {
			OSV   string
			Trace []struct{ Module, Version string }
		}
	}
	messages, err := decodeAll[message](out)
	if err != nil {
		return nil, err
	}
	entries := map[string]string{} // summary of each entry, by its ID
	for _, m := range messages {
		if m.OSV != nil {
			entries[m.OSV.ID] = fmt.Sprintf("%s (%s) %s", m.OSV.ID, strings.Join(m.OSV.Aliases, ", "), m.OSV.Summary)
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 {
			found = append(found, fmt.Sprintf("%s %s: %s", f.Trace[0].Module, f.Trace[0].Version, entries[f.OSV]))
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("%w: the database at %s has no entry on Go or any module of the binary", errNotChecked, base)
	}
	return found, nil
}
