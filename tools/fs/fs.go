// Package fs finds, reads and slices files of a workspace, and observations.
//
// It does not look inside what they hold: search, grep and jq do.
package fs
