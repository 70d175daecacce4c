package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// part is a module that is in a binary.
type part struct {
	Path, Version, Sum string
	Dir                string // of its source; empty until it was located
}

// stdlib is the standard library's name as a part; its version is Go's.
const stdlib = "stdlib"

// partsOf reads from a binary what it was built of: the module itself, the standard library, then the others by path.
func partsOf(binary string) ([]part, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	parts := []part{{Path: info.Main.Path, Version: info.Main.Version}, {Path: stdlib, Version: goVersion(info.GoVersion)}}
	for _, d := range info.Deps {
		if d.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s: a release is built of modules as they were published", d.Path, d.Replace.Path)
		}
		parts = append(parts, part{Path: d.Path, Version: d.Version, Sum: d.Sum})
	}
	if len(parts) < 3 {
		return nil, errors.New("the binary names no modules")
	}
	return parts, nil
}

// locate finds the source of each part but the first two, in the module cache.
func locate(parts []part) error {
	args := []string{"mod", "download", "-json"}
	for _, p := range parts[2:] {
		args = append(args, p.Path+"@"+p.Version)
	}
	cmd := exec.Command("go", args...) //nolint:noctx // a command's only work
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Version, Dir, Sum string }
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		i := slices.IndexFunc(parts, func(p part) bool { return p.Path == m.Path })
		if i < 0 || parts[i].Sum != "" && parts[i].Sum != m.Sum {
			return fmt.Errorf("%s %s: what is in the module cache is not what the binary was built of", m.Path, m.Version)
		}
		parts[i].Dir = m.Dir
	}
}

// goVersion writes Go's own version as a module's: go1.27rc1 is 1.27.0-rc.1.
func goVersion(v string) string {
	v, _, _ = strings.Cut(strings.TrimPrefix(v, "go"), " ")
	release, pre := v, ""
	for _, mark := range []string{"rc", "beta"} {
		if at, n, ok := strings.Cut(v, mark); ok {
			release, pre = at, "-"+mark+"."+n
		}
	}
	for strings.Count(release, ".") < 2 {
		release += ".0"
	}
	return release + pre
}

// compare orders two versions as semantic versioning has it; what is no number counts as 0.
func compare(a, b string) int {
	split := func(v string) (numbers [3]int, pre string) {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), "+")
		v, pre, _ = strings.Cut(v, "-")
		for i, n := range strings.SplitN(v, ".", 3) {
			numbers[i], _ = strconv.Atoi(n)
		}
		return numbers, pre
	}
	x, preX := split(a)
	y, preY := split(b)
	if c := slices.Compare(x[:], y[:]); c != 0 || preX == preY {
		return c
	}
	switch "" {
	case preX:
		return 1
	case preY:
		return -1
	}
	return slices.CompareFunc(strings.Split(preX, "."), strings.Split(preY, "."), func(p, q string) int {
		m, errP := strconv.Atoi(p)
		n, errQ := strconv.Atoi(q)
		switch {
		case errP == nil && errQ == nil:
			return m - n
		case errP == nil:
			return -1
		case errQ == nil:
			return 1
		}
		return strings.Compare(p, q)
	})
}
