// Package fs finds, reads and slices files of a workspace, and observations.
package fs
