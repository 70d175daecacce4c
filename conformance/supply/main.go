// Package supply is a command that says what a binary is made of: its modules, their licences, which of them are known
// to have holes, and a bill of materials.
//
// It downloads no module and changes no version: what is wrong is named, and a person decides.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

const help = `usage: supply COMMAND BINARY

  licences         every module has a licence that is allowed
  notices          the licences' texts, as they must go with the binary
  sbom             a bill of materials (CycloneDX, JSON)
  denied           no module is of a version that is known to be bad (denied.txt)
  vulnerabilities  none has an entry in the Go vulnerability database: VULN_DB is its address or a directory`

// errNotChecked: there was nothing to check against. It is no pass.
var errNotChecked = errors.New("not checked")

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, errNotChecked):
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(3)
	case err != nil:
		fmt.Fprintln(os.Stderr, "supply:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New(help)
	}
	parts, err := partsOf(args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "licences":
		if err := locate(parts); err != nil {
			return err
		}
		return all(out, "licence", check(parts))
	case "notices":
		if err := locate(parts); err != nil {
			return err
		}
		return notices(out, parts)
	case "sbom":
		if err := locate(parts); err != nil {
			return err
		}
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(bill(parts))
	case "denied":
		rules, err := denials(denied)
		if err != nil {
			return err
		}
		return all(out, "denied version", rules.check(parts))
	case "vulnerabilities":
		base := os.Getenv("VULN_DB")
		if base == "" {
			return fmt.Errorf("%w: no database: set VULN_DB to the address of the Go vulnerability database, or to a directory with a copy of it", errNotChecked)
		}
		found, err := vulnerabilities(base, parts)
		if err != nil {
			return err
		}
		return all(out, "vulnerability", found)
	}
	return errors.New(help)
}

// all prints what was found; the error says how much that is.
func all(out io.Writer, what string, found []string) error {
	for _, f := range found {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%s: %d found", what, len(found))
	}
	_, err := fmt.Fprintf(out, "%s: none found\n", what)
	return err
}
