//go:build !linux

package mmap

func local(opened) bool { return false }

func (*File) mapRange(int64, int) (all, view []byte) { return nil, nil }

func unmap([]byte) {}
