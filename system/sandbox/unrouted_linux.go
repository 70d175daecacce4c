//go:build amd64 || arm64

package sandbox

import (
	"os"
	"strconv"
	"strings"
)

// unrouted returns how many packets and connections of the tree had no way out of its network namespace, and how many
// datagrams found nobody on its loopback interface, as questions to a name server there; nil if they are not counted.
func (i *initProcess) unrouted() *int64 {
	if !i.Namespaces || i.Net {
		return nil
	}
	v4, err := os.ReadFile("/proc/self/net/snmp")
	if err != nil {
		return nil
	}
	v6, _ := os.ReadFile("/proc/self/net/snmp6") // there may be no IPv6
	sum := countersOf(string(v4), "Ip:", "OutNoRoutes") + countersOf(string(v4), "Udp:", "NoPorts")
	for line := range strings.Lines(string(v6)) {
		if f := strings.Fields(line); len(f) == 2 && (f[0] == "Ip6OutNoRoutes" || f[0] == "Udp6NoPorts") {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			sum += n
		}
	}
	return &sum
}

// countersOf returns a counter of a protocol: a line of names is followed by one of numbers.
func countersOf(text, protocol, name string) int64 {
	var names []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != protocol {
			continue
		}
		if names == nil {
			names = f
			continue
		}
		for k := range f {
			if k < len(names) && names[k] == name {
				n, _ := strconv.ParseInt(f[k], 10, 64)
				return n
			}
		}
	}
	return 0
}
