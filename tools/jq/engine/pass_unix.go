//go:build !windows

package engine

const canPassFiles = true
