package tree

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// maxMounts is how much of the list of mounts is read, in bytes; machines full of containers have 1 MiB.
const maxMounts = 16 << 20

// mountedBelow says that something is mounted in dir, so that what stands
// elsewhere by its name may be reached through it. Where that cannot be told, it
// may be so. Mounting takes rights that no content of a root has: what is mounted
// after the root was opened is the operator's doing.
func mountedBelow(dir string) bool {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	limited := &io.LimitedReader{R: f, N: maxMounts}
	for lines := bufio.NewReader(limited); ; {
		line, err := lines.ReadString('\n')
		if fields := strings.Fields(line); len(fields) > 4 {
			if rel, ok := below(dir, unescapeMount(fields[4])); ok && rel != "." {
				return true
			}
		}
		if err != nil {
			return err != io.EOF || limited.N == 0
		}
	}
}

// unescapeMount takes back the escapes of the list: blank, tab, newline and backslash as three octal digits.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
