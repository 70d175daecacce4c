package cases

import "testing"

func TestDocuments(t *testing.T) {
	read := func(dir, file string, has ...string) one {
		return one{dir: dir, args: call("read", "path="+file), has: has}
	}
	try(t, []one{
		{
			dir: "formulas", args: call("read", "path=math.docx"),
			has: []string{"1/2 tablet", "10^6 cells", "5 m^2", "10^9 per litre"}, lacks: []string{"12 tablet", "106", "109"},
		},
		read("formulas", "sup.html.eml", "10^6 units", "5 m^2", "1_a", "1/2 cup", "3⁄4 spoon", "2½ kg"),
		read("formulas", "formula.odt", "Half is 1/2 of it"),
		read("formulas", "power.odt", "Limit: 10^6 cells."),
		read("documents", "altchunk.docx",
			"Report of the week.\nThe delivery to Tromsø is delayed by nine days.\nEnd of report."),
		read("documents", "sym.docx", "Approved: ☑ yes ☐ no", "Temperature ≥ 5 µg"),
		read("documents", "smartart.docx", "Process overview:\nCollect samples at Kiruna"),
		read("documents", "vml.docx", "CONFIDENTIAL DRAFT 7", "Box text old style"),
		read("documents", "comments.docx", "Approved\nApproved\nPlease check the amount"),
		read("documents", "comments.pptx", "Move launch to 9 June", "Budget is wrong, use 88k"),
		read("documents", "link.docx", "this form <https://forms.example/apply-2026> by 3 May.",
			"Leave portal <https://intra.example/leave>"),
		read("documents", "links.html.eml", "the guide <https://docs.example/guide-77>", "us <mailto:help@x.example>"),
		read("documents", "alttext.docx", "Map of the quarry near Larvik"),
		read("documents", "alt.pptx", "Photo of the dam at Vemork"),
		read("documents", "gridspan.docx", "Item | 2024 |  | 2025 | \n | Plan | Actual | Plan | Actual"),
		read("documents", "rowspan.html.eml", "North | Oslo | 5\n | Bergen | 7\nTotal |  | 12"),
		read("documents", "freetext.pdf", "Rent contract\nDeposit 1,800 euro"),
		{
			dir: "encodings", args: call("search", "pattern=well-known", "path=hyph2.pdf"),
			has: []string{"spelled also: well-known"},
		},
		{
			dir: "encodings", args: call("search", "pattern=wellknown", "path=hyph2.pdf"),
			has: []string{"The wellknown author"},
		},
	})
}
