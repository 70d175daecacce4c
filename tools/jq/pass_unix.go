//go:build !windows

package jq

const canPassFiles = true
