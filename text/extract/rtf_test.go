package extract

import (
	"errors"
	"strings"
	"testing"
)

func TestRTF(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"charset": {
			`{\rtf1\ansi\ansicpg1252 Die Geb\'fchr betr\'e4gt {\b 90} Franken.\par Zweite Zeile.}`,
			"Die Gebühr beträgt 90 Franken.\nZweite Zeile.\n",
		},
		"code page":     {`{\rtf1\ansi\ansicpg1251 \'ca\'e0\'e7\'e0\'ed\'fc}`, "Казань\n"},
		"DOS code page": {`{\rtf1\pc\ansicpg850 K\'94ln}`, "Köln\n"},
		"font charset": {
			`{\rtf1\ansi{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset128 Gothic;}}` +
				`\f0 caf\'e9 \f1 \'ca\'e0\'e7\'e0\'ed\'fc {\f2 \'8b\'9e\'93s}}`,
			"café Казань 京都\n",
		},
		"unicode":      {`{\rtf1\uc1 Orl\u233?ans, \u-10179?\u-8704?, {\uc0\u8364}5, {\uc2\u233\'e9\'e9x}}`, "Orléans, 😀, €5, éx\n"},
		"escapes":      {`{\rtf1 a\{b\}\\c\~d\_e\-f\'}`, "a{b}\\c d-ef\n"},
		"raw newlines": {"{\\rtf1 a\r\nb\\line c\\\nd}", "ab\nc\nd\n"},
		"table":        {`{\rtf1\trowd Name\cell 12\cell\row}`, "Name | 12 |\n"},
		"skipped": {
			`{\rtf1{\stylesheet{\s0 Normal;}}{\info{\title T}}{\*\generator X;}` +
				`a{\*\shppict{\pict\pngblip 89504e}}{\nonshppict{\pict 00}}b}`,
			"ab\n[not read: 1 picture]\n",
		},
		"link": {
			`{\rtf1 see {\field{\*\fldinst HYPERLINK "http://a.example"}{\fldrslt the list}}}`,
			"see the list\n[1 field: only the text is read, no address of a link]\n",
		},
		"scripts": {`{\rtf1 10\super 7\nosupersub  m{\super 2} H{\sub 2}O {\deleted 9 }{\v 8 }5}`, "10^7 m^2 H_2O 5\n"},
		"boxes":   {`{\rtf1 a{\shp{\*\shpinst{\sp}{\shptxt Box 31\par}}}{\*\annotation Ann 4}}`, "aBox 31\nAnn 4\n"},
		"nested":  {`{\rtf1 n1\nestcell n2\nestcell{\*\nesttableprops\nestrow}out\cell\row}`, "n1 | n2 |\nout |\n"},
		"symbols": {`{\rtf1{\fonttbl{\f3\fcharset2 Symbol;}}5 {\f3 \'a3}m}`, "5 m\n[not read: 1 symbol]\n"},
		"old Mac": {`{\rtf1\mac caf\'8e}`, "café\n"},
		"binary":  {`{\rtf1 a{\*\x\bin3 }}}}b}`, "ab\n"},
	} {
		t.Run(name, func(t *testing.T) {
			x, err := read(t, "rtf", []byte(c.text))
			if got := show(x); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"plain text", `{\rtf1 ` + strings.Repeat("{", 300)} {
		if _, err := read(t, "rtf", []byte(bad)); !errors.Is(err, ErrBroken) {
			t.Errorf("%.20q: got %v, want %v", bad, err, ErrBroken)
		}
	}
}
