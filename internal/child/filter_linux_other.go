//go:build linux && !amd64 && !arm64

package child

import "errors"

// filterCalls does nothing: the numbers of calls, and what stands where, were looked up and tried for two machines only.
func filterCalls() error { return errors.New("not made for this kind of processor") }
