package channels

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

// packaged are the files of a package, by path, with their modes.
var packaged = map[string]int64{
	"usr/bin/mcp-funnel":                                  0o755,
	"usr/share/doc/mcp-funnel/copyright":                  0o644,
	"usr/share/doc/mcp-funnel/NOTICES.md":                 0o644,
	"usr/share/doc/mcp-funnel/README.md":                  0o644,
	"usr/share/man/man1/mcp-funnel.1.gz":                  0o644,
	"usr/share/bash-completion/completions/mcp-funnel":    0o644,
	"usr/share/zsh/vendor-completions/_mcp-funnel":        0o644,
	"usr/share/fish/vendor_completions.d/mcp-funnel.fish": 0o644,
}

// installs are what marks that a package manager has installed a package, for doctor, and the words of doctor.
var installs = map[string]struct{ mark, want string }{
	"deb": {"var/lib/dpkg/info/mcp-funnel.list", "by a .deb package"},
	"rpm": {"usr/lib/rpm/rpmrc", "by an .rpm package"},
	"apk": {"lib/apk/db/installed", "by an .apk package"},
}

// A package of each format holds what it should, says what it is, and starts where only its files are.
func TestSystemPackages(t *testing.T) {
	dir := dist(t)
	for format, parse := range map[string]func(*testing.T, []byte) ([]entry, map[string]string){
		"deb": readDeb, "rpm": readRPM, "apk": readAPK,
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			for arch, names := range map[string]string{"amd64": "amd64 x86_64", "arm64": "arm64 aarch64"} {
				files, about := parse(t, read(t, one(t, dir, "*_linux_"+arch+"."+format)))
				checkPackage(t, files)
				expect.Equal(t, about["name"], "mcp-funnel")
				expect.Has(t, names, about["arch"])
				expect.Equal(t, about["license"], "Apache-2.0")
				expect.Equal(t, about["depends"], "", "what a static program needs")
				expect.Has(t, about["url"], "https://github.com/mcp-funnel/mcp-funnel")
				expect.Has(t, about["description"], "MCP server")
				checkCommitTime(t, dir, files[0])
				if arch == runtime.GOARCH {
					startPackage(t, files, installs[format].mark, installs[format].want)
				}
			}
		})
	}
}

func startPackage(t *testing.T, files []entry, mark, want string) {
	t.Helper()
	c := newClean(t, files)
	if mark != "" {
		expect.Must(t, os.MkdirAll(filepath.Join(c.dir, filepath.Dir(mark)), 0o755))
		expect.Must(t, os.WriteFile(filepath.Join(c.dir, mark), nil, 0o600))
	}
	firstReceipt(t, c.command(t, "/usr/bin/mcp-funnel", "/data"), "/data")
	said, _ := c.run(t, "/usr/bin/mcp-funnel", "doctor", "--root", "/data")
	expect.Has(t, said, want)
	checkCompletions(t, map[string]string{
		"bash": c.dir + "/usr/share/bash-completion/completions/mcp-funnel",
		"zsh":  c.dir + "/usr/share/zsh/vendor-completions/_mcp-funnel",
		"fish": c.dir + "/usr/share/fish/vendor_completions.d/mcp-funnel.fish",
	})
}

// checkPackage checks which files a package has, their modes, owners and times; directories are those above files.
func checkPackage(t *testing.T, files []entry) {
	t.Helper()
	found := map[string]int64{}
	for _, f := range files {
		name := strings.Trim(strings.TrimPrefix(f.Name, "."), "/")
		expect.Equal(t, f.Uid+f.Gid, 0, "owner of %s", name)
		expect.Equal(t, f.ModTime.UTC(), files[0].ModTime.UTC(), "time of %s", name)
		if f.Typeflag == tar.TypeDir {
			expect.Equal(t, f.Mode&0o7777, 0o755, name)
			continue
		}
		found[name] = f.Mode & 0o7777
		if strings.HasSuffix(name, ".1.gz") {
			expect.EqualList(t, f.text[3:8], []byte{0, 0, 0, 0, 0}, "no name and no time in %s", name)
			checkMan(t, gunzip(t, f.text))
		}
	}
	expect.Same(t, found, packaged)
}

// fields reads lines NAME: VALUE or NAME = VALUE; a line that begins with a blank continues a value.
func fields(text []byte) map[string]string {
	found, last := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		if m := regexp.MustCompile(`^(\S+?)(?::| =) ?(.*)\n$`).FindStringSubmatch(line); m != nil {
			last = strings.ToLower(m[1])
			found[last] = m[2]
		} else {
			found[last] += line
		}
	}
	return found
}

// readDeb reads the members of an ar archive: two archives of tar.
func readDeb(t *testing.T, text []byte) (files []entry, about map[string]string) {
	t.Helper()
	rest, ok := bytes.CutPrefix(text, []byte("!<arch>\n"))
	expect.MustEqual(t, ok, true, "ar")
	members := map[string][]byte{}
	for len(rest) >= 60 {
		size := expect.Value(strconv.Atoi(strings.TrimSpace(string(rest[48:58]))))(t)
		members[strings.TrimSpace(string(rest[:16]))] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	expect.Equal(t, string(members["debian-binary"]), "2.0\n")
	expect.Equal(t, len(members), 3, "members")
	for _, f := range readTar(t, bytes.NewReader(gunzip(t, members["control.tar.gz"]))) {
		switch f.Name {
		case "./control":
			about = fields(f.text)
		case "./md5sums", "./":
		default:
			t.Errorf("%s: a package runs nothing when it is installed", f.Name)
		}
	}
	expect.Equal(t, about["section"], "utils")
	expect.Has(t, about["maintainer"], "The mcp-funnel authors <")
	return readTar(t, bytes.NewReader(gunzip(t, members["data.tar.gz"]))), map[string]string{
		"name": about["package"], "arch": about["architecture"], "depends": about["depends"], "url": about["homepage"],
		"description": about["description"], "license": "Apache-2.0", // which copyright has
	}
}

// readAPK reads three archives of tar, of which only the last ends: signature or nothing, control, files.
func readAPK(t *testing.T, text []byte) (files []entry, about map[string]string) {
	t.Helper()
	for _, f := range readTar(t, bytes.NewReader(gunzip(t, text))) {
		switch {
		case f.Name == ".PKGINFO":
			about = fields(f.text)
		case strings.HasPrefix(f.Name, "."):
			t.Errorf("%s: a package runs nothing when it is installed", f.Name)
		default:
			files = append(files, f)
		}
	}
	return files, map[string]string{
		"name": about["pkgname"], "arch": about["arch"], "depends": about["depend"], "url": about["url"],
		"description": about["pkgdesc"], "license": about["license"],
	}
}

// rpmHeader reads a header of an RPM: its tags with their values, and what follows it.
func rpmHeader(t *testing.T, text []byte) (tags map[uint32][]string, rest []byte) {
	t.Helper()
	expect.MustEqual(t, fmt.Sprintf("%x", text[:4]), "8eade801")
	count, size := binary.BigEndian.Uint32(text[8:]), binary.BigEndian.Uint32(text[12:])
	index, data := text[16:16+16*count], text[16+16*count:][:size]
	tags = map[uint32][]string{}
	for i := range count {
		at := func(field uint32) uint32 { return binary.BigEndian.Uint32(index[16*i+4*field:]) }
		value := data[at(2):]
		for range at(3) {
			switch kind := at(1); kind {
			case 6, 8, 9: // strings
				s, after, _ := bytes.Cut(value, []byte{0})
				tags[at(0)], value = append(tags[at(0)], string(s)), after
			case 3:
				tags[at(0)], value = append(tags[at(0)], fmt.Sprint(binary.BigEndian.Uint16(value))), value[2:]
			case 4:
				tags[at(0)], value = append(tags[at(0)], fmt.Sprint(binary.BigEndian.Uint32(value))), value[4:]
			}
		}
	}
	return tags, text[16+16*count+size:]
}

// readRPM reads a lead, two headers and a cpio archive.
func readRPM(t *testing.T, text []byte) (files []entry, about map[string]string) {
	t.Helper()
	expect.MustEqual(t, fmt.Sprintf("%x", text[:4]), "edabeedb")
	_, after := rpmHeader(t, text[96:])
	tags, payload := rpmHeader(t, text[len(text)-len(after)+(8-(len(text)-len(after))%8)%8:])
	tag := func(number uint32) string { return strings.Join(tags[number], " ") }
	expect.Equal(t, tag(1007), "localhost", "build host")
	expect.Equal(t, tag(1124)+" "+tag(1125), "cpio gzip", "payload")
	for _, script := range []uint32{1023, 1024, 1025, 1026} {
		expect.Equal(t, tag(script), "", "a package runs nothing when it is installed")
	}
	for rest := gunzip(t, payload); ; {
		field := func(i int) int64 { return expect.Value(strconv.ParseInt(string(rest[6+8*i:14+8*i]), 16, 64))(t) }
		pad := func(n int64) int64 { return (n + 3) / 4 * 4 }
		name, size := string(rest[110:110+field(11)-1]), field(6)
		if name == "TRAILER!!!" {
			break
		}
		i := len(files) // the header has times; those of cpio are 0
		expect.MustEqual(t, filepath.Base(name), tags[1117][i], "the name of file %d", i)
		expect.Equal(t, fmt.Sprint(field(1)), tags[1030][i], "mode of %s", name)
		f := entry{tar.Header{
			Name: name, Mode: field(1) & 0o7777, Uid: int(field(2)), Gid: int(field(3)), Typeflag: tar.TypeReg,
			ModTime: time.Unix(expect.Value(strconv.ParseInt(tags[1034][i], 10, 64))(t), 0), Size: size,
		}, nil}
		if field(1)&0o170000 == 0o040000 {
			f.Typeflag = tar.TypeDir
		}
		rest = rest[pad(110+field(11)):]
		f.text, rest = rest[:size], rest[pad(size):]
		files = append(files, f)
	}
	for _, owner := range append(tags[1039], tags[1040]...) {
		expect.Equal(t, owner, "root", "owner or group")
	}
	built := expect.Value(strconv.ParseInt(tag(1006), 10, 64))(t)
	expect.Equal(t, built, files[0].ModTime.Unix(), "build time")
	for _, need := range tags[1049] {
		if !strings.HasPrefix(need, "rpmlib(") { // of the format
			t.Errorf("it needs %s", need)
		}
	}
	return files, map[string]string{
		"name": tag(1000), "arch": tag(1022), "url": tag(1020), "license": tag(1014), "description": tag(1005),
	}
}
