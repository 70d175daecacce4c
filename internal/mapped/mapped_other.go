//go:build !linux

package mapped

func local(opened) bool { return false }

func (*File) view(int64, int) (all, view []byte) { return nil, nil }

func unmap([]byte) {}
