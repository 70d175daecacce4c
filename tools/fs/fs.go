// Package fs finds, reads and slices files of a workspace, and observations.
//
// It does not search or query their content: search, grep and jq do.
package fs
