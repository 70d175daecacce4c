package content

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/mcp-funnel/mcp-funnel/conformance/expect"
)

func TestLegacyEncoding(t *testing.T) {
	const russian = "Собрание пройдет в Казани во вторник.\n"
	logged := strings.Repeat("2026-03-01 10:00:00 INFO request served in 12 ms\n", 40)
	for name, tt := range map[string]struct {
		by   encoding.Encoding
		text string
		want Encoding
	}{
		"French":             {charmap.Windows1252, "Le café est fermé à Orléans le mardi.\n", Latin1},
		"German":             {charmap.Windows1252, "Die Gebühr beträgt 90 Franken.\n", Latin1},
		"a name":             {charmap.Windows1252, "name;straße\nMüller;Hauptstraße\n", Latin1},
		"Spanish names":      {charmap.Windows1252, "id,name,city\n1,José,Málaga\n2,Ana,Cádiz\n3,Iñigo,Logroño\n", Latin1},
		"quotes":             {charmap.Windows1252, "It’s a “test” – costs 5 €.\n", Latin1},
		"log":                {charmap.Windows1252, logged + "Größe der Füße überschritten\n", Latin1},
		"Russian":            {charmap.Windows1251, russian, "windows-1251"},
		"Russian log":        {charmap.Windows1251, logged + "ошибка: файл не найден\n", "windows-1251"},
		"Russian word":       {charmap.Windows1251, "city: Казань\n", "perhaps windows-1251"},
		"KOI8-R":             {charmap.KOI8R, russian, "koi8-r"},
		"KOI8-R in code":     {charmap.KOI8R, "// комментарий\nfunc main() { fmt.Println(1) }\n", "perhaps koi8-r"},
		"Russian, DOS":       {charmap.CodePage866, russian, "perhaps ibm866"},
		"German, DOS":        {charmap.CodePage850, "Die Gebühr beträgt 90 Franken. Grüße aus Köln.\n", "perhaps cp850"},
		"Polish":             {charmap.Windows1250, "Zażółć gęślą jaźń. Spotkanie odbędzie się w Łodzi.\n", "windows-1250"},
		"Polish, ISO":        {charmap.ISO8859_2, "Zażółć gęślą jaźń. Spotkanie odbędzie się w Łodzi.\n", "iso-8859-2"},
		"Hungarian":          {charmap.Windows1250, "Az ülés kedden lesz Győrben, a művelődési házban.\n", "windows-1250"},
		"Czech":              {charmap.Windows1250, "Příliš žluťoučký kůň úpěl ďábelské ódy.\n", "perhaps windows-1250"},
		"Greek":              {charmap.Windows1253, "Αυτό είναι ένα ελληνικό κείμενο για την Αθήνα.\n", "windows-1253"},
		"Turkish":            {charmap.Windows1254, "Toplantı salı günü İstanbul'da, şimdi değil.\n", "perhaps windows-1254"},
		"Hebrew":             {charmap.Windows1255, "הפגישה תתקיים ביום שלישי בירושלים.\n", "windows-1255"},
		"Arabic":             {charmap.Windows1256, "سيعقد الاجتماع يوم الثلاثاء في القاهرة.\n", "windows-1256"},
		"Japanese":           {japanese.ShiftJIS, "会議は火曜日に京都で行われます。\n", "shift_jis"},
		"Japanese log":       {japanese.ShiftJIS, logged + "エラー: ファイルが見つかりません\n", "shift_jis"},
		"Japanese word":      {japanese.ShiftJIS, "name=京都 id=5\n", "perhaps shift_jis"},
		"EUC-JP":             {japanese.EUCJP, "会議は火曜日に京都で行われます。\n", "euc-jp"},
		"Chinese":            {simplifiedchinese.GBK, "会议将于星期二在杭州举行。\n", "gbk"},
		"Chinese names":      {simplifiedchinese.GBK, "id,name,city\n1,张伟,北京\n2,王芳,上海\n", "perhaps gbk"},
		"Chinese word":       {simplifiedchinese.GBK, "城市: 杭州\n", "perhaps gbk"},
		"Chinese, GB18030":   {simplifiedchinese.GB18030, "会议将于星期二在杭州举行，费用是㐀𠀀元。\n", "gb18030"},
		"Chinese, Taiwan":    {traditionalchinese.Big5, "會議將於星期二在臺北舉行。\n", "big5"},
		"Korean":             {korean.EUCKR, "회의는 화요일 부산에서 열립니다.\n", "euc-kr"},
		"declared in XML":    {charmap.ISO8859_5, `<?xml version="1.0" encoding="ISO-8859-5"?><a>Казань</a>`, "iso-8859-5"},
		"declared in HTML":   {charmap.ISO8859_15, `<meta charset=iso-8859-15><p>5 €`, "iso-8859-15"},
		"declared in Python": {charmap.KOI8R, "# -*- coding: koi8-r -*-\ns = 'я'\n", "koi8-r"},
		"declared in CSS":    {charmap.Windows1251, `@charset "windows-1251"; a::before { content: "я" }`, "windows-1251"},
		"declared wrongly":   {charmap.Windows1252, `<?xml encoding="utf-8"?><a>Gebühr</a>`, Latin1},
		"declared as none":   {charmap.Windows1252, `charset = whatever; Gebühr`, Latin1},
	} {
		stored, err := tt.by.NewEncoder().String(tt.text)
		expect.Must(t, err)
		for range 20 { // the detector works concurrently
			d, e, err := Decode(strings.NewReader(stored))
			expect.Must(t, err)
			got, err := io.ReadAll(d)
			if e != tt.want || err != nil || string(got) != tt.text {
				t.Errorf("%s: %s: %.60q, %v; want %s", name, e, got, err, tt.want)
				break
			}
		}
	}
}
