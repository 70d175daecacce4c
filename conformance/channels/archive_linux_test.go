package channels

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
	"github.com/mcp-funnel/mcp-funnel/conformance/peers/peer"
)

// archived are the files of an archive besides the program, the pages and the site, with the least size of each.
var archived = map[string]int{
	"LICENSE": 10_000, "NOTICES.md": 50_000, "README.md": 2_000, "CHANGELOG.md": 1_000,
	"completions/mcp-funnel.bash": 300, "completions/_mcp-funnel": 300, "completions/mcp-funnel.fish": 200,
	"completions/mcp-funnel.ps1": 200, "man/mcp-funnel.1": 20_000, "site/index.html": 1,
	"docs/INSTALL.md": 1_000, // and what else the README links to
}

// checkArchived checks that an archive holds what it should, once, without links.
func checkArchived(t *testing.T, program string, files []entry) {
	t.Helper()
	sizes := map[string]int{}
	for _, f := range files {
		_, again := sizes[f.Name]
		expect.Equal(t, again, false, "%s is there twice", f.Name)
		sizes[f.Name] = len(f.text)
		mode := fs.FileMode(0o644)
		if f.Name == program {
			mode = 0o755
		}
		expect.Equal(t, f.FileInfo().Mode(), mode, f.Name)
		if archived[f.Name] == 0 && f.Name != program && !strings.HasSuffix(f.Name, ".md") &&
			!strings.HasPrefix(f.Name, "site/") {
			t.Errorf("%s does not belong there", f.Name)
		}
	}
	for name, least := range archived {
		if sizes[name] < least {
			t.Errorf("%s has %d bytes, want at least %d", name, sizes[name], least)
		}
	}
	if sizes[program] < 10<<20 {
		t.Errorf("%s has %d bytes", program, sizes[program])
	}
}

// checkTimes checks that all files have the time of the commit, and belong to root.
func checkTimes(t *testing.T, files []entry) {
	t.Helper()
	for _, f := range files {
		expect.Equal(t, f.ModTime.UTC(), files[0].ModTime.UTC(), "%s: time", f.Name)
		expect.Equal(t, f.Uname+":"+f.Gname, "root:root", f.Name)
		expect.Equal(t, f.Uid+f.Gid, 0, f.Name)
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	dir := dist(t)
	for _, path := range all(t, dir, "*.tar.gz") {
		files := readArchive(t, path)
		checkArchived(t, "mcp-funnel", files)
		checkTimes(t, files)
	}
	for _, path := range all(t, dir, "*.zip") {
		checkArchived(t, "mcp-funnel.exe", zipEntries(t, path))
	}
	files := readArchive(t, one(t, dir, "*_linux_"+runtime.GOARCH+".tar.gz"))
	checkCommitTime(t, dir, files[0])
	c := newClean(t, files)
	firstReceipt(t, c.command(t, "/mcp-funnel", "serve", "/data"), "/data")
	firstReceipt(t, c.command(t, "/mcp-funnel", "/data"), "")
	said, _ := c.run(t, "/mcp-funnel", "doctor", "--root", "/data")
	expect.Has(t, said, "by an archive; to update: replace it")
	checkMan(t, files[slices.IndexFunc(files, func(f entry) bool { return f.Name == "man/mcp-funnel.1" })].text)
	checkCompletions(t, map[string]string{
		"bash": c.dir + "/completions/mcp-funnel.bash",
		"zsh":  c.dir + "/completions/_mcp-funnel",
		"fish": c.dir + "/completions/mcp-funnel.fish",
	})
}

// zipEntries returns the files of a zip archive.
func zipEntries(t *testing.T, path string) (files []entry) {
	t.Helper()
	z := expect.Value(zip.OpenReader(path))(t)
	t.Cleanup(func() { expect.OK(t, z.Close()) })
	for _, f := range z.File {
		r := expect.Value(f.Open())(t)
		var b bytes.Buffer
		expect.Value(b.ReadFrom(r))(t, f.Name)
		files = append(files, entry{
			tar.Header{Name: f.Name, Mode: int64(f.Mode()), Typeflag: tar.TypeReg, Size: int64(b.Len())}, b.Bytes(),
		})
	}
	return files
}

// checkCommitTime checks that a file has the time of the commit that its release names.
func checkCommitTime(t *testing.T, dir string, f entry) {
	t.Helper()
	if at := commitTime(t, dir); at != "" {
		expect.Equal(t, f.ModTime.UTC().Format("20060102150405"), at, "time of %s", f.Name)
	}
}

// checkMan checks that groff formats a manual page without a warning, and that man finds what it looks for.
func checkMan(t *testing.T, page []byte) {
	t.Helper()
	expect.Contains(t, string(page), ".SH NAME\nmcp\\-funnel \\- ", ".SH EXIT STATUS\n", ".SS \\&serve\n")
	path := filepath.Join(t.TempDir(), "mcp-funnel.1")
	expect.Must(t, os.WriteFile(path, page, 0o600))
	for _, c := range page {
		if c >= 0x80 {
			t.Fatalf("the manual page has byte %#x: groff needs ASCII", c)
		}
	}
	var warnings strings.Builder
	cmd := exec.Command(peer.Find(t, "groff"), "-ww", "-man", "-Tutf8", "-P-c", "-P-b", "-P-u", path)
	cmd.Stderr = &warnings
	out := expect.Value(cmd.Output())(t, &warnings)
	expect.Equal(t, warnings.String(), "", "warnings of groff")
	for _, want := range []string{"EXIT STATUS", `filter='group_by(.file)|length'`} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("the formatted page has no %s", want)
		}
	}
}

// completions are the words after a shell's -c that load a file of completions as the shell does, and print what it
// then knows of the program.
var completions = map[string]struct{ script, want string }{
	"bash": {`. "$1" && complete -p mcp-funnel`, "-F _mcp_funnel mcp-funnel"},
	"zsh": {
		`fpath=("${1:h}" $fpath); autoload -Uz compinit && compinit -D -u && print -r -- $_comps[mcp-funnel]`,
		"_mcp-funnel",
	},
	"fish": {`source $argv[2]; and complete -c mcp-funnel`, "__mcp_funnel_complete"},
}

// checkCompletions checks that shells load the completions of a directory.
func checkCompletions(t *testing.T, files map[string]string) {
	t.Helper()
	for shell, c := range completions {
		t.Run(shell, func(t *testing.T) {
			cmd := exec.Command(peer.Find(t, shell), "-c", c.script, shell, files[shell])
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			expect.OK(t, err, out)
			expect.Has(t, string(out), c.want)
		})
	}
}
