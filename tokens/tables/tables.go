// Package tables holds the packed vocabularies (see generate.go for their form).
//
// It is read by package tokens only.
package tables

import _ "embed"

// The rank files of the two encodings, packed.
var (
	//go:embed o200k_base.zst
	O200k []byte
	//go:embed cl100k_base.zst
	CL100k []byte
)
