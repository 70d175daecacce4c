package conformance

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/corpus"
	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/promise"
)

// onFullDisk is a script that uses the program on a disk that becomes full. It writes the output and exit code of each
// command to numbered files. $1 limits the disk, $2 is the directory of the store, $3 that of the outputs, $4 a command
// that changes the store after it was written to.
const onFullDisk = `
step() { n=$1; shift; "$@" >"$out/$n" 2>"$out/$n.err"; echo $? >"$out/$n.code"; }
store=$2/store out=$3
export MCP_FUNNEL_STORE="$store" MCP_FUNNEL_MIN_FREE=0
step small mcp-funnel keep <small.txt
BOUND
step large mcp-funnel keep <root/large.txt
step search mcp-funnel --root root call search pattern=the
step again mcp-funnel keep <small.txt
eval "$4"
step verify mcp-funnel observations verify
ls "$store/tmp" >"$out/left"
READONLY
id=$(grep -ho 'obs:[0-9a-z]*' "$out/small" "$out/small.err" | head -1)
step list mcp-funnel observations list
step show mcp-funnel observations show "$id"
step cat mcp-funnel observations cat "$id"
step source mcp-funnel --root root call grep source="$id" pattern=small
step place mcp-funnel --root root call find path=obs:
step told mcp-funnel --root root call search pattern=the
`

// fullDisk is one run of the script, and its faults.
type fullDisk struct {
	out   string
	wrong []string
	cases int
	lost  int // outputs reported as not kept
}

func (d *fullDisk) step(n string) (out, err string, code string) {
	read := func(name string) string { b, _ := os.ReadFile(filepath.Join(d.out, name)); return string(b) }
	return read(n), read(n + ".err"), strings.TrimSpace(read(n + ".code"))
}

var keptOrNot = regexp.MustCompile(
	`^(SAVED as obs:[0-9a-z]{12}|SAVED in part as obs:[0-9a-z]{12} \(first \d+ bytes\)|` +
		`LARGE OUTPUT DETECTED: not kept \(.+\))\n`,
)

// run runs the script; false if this machine does not allow it.
func (d *fullDisk) run(t *testing.T, bound string, tmpfs bool, after string) bool {
	t.Helper()
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	d.out = filepath.Join(dir, "out")
	for _, sub := range []string{disk, d.out} {
		expect.Must(t, os.Mkdir(sub, 0o700))
	}
	for name, text := range map[string][]byte{
		"small.txt":      []byte("what is small\n"),
		"root/large.txt": corpus.WarAndPeace()[:300_000],
	} {
		write(t, filepath.Join(dir, name), string(text))
	}
	script := strings.NewReplacer("BOUND", "ulimit -f $1", "READONLY", "").Replace(onFullDisk)
	words := []string{"sh", "-c"}
	if tmpfs { // only this process and its descendants see the mount
		script = "mount -t tmpfs -o mode=700,size=$1 none $2 || exit 77" + strings.NewReplacer(
			"BOUND", "", "READONLY", "mount -o remount,ro $2 || exit 77",
		).Replace(onFullDisk)
		words = append([]string{"unshare", "-rm"}, words...)
	}
	words = append(words, script, "sh", bound, disk, d.out, after)
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, environment(t)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil && said.Len() > 0 {
		t.Logf("%v: %s", err, &said)
		return false
	}
	d.judge(bound, tmpfs)
	return true
}

func (d *fullDisk) judge(bound string, readOnly bool) {
	note := func(format string, args ...any) { d.wrong = append(d.wrong, bound+": "+fmt.Sprintf(format, args...)) }
	total := fmt.Sprintf("total: %d lines", bytes.Count(corpus.WarAndPeace()[:300_000], []byte("\n"))+1)
	whole := 1
	for _, n := range []string{"large", "search", "again"} {
		d.cases++
		out, err, code := d.step(n)
		m := keptOrNot.FindStringSubmatch(out)
		kept := m != nil && strings.HasPrefix(m[1], "SAVED")
		switch {
		case n == "again" && code == "0" && strings.Contains(err, "kept as obs:"), n != "again" && kept && code == "0":
			whole++
		case n == "search" && code == "0" && m != nil, n == "large" && code == "1" && m != nil &&
			strings.Contains(err, "was not kept"),
			n == "again" && code == "1" && strings.Contains(err, "was not kept"):
			d.lost++
		default:
			note("%s ended with %s: %.300s %.300s", n, code, out, err)
		}
		if n == "large" && !strings.Contains(out, total) {
			note("the totals are not %q: %.200s", total, out)
		}
		if strings.Contains(err, "panic") || strings.Contains(err, "goroutine ") {
			note("%s: %.500s", n, err)
		}
	}
	if out, err, code := d.step("verify"); code != "0" || out != fmt.Sprintf("%d of %d intact\n", whole, whole) {
		note("%d were kept, and verify ends with %s: %s %s", whole, code, out, err)
	}
	if out, err, code := d.step("list"); code != "0" || strings.Count(out, "obs:") < whole {
		note("%d were kept, and list ends with %s: %s %s", whole, code, out, err)
	}
	if out, err, code := d.step("cat"); code != "0" || out != "what is small\n" {
		note("cat ends with %s: %q %s", code, out, err)
	}
	for n, want := range map[string]string{
		"show":   `"tool": "keep"`,
		"source": "what is small",
		"place":  "keep",
		"told":   "LARGE OUTPUT DETECTED: ",
	} {
		if out, err, code := d.step(n); code != "0" || !strings.Contains(out, want) {
			note("%s ends with %s: %.300s %.300s", n, code, out, err)
		} else if n == "told" && readOnly && !strings.HasPrefix(out, "LARGE OUTPUT DETECTED: not kept (") {
			note("on a disk that is mounted for reading: %.200s", out)
		}
	}
	if left, _, _ := d.step("left"); strings.TrimSpace(left) != "" {
		note("left in tmp/: %s", left)
	}
}

// TestS13RealFullDisk: the binary on a small disk and under a limit of a file's size. Every command
// answers; what it says is kept verifies, what is not kept is said, and what was kept before can be
// listed and read, also when the disk is mounted for reading only.
func TestS13RealFullDisk(t *testing.T) {
	drivesOnly(t)
	t.Parallel()
	d := &fullDisk{}
	disks := promise.Size([]string{"400k"}, []string{
		"32k", "64k", "96k", "128k", "256k", "300k", "320k", "340k", "400k", "600k", "800k", "1m", "8m",
	})
	mounted := 0
	for _, size := range disks {
		if !d.run(t, size, true, "") {
			break
		}
		mounted++
	}
	if mounted == 0 {
		t.Log("no file system can be mounted here: only a file's size is limited")
	}
	for _, blocks := range promise.Size([]string{"200"}, []string{"16", "64", "200", "500", "600", "700", "7000"}) {
		if !d.run(t, blocks, false, "") {
			t.Fatal("sh has no ulimit -f")
		}
	}
	if d.lost == 0 {
		t.Error("the disk was never full")
	}
	report(t, d.wrong)
	control := &fullDisk{}
	control.run(t, "unlimited", false, `for f in "$store"/observations/keep_*; do printf x >"$f"; done`)
	promise.Keptf(t, promise.Proof{Promise: "S13", Cases: d.cases, Failures: len(d.wrong), Control: len(control.wrong)},
		"the binary on %d full disks and %d limits of a file; %d outputs not kept, and said; control: the bytes cut after the receipt",
		mounted, d.cases/3-mounted, d.lost)
}
