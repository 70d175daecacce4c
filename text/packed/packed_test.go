package packed

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

// programs compress standard input, and the last ones decompress a file for comparison.
var programs = map[Format][2][]string{
	"gzip": {{"gzip", "-c"}, {"zcat"}}, "zstd": {{"zstd", "-qc"}, {"zstd", "-qdc"}},
	"bzip2": {{"bzip2", "-c"}, {"bzcat"}}, "xz": {{"xz", "-c"}, {"xzcat"}},
}

func runProgram(t *testing.T, in []byte, argv ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Skipf("%s is not installed", argv[0])
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin = bytes.NewReader(in)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v", argv, err)
	}
	return out
}

func unpack(f Format, stored []byte) ([]byte, error) {
	r, err := NewReader(f, io.NewSectionReader(bytes.NewReader(stored), 0, int64(len(stored))))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// TestFormats compares with the programs of each format: a text, two members in a row, an empty text, one byte at a
// time, and what is cut or changed.
func TestFormats(t *testing.T) {
	var b strings.Builder
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 6_000 {
		fmt.Fprintf(&b, "%d a line with %x\n", i, r.Uint64())
	}
	text := []byte(b.String())
	for format, argv := range programs {
		t.Run(string(format), func(t *testing.T) {
			stored := runProgram(t, text, argv[0]...)
			if Detect(stored) != format || Detect(stored[:2]) != "" || Detect(text) != "" {
				t.Errorf("detected as %q", Detect(stored))
			}
			twice := append(slices.Clone(stored), runProgram(t, []byte("and more\n"), argv[0]...)...)
			file := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(file, twice, 0o600); err != nil {
				t.Fatal(err)
			}
			want := runProgram(t, twice, argv[1]...)
			if got, err := unpack(format, twice); err != nil || !bytes.Equal(got, want) {
				t.Errorf("two members: %d bytes, the program says %d: %v", len(got), len(want), err)
			}
			if got, err := unpack(format, runProgram(t, nil, argv[0]...)); err != nil || len(got) > 0 {
				t.Errorf("an empty text has %d bytes: %v", len(got), err)
			}
			p, err := NewReader(format, io.NewSectionReader(bytes.NewReader(stored), 0, int64(len(stored))))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(iotest.OneByteReader(p)); err != nil || !bytes.Equal(got, text) {
				t.Errorf("byte by byte: %d bytes, %v", len(got), err)
			}
			for _, cut := range []int{3, 11, 20, len(stored) / 2, len(stored) - 5, len(stored) - 1} {
				got, err := unpack(format, stored[:cut])
				if err == nil || !bytes.HasPrefix(text, got) {
					t.Errorf("cut at %d of %d: %d bytes, error %v", cut, len(stored), len(got), err)
				} else if !strings.Contains(err.Error(), fmt.Sprint("at byte ", cut)) {
					t.Errorf("cut at %d: the error names another place: %v", cut, err)
				}
			}
			damaged := slices.Clone(stored)
			copy(damaged[len(stored)/2:], "these are other bytes")
			if _, err := unpack(format, damaged); err == nil {
				t.Error("changed bytes are no error")
			}
		})
	}
}

// TestMaxWindow: a file may not ask for as much memory as it likes.
func TestMaxWindow(t *testing.T) {
	frame := append([]byte("\x28\xb5\x2f\xfd\x00"), 0xa0) // a window of 1 GiB
	if _, err := unpack("zstd", append(frame, 1, 0, 0)); err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("zstd with a window of 1 GiB: %v", err)
	}
	stored := runProgram(t, []byte("text"), "xz", "-c", "--lzma2=preset=0,dict=1GiB")
	if _, err := unpack("xz", stored); err == nil {
		t.Error("xz with a dictionary of 1 GiB is no error")
	}
}

func TestTrimExtension(t *testing.T) {
	for name, want := range map[string]string{
		"app.log.gz": "app.log", "a.ZST": "a", "x.tar.xz": "x.tar", "gz": "gz", "a.log": "a.log", "b.bz2": "b",
	} {
		if got := TrimExtension(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]bool{
		"a.zip": true, "a.tar.gz": true, "a.tgz": true, "lib.JAR": true, "a.gz": false, "tar": false, "a.docx": false,
	} {
		if HasArchiveName(name) != want {
			t.Errorf("%s: HasArchiveName is not %v", name, want)
		}
	}
}

// member is one of an archive that a test makes.
type member struct {
	name, text string
	flag       byte // of a tar
	link       string
}

func zipOf(t testing.TB, members ...member) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name}
		if m.text != "" {
			h.Method = zip.Deflate
		}
		if h.SetMode(0o644); m.link != "" {
			h.SetMode(0o644 | os.ModeSymlink)
			m.text = m.link
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(w, m.text)
		}
		if err != nil && !strings.HasSuffix(m.name, "/") {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t testing.TB, members ...member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: m.flag, Linkname: m.link, Size: int64(len(m.text)), Mode: 0o644}
		if m.flag == 0 && m.link != "" {
			h.Typeflag = tar.TypeSymlink
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// listed walks an archive and returns "path: text" or "path! why" of each member, and the note.
func listed(t testing.TB, stored []byte) (members []string, note string) {
	t.Helper()
	note, err := Walk(t.Context(), bytes.NewReader(stored), int64(len(stored)), func(m Member) error {
		if m.Why != "" {
			members = append(members, m.Path+"! "+m.Why)
			return nil
		}
		r, err := m.Open()
		var text []byte
		if err == nil {
			text, err = io.ReadAll(io.LimitReader(r, 1<<20))
		}
		members = append(members, m.Path+": "+string(text[:min(len(text), 20)]))
		if err != nil {
			members[len(members)-1] += " " + err.Error()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return members, note
}

// TestHostileArchives: names that lead out of the archive become flat names, links are not followed, and what is
// damaged or too much ends the list with a note.
func TestHostileArchives(t *testing.T) {
	plain := []member{{name: "a.txt", text: "one"}, {name: "d/b.txt", text: "two"}}
	big := strings.Repeat("text of a member\n", 4096)
	lying := zipOf(t, member{name: "a.txt", text: "one"})
	directory := bytes.LastIndex(lying, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(lying[directory+24:], 2) // the size in the directory
	encrypted := zipOf(t, member{name: "a.txt", text: "one"})
	encrypted[bytes.LastIndex(encrypted, []byte("PK\x01\x02"))+8] |= 1
	overlapping := zipOf(t, member{name: "a", text: big}, member{name: "b", text: "two"})
	first, second := bytes.Index(overlapping, []byte("PK\x01\x02")), bytes.LastIndex(overlapping, []byte("PK\x01\x02"))
	copy(overlapping[second+42:second+46], overlapping[first+42:first+46]) // both begin at one place
	for name, c := range map[string]struct {
		stored []byte
		want   []string
		note   string
	}{
		"zip":         {zipOf(t, plain...), []string{"a.txt: one", "d/b.txt: two"}, ""},
		"tar":         {tarOf(t, plain...), []string{"a.txt: one", "d/b.txt: two"}, ""},
		"tar in gzip": {gzipped(t, tarOf(t, plain...)), []string{"a.txt: one", "d/b.txt: two"}, ""},
		"empty zip":   {zipOf(t), nil, ""},
		"paths": {zipOf(t, member{name: "../x"}, member{name: "/etc/passwd"}, member{name: "a/../../y"}, member{name: ".."},
			member{name: "./z//w"}), []string{`\x2e\x2e\x2fx: `, `\x2fetc\x2fpasswd: `, `\x2e\x2e\x2fy: `, `\x2e\x2e: `, "z/w: "}, ""},
		"links": {tarOf(t, member{name: "l", link: "/etc/passwd"}, member{name: "h", flag: tar.TypeLink, link: "l"},
			member{name: "dev", flag: tar.TypeBlock}, member{name: "fifo", flag: tar.TypeFifo}, member{name: "d/", flag: tar.TypeDir}),
			[]string{
				"l! a link or a device", "h! a link or a device", "dev! a link or a device", "fifo! a link or a device",
				"d! " + Directory,
			}, ""},
		"link in zip":     {zipOf(t, member{name: "l", link: "../../etc"}), []string{"l! a link or a device"}, ""},
		"same names":      {zipOf(t, member{name: "a", text: "1"}, member{name: "a", text: "2"}), []string{"a: 1", "a: 2"}, ""},
		"empty member":    {tarOf(t, member{name: "e"}), []string{"e: "}, ""},
		"name in latin-1": {zipOf(t, member{name: "caf\xe9", text: "x"}), []string{"caf\xe9: x"}, ""},
		"lying size":      {lying, []string{"a.txt:  zip: not a valid zip file"}, ""},
		"encrypted":       {encrypted, []string{"a.txt! encrypted"}, ""},
		"overlapping":     {overlapping, []string{"a: text of a member\ntex", "b:  unexpected EOF"}, ""},
		"zip cut":         {zipOf(t, plain...)[:60], nil, "its members from number 1 on cannot be read: zip: not a valid zip file"},
		"tar cut":         {tarOf(t, plain...)[:1024+100], []string{"a.txt: one"}, "its members from number 2 on cannot be read: unexpected EOF"},
		"member cut": {tarOf(t, member{name: "a", text: big})[:2000], []string{"a: text of a member\ntex unexpected EOF"},
			"its members from number 2 on cannot be read: unexpected EOF"},
		"gzip cut":  {gzipped(t, tarOf(t, member{name: "a", text: big}))[:150], nil, "unexpected EOF"},
		"no tar":    {gzipped(t, []byte(strings.Repeat("no tar", 1000))), nil, "archive/tar: invalid tar header"},
		"zip in it": {zipOf(t, member{name: "in.zip", text: string(zipOf(t, plain...))}), []string{"in.zip: PK\x03\x04"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, note := listed(t, c.stored)
			if len(got) > 0 && len(c.want) > 0 && strings.HasPrefix(c.want[0], "in.zip") {
				got[0] = got[0][:len(c.want[0])]
			}
			if name != "gzip cut" && !slices.Equal(got, c.want) {
				t.Errorf("members %q, want %q", got, c.want)
			}
			if (c.note == "") != (note == "") || !strings.Contains(note, c.note) {
				t.Errorf("note %q, want %q", note, c.note)
			}
		})
	}
}

// repeated is a block of 512 bytes that never ends.
type repeated []byte

func (r repeated) ReadAt(b []byte, off int64) (n int, err error) {
	for n < len(b) {
		n += copy(b[n:], r[(off+int64(n))%512:])
	}
	return n, nil
}

// TestLimitsOfArchives: too many members, too large a directory and too much content end a walk with a note.
func TestLimitsOfArchives(t *testing.T) {
	many := make([]member, 100_000)
	for i := range many {
		many[i].name = fmt.Sprintf("dir%d/file-%d.txt", i%100, i)
	}
	if got, note := listed(t, zipOf(t, many...)); len(got) != len(many) || note != "" {
		t.Errorf("%d of %d members: %s", len(got), len(many), note)
	}
	long := make([]member, 300)
	for i := range long {
		long[i].name = fmt.Sprint(strings.Repeat("n", 60_000), i)
	}
	if got, note := listed(t, zipOf(t, long...)); len(got) != 0 || !strings.Contains(note, "directory has over 16 MiB") {
		t.Errorf("%d members: %s", len(got), note)
	}
	n := 0
	endless := repeated(tarOf(t, member{name: "a"})[:512])
	note, err := Walk(t.Context(), endless, 1<<40, func(Member) error {
		n++
		return nil
	})
	if err != nil || n != maxMembers || !strings.Contains(note, "more than 200000") {
		t.Errorf("%d members: %s, %v", n, note, err)
	}
	m := &meter{&walk{ctx: t.Context(), left: 10}, strings.NewReader(strings.Repeat("x", 20))}
	if got, err := io.ReadAll(m); len(got) != 10 || err == nil || !strings.Contains(err.Error(), "over 4 GiB") {
		t.Errorf("%d bytes of 10: %v", len(got), err)
	}
}

// TestWalkErrors: the errors of visit and of the context are those of the walk.
func TestWalkErrors(t *testing.T) {
	stored, broken := tarOf(t, member{name: "a"}, member{name: "b"}), errors.New("broken")
	n := 0
	_, err := Walk(t.Context(), bytes.NewReader(stored), int64(len(stored)), func(Member) error {
		n++
		return broken
	})
	if !errors.Is(err, broken) || n != 1 {
		t.Errorf("%d visits: %v", n, err)
	}
}

// TestSameMembers compares with unzip and tar.
func TestSameMembers(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a b.txt": "one\n", "d/e/f.txt": strings.Repeat("two\n", 9999), "empty": ""} {
		name = filepath.Join(dir, "in", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for archive, c := range map[string][3]string{ // making, listing, extracting all
		"a.zip":     {"zip -qr ../a.zip .", "unzip -Z1 a.zip", "unzip -p a.zip"},
		"a.tar":     {"tar cf ../a.tar .", "tar tf a.tar", "tar xOf a.tar"},
		"a.tar.gz":  {"tar czf ../a.tar.gz .", "tar tf a.tar.gz", "tar xOf a.tar.gz"},
		"a.tar.zst": {"tar --zstd -cf ../a.tar.zst .", "tar --zstd -tf a.tar.zst", "tar --zstd -xOf a.tar.zst"},
		"a.tar.bz2": {"tar cjf ../a.tar.bz2 .", "tar tf a.tar.bz2", "tar xOf a.tar.bz2"},
		"a.tar.xz":  {"tar cJf ../a.tar.xz .", "tar tf a.tar.xz", "tar xOf a.tar.xz"},
	} {
		t.Run(archive, func(t *testing.T) {
			sh := func(dir, command string) string {
				out := runProgram(t, nil, "sh", "-c", "cd '"+dir+"' && command -v "+strings.Fields(command)[0]+
					" >/dev/null || exit 0; "+command)
				return string(out)
			}
			sh(filepath.Join(dir, "in"), c[0])
			stored, err := os.ReadFile(filepath.Join(dir, archive))
			if err != nil {
				t.Skipf("%s is not installed", strings.Fields(c[0])[0])
			}
			var names, texts strings.Builder
			note, err := Walk(t.Context(), bytes.NewReader(stored), int64(len(stored)), func(m Member) error {
				names.WriteString(m.Path + "\n")
				if m.Why != "" {
					return nil
				}
				r, err := m.Open()
				if err == nil {
					_, err = io.Copy(&texts, r)
				}
				return err
			})
			if err != nil || note != "" || !IsArchive(bytes.NewReader(stored), int64(len(stored))) {
				t.Fatal(note, err)
			}
			want := ""
			for name := range strings.Lines(sh(dir, c[1])) {
				if name = strings.Trim(strings.TrimPrefix(name, "./"), "/\n"); name != "" && name != "." {
					want += name + "\n"
				}
			}
			if names.String() != strings.ReplaceAll(want, "/\n", "\n") {
				t.Errorf("members:\n%s\nwant:\n%s", names.String(), want)
			}
			if want := sh(dir, c[2]); texts.String() != want {
				t.Errorf("%d bytes of text, want %d", texts.Len(), len(want))
			}
		})
	}
}

// FuzzUnpack: no file of any format ends the process or takes more than its bounds.
func FuzzUnpack(f *testing.F) {
	f.Add(gzipped(f, []byte("text")))
	z, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(z.EncodeAll([]byte("text"), nil))
	f.Fuzz(func(t *testing.T, stored []byte) {
		for format := range programs {
			r, err := NewReader(format, io.NewSectionReader(bytes.NewReader(stored), 0, int64(len(stored))))
			if err == nil {
				_, _ = io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			}
		}
	})
}

// FuzzWalk: no archive ends the process, and no name leads out of it.
func FuzzWalk(f *testing.F) {
	members := []member{{name: "a.txt", text: "one"}, {name: "d/../../b", text: "two"}}
	f.Add(zipOf(f, members...))
	f.Add(tarOf(f, members...))
	f.Add(gzipped(f, tarOf(f, members...)))
	f.Fuzz(func(t *testing.T, stored []byte) {
		members, _ := listed(t, stored)
		for _, m := range members {
			if strings.HasPrefix(m, "../") || strings.HasPrefix(m, "/") {
				t.Errorf("the member %q leads out of its archive", m)
			}
		}
	})
}
